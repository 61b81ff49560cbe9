/* Operators that choose elements: by index, by condition, by size. */
#include <inttypes.h>
#include <string.h>

#include "exchange/lower_priv.h"

/* ---- along an axis ---- */

stint_status sti_lower_gather(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x, index;
    int axis;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_axis(l, n, 0, x.rank, &axis)) != STINT_OK ||
        (st = sti_lower_lane(l, n, 1, &index)) != STINT_OK)
        return st;
    index = sti_lane_typed(l, &index, STI_EXCHANGE_I64);
    const stint_value i = sti_lane_straight(l, &index);
    if (x.rank - 1 + index.rank > STINT_MAX_RANK)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "more than %d axes",
                                STINT_MAX_RANK);
    if (index.rank == 0) { /* the axis goes; the others stay as they lie */
        const stint_shape one = stint_shape_make(STINT_I32, 1, (int64_t[]){1});
        sti_lane_value y = x;
        y.value = stint_take(l->graph, x.value, stint_reshape(l->graph, i, &one),
                             sti_lane_axis(&x, axis));
        y = sti_lane_without(l, &y, 1u << axis);
        return sti_lower_result(l, n, 0, &y, y.value);
    }
    if (index.rank == 1) {
        const stint_value y = stint_take(l->graph, x.value, i, sti_lane_axis(&x, axis));
        return sti_lower_result(l, n, 0, &x, y);
    }
    const sti_lane_value y = sti_lane_plain(
        l, stint_take(l->graph, sti_lane_straight(l, &x), i, axis), x.type);
    return sti_lower_result(l, n, 0, &y, y.value);
}

/* A flat tensor of f32 positions becomes indices. Positions are exact in f32 up to
 * 2^24. */
static stint_status take_flat(sti_lowering *l, const sti_exchange_node *n,
                              const sti_lane_value *x, stint_value flat_index, int rank,
                              const int64_t *dim, int64_t inner)
{
    const stint_shape from = stint_value_shape(l->graph, x->value);
    const int64_t count = stint_shape_count(&from);
    if (count / inner > 1 << 24)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "over more than 2^24 elements");
    const stint_shape rows = STINT_SHAPE(count / inner, inner);
    const stint_value table = stint_reshape(l->graph, sti_lane_straight(l, x), &rows);
    const stint_value at = stint_to_i32(l->graph, flat_index);
    const sti_lane_value flat =
        sti_lane_plain(l, stint_take(l->graph, table, at, 0), x->type);
    const sti_lane_value y = sti_lane_reshaped(l, &flat, rank, dim);
    return sti_lower_result(l, n, 0, &y, y.value);
}

/* Positions below 0 count from the end. */
static stint_value from_front(sti_lowering *l, stint_value index, int64_t length)
{
    const stint_value below = stint_less(l->graph, index, sti_lower_scalar(l, 0.0f));
    return stint_add(l->graph, index, stint_scale(l->graph, below, (float)length));
}

/* Where in x, straight, each index of a tensor of as many axes points: along one axis,
 * and along the others where it lies itself. */
stint_status sti_lower_element_places(sti_lowering *l, const sti_exchange_node *n,
                                      const sti_lane_value *of, sti_lane_value index,
                                      stint_value *at_out)
{
    const sti_lane_value x = *of;
    int axis;
    int64_t dx[STINT_MAX_RANK], di[STINT_MAX_RANK], stride = 1, count = 1;
    const stint_status st = sti_lower_axis(l, n, 0, x.rank, &axis);
    if (st != STINT_OK)
        return st;
    if (index.rank != x.rank)
        return sti_lower_refuse(l, STINT_E_INPUT, "indices of %d axes for %d",
                                index.rank, x.rank);
    sti_lane_dims(l, &x, dx);
    sti_lane_dims(l, &index, di);
    for (int i = 0; i < x.rank; i++) {
        stride *= i > axis ? dx[i] : 1;
        count *= di[i];
        if (i != axis && di[i] > dx[i])
            return sti_lower_refuse(l, STINT_E_INPUT, "indices larger than the tensor");
    }
    float *base = sti_arena_alloc(l->arena, (size_t)count * sizeof *base);
    if (!base)
        return STINT_E_MEMORY;
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = k, run = 1, at = 0;
        for (int i = x.rank - 1; i >= 0; i--) {
            at += i == axis ? 0 : rest % di[i] * run;
            rest /= di[i];
            run *= dx[i];
        }
        base[k] = (float)at;
    }
    const stint_shape flat = STINT_SHAPE(count);
    index = sti_lane_f32(l, &index);
    stint_value at = stint_reshape(l->graph, sti_lane_straight(l, &index), &flat);
    at = stint_scale(l->graph, from_front(l, at, dx[axis]), (float)stride);
    *at_out = stint_add(l->graph, at, sti_lower_constant(l, &flat, base));
    return *at_out < 0 ? sti_graph_status(l->graph) : STINT_OK;
}

