/* Transposed convolutions: the gradient of a convolution's input, which is an operator
 * of its own. Where strides or windows go beyond that, zeros are put between pixels and
 * the weights spread out, all at stride 1. */
#include <inttypes.h>
#include <string.h>

#include "exchange/sliding_window.h"

typedef struct transposed {
    sti_window w; /* .in of x; .out of the result */
    int64_t extra[STI_WINDOW_AXES];
    int64_t groups;
    stint_value x, weight; /* [n, h, w, ci], [kh, kw, co / groups, ci] */
} transposed;

static stint_status read_list(sti_lowering *l, const sti_exchange_node *n,
                              const char *name, int count, int64_t otherwise,
                              int64_t *out)
{
    const sti_exchange_attr *a = sti_exchange_attr_find(n, name);
    for (int i = 0; i < count; i++) {
        out[i] = otherwise;
        if (!a)
            continue;
        if (a->kind != STI_EXCHANGE_INTS || a->count != count || a->ints[i] < 0 ||
            a->ints[i] > 1 << 24)
            return sti_lower_refuse(l, STINT_E_INPUT, "%s does not fit", name);
        out[i] = a->ints[i];
    }
    return STINT_OK;
}

static int64_t reach(const sti_window *w, int i)
{
    return (w->size[i] - 1) * w->step[i] + 1;
}

/* Lengths of the result, and padding that is asked for by them. */
static stint_status find_lengths(sti_lowering *l, const sti_exchange_node *n,
                                 transposed *t)
{
    sti_window *w = &t->w;
    int64_t pads[2 * STI_WINDOW_AXES], shape[STI_WINDOW_AXES];
    const char *mode = sti_exchange_attr_text(n, "auto_pad", "NOTSET");
    const bool same = strncmp(mode, "SAME", 4) == 0,
               said = sti_exchange_attr_find(n, "output_shape") != NULL;
    stint_status st = read_list(l, n, "pads", 2 * w->axes, 0, pads);
    if (st == STINT_OK)
        st = read_list(l, n, "output_padding", w->axes, 0, t->extra);
    if (st == STINT_OK)
        st = read_list(l, n, "output_shape", w->axes, 0, shape);
    for (int i = 0; i < w->axes && st == STINT_OK; i++) {
        const int64_t full = w->stride[i] * (w->in[i] - 1) + t->extra[i] + reach(w, i);
        const bool none = strcmp(mode, "VALID") == 0;
        w->before[i] = none ? 0 : pads[i];
        w->after[i] = none ? 0 : pads[w->axes + i];
        if (said || same) {
            const int64_t want = said ? shape[i] : w->in[i] * w->stride[i];
            const int64_t all = full > want ? full - want : 0;
            const bool upper = strcmp(mode, "SAME_UPPER") == 0;
            w->before[i] = upper ? all / 2 : all - all / 2;
            w->after[i] = all - w->before[i];
            if (want > full)
                t->extra[i] += want - full;
        }
        w->out[i] = w->stride[i] * (w->in[i] - 1) + t->extra[i] + reach(w, i) -
                    w->before[i] - w->after[i];
        if (w->out[i] < 1)
            return sti_lower_refuse(l, STINT_E_INPUT,
                                    "nothing is left between the pads");
    }
    return st;
}

static stint_status read_operands(sti_lowering *l, const sti_exchange_node *n,
                                  transposed *t, int *rank)
{
    sti_lane_value x, w;
    int8_t last[STINT_MAX_RANK], filters[STINT_MAX_RANK];
    int64_t dim[STINT_MAX_RANK], wdim[STINT_MAX_RANK];
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK)
        return st;
    *rank = x.rank;
    if (x.rank != 3 && x.rank != 4)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "of %d axes of pixels; one or two are wanted",
                                x.rank - 2);
    sti_order_last(x.rank, last);
    for (int i = 0; i < x.rank; i++) /* ci, co, pixels -> pixels, co, ci */
        filters[i] = (int8_t)(i < x.rank - 2 ? i + 2 : x.rank - 1 - i);
    if ((st = sti_lower_ordered(l, n, 1, x.rank, filters, &w)) != STINT_OK)
        return st;
    sti_lane_dims(l, &x, dim);
    sti_lane_dims(l, &w, wdim);
    t->x = sti_lane_ordered(l, &x, last);
    t->weight = w.value;
    t->groups = sti_exchange_attr_int(n, "group", 1);
    t->w.axes = x.rank - 2;
    for (int i = 0; i < t->w.axes; i++) {
        t->w.in[i] = dim[2 + i];
        t->w.size[i] = wdim[2 + i];
    }
    if (t->groups < 1 || dim[1] != wdim[0] || dim[1] % t->groups)
        return sti_lower_refuse(l, STINT_E_INPUT,
                                "%" PRId64 " channels by weights for "
                                "%" PRId64,
                                dim[1], wdim[0]);
    if ((st = read_list(l, n, "strides", t->w.axes, 1, t->w.stride)) != STINT_OK ||
        (st = read_list(l, n, "dilations", t->w.axes, 1, t->w.step)) != STINT_OK)
        return st;
    for (int i = 0; i < t->w.axes; i++)
        if (t->w.stride[i] < 1 || t->w.step[i] < 1)
            return sti_lower_refuse(l, STINT_E_INPUT, "a stride or dilation of 0");
    return find_lengths(l, n, t);
}

