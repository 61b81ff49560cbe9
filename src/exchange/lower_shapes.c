/* Operators that give elements another shape or place. Those that only rename axes cost
 * nothing, in whatever order the axes lie. */
#include <inttypes.h>
#include <string.h>

#include "exchange/lower_priv.h"

static stint_status reshaped(sti_lowering *l, const sti_exchange_node *n,
                             const sti_lane_value *x, int rank, const int64_t *dim)
{
    if (rank > STINT_MAX_RANK)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "more than %d axes",
                                STINT_MAX_RANK);
    const sti_lane_value y = sti_lane_regrouped(l, x, rank, dim);
    return sti_lower_result(l, n, 0, &y, y.value);
}

stint_status sti_lower_reshape(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    const int64_t *want;
    int64_t count, dim[STI_EXCHANGE_RANK], to[STI_EXCHANGE_RANK];
    int rank;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK ||
        (st = sti_lower_list(l, n, 1, "shape", &want, &count)) != STINT_OK)
        return st;
    sti_lane_dims(l, &x, dim);
    st = sti_known_reshape(n, x.rank, dim, want, count < 0 ? 0 : count,
                           sti_exchange_attr_int(n, "allowzero", 0) != 0, &rank, to);
    return st == STINT_OK ? reshaped(l, n, &x, rank, to) : st;
}

stint_status sti_lower_flatten(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    int64_t axis = sti_exchange_attr_int(n, "axis", 1), dim[STINT_MAX_RANK];
    int64_t to[2] = {1, 1};
    const stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK)
        return st;
    axis += axis < 0 ? x.rank : 0;
    if (axis < 0 || axis > x.rank)
        return sti_lower_refuse(l, STINT_E_INPUT, "no such axis");
    sti_lane_dims(l, &x, dim);
    for (int i = 0; i < x.rank; i++)
        to[i >= axis] *= dim[i];
    return reshaped(l, n, &x, 2, to);
}

stint_status sti_lower_squeeze(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    const int64_t *axes;
    int64_t count, dim[STINT_MAX_RANK];
    unsigned gone = 0;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK ||
        (st = sti_lower_list(l, n, 1, "axes", &axes, &count)) != STINT_OK)
        return st;
    sti_lane_dims(l, &x, dim);
    for (int i = 0; count < 0 && i < x.rank; i++)
        gone |= (unsigned)(dim[i] == 1) << i;
    for (int64_t i = 0; i < count; i++) {
        int axis;
        if ((st = sti_lower_axis_of(l, axes[i], x.rank, &axis)) != STINT_OK)
            return st;
        if (dim[axis] != 1)
            return sti_lower_refuse(l, STINT_E_INPUT,
                                    "axis %d has length %" PRId64 ", wanted 1", axis,
                                    dim[axis]);
        gone |= 1u << axis;
    }
    const sti_lane_value y = sti_lane_without(l, &x, gone);
    return sti_lower_result(l, n, 0, &y, y.value);
}

/* New axes stand in front in memory. */
stint_status sti_lower_unsqueeze(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x, y;
    const int64_t *axes;
    int64_t count;
    unsigned fresh = 0;
    int8_t place[STINT_MAX_RANK];
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK ||
        (st = sti_lower_list(l, n, 1, "axes", &axes, &count)) != STINT_OK)
        return st;
    if (count < 0 || x.rank + count > STINT_MAX_RANK)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "more than %d axes",
                                STINT_MAX_RANK);
    const int rank = x.rank + (int)count;
    for (int64_t i = 0; i < count; i++) {
        int axis;
        if ((st = sti_lower_axis_of(l, axes[i], rank, &axis)) != STINT_OK)
            return st;
        if (fresh >> axis & 1)
            return sti_lower_refuse(l, STINT_E_INPUT, "axis %d twice", axis);
        fresh |= 1u << axis;
    }
    for (int i = 0, k = 0; i < rank; i++)
        if (!(fresh >> i & 1))
            place[k++] = (int8_t)i;
    y = sti_lane_widened(l, &x, rank);
    for (int i = 0, k = 0; i < rank; i++)
        if (fresh >> i & 1)
            y.order[k++] = (int8_t)i;
    for (int i = 0; i < x.rank; i++)
        y.order[count + i] = place[x.order[i]];
    return sti_lower_result(l, n, 0, &y, y.value);
}