stint_status sti_lower_gather_elements(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x, index;
    int64_t di[STINT_MAX_RANK];
    stint_value at = -1;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_lane(l, n, 1, &index)) != STINT_OK ||
        (st = sti_lower_element_places(l, n, &x, index, &at)) != STINT_OK)
        return st;
    sti_lane_dims(l, &index, di);
    return take_flat(l, n, &x, at, x.rank, di, 1);
}

/* The same of indices [..., depth], each of which is a place along the first axes: rows
 * of *inner elements. */
stint_status sti_lower_row_places(sti_lowering *l, const sti_lane_value *of,
                                  sti_lane_value index, int64_t *inner_out,
                                  int64_t *depth_out, stint_value *at_out)
{
    const sti_lane_value x = *of;
    int64_t dx[STINT_MAX_RANK], di[STINT_MAX_RANK], inner = 1, rows = 1;
    stint_value at = -1;
    sti_lane_dims(l, &x, dx);
    sti_lane_dims(l, &index, di);
    const int64_t depth = index.rank > 0 ? di[index.rank - 1] : 0;
    if (depth < 1 || depth > x.rank)
        return sti_lower_refuse(l, STINT_E_INPUT, "indices of %" PRId64 " axes for %d",
                                depth, x.rank);
    for (int i = (int)depth; i < x.rank; i++)
        inner *= dx[i];
    for (int i = 0; i < index.rank - 1; i++)
        rows *= di[i];
    const stint_shape table = STINT_SHAPE(rows, depth), flat = STINT_SHAPE(rows);
    index = sti_lane_f32(l, &index);
    const stint_value all =
        stint_reshape(l->graph, sti_lane_straight(l, &index), &table);
    for (int i = 0; i < depth; i++) {
        stint_value part = stint_slice(l->graph, all, 1, i, i + 1, 1);
        part = from_front(l, stint_reshape(l->graph, part, &flat), dx[i]);
        at = i == 0
                 ? part
                 : stint_add(l->graph, stint_scale(l->graph, at, (float)dx[i]), part);
    }
    *inner_out = inner;
    *depth_out = depth;
    *at_out = at;
    return at < 0 ? sti_graph_status(l->graph) : STINT_OK;
}

stint_status sti_lower_gather_nd(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x, index;
    int64_t dx[STINT_MAX_RANK], to[2 * STINT_MAX_RANK], inner, depth;
    stint_value at = -1;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_lane(l, n, 1, &index)) != STINT_OK)
        return st;
    if (sti_exchange_attr_int(n, "batch_dims", 0))
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "with batch_dims");
    if ((st = sti_lower_row_places(l, &x, index, &inner, &depth, &at)) != STINT_OK)
        return st;
    const int rank = index.rank - 1 + x.rank - (int)depth;
    if (rank > STINT_MAX_RANK)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "more than %d axes",
                                STINT_MAX_RANK);
    sti_lane_dims(l, &x, dx);
    sti_lane_dims(l, &index, to);
    for (int i = (int)depth; i < x.rank; i++)
        to[index.rank - 1 + i - depth] = dx[i];
    return take_flat(l, n, &x, at, rank, to, inner);
}

