/* Padding, and channels exchanged for pixels. */
#include <inttypes.h>
#include <string.h>

#include "exchange/sliding_window.h"

/* ---- Pad ---- */

typedef struct pad_lists {
    int64_t before[STINT_MAX_RANK], after[STINT_MAX_RANK];
} pad_lists;

static stint_status read_pads(sti_lowering *l, const sti_exchange_node *n, int rank,
                              pad_lists *p)
{
    const int64_t *pads, *axes;
    int64_t count, many;
    stint_status st = sti_lower_list(l, n, 1, "pads", &pads, &count);
    if (st == STINT_OK)
        st = sti_lower_list(l, n, 3, "", &axes, &many);
    if (st != STINT_OK)
        return st;
    const int64_t each = many < 0 ? rank : many;
    if (count != 2 * each || each > rank)
        return sti_lower_refuse(l, STINT_E_INPUT, "%" PRId64 " pads for %d axes", count,
                                rank);
    *p = (pad_lists){{0}, {0}};
    for (int64_t i = 0; i < each; i++) {
        const int axis = many < 0 ? (int)i : sti_known_axis(axes[i], rank);
        if (axis < 0 || pads[i] > STI_KNOWN_MAX || pads[i] < -STI_KNOWN_MAX ||
            pads[each + i] > STI_KNOWN_MAX || pads[each + i] < -STI_KNOWN_MAX)
            return sti_lower_refuse(l, STINT_E_INPUT,
                                    "no such axis, or pads beyond 2^26");
        p->before[axis] = pads[i];
        p->after[axis] = pads[each + i];
    }
    return STINT_OK;
}

/* Where element i of an axis of `length` comes from, i from -before on. */
static int64_t reflected(const char *mode, int64_t i, int64_t length)
{
    if (mode[0] == 'e')
        return i < 0 ? 0 : i >= length ? length - 1 : i;
    if (mode[0] == 'w')
        return (i % length + length) % length;
    const int64_t period = length > 1 ? 2 * (length - 1) : 1;
    i = (i % period + period) % period;
    return i < length ? i : period - i;
}

static stint_status pad_by_index(sti_lowering *l, const char *mode, int axis,
                                 int64_t before, int64_t after, sti_lane_value *x)
{
    const int64_t length = sti_lane_dim(l, x, axis), count = before + length + after;
    if (count < 1)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "a result without elements");
    int64_t *index = sti_arena_alloc(l->arena, (size_t)count * sizeof *index);
    if (!index)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < count; i++)
        index[i] = reflected(mode, i - before, length);
    *x = sti_lane_taken(l, x, axis, count, index);
    return STINT_OK;
}

/* A negative padding cuts. */
static stint_status pad_by_value(sti_lowering *l, float value, int axis, int64_t before,
                                 int64_t after, sti_lane_value *x)
{
    const int at = sti_lane_axis(x, axis);
    const int64_t length = sti_lane_dim(l, x, axis), first = before < 0 ? -before : 0,
                  end = after < 0 ? length + after : length;
    if (end <= first)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "a result without elements");
    if (first > 0 || end < length)
        x->value = stint_slice(l->graph, x->value, at, first, end, 1);
    x->value = sti_lower_padded(l, x->value, at, before > 0 ? before : 0,
                                after > 0 ? after : 0, value);
    return x->value < 0 ? sti_graph_status(l->graph) : STINT_OK;
}

stint_status sti_lower_pad(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    pad_lists p;
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap", NULL};
    const char *mode;
    double value = (double)sti_exchange_attr_float(n, "value", 0.0f);
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK ||
        (st = sti_lower_choice(l, n, "mode", modes, &mode)) != STINT_OK ||
        (st = read_pads(l, n, x.rank, &p)) != STINT_OK ||
        (st = sti_lower_number(l, n, 2, value, &value)) != STINT_OK)
        return st;
    const int type = x.type;
    x = sti_lane_f32(l, &x);
    for (int i = 0; i < x.rank && st == STINT_OK; i++) {
        if (p.before[i] == 0 && p.after[i] == 0)
            continue;
        st = mode[0] == 'c'
                 ? pad_by_value(l, (float)value, i, p.before[i], p.after[i], &x)
                 : pad_by_index(l, mode, i, p.before[i], p.after[i], &x);
    }
    if (st != STINT_OK)
        return st;
    x = sti_lane_typed(l, &x, type);
    return sti_lower_result(l, n, 0, &x, x.value);
}

