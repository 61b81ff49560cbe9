/* Convolution with the epilogue of its kernel (bias, ReLU and its sign bits), its two
 * gradients, and the convolution layer.
 *
 * With <a, b> the sum of products, <y', conv(x, w)> = <x, grad_x(y', w)> =
 * <w, grad_w(x, y')>: each of the three is linear in both of its operands, and the
 * other two are its gradients. So they can be differentiated any number of times. */
#include <inttypes.h>

#include "op/op_conv_priv.h"

static const char x_layout[] = "[n, h, w, c] f32",
                  w_layout[] = "[kh, kw, c / groups, filters] f32",
                  dy_layout[] = "[n, oh, ow, filters] f32";

static sti_conv_shape shape_of(const stint_shape *x, const stint_shape *w,
                               const stint_shape *y, int64_t stride, int64_t pad,
                               int64_t groups)
{
    return (sti_conv_shape){.n = x->dim[0],
                            .h = x->dim[1],
                            .w = x->dim[2],
                            .ci = x->dim[3],
                            .co = w->dim[3],
                            .kh = w->dim[0],
                            .kw = w->dim[1],
                            .stride = stride,
                            .pad = pad,
                            .groups = groups,
                            .oh = y->dim[1],
                            .ow = y->dim[2]};
}

stint_status sti_op_conv_check_f32(const stint_graph *graph, const sti_node *node,
                                   int i, const char *layout)
{
    stint_status st = sti_op_check_f32(graph, node, i);
    if (st != STINT_OK)
        return st;
    const stint_shape *shape = sti_op_in_shape(graph, node, i);
    if (shape->rank != 4)
        return sti_fail(STINT_E_INPUT, "%s: input %d is %s, wanted %s", node->op->name,
                        i, sti_shape_text(shape), layout);
    return STINT_OK;
}

static stint_status check_window(const char *op, int64_t stride, int64_t pad,
                                 int64_t groups)
{
    if (stride < 1 || pad < 0 || groups < 1)
        return sti_fail(
            STINT_E_INPUT,
            "%s: stride %" PRId64 ", padding %" PRId64 ", groups %" PRId64
            "; wanted a stride of at least 1, a padding of at least 0 and at "
            "least 1 group",
            op, stride, pad, groups);
    return STINT_OK;
}

stint_status sti_op_conv_out(const sti_node *node, const stint_shape *x,
                             const stint_shape *w, int64_t stride, int64_t pad,
                             int64_t groups, stint_shape *y)
{
    const char *op = node->op->name;
    stint_status st = check_window(op, stride, pad, groups);
    if (st != STINT_OK)
        return st;
    if (x->dim[3] % groups || w->dim[3] % groups || x->dim[3] / groups != w->dim[2])
        return sti_fail(STINT_E_INPUT,
                        "%s: x is %s and weights are %s with %" PRId64
                        " groups; wanted weights [kh, kw, channels of x / groups, "
                        "filters], filters a multiple of the groups",
                        op, sti_shape_text(x), sti_shape_text(w), groups);
    int64_t oh = sti_conv_out_length(x->dim[1], w->dim[0], stride, pad);
    int64_t ow = sti_conv_out_length(x->dim[2], w->dim[1], stride, pad);
    if (oh < 1 || ow < 1)
        return sti_fail(STINT_E_INPUT,
                        "%s: a window of %" PRId64 " x %" PRId64
                        " does not fit into images of %" PRId64 " x %" PRId64
                        " with padding %" PRId64 "; use larger images or fewer layers "
                        "that shrink them",
                        op, w->dim[0], w->dim[1], x->dim[1], x->dim[2], pad);
    *y = STINT_SHAPE(x->dim[0], oh, ow, w->dim[3]);
    return STINT_OK;
}

