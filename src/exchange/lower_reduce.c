/* Reductions, and softmax, which is one in between. */
#include <string.h>

#include "exchange/lower_priv.h"

typedef stint_value reduce_builder(stint_graph *g, stint_value x, unsigned axes,
                                   bool keep);

/* The axes of ONNX as a bit set. */
static stint_status read_axes(sti_lowering *l, const sti_exchange_node *n, int rank,
                              unsigned *axes)
{
    const int64_t *list;
    int64_t count;
    const stint_status st = sti_lower_list(l, n, 1, "axes", &list, &count);
    *axes = 0;
    if (st != STINT_OK)
        return st;
    for (int64_t i = 0; i < count; i++) {
        const int axis = sti_known_axis(list[i], rank);
        if (axis < 0)
            return sti_lower_refuse(l, STINT_E_INPUT, "no such axis");
        *axes |= 1u << axis;
    }
    if (count <= 0 && !sti_exchange_attr_int(n, "noop_with_empty_axes", 0))
        *axes = (1u << rank) - 1;
    return STINT_OK;
}

static stint_status lower_reduce(sti_lowering *l, const sti_exchange_node *n,
                                 reduce_builder *build)
{
    sti_lane_value x, y;
    unsigned axes, at = 0;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = read_axes(l, n, x.rank, &axes)) != STINT_OK)
        return st;
    y = sti_lane_f32(l, &x);
    for (int i = 0; i < x.rank; i++)
        at |= (axes >> x.order[i] & 1) << i;
    y.value = build(l->graph, y.value, at, true);
    if (!sti_exchange_attr_int(n, "keepdims", 1))
        y = sti_lane_without(l, &y, axes);
    y = sti_lane_typed(l, &y, x.type);
    return sti_lower_result(l, n, 0, &y, y.value);
}

static stint_value sum(stint_graph *g, stint_value x, unsigned axes, bool keep)
{
    return axes ? stint_sum(g, x, axes, keep) : x;
}

static stint_value mean(stint_graph *g, stint_value x, unsigned axes, bool keep)
{
    return axes ? stint_mean(g, x, axes, keep) : x;
}

static stint_value max(stint_graph *g, stint_value x, unsigned axes, bool keep)
{
    return axes ? stint_max(g, x, axes, keep) : x;
}

static stint_value min(stint_graph *g, stint_value x, unsigned axes, bool keep)
{
    return sti_op_negate(g, max(g, sti_op_negate(g, x), axes, keep));
}

static stint_value l1(stint_graph *g, stint_value x, unsigned axes, bool keep)
{
    return sum(g, stint_abs(g, x), axes, keep);
}

static stint_value sum_square(stint_graph *g, stint_value x, unsigned axes, bool keep)
{
    return sum(g, stint_square(g, x), axes, keep);
}

static stint_value l2(stint_graph *g, stint_value x, unsigned axes, bool keep)
{
    return stint_sqrt(g, sum_square(g, x, axes, keep));
}

static stint_value log_sum(stint_graph *g, stint_value x, unsigned axes, bool keep)
{
    return stint_log(g, sum(g, x, axes, keep));
}

/* By the largest, so that no exponential overflows. */
static stint_value log_sum_exp(stint_graph *g, stint_value x, unsigned axes, bool keep)
{
    const stint_value most = max(g, x, axes, true);
    const stint_value e = stint_exp(g, stint_sub(g, x, most));
    return stint_add(g, stint_log(g, sum(g, e, axes, keep)), most);
}

#define REDUCE(name, builder)                                                         \
    stint_status sti_lower_reduce_##name(sti_lowering *l, const sti_exchange_node *n) \
    {                                                                                 \
        return lower_reduce(l, n, builder);                                           \
    }
REDUCE(sum, sum)
REDUCE(mean, mean)
REDUCE(max, max)
REDUCE(min, min)
REDUCE(l1, l1)
REDUCE(l2, l2)
REDUCE(log_sum, log_sum)
REDUCE(log_sum_exp, log_sum_exp)
REDUCE(sum_square, sum_square)