/* No element moves: axis i of the result is axis perm[i] of x, so what lies in memory
 * gets other names. */
stint_status sti_lower_transpose(sti_lowering *l, const sti_exchange_node *n)
{
    const sti_exchange_attr *a = sti_exchange_attr_find(n, "perm");
    sti_lane_value x, y;
    int8_t name[STINT_MAX_RANK] = {0};
    unsigned seen = 0;
    const stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK)
        return st;
    if (a && (a->kind != STI_EXCHANGE_INTS || a->count != x.rank))
        return sti_lower_refuse(l, STINT_E_INPUT, "perm is no order of %d axes",
                                x.rank);
    for (int i = 0; i < x.rank; i++) {
        const int64_t from = a ? a->ints[i] : x.rank - 1 - i;
        if (from < 0 || from >= x.rank || (seen >> from & 1))
            return sti_lower_refuse(l, STINT_E_INPUT, "perm is no order of %d axes",
                                    x.rank);
        seen |= 1u << from;
        name[from] = (int8_t)i;
    }
    y = x;
    for (int i = 0; i < x.rank; i++)
        y.order[i] = name[x.order[i]];
    return sti_lower_result(l, n, 0, &y, y.value);
}

stint_status sti_lower_expand(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    const int64_t *want;
    int64_t count, dim[STI_EXCHANGE_RANK], to[STI_EXCHANGE_RANK];
    int rank;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_list(l, n, 1, "", &want, &count)) != STINT_OK)
        return st;
    sti_lane_dims(l, &x, dim);
    if (count < 0 || count > STINT_MAX_RANK ||
        !sti_known_broadcast(x.rank, dim, (int)count, want, &rank, to))
        return sti_lower_refuse(l, STINT_E_INPUT,
                                "the shape does not go with the operand's");
    sti_lane_value y = sti_lane_widened(l, &x, rank);
    stint_shape shape = stint_value_shape(l->graph, y.value);
    for (int i = 0; i < rank; i++)
        shape.dim[i] = to[y.order[i]];
    return sti_lower_result(l, n, 0, &y, stint_broadcast(l->graph, y.value, &shape));
}

/* All operands in the order of the first that depends on inputs. */
stint_status sti_lower_concat(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value first = {.value = -1}, x;
    stint_status st = STINT_OK;
    int axis;
    stint_value *in = sti_arena_alloc(l->arena, (size_t)n->n_in * sizeof *in);
    if (!in)
        return STINT_E_MEMORY;
    for (int i = 0; i < n->n_in; i++)
        if (sti_lower_in(l, n, i)->kind == STI_SLOT_LANE && first.value < 0)
            first = sti_lower_in(l, n, i)->lane;
    if (first.value < 0 && (st = sti_lower_lane(l, n, 0, &first)) != STINT_OK)
        return st;
    if ((st = sti_lower_axis(l, n, 0, first.rank, &axis)) != STINT_OK)
        return st;
    for (int i = 0; i < n->n_in; i++) {
        if ((st = sti_lower_lane(l, n, i, &x)) != STINT_OK)
            return st;
        if (x.rank != first.rank)
            return sti_lower_refuse(l, STINT_E_INPUT,
                                    "operand %d has %d axes, the first %d", i, x.rank,
                                    first.rank);
        x = sti_lane_typed(l, &x, first.type);
        in[i] = sti_lane_ordered(l, &x, first.order);
    }
    return sti_lower_result(
        l, n, 0, &first,
        stint_concat(l->graph, in, n->n_in, sti_lane_axis(&first, axis)));
}

/* ---- parts ---- */