static stint_status infer_conv2d(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const sti_conv2d_attr *attr = node->attr;
    stint_status st;
    if (node->n_in != 2 && node->n_in != 3)
        return sti_op_check_count(node, 3);
    if ((st = sti_op_conv_check_f32(graph, node, 0, x_layout)) != STINT_OK ||
        (st = sti_op_conv_check_f32(graph, node, 1, w_layout)) != STINT_OK ||
        (st = sti_op_conv_out(node, sti_op_in_shape(graph, node, 0),
                              sti_op_in_shape(graph, node, 1), attr->stride, attr->pad,
                              attr->groups, &out[0])) != STINT_OK)
        return st;
    out[1] = sti_op_bits_shape(&out[0]);
    stint_shape bias = STINT_SHAPE(out[0].dim[3]);
    return attr->has_bias ? sti_op_check_shape(graph, node, 2, &bias) : STINT_OK;
}

sti_conv_shape sti_op_conv_shape(const stint_graph *graph, const sti_node *node)
{
    const sti_conv2d_attr *attr = node->attr;
    return shape_of(sti_op_in_shape(graph, node, 0), sti_op_in_shape(graph, node, 1),
                    sti_op_out_shape(graph, node, 0), attr->stride, attr->pad,
                    attr->groups);
}

static sti_conv_shape conv2d_shape(const stint_graph *graph, const sti_node *node)
{
    sti_conv_shape shape = sti_op_conv_shape(graph, node);
    shape.winograd = ((const sti_conv2d_attr *)node->attr)->winograd != 0;
    return shape;
}

bool sti_op_conv2d_fits_winograd(const stint_graph *graph, const sti_node *node)
{
    const sti_conv_shape shape = conv2d_shape(graph, node);
    return sti_conv_winograd_fits(&shape);
}

/* What both the scratch of a node and its run take. */
static sti_conv_plan conv2d_plan(const stint_graph *graph, const sti_node *node,
                                 int threads)
{
    const sti_conv_shape shape = conv2d_shape(graph, node);
    return sti_conv_plan_f32(&shape, STI_CONV_FORWARD, threads);
}

static size_t conv2d_scratch(const stint_graph *graph, const sti_node *node,
                             int threads)
{
    return conv2d_plan(graph, node, threads).scratch_bytes;
}

sti_cost sti_op_conv_cost(const stint_graph *graph, const sti_node *node,
                          const sti_conv_shape *shape)
{
    sti_cost cost = sti_op_cost_bytes(graph, node, 0.0);
    cost.flop = sti_conv_flop(shape);
    if (shape->winograd && sti_conv_winograd_fits(shape))
        cost.flop *= 16.0 / 36.0;
    return cost;
}

static sti_cost conv2d_cost(const stint_graph *graph, const sti_node *node)
{
    const sti_conv_shape shape = conv2d_shape(graph, node);
    return sti_op_conv_cost(graph, node, &shape);
}

sti_epilogue sti_op_conv_epilogue(const sti_call *call)
{
    const sti_conv2d_attr *attr = call->node->attr;
    return (sti_epilogue){.bias = attr->has_bias ? call->in[2] : NULL,
                          .relu = attr->relu != 0,
                          .relu_mask = attr->relu ? call->out[1] : NULL};
}

static void run_conv2d(const sti_call *call)
{
    const sti_conv_plan plan =
        conv2d_plan(call->graph, call->node, call->team->threads);
    const sti_epilogue epilogue = sti_op_conv_epilogue(call);
    sti_conv_forward_f32(call->team, &plan, call->in[0], call->in[1], &epilogue,
                         call->out[0], call->scratch);
}

static stint_status grad_conv2d(stint_graph *g, const sti_node *node,
                                const stint_value *dy, const bool *need,
                                stint_value *dx)
{
    const sti_conv2d_attr *attr = node->attr;
    const stint_shape x = *sti_op_in_shape(g, node, 0),
                      w = *sti_op_in_shape(g, node, 1);
    sti_conv2d_grad_attr grad = {.stride = attr->stride,
                                 .pad = attr->pad,
                                 .groups = attr->groups,
                                 .winograd = attr->winograd};
    stint_value d = dy[0];
    if (attr->relu)
        d = sti_op_add2(g, &sti_op_relu_grad, NULL, d, node->out[1]);
    if (need[1]) { /* before dx, which may then take the place of d */
        grad.height = w.dim[0];
        grad.width = w.dim[1];
        dx[1] = sti_op_add2(g, &sti_op_conv2d_grad_w, &grad, node->in[0], d);
    }
    if (attr->has_bias && need[2]) {
        stint_shape shape = *sti_op_in_shape(g, node, 2);
        dx[2] = sti_op_reduce_to(g, d, &shape);
    }
    if (need[0]) {
        grad.height = x.dim[1];
        grad.width = x.dim[2];
        dx[0] = sti_op_add2(g, &sti_op_conv2d_grad_x, &grad, d, node->in[1]);
    }
    return STINT_OK;
}

