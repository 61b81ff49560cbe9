/* Normalisations. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "exchange/lower_priv.h"

/* (x - mean) / sqrt(variance + epsilon) over the axes of a bit set. */
static stint_value normalised(sti_lowering *l, stint_value x, unsigned axes,
                              float epsilon)
{
    stint_graph *g = l->graph;
    const stint_value d = stint_sub(g, x, stint_mean(g, x, axes, true));
    const stint_value v = stint_mean(g, stint_square(g, d), axes, true);
    return stint_div(g, d, stint_sqrt(g, stint_add_scalar(g, v, epsilon)));
}

/* Operand i, [c], behind channels-last x. */
static stint_status by_channel(sti_lowering *l, const sti_exchange_node *n, int i,
                               bool add, stint_value *x)
{
    sti_lane_value v;
    const stint_status st = sti_lower_lane(l, n, i, &v);
    if (st == STINT_OK)
        *x = add ? stint_add(l->graph, *x, v.value) : stint_mul(l->graph, *x, v.value);
    return st;
}

static stint_status channels_last(sti_lowering *l, const sti_exchange_node *n,
                                  sti_lane_value *x)
{
    int8_t last[STINT_MAX_RANK];
    const stint_status st = sti_lower_lane(l, n, 0, x);
    if (st != STINT_OK)
        return st;
    if (x->rank < 3)
        return sti_lower_refuse(l, STINT_E_INPUT, "wants [n, c, ...]");
    sti_order_last(x->rank, last);
    x->value = sti_lane_ordered(l, x, last);
    memcpy(x->order, last, sizeof last);
    return STINT_OK;
}

stint_status sti_lower_instance_normalization(sti_lowering *l,
                                              const sti_exchange_node *n)
{
    sti_lane_value x;
    stint_status st = channels_last(l, n, &x);
    if (st != STINT_OK)
        return st;
    const unsigned pixels = ((1u << (x.rank - 2)) - 1) << 1;
    stint_value y =
        normalised(l, x.value, pixels, sti_exchange_attr_float(n, "epsilon", 1e-5f));
    if ((st = by_channel(l, n, 1, false, &y)) != STINT_OK ||
        (st = by_channel(l, n, 2, true, &y)) != STINT_OK)
        return st;
    return sti_lower_result(l, n, 0, &x, y);
}

/* Scale and bias are one a channel from opset 21 on, one a group before. */
static stint_status spread_groups(sti_lowering *l, const sti_exchange_node *n, int i,
                                  int64_t channels, int64_t groups, stint_value *out)
{
    sti_lane_value v;
    const stint_status st = sti_lower_lane(l, n, i, &v);
    if (st != STINT_OK)
        return st;
    const stint_shape column = STINT_SHAPE(groups, 1),
                      wide = STINT_SHAPE(groups, channels / groups),
                      row = STINT_SHAPE(channels);
    *out = v.value;
    if (v.rank != 1 || sti_lane_dim(l, &v, 0) == channels)
        return STINT_OK;
    if (sti_lane_dim(l, &v, 0) != groups)
        return sti_lower_refuse(l, STINT_E_INPUT,
                                "operand %d has neither one number a "
                                "channel nor one a group",
                                i);
    *out = stint_reshape(
        l->graph,
        stint_broadcast(l->graph, stint_reshape(l->graph, v.value, &column), &wide),
        &row);
    return STINT_OK;
}

stint_status sti_lower_group_normalization(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    stint_value scale, bias;
    stint_status st = channels_last(l, n, &x);
    if (st != STINT_OK)
        return st;
    const stint_shape shape = stint_value_shape(l->graph, x.value);
    const int64_t c = shape.dim[x.rank - 1],
                  groups = sti_exchange_attr_int(n, "num_groups", 1);
    if (groups < 1 || c % groups)
        return sti_lower_refuse(
            l, STINT_E_INPUT, "%" PRId64 " channels in %" PRId64 " groups", c, groups);
    const stint_shape split = STINT_SHAPE(
        shape.dim[0], stint_shape_count(&shape) / shape.dim[0] / c, groups, c / groups);
    stint_value y = stint_reshape(l->graph, x.value, &split);
    y = normalised(l, y, 1u << 1 | 1u << 3,
                   sti_exchange_attr_float(n, "epsilon", 1e-5f));
    y = stint_reshape(l->graph, y, &shape);
    if ((st = spread_groups(l, n, 1, c, groups, &scale)) != STINT_OK ||
        (st = spread_groups(l, n, 2, c, groups, &bias)) != STINT_OK)
        return st;
    y = stint_add(l->graph, stint_mul(l->graph, y, scale), bias);
    return sti_lower_result(l, n, 0, &x, y);
}

/* A row of the axes that are normalised, from operand i or all of one number. */
static stint_status row_of(sti_lowering *l, const sti_exchange_node *n, int i,
                           int64_t inner, float otherwise, stint_value *out)
{
    sti_lane_value v;
    const stint_shape row = STINT_SHAPE(inner);
    if (!sti_lower_has(n, i)) {
        *out = sti_op_fill(l->graph, &row, otherwise);
        return STINT_OK;
    }
    const stint_status st = sti_lower_lane(l, n, i, &v);
    if (st != STINT_OK)
        return st;
    const stint_shape shape = stint_value_shape(l->graph, v.value);
    if (stint_shape_count(&shape) != inner)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "operand %d is broadcast over the axes that are "
                                "normalised",
                                i);
    *out = stint_reshape(l->graph, sti_lane_straight(l, &v), &row);
    return STINT_OK;
}