/* count elements from begin, step apart, of ONNX's axis. */
static stint_status part(sti_lowering *l, const sti_lane_value *x, int axis,
                         int64_t begin, int64_t count, int64_t step, sti_lane_value *y)
{
    const int at = sti_lane_axis(x, axis);
    *y = *x;
    if (count < 1)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "a result without elements");
    if (begin == 0 && step == 1 && count == sti_lane_dim(l, x, axis))
        return STINT_OK;
    if (step > 0) {
        y->value = stint_slice(l->graph, x->value, at, begin,
                               begin + (count - 1) * step + 1, step);
    } else {
        int64_t *index = sti_arena_alloc(l->arena, (size_t)count * sizeof *index);
        if (!index)
            return STINT_E_MEMORY;
        for (int64_t i = 0; i < count; i++)
            index[i] = begin + i * step;
        y->value =
            stint_take(l->graph, x->value, sti_lower_indices(l, count, index), at);
    }
    return y->value < 0 ? sti_graph_status(l->graph) : STINT_OK;
}

typedef struct slice_lists {
    const int64_t *begin, *end, *axes, *step;
    int64_t count, ends, axis_count, steps;
} slice_lists;

static stint_status read_slice(sti_lowering *l, const sti_exchange_node *n,
                               slice_lists *s)
{
    stint_status st = sti_lower_list(l, n, 1, "starts", &s->begin, &s->count);
    if (st == STINT_OK)
        st = sti_lower_list(l, n, 2, "ends", &s->end, &s->ends);
    if (st == STINT_OK)
        st = sti_lower_list(l, n, 3, "axes", &s->axes, &s->axis_count);
    if (st == STINT_OK)
        st = sti_lower_list(l, n, 4, "steps", &s->step, &s->steps);
    if (st == STINT_OK &&
        (s->count < 0 || s->count > STI_EXCHANGE_RANK || s->count != s->ends ||
         (s->axis_count >= 0 && s->axis_count != s->count) ||
         (s->steps >= 0 && s->steps != s->count)))
        return sti_lower_refuse(l, STINT_E_INPUT,
                                "starts, ends, axes and steps differ in number");
    return st;
}

stint_status sti_lower_slice(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    slice_lists s;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = read_slice(l, n, &s)) != STINT_OK)
        return st;
    for (int64_t i = 0; i < s.count; i++) {
        int axis;
        int64_t begin;
        const int64_t step = s.step ? s.step[i] : 1;
        if ((st = sti_lower_axis_of(l, s.axes ? s.axes[i] : i, x.rank, &axis)) !=
            STINT_OK)
            return st;
        if (step == 0)
            return sti_lower_refuse(l, STINT_E_INPUT, "a step of 0");
        const int64_t count = sti_known_slice(sti_lane_dim(l, &x, axis), s.begin[i],
                                              s.end[i], step, &begin);
        if ((st = part(l, &x, axis, begin, count, step, &x)) != STINT_OK)
            return st;
    }
    return sti_lower_result(l, n, 0, &x, x.value);
}

stint_status sti_lower_split(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x, y;
    const int64_t *lengths;
    int64_t count, begin = 0;
    int axis;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_axis(l, n, 0, x.rank, &axis)) != STINT_OK ||
        (st = sti_lower_list(l, n, 1, "split", &lengths, &count)) != STINT_OK)
        return st;
    const int64_t length = sti_lane_dim(l, &x, axis);
    const int64_t each = (length + n->n_out - 1) / n->n_out;
    if (count >= 0 && count != n->n_out)
        return sti_lower_refuse(l, STINT_E_INPUT, "%" PRId64 " lengths for %d results",
                                count, n->n_out);
    for (int i = 0; i < n->n_out; i++) {
        int64_t part_length = lengths ? lengths[i] : each;
        if (!lengths && part_length > length - begin)
            part_length = length - begin;
        if (part_length < 0 || part_length > length - begin)
            return sti_lower_refuse(l, STINT_E_INPUT,
                                    "parts that are longer than the axis, %" PRId64,
                                    length);
        if (n->out[i][0] &&
            ((st = part(l, &x, axis, begin, part_length, 1, &y)) != STINT_OK ||
             (st = sti_lower_result(l, n, i, &y, y.value)) != STINT_OK))
            return st;
        begin += part_length;
    }
    return STINT_OK;
}