/* Images of one row, where there is one axis of pixels. */
static void add_row(sti_lowering *l, transposed *t)
{
    stint_shape x = stint_value_shape(l->graph, t->x),
                w = stint_value_shape(l->graph, t->weight);
    x = STINT_SHAPE(x.dim[0], 1, x.dim[1], x.dim[2]);
    w = STINT_SHAPE(1, w.dim[0], w.dim[1], w.dim[2]);
    t->x = stint_reshape(l->graph, t->x, &x);
    t->weight = stint_reshape(l->graph, t->weight, &w);
    int64_t *const lists[] = {t->w.size,  t->w.stride, t->w.step, t->w.before,
                              t->w.after, t->w.in,     t->w.out,  t->extra};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        lists[i][1] = lists[i][0];
    t->w.size[0] = t->w.step[0] = t->w.in[0] = t->w.out[0] = 1;
    t->w.before[0] = t->w.after[0] = t->extra[0] = 0;
    t->w.axes = 2;
}

/* The whole result before padding is cut off: at one stride, or at stride 1 of what is
 * spread out. */
static stint_value whole(sti_lowering *l, transposed *t)
{
    sti_window *w = &t->w;
    stint_graph *g = l->graph;
    int64_t stride = w->stride[0], length[2];
    if (w->stride[0] != w->stride[1]) {
        stride = 1;
        for (int i = 0; i < 2; i++)
            if (w->stride[i] > 1 && w->in[i] > 1)
                t->x = sti_op_pad_axis(g, t->x, 1 + i, 0, w->stride[i],
                                       (w->in[i] - 1) * w->stride[i] + 1);
    }
    for (int i = 0; i < 2; i++) {
        if (w->step[i] > 1 && w->size[i] > 1)
            t->weight = sti_op_pad_axis(g, t->weight, i, 0, w->step[i], reach(w, i));
        length[i] = w->stride[i] * (w->in[i] - 1) + reach(w, i);
    }
    const sti_conv2d_grad_attr attr = {
        .stride = stride, .groups = t->groups, .height = length[0], .width = length[1]};
    const stint_value in[2] = {t->x, t->weight};
    return sti_graph_add(g, &sti_op_conv2d_grad_x, &attr, 2, in);
}

stint_status sti_lower_conv_transpose(sti_lowering *l, const sti_exchange_node *n)
{
    transposed t = {.groups = 1};
    int rank;
    sti_lane_value bias;
    stint_status st = read_operands(l, n, &t, &rank);
    if (st != STINT_OK)
        return st;
    if (rank == 3)
        add_row(l, &t);
    stint_value y = whole(l, &t);
    for (int i = 0; i < 2 && y >= 0; i++) {
        const int64_t have = stint_value_shape(l->graph, y).dim[1 + i];
        y = sti_lower_padded(l, y, 1 + i, 0, t.extra[i], 0.0f);
        if (t.w.before[i] > 0 || t.w.out[i] != have + t.extra[i])
            y = stint_slice(l->graph, y, 1 + i, t.w.before[i],
                            t.w.before[i] + t.w.out[i], 1);
    }
    if (y >= 0 && sti_lower_has(n, 2)) {
        if ((st = sti_lower_lane(l, n, 2, &bias)) != STINT_OK)
            return st;
        y = stint_bias(l->graph, y, bias.value);
    }
    if (y >= 0 && rank == 3) {
        const stint_shape s = stint_value_shape(l->graph, y);
        const stint_shape row = STINT_SHAPE(s.dim[0], s.dim[2], s.dim[3]);
        y = stint_reshape(l->graph, y, &row);
    }
    if (y < 0)
        return sti_graph_status(l->graph);
    sti_lane_value out = sti_lane_plain(l, y, STI_EXCHANGE_F32);
    sti_order_last(rank, out.order);
    return sti_lower_result(l, n, 0, &out, y);
}