static void print_window(int64_t stride, int64_t pad, int64_t groups, sti_text *out)
{
    sti_text_printf(out, "stride %" PRId64 " pad %" PRId64, stride, pad);
    if (groups != 1)
        sti_text_printf(out, " groups %" PRId64, groups);
}

static void print_conv2d(const sti_node *node, sti_text *out)
{
    const sti_conv2d_attr *attr = node->attr;
    print_window(attr->stride, attr->pad, attr->groups, out);
    sti_text_add(out, attr->has_bias ? " bias" : "");
    sti_text_add(out, attr->relu ? " relu" : "");
    sti_text_add(out, attr->winograd ? " winograd" : "");
}

const sti_op sti_op_conv2d = {
    .name = "conv2d",
    .n_out = 2,
    .attr_bytes = sizeof(sti_conv2d_attr),
    .optional_out = 1u << 1,
    .infer = infer_conv2d,
    .grad = grad_conv2d,
    .cost = conv2d_cost,
    .scratch_bytes = conv2d_scratch,
    .run = {[STI_CPU] = run_conv2d},
    .print = print_conv2d,
};

/* ---- gradients ---- */

static bool gives_dx(const sti_node *node)
{
    return node->op != &sti_op_conv2d_grad_w;
}

sti_conv_shape sti_op_conv_grad_shape(const stint_graph *graph, const sti_node *node,
                                      bool of_x)
{
    const sti_conv2d_grad_attr *attr = node->attr;
    const stint_shape *in0 = sti_op_in_shape(graph, node, 0),
                      *in1 = sti_op_in_shape(graph, node, 1),
                      *out = sti_op_out_shape(graph, node, 0);
    return shape_of(of_x ? out : in0, of_x ? in1 : out, of_x ? in0 : in1, attr->stride,
                    attr->pad, attr->groups);
}

static sti_conv_shape grad_shape(const stint_graph *graph, const sti_node *node)
{
    sti_conv_shape shape = sti_op_conv_grad_shape(graph, node, gives_dx(node));
    shape.winograd = ((const sti_conv2d_grad_attr *)node->attr)->winograd != 0;
    return shape;
}

static sti_cost grad_cost(const stint_graph *graph, const sti_node *node)
{
    const sti_conv_shape shape = grad_shape(graph, node);
    return sti_op_conv_cost(graph, node, &shape);
}

static sti_conv_plan grad_plan(const stint_graph *graph, const sti_node *node,
                               int threads)
{
    const sti_conv_shape shape = grad_shape(graph, node);
    return sti_conv_plan_f32(
        &shape, gives_dx(node) ? STI_CONV_BACKWARD_DATA : STI_CONV_BACKWARD_WEIGHT,
        threads);
}

static size_t grad_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    return grad_plan(graph, node, threads).scratch_bytes;
}

static void print_grad(const sti_node *node, sti_text *out)
{
    const sti_conv2d_grad_attr *attr = node->attr;
    print_window(attr->stride, attr->pad, attr->groups, out);
    sti_text_add(out, attr->winograd ? " winograd" : "");
}

/* Two inputs of these layouts, and a window that makes sense. */
static stint_status check_grad(const stint_graph *graph, const sti_node *node,
                               const char *layout0, const char *layout1)
{
    const sti_conv2d_grad_attr *attr = node->attr;
    stint_status st;
    if ((st = sti_op_check_count(node, 2)) != STINT_OK ||
        (st = sti_op_conv_check_f32(graph, node, 0, layout0)) != STINT_OK ||
        (st = sti_op_conv_check_f32(graph, node, 1, layout1)) != STINT_OK)
        return st;
    return check_window(node->op->name, attr->stride, attr->pad, attr->groups);
}