stint_status sti_lower_tile(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    const int64_t *repeats;
    int64_t count;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK ||
        (st = sti_lower_list(l, n, 1, "", &repeats, &count)) != STINT_OK)
        return st;
    if (count != x.rank)
        return sti_lower_refuse(l, STINT_E_INPUT, "%" PRId64 " repeats for %d axes",
                                count, x.rank);
    for (int i = 0; i < x.rank; i++) {
        const int64_t length = sti_lane_dim(l, &x, i);
        if (repeats[i] < 1 || repeats[i] > STI_KNOWN_MAX / length)
            return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "%" PRId64 " repeats",
                                    repeats[i]);
        int64_t *index =
            sti_arena_alloc(l->arena, (size_t)(length * repeats[i]) * sizeof *index);
        if (!index)
            return STINT_E_MEMORY;
        for (int64_t k = 0; k < length * repeats[i]; k++)
            index[k] = k % length;
        if (repeats[i] > 1)
            x = sti_lane_taken(l, &x, i, length * repeats[i], index);
    }
    return sti_lower_result(l, n, 0, &x, x.value);
}

/* ---- by condition ---- */

stint_status sti_lower_where(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value v[3];
    int lead = 0, rank = 0;
    int64_t most = -1;
    stint_status st;
    for (int i = 0; i < 3; i++) {
        if ((st = sti_lower_lane(l, n, i, &v[i])) != STINT_OK)
            return st;
        rank = v[i].rank > rank ? v[i].rank : rank;
    }
    v[2] = sti_lane_typed(l, &v[2], v[1].type);
    v[0] = sti_lane_f32(l, &v[0]);
    for (int i = 0; i < 3; i++) {
        const stint_shape shape = stint_value_shape(l->graph, v[i].value);
        if (v[i].rank == rank && stint_shape_count(&shape) > most) {
            most = stint_shape_count(&shape);
            lead = i;
        }
    }
    for (int i = 0; i < 3; i++) {
        v[i] = sti_lane_widened(l, &v[i], rank);
        v[i].value = sti_lane_ordered(l, &v[i], v[lead].order);
    }
    v[lead].type = v[1].type;
    return sti_lower_result(l, n, 0, &v[lead],
                            stint_select(l->graph, v[0].value, v[1].value, v[2].value));
}

/* ---- by size ---- */

/* The first, or last, of the largest: of those that equal the maximum, the one whose
 * weight, which falls or rises along the axis, is largest. */
static stint_status lower_arg(sti_lowering *l, const sti_exchange_node *n, bool largest)
{
    sti_lane_value x;
    int axis;
    stint_graph *g = l->graph;
    const bool last = sti_exchange_attr_int(n, "select_last_index", 0) != 0;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_axis(l, n, 0, x.rank, &axis)) != STINT_OK)
        return st;
    x = sti_lane_f32(l, &x);
    if (!largest)
        x.value = sti_op_negate(g, x.value);
    const int at = sti_lane_axis(&x, axis);
    stint_shape weights = {.rank = x.rank, .dtype = STINT_F32};
    for (int i = 0; i < x.rank; i++)
        weights.dim[i] = 1;
    const int64_t length = weights.dim[at] = sti_lane_dim(l, &x, axis);
    float *weight = sti_arena_alloc(l->arena, (size_t)length * sizeof *weight);
    if (!weight)
        return STINT_E_MEMORY;
    if (length > 1 << 24)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "over more than 2^24 elements");
    for (int64_t i = 0; i < length; i++)
        weight[i] = (float)(last ? i + 1 : length - i);
    const stint_value hit =
        stint_equal(g, x.value, stint_max(g, x.value, 1u << at, true));
    const stint_value score =
        stint_mul(g, hit, sti_lower_constant(l, &weights, weight));
    stint_value y = stint_max(g, score, 1u << at, true);
    y = last ? stint_add_scalar(g, y, -1.0f)
             : stint_add_scalar(g, sti_op_negate(g, y), (float)length);
    sti_lane_value out = x;
    out.value = y;
    if (!sti_exchange_attr_int(n, "keepdims", 1))
        out = sti_lane_without(l, &out, 1u << axis);
    out = sti_lane_typed(l, &out, STI_EXCHANGE_I64);
    return sti_lower_result(l, n, 0, &out, out.value);
}

stint_status sti_lower_arg_max(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_arg(l, n, true);
}

stint_status sti_lower_arg_min(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_arg(l, n, false);
}