/* Products by halves: an axis is folded onto itself until one element is left. */
static stint_value product_along(sti_lowering *l, stint_value x, int axis)
{
    for (;;) {
        const int64_t length = stint_value_shape(l->graph, x).dim[axis],
                      half = length / 2;
        if (x < 0 || length == 1)
            return x;
        const stint_value low = stint_slice(l->graph, x, axis, 0, half, 1),
                          high = stint_slice(l->graph, x, axis, half, 2 * half, 1);
        stint_value y = stint_mul(l->graph, low, high);
        if (length % 2) {
            const stint_value pair[2] = {
                y, stint_slice(l->graph, x, axis, length - 1, length, 1)};
            y = stint_concat(l->graph, pair, 2, axis);
        }
        x = y;
    }
}

stint_status sti_lower_reduce_prod(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x, y;
    unsigned axes;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = read_axes(l, n, x.rank, &axes)) != STINT_OK)
        return st;
    y = sti_lane_f32(l, &x);
    for (int i = 0; i < x.rank; i++)
        if (axes >> x.order[i] & 1)
            y.value = product_along(l, y.value, i);
    if (!sti_exchange_attr_int(n, "keepdims", 1))
        y = sti_lane_without(l, &y, axes);
    y = sti_lane_typed(l, &y, x.type);
    return sti_lower_result(l, n, 0, &y, y.value);
}

/* ---- over all pixels ---- */

static stint_status lower_global(sti_lowering *l, const sti_exchange_node *n,
                                 reduce_builder *build)
{
    sti_lane_value x;
    int8_t order[STINT_MAX_RANK];
    const stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK)
        return st;
    if (x.rank < 3)
        return sti_lower_refuse(l, STINT_E_INPUT, "wants [n, c, ...]");
    sti_order_last(x.rank, order);
    x.value = sti_lane_ordered(l, &x, order);
    memcpy(x.order, order, sizeof x.order);
    const unsigned axes = ((1u << (x.rank - 2)) - 1) << 1;
    return sti_lower_result(l, n, 0, &x, build(l->graph, x.value, axes, true));
}

stint_status sti_lower_global_average_pool(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_global(l, n, stint_mean);
}

stint_status sti_lower_global_max_pool(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_global(l, n, stint_max);
}

/* ---- softmax ---- */

typedef stint_value row_builder(stint_graph *g, stint_value x);

/* Before opset 13 all axes from `axis` on are one. */
static stint_status softmax_of_rest(sti_lowering *l, const sti_exchange_node *n,
                                    const sti_lane_value *x, int axis,
                                    row_builder *build)
{
    int64_t dim[STINT_MAX_RANK], rows[2] = {1, 1};
    sti_lane_dims(l, x, dim);
    for (int i = 0; i < x->rank; i++)
        rows[i >= axis] *= dim[i];
    sti_lane_value y = sti_lane_reshaped(l, x, 2, rows);
    y.value = build(l->graph, y.value);
    y = sti_lane_reshaped(l, &y, x->rank, dim);
    return sti_lower_result(l, n, 0, &y, y.value);
}

static stint_status lower_softmax(sti_lowering *l, const sti_exchange_node *n,
                                  row_builder *build)
{
    sti_lane_value x;
    int axis;
    const bool old = l->opset < 13;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK ||
        (st = sti_lower_axis(l, n, old ? 1 : -1, x.rank, &axis)) != STINT_OK)
        return st;
    if (old && axis != x.rank - 1)
        return softmax_of_rest(l, n, &x, axis, build);
    const sti_lane_value y = sti_lane_with_last(l, &x, axis);
    return sti_lower_result(l, n, 0, &y, build(l->graph, y.value));
}

stint_status sti_lower_softmax(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_softmax(l, n, stint_softmax);
}

stint_status sti_lower_log_softmax(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_softmax(l, n, stint_log_softmax);
}