/* ---- blocks of pixels ---- */

static stint_status pixels(sti_lowering *l, const sti_exchange_node *n,
                           sti_lane_value *x, stint_shape *shape, int64_t *block)
{
    int8_t last[STINT_MAX_RANK];
    const stint_status st = sti_lower_lane(l, n, 0, x);
    if (st != STINT_OK)
        return st;
    *block = sti_exchange_attr_int(n, "blocksize", 0);
    if (x->rank != 4 || *block < 1 || *block > 1 << 12)
        return sti_lower_refuse(l, STINT_E_INPUT, "wants [n, c, h, w] and a blocksize");
    sti_order_last(4, last);
    x->value = sti_lane_ordered(l, x, last);
    memcpy(x->order, last, sizeof last);
    *shape = stint_value_shape(l->graph, x->value);
    return STINT_OK;
}

stint_status sti_lower_depth_to_space(sti_lowering *l, const sti_exchange_node *n)
{
    static const int depth_first[6] = {0, 1, 3, 2, 4, 5},
                     column_first[6] = {0, 1, 4, 2, 5, 3};
    sti_lane_value x;
    stint_shape s = {0};
    int64_t b;
    static const char *const modes[] = {"DCR", "CRD", NULL};
    const char *mode;
    stint_status st = pixels(l, n, &x, &s, &b);
    if (st != STINT_OK ||
        (st = sti_lower_choice(l, n, "mode", modes, &mode)) != STINT_OK)
        return st;
    if (s.dim[3] % (b * b))
        return sti_lower_refuse(l, STINT_E_INPUT, "%" PRId64 " channels in blocks",
                                s.dim[3]);
    const int64_t c = s.dim[3] / b / b;
    const bool dcr = mode[0] == 'D';
    const stint_shape split =
        dcr ? STINT_SHAPE(s.dim[0] * s.dim[1], 1, s.dim[2], b, b, c)
            : STINT_SHAPE(s.dim[0] * s.dim[1], 1, s.dim[2], c, b, b);
    const stint_shape joined = STINT_SHAPE(s.dim[0], s.dim[1] * b, s.dim[2] * b, c);
    stint_value y = stint_reshape(l->graph, x.value, &split);
    y = stint_transpose(l->graph, y, dcr ? depth_first : column_first);
    return sti_lower_result(l, n, 0, &x, stint_reshape(l->graph, y, &joined));
}

stint_status sti_lower_space_to_depth(sti_lowering *l, const sti_exchange_node *n)
{
    static const int axes[6] = {0, 1, 3, 2, 4, 5};
    sti_lane_value x;
    stint_shape s = {0};
    int64_t b;
    const stint_status st = pixels(l, n, &x, &s, &b);
    if (st != STINT_OK)
        return st;
    if (s.dim[1] % b || s.dim[2] % b)
        return sti_lower_refuse(l, STINT_E_INPUT,
                                "%" PRId64 " x %" PRId64 " pixels in blocks", s.dim[1],
                                s.dim[2]);
    const stint_shape split =
        STINT_SHAPE(s.dim[0] * s.dim[1] / b, 1, b, s.dim[2] / b, b, s.dim[3]);
    const stint_shape joined =
        STINT_SHAPE(s.dim[0], s.dim[1] / b, s.dim[2] / b, s.dim[3] * b * b);
    stint_value y =
        stint_transpose(l->graph, stint_reshape(l->graph, x.value, &split), axes);
    return sti_lower_result(l, n, 0, &x, stint_reshape(l->graph, y, &joined));
}