stint_status sti_lower_top_k(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    int axis;
    double count = (double)sti_exchange_attr_int(n, "k", 0); /* before opset 10 */
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_axis(l, n, -1, x.rank, &axis)) != STINT_OK ||
        (st = sti_lower_number(l, n, 1, count, &count)) != STINT_OK)
        return st;
    const int type = x.type;
    x = sti_lane_f32(l, &x);
    const int64_t length = sti_lane_dim(l, &x, axis);
    if (!(count >= 1.0 && count <= (double)length))
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "%.0f of %" PRId64 " elements",
                                count, length);
    const sti_lane_value rows = sti_lane_with_last(l, &x, axis);
    stint_value index = -1;
    const stint_value top =
        stint_top(l->graph, rows.value, (int64_t)count,
                  sti_exchange_attr_int(n, "largest", 1) == 0, &index);
    if (top < 0)
        return sti_graph_status(l->graph);
    sti_lane_value y = rows, i = rows;
    y.value = top;
    y = sti_lane_typed(l, &y, type);
    i.value = index;
    i.type = STI_EXCHANGE_I64;
    if ((st = sti_lower_result(l, n, 0, &y, y.value)) != STINT_OK)
        return st;
    return sti_lower_result(l, n, 1, &i, i.value);
}

/* ---- made of constants ---- */

/* Sums along an axis: a product with a triangle of ones. */
stint_status sti_lower_cum_sum(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    double where;
    int64_t rows[2] = {1, 1};
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_number(l, n, 1, 0.0, &where)) != STINT_OK)
        return st;
    const int axis = sti_known_axis(sti_known_whole(where), x.rank);
    if (axis < 0)
        return sti_lower_refuse(l, STINT_E_INPUT, "no such axis");
    const bool reverse = sti_exchange_attr_int(n, "reverse", 0) != 0,
               exclusive = sti_exchange_attr_int(n, "exclusive", 0) != 0;
    const int type = x.type;
    x = sti_lane_f32(l, &x);
    const int64_t length = sti_lane_dim(l, &x, axis);
    if (length > 4096)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "along more than 4096 elements");
    float *ones = sti_arena_alloc(l->arena, (size_t)(length * length) * sizeof *ones);
    if (!ones)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < length; i++)
        for (int64_t k = 0; k < length; k++) {
            const int64_t ahead = reverse ? i - k : k - i;
            ones[i * length + k] =
                ahead > 0 || (ahead == 0 && !exclusive) ? 1.0f : 0.0f;
        }
    const sti_lane_value last = sti_lane_with_last(l, &x, axis);
    const stint_shape full = stint_value_shape(l->graph, last.value),
                      square = STINT_SHAPE(length, length);
    rows[0] = stint_shape_count(&full) / length;
    const stint_shape flat = STINT_SHAPE(rows[0], length);
    stint_value y = stint_matmul(l->graph, stint_reshape(l->graph, last.value, &flat),
                                 sti_lower_constant(l, &square, ones), false, false);
    sti_lane_value out = last;
    out.value = stint_reshape(l->graph, y, &full);
    out = sti_lane_typed(l, &out, type);
    return sti_lower_result(l, n, 0, &out, out.value);
}

/* A matrix of ones and zeros decides; what is not chosen is 0. */
stint_status sti_lower_trilu(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    double shift;
    int64_t dim[STINT_MAX_RANK];
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_number(l, n, 1, 0.0, &shift)) != STINT_OK)
        return st;
    if (x.rank < 2)
        return sti_lower_refuse(l, STINT_E_INPUT, "wants a matrix");
    sti_lane_dims(l, &x, dim);
    const int64_t rows = dim[x.rank - 2], columns = dim[x.rank - 1];
    const bool upper = sti_exchange_attr_int(n, "upper", 1) != 0;
    float *keep = sti_arena_alloc(l->arena, (size_t)(rows * columns) * sizeof *keep);
    if (!keep)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < rows * columns; i++) {
        const double ahead = (double)(i % columns - i / columns);
        keep[i] = (upper ? ahead >= shift : ahead <= shift) ? 1.0f : 0.0f;
    }
    const stint_shape shape = STINT_SHAPE(rows, columns);
    const int type = x.type;
    sti_lane_value y = sti_lane_f32(l, &x);
    y = sti_lane_plain(l, sti_lane_straight(l, &y), type);
    y.value = stint_select(l->graph, sti_lower_constant(l, &shape, keep), y.value,
                           sti_lower_scalar(l, 0.0f));
    y = sti_lane_typed(l, &y, type);
    return sti_lower_result(l, n, 0, &y, y.value);
}