stint_status sti_op_conv_check_dy(const sti_node *node, const stint_shape *x,
                                  const stint_shape *w, const stint_shape *dy)
{
    const sti_conv2d_grad_attr *attr = node->attr;
    stint_shape y;
    stint_status st =
        sti_op_conv_out(node, x, w, attr->stride, attr->pad, attr->groups, &y);
    y.dtype = dy->dtype;
    if (st == STINT_OK && !sti_shape_equal(&y, dy))
        st = sti_fail(STINT_E_INPUT, "%s: dy is %s, wanted %s", node->op->name,
                      sti_shape_text(dy), sti_shape_text(&y));
    return st;
}

/* in: dy, w. */
static stint_status infer_grad_x(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const sti_conv2d_grad_attr *attr = node->attr;
    stint_status st = check_grad(graph, node, dy_layout, w_layout);
    if (st != STINT_OK)
        return st;
    const stint_shape *dy = sti_op_in_shape(graph, node, 0);
    const stint_shape *w = sti_op_in_shape(graph, node, 1);
    out[0] =
        STINT_SHAPE(dy->dim[0], attr->height, attr->width, w->dim[2] * attr->groups);
    return sti_op_conv_check_dy(node, &out[0], w, dy);
}

static void run_grad_x(const sti_call *call)
{
    const sti_conv_plan plan = grad_plan(call->graph, call->node, call->team->threads);
    sti_conv_backward_data_f32(call->team, &plan, call->in[0], call->in[1],
                               call->out[0], call->scratch);
}

/* The convolution that a gradient is of, of other operands. */
static stint_value conv_again(stint_graph *g, const sti_conv2d_grad_attr *grad,
                              stint_value x, stint_value w)
{
    const sti_conv2d_attr attr = {.stride = grad->stride,
                                  .pad = grad->pad,
                                  .groups = grad->groups,
                                  .winograd = grad->winograd};
    return sti_op_conv(g, x, w, STI_NO_INPUT, &attr);
}

/* The attributes of a gradient that gives what has the shape of `like`. */
static sti_conv2d_grad_attr grad_attr_like(const sti_conv2d_grad_attr *of,
                                           const stint_shape *like, bool images)
{
    sti_conv2d_grad_attr attr = *of;
    attr.height = like->dim[images ? 1 : 0];
    attr.width = like->dim[images ? 2 : 1];
    return attr;
}

static stint_status grad_grad_x(stint_graph *g, const sti_node *node,
                                const stint_value *dy, const bool *need,
                                stint_value *dx)
{
    const sti_conv2d_grad_attr of_w =
        grad_attr_like(node->attr, sti_op_in_shape(g, node, 1), false);
    if (need[1])
        dx[1] = sti_op_add2(g, &sti_op_conv2d_grad_w, &of_w, dy[0], node->in[0]);
    if (need[0])
        dx[0] = conv_again(g, node->attr, dy[0], node->in[1]);
    return STINT_OK;
}

const sti_op sti_op_conv2d_grad_x = {
    .name = "conv2d_grad_x",
    .n_out = 1,
    .attr_bytes = sizeof(sti_conv2d_grad_attr),
    .infer = infer_grad_x,
    .grad = grad_grad_x,
    .cost = grad_cost,
    .scratch_bytes = grad_scratch,
    .run = {[STI_CPU] = run_grad_x},
    .print = print_grad,
};

