/* Convolutions. Stint's own have one stride and one padding for both axes and windows
 * without holes; what ONNX allows beyond that is made of the same operator:
 *
 *   paddings that differ     the least of them is the operator's, the rest is padded
 *   strides that differ      at their greatest common divisor, and of that a slice
 *   windows with holes       the weights spread out, zeros between them
 *   one axis of pixels       images of one row
 *   three axes of pixels     images of two, whose channels are those of all planes that
 *                            a window reaches along the first
 */
#include <inttypes.h>
#include <string.h>

#include "exchange/sliding_window.h"

typedef struct conv_parts {
    sti_window w;
    int rank; /* of x in ONNX: 3 to 5 */
    int64_t groups;
    int64_t depth; /* of the result, where there are three axes of pixels */
    stint_value x, weight, bias; /* channels last, two axes of pixels */
    bool turned;                 /* an image of one column is taken as one of a row */
} conv_parts;

/* Axes n, 1, width, c from n, width, c; and width, ci, co likewise. */
static stint_value with_row(sti_lowering *l, stint_value v, int at)
{
    const stint_shape from = stint_value_shape(l->graph, v);
    stint_shape to = from;
    to.rank = from.rank + 1;
    for (int i = to.rank - 1; i >= 0; i--)
        to.dim[i] = i > at ? from.dim[i - 1] : i == at ? 1 : from.dim[i];
    return stint_reshape(l->graph, v, &to);
}

/* One axis of pixels gets a first one of length 1 in front. */
static void window_of_row(sti_window *w)
{
    w->size[1] = w->size[0];
    w->stride[1] = w->stride[0]; /* one row has one place for any stride */
    w->step[1] = w->step[0];
    w->before[1] = w->before[0];
    w->after[1] = w->after[0];
    w->in[1] = w->in[0];
    w->out[1] = w->out[0];
    w->size[0] = w->step[0] = w->in[0] = w->out[0] = 1;
    w->before[0] = w->after[0] = 0;
    w->axes = 2;
}

static stint_status read_operands(sti_lowering *l, const sti_exchange_node *n,
                                  conv_parts *c)
{
    sti_lane_value x, w, b;
    int8_t last[STINT_MAX_RANK], filters[STINT_MAX_RANK];
    int64_t dim[STINT_MAX_RANK], wdim[STINT_MAX_RANK];
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK)
        return st;
    c->rank = x.rank;
    if (x.rank < 3 || x.rank > 5)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "of %d axes of pixels; one to three are wanted",
                                x.rank - 2);
    sti_order_last(x.rank, last);
    for (int i = 0; i < x.rank; i++) /* co, ci, pixels -> pixels, ci, co */
        filters[i] = (int8_t)(i < x.rank - 2 ? i + 2 : x.rank - 1 - i);
    if (x.rank == 5) /* its planes are channels: rows, columns, planes, ci, co */
        memcpy(filters, (int8_t[]){3, 4, 2, 1, 0}, 5);
    if ((st = sti_lower_ordered(l, n, 1, x.rank, filters, &w)) != STINT_OK)
        return st;
    sti_lane_dims(l, &x, dim);
    sti_lane_dims(l, &w, wdim);
    c->x = sti_lane_ordered(l, &x, last);
    c->weight = w.value;
    c->bias = STI_NO_INPUT;
    if (sti_lower_has(n, 2)) {
        if ((st = sti_lower_lane(l, n, 2, &b)) != STINT_OK)
            return st;
        c->bias = b.value;
    }
    c->groups = sti_exchange_attr_int(n, "group", 1);
    if (c->groups < 1 || c->groups > dim[1] || dim[1] != wdim[1] * c->groups ||
        wdim[0] % c->groups)
        return sti_lower_refuse(l, STINT_E_INPUT,
                                "%" PRId64 " channels by weights for %" PRId64
                                " in %" PRId64 " groups",
                                dim[1], wdim[1], c->groups);
    return sti_window_read(l, n, dim, x.rank, wdim + 2, false, &c->w);
}

/* ---- three axes of pixels ---- */

/* The planes at tap k of each window along the first axis of pixels, [n depth, h, w,
 * groups, c / groups]. */