/* Results 1 and 2, the statistics: [..., 1, 1]. */
static stint_status row_statistics(sti_lowering *l, const sti_exchange_node *n, int i,
                                   stint_value value, int rank, int axis,
                                   const int64_t *dim)
{
    int64_t to[STINT_MAX_RANK];
    if (i >= n->n_out || !n->out[i][0])
        return STINT_OK;
    for (int k = 0; k < rank; k++)
        to[k] = k < axis ? dim[k] : 1;
    const sti_lane_value flat = sti_lane_plain(l, value, STI_EXCHANGE_F32);
    const sti_lane_value y = sti_lane_reshaped(l, &flat, rank, to);
    return sti_lower_result(l, n, i, &y, y.value);
}

static stint_status row_norm(sti_lowering *l, const sti_exchange_node *n, bool layer)
{
    sti_lane_value x;
    int axis;
    int64_t dim[STINT_MAX_RANK], rows[2] = {1, 1};
    stint_value in[3];
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_axis(l, n, -1, x.rank, &axis)) != STINT_OK)
        return st;
    sti_lane_dims(l, &x, dim);
    for (int i = 0; i < x.rank; i++)
        rows[i >= axis] *= dim[i];
    const sti_lane_value flat = sti_lane_reshaped(l, &x, 2, rows);
    const sti_row_norm_attr attr = {sti_exchange_attr_float(n, "epsilon", 1e-5f)};
    in[0] = flat.value;
    if ((st = row_of(l, n, 1, rows[1], 1.0f, &in[1])) != STINT_OK ||
        (layer && (st = row_of(l, n, 2, rows[1], 0.0f, &in[2])) != STINT_OK))
        return st;
    const stint_value v =
        layer ? sti_graph_add(l->graph, &sti_op_layer_norm, &attr, 3, in)
              : sti_graph_add(l->graph, &sti_op_rms_norm, &attr, 2, in);
    if (v < 0)
        return sti_graph_status(l->graph);
    sti_lane_value y = sti_lane_plain(l, v, x.type);
    y = sti_lane_reshaped(l, &y, x.rank, dim);
    if ((st = sti_lower_result(l, n, 0, &y, y.value)) != STINT_OK || !layer)
        return st;
    if ((st = row_statistics(l, n, 1, v + 1, x.rank, axis, dim)) != STINT_OK)
        return st;
    return row_statistics(l, n, 2, v + 2, x.rank, axis, dim);
}

stint_status sti_lower_layer_normalization(sti_lowering *l, const sti_exchange_node *n)
{
    return row_norm(l, n, true);
}

stint_status sti_lower_rms_normalization(sti_lowering *l, const sti_exchange_node *n)
{
    return row_norm(l, n, false);
}

stint_status sti_lower_lp_normalization(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    int axis;
    stint_graph *g = l->graph;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_axis(l, n, -1, x.rank, &axis)) != STINT_OK)
        return st;
    const unsigned at = 1u << sti_lane_axis(&x, axis);
    const bool first = sti_exchange_attr_int(n, "p", 2) == 1;
    const stint_value size =
        first ? stint_sum(g, stint_abs(g, x.value), at, true)
              : stint_sqrt(g, stint_sum(g, stint_square(g, x.value), at, true));
    /* A row of zeros stays one. */
    const stint_value safe =
        stint_select(g, stint_equal(g, size, sti_lower_scalar(l, 0.0f)),
                     sti_lower_scalar(l, 1.0f), size);
    return sti_lower_result(l, n, 0, &x, stint_div(g, x.value, safe));
}

stint_status sti_lower_mean_variance_normalization(sti_lowering *l,
                                                   const sti_exchange_node *n)
{
    sti_lane_value x;
    const int64_t *axes;
    int64_t count;
    static const int64_t usual[3] = {0, 2, 3};
    unsigned at = 0;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK ||
        (st = sti_lower_list(l, n, 1, "axes", &axes, &count)) != STINT_OK)
        return st;
    if (count < 0) {
        axes = usual;
        count = 3;
    }
    for (int64_t i = 0; i < count; i++) {
        const int axis = sti_known_axis(axes[i], x.rank);
        if (axis < 0)
            return sti_lower_refuse(l, STINT_E_INPUT, "no such axis");
        at |= 1u << sti_lane_axis(&x, axis);
    }
    return sti_lower_result(l, n, 0, &x, normalised(l, x.value, at, 1e-9f));
}

/* y = x / (bias + alpha / size * sum of x^2 over `size` channels about its own)^beta.
 */
stint_status sti_lower_lrn(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    stint_graph *g = l->graph;
    stint_status st = channels_last(l, n, &x);
    const int64_t size = sti_exchange_attr_int(n, "size", 0);
    if (st != STINT_OK)
        return st;
    const int64_t channels = sti_lane_dim(l, &x, 1);
    if (size < 1 || size > channels * 2 + 1)
        return sti_lower_refuse(l, STINT_E_INPUT,
                                "size %" PRId64 " of %" PRId64 " channels", size,
                                channels);
    const float alpha = sti_exchange_attr_float(n, "alpha", 1e-4f) / (float)size;
    const stint_value beta =
        sti_lower_scalar(l, sti_exchange_attr_float(n, "beta", 0.75f));
    const int64_t before = (size - 1) / 2;
    const stint_value squares = sti_op_pad_axis(g, stint_square(g, x.value), x.rank - 1,
                                                before, 1, channels + size - 1);
    stint_value sum = stint_slice(g, squares, x.rank - 1, 0, channels, 1);
    for (int64_t i = 1; i < size; i++)
        sum =
            stint_add(g, sum, stint_slice(g, squares, x.rank - 1, i, i + channels, 1));
    sum = stint_add_scalar(g, stint_scale(g, sum, alpha),
                           sti_exchange_attr_float(n, "bias", 1.0f));
    return sti_lower_result(l, n, 0, &x,
                            stint_div(g, x.value, stint_power(g, sum, beta)));
}