/* in: x, dy. out: the gradient and, optional, the sums of dy^2 of each filter. */
static stint_status infer_grad_w(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const sti_conv2d_grad_attr *attr = node->attr;
    stint_status st = check_grad(graph, node, x_layout, dy_layout);
    if (st != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    const stint_shape *dy = sti_op_in_shape(graph, node, 1);
    out[0] =
        STINT_SHAPE(attr->height, attr->width, x->dim[3] / attr->groups, dy->dim[3]);
    out[1] = STINT_SHAPE(dy->dim[3]);
    return sti_op_conv_check_dy(node, x, &out[0], dy);
}

static void run_grad_w(const sti_call *call)
{
    const sti_conv_plan plan = grad_plan(call->graph, call->node, call->team->threads);
    sti_conv_backward_weight_f32(call->team, &plan, call->in[0], call->in[1],
                                 call->out[0], call->out[1], call->scratch);
}

/* The sums of dy^2 are for choosing errors, and are no part of any loss. */
static stint_status grad_grad_w(stint_graph *g, const sti_node *node,
                                const stint_value *dy, const bool *need,
                                stint_value *dx)
{
    const sti_conv2d_grad_attr of_x =
        grad_attr_like(node->attr, sti_op_in_shape(g, node, 0), true);
    if (dy[0] < 0 || dy[1] >= 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "conv2d_grad_w: its sums of squares have no gradient");
    if (need[1])
        dx[1] = conv_again(g, node->attr, node->in[0], dy[0]);
    if (need[0])
        dx[0] = sti_op_add2(g, &sti_op_conv2d_grad_x, &of_x, node->in[1], dy[0]);
    return STINT_OK;
}

const sti_op sti_op_conv2d_grad_w = {
    .name = "conv2d_grad_w",
    .n_out = 2,
    .attr_bytes = sizeof(sti_conv2d_grad_attr),
    .optional_out = 1u << 1,
    .infer = infer_grad_w,
    .grad = grad_grad_w,
    .cost = grad_cost,
    .scratch_bytes = grad_scratch,
    .run = {[STI_CPU] = run_grad_w},
    .print = print_grad,
};

/* ---- builders ---- */

stint_value sti_op_conv(stint_graph *g, stint_value x, stint_value w, stint_value bias,
                        const sti_conv2d_attr *attr)
{
    stint_value in[3] = {x, w, attr->has_bias ? bias : STI_NO_INPUT};
    return sti_graph_add(g, &sti_op_conv2d, attr, 3, in);
}

static stint_status check_desc(const stint_shape *x, const stint_conv2d_desc *desc,
                               const sti_conv2d_attr *attr)
{
    if (x->rank != 4)
        return sti_fail(STINT_E_INPUT, "conv2d: x is %s, wanted images [n, h, w, c]",
                        sti_shape_text(x));
    if (desc->filters < 1 || desc->size < 1 || x->dim[3] % attr->groups ||
        desc->filters % attr->groups)
        return sti_fail(
            STINT_E_INPUT,
            "conv2d: %" PRId64 " filters of size %" PRId64 " in %" PRId64
            " groups over %s; wanted at least 1 filter of size 1, and groups "
            "that divide filters and channels",
            desc->filters, desc->size, attr->groups, sti_shape_text(x));
    return STINT_OK;
}

stint_value stint_conv2d(stint_graph *g, stint_value x, const stint_conv2d_desc *desc)
{
    if (x < 0)
        return -1;
    const stint_shape from = stint_value_shape(g, x);
    const sti_conv2d_attr attr = {.stride = desc->stride ? desc->stride : 1,
                                  .pad = desc->pad,
                                  .groups = desc->groups ? desc->groups : 1,
                                  .has_bias = desc->bias};
    stint_status st = check_window("conv2d", attr.stride, attr.pad, attr.groups);
    if (st == STINT_OK)
        st = check_desc(&from, desc, &attr);
    if (st != STINT_OK)
        return sti_graph_fail(g, st);

    const int64_t size = desc->size, inner = from.dim[3] / attr.groups;
    const stint_shape weight = STINT_SHAPE(size, size, inner, desc->filters);
    const stint_shape row = STINT_SHAPE(desc->filters);
    const bool usual = desc->init == STINT_INIT_ZERO;
    const stint_param_desc init = {.init = usual ? STINT_INIT_HE_NORMAL : desc->init,
                                   .fan_in = size * size * inner,
                                   .fan_out =
                                       size * size * desc->filters / attr.groups};
    stint_value w = stint_param(g, "weight", &weight, &init), bias = STI_NO_INPUT;
    if (desc->bias)
        bias = stint_param(g, "bias", &row, &(stint_param_desc){.no_decay = true});
    return sti_op_conv(g, x, w, bias, &attr);
}