static stint_value planes_of_tap(sti_lowering *l, const conv_parts *c, int64_t k)
{
    const sti_window *w = &c->w;
    const stint_shape s = stint_value_shape(l->graph, c->x);
    const int64_t begin = k * w->step[0],
                  end = begin + (w->out[0] - 1) * w->stride[0] + 1;
    const stint_shape to = STINT_SHAPE(s.dim[0] * w->out[0], s.dim[2], s.dim[3],
                                       c->groups, s.dim[4] / c->groups);
    stint_value x = c->x;
    if (end - begin != s.dim[1] || w->stride[0] != 1)
        x = stint_slice(l->graph, x, 1, begin, end, w->stride[0]);
    return stint_reshape(l->graph, x, &to);
}

/* The other two axes become the first. */
static void window_of_planes(sti_window *w)
{
    int64_t *const lists[] = {w->size,  w->stride, w->step, w->before,
                              w->after, w->in,     w->out};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        lists[i][0] = lists[i][1];
        lists[i][1] = lists[i][2];
    }
    w->axes = 2;
}

static stint_status make_planes(sti_lowering *l, conv_parts *c)
{
    enum { TAPS = 64 };
    stint_value tap[TAPS];
    const int64_t taps = c->w.size[0];
    if (taps > TAPS)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "a window of %" PRId64
                                " planes along the first of three axes of pixels; up "
                                "to %d are taken",
                                taps, TAPS);
    c->x = sti_lower_padded(l, c->x, 1, c->w.before[0], c->w.after[0], 0.0f);
    for (int64_t k = 0; k < taps; k++)
        tap[k] = planes_of_tap(l, c, k);
    const stint_value all =
        taps == 1 ? tap[0] : stint_concat(l->graph, tap, (int)taps, 4);
    if (all < 0)
        return sti_graph_status(l->graph);
    const stint_shape s = stint_value_shape(l->graph, all),
                      ws = stint_value_shape(l->graph, c->weight);
    const stint_shape planes =
        STINT_SHAPE(s.dim[0], s.dim[1], s.dim[2], s.dim[3] * s.dim[4]);
    const stint_shape filters =
        STINT_SHAPE(ws.dim[0], ws.dim[1], ws.dim[2] * ws.dim[3], ws.dim[4]);
    c->x = stint_reshape(l->graph, all, &planes);
    c->weight = stint_reshape(l->graph, c->weight, &filters);
    c->depth = c->w.out[0];
    window_of_planes(&c->w);
    return sti_graph_status(l->graph);
}

/* The result of planes with its first axis of pixels again. */
static stint_value with_depth(sti_lowering *l, const conv_parts *c, stint_value y)
{
    const stint_shape s = stint_value_shape(l->graph, y);
    const stint_shape to =
        STINT_SHAPE(s.dim[0] / c->depth, c->depth, s.dim[1], s.dim[2], s.dim[3]);
    return stint_reshape(l->graph, y, &to);
}

/* ---- what differs along the axes ---- */

static void spread_weights(sti_lowering *l, conv_parts *c)
{
    for (int i = 0; i < 2; i++)
        if (c->w.step[i] > 1 && c->w.size[i] > 1)
            c->weight = sti_op_pad_axis(l->graph, c->weight, i, 0, c->w.step[i],
                                        (c->w.size[i] - 1) * c->w.step[i] + 1);
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The padding that all four sides have stays with the operator. */
static int64_t pad_rest(sti_lowering *l, conv_parts *c)
{
    sti_window *w = &c->w;
    const int64_t pad =
        least(least(w->before[0], w->before[1]), least(w->after[0], w->after[1]));
    for (int i = 0; i < 2; i++)
        c->x = sti_lower_padded(l, c->x, 1 + i, w->before[i] - pad, w->after[i] - pad,
                                0.0f);
    return pad;
}

/* A slice of a result at a smaller stride: what the node's own strides would have made.
 */
static stint_value sliced(sti_lowering *l, const conv_parts *c, stint_value y,
                          int64_t stride)
{
    for (int i = 0; i < 2; i++) {
        const int64_t step = c->w.stride[i] / stride;
        const int64_t have = stint_value_shape(l->graph, y).dim[1 + i];
        const int64_t end = (c->w.out[i] - 1) * step + 1;
        if (y >= 0 && (step > 1 || have != c->w.out[i]))
            y = stint_slice(l->graph, y, 1 + i, 0, end, step);
    }
    return y;
}

/* x with its axes of pixels, at `at` and behind it, changed for each other, one of
 * which has the length 1: no element moves. */
static stint_value changed(sti_lowering *l, stint_value x, int at)
{
    if (x < 0)
        return x;
    stint_shape s = stint_value_shape(l->graph, x);
    const int64_t first = s.dim[at];
    s.dim[at] = s.dim[at + 1];
    s.dim[at + 1] = first;
    return stint_reshape(l->graph, x, &s);
}

static void change(int64_t *pair)
{
    const int64_t first = pair[0];
    pair[0] = pair[1];
    pair[1] = first;
}

/* The convolution's loops run along rows of pixels: one column becomes one row. */
static void turn_column(sti_lowering *l, conv_parts *c)
{
    sti_window *w = &c->w;
    if (w->in[1] != 1 || w->size[1] != 1 || w->before[1] != 0 || w->after[1] != 0 ||
        w->in[0] == 1)
        return;
    c->turned = true;
    c->x = changed(l, c->x, 1);
    c->weight = changed(l, c->weight, 0);
    w->stride[1] = w->stride[0]; /* one column has one place for any stride */
    change(w->size);
    change(w->stride);
    change(w->step);
    change(w->before);
    change(w->after);
    change(w->in);
    change(w->out);
}

stint_status sti_lower_conv(sti_lowering *l, const sti_exchange_node *n)
{
    conv_parts c = {.turned = false};
    stint_status st = read_operands(l, n, &c);
    if (st != STINT_OK)
        return st;
    if (c.rank == 3) {
        c.x = with_row(l, c.x, 1);
        c.weight = with_row(l, c.weight, 0);
        window_of_row(&c.w);
    }
    if (c.rank == 5 && (st = make_planes(l, &c)) != STINT_OK)
        return st;
    if (c.rank == 4)
        turn_column(l, &c);
    spread_weights(l, &c);
    const int64_t stride = common_divisor(c.w.stride[0], c.w.stride[1]);
    const int64_t pad = pad_rest(l, &c);
    const sti_conv2d_attr attr = {
        .stride = stride, .pad = pad, .groups = c.groups, .has_bias = c.bias >= 0};
    stint_value y = sti_op_conv(l->graph, c.x, c.weight, c.bias, &attr);
    y = y < 0 ? y : sliced(l, &c, y, stride);
    if (y < 0)
        return sti_graph_status(l->graph);
    if (c.turned)
        y = changed(l, y, 1);
    if (c.rank == 3) {
        const stint_shape s = stint_value_shape(l->graph, y);
        const stint_shape row = STINT_SHAPE(s.dim[0], s.dim[2], s.dim[3]);
        y = stint_reshape(l->graph, y, &row);
    }
    if (c.rank == 5)
        y = with_depth(l, &c, y);
    sti_lane_value out = sti_lane_plain(l, y, STI_EXCHANGE_F32);
    sti_order_last(c.rank, out.order);
    return sti_lower_result(l, n, 0, &out, y);
}

/* ---- batch normalisation of a network in use ---- */

stint_status sti_lower_batch_normalization(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x, v;
    int8_t last[STINT_MAX_RANK];
    stint_value in[6];
    static const int slot[5] = {0, 1, 2, 4, 5}; /* of x, scale, shift, mean, variance */
    const sti_batch_norm_attr attr = {
        .epsilon = sti_exchange_attr_float(n, "epsilon", 1e-5f), .eval = 1};
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK)
        return st;
    if (sti_exchange_attr_int(n, "training_mode", 0))
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "in training mode; export the network for use");
    if (x.rank < 2)
        return sti_lower_refuse(l, STINT_E_INPUT, "wants [n, c, ...]");
    sti_order_last(x.rank, last);
    x.value = sti_lane_ordered(l, &x, last);
    memcpy(x.order, last, sizeof x.order);
    in[0] = x.value;
    in[3] = STI_NO_INPUT;
    for (int i = 1; i < 5; i++) {
        if ((st = sti_lower_lane(l, n, i, &v)) != STINT_OK)
            return st;
        in[slot[i]] = v.value;
    }
    return sti_lower_result(l, n, 0, &x,
                            sti_graph_add(l->graph, &sti_op_batch_norm, &attr, 6, in));
}
