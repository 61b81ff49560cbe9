/* Convolutions whose weights never change, and their gradients by the image: a node
 * conv2d_keep makes the weights ready, once (kernel/conv/conv_kept.h), and the two
 * others read them so. pass/once puts them in the place of the plain ones, behind the
 * gradient rules. */
#include "kernel/conv/conv_kept.h"
#include "op/op_conv_priv.h"

sti_conv_shape sti_op_conv_kept_shape(const sti_conv_kept_attr *a)
{
    return (sti_conv_shape){.n = a->n,
                            .h = a->h,
                            .w = a->w,
                            .ci = a->ci,
                            .co = a->co,
                            .kh = a->kh,
                            .kw = a->kw,
                            .stride = a->stride,
                            .pad = a->pad,
                            .groups = a->groups,
                            .oh = sti_conv_out_length(a->h, a->kh, a->stride, a->pad),
                            .ow = sti_conv_out_length(a->w, a->kw, a->stride, a->pad),
                            .winograd = a->winograd != 0};
}

static sti_conv_direction direction_of(const sti_conv_kept_attr *a)
{
    return a->data ? STI_CONV_BACKWARD_DATA : STI_CONV_FORWARD;
}

int64_t sti_op_conv_kept_floats(const sti_conv_kept_attr *a)
{
    const sti_conv_shape shape = sti_op_conv_kept_shape(a);
    return sti_conv_kept_floats(&shape, direction_of(a));
}

static sti_conv_plan plan_of(const sti_node *node, bool kept, int threads)
{
    const sti_conv_shape shape = sti_op_conv_kept_shape(node->attr);
    return (kept ? sti_conv_plan_kept_f32
                 : sti_conv_plan_f32)(&shape, direction_of(node->attr), threads);
}

sti_conv_kept_attr sti_op_conv_kept_attr(const sti_conv_shape *s, bool winograd,
                                         bool data)
{
    return (sti_conv_kept_attr){.n = s->n,
                                .h = s->h,
                                .w = s->w,
                                .ci = s->ci,
                                .co = s->co,
                                .kh = s->kh,
                                .kw = s->kw,
                                .stride = s->stride,
                                .pad = s->pad,
                                .groups = s->groups,
                                .winograd = winograd,
                                .data = data};
}

bool sti_op_conv_kept(const stint_graph *graph, const sti_node *node,
                      sti_conv_kept_attr *attr_out)
{
    if (node->op == &sti_op_conv2d) {
        const sti_conv2d_attr *a = node->attr;
        const sti_conv_shape shape = sti_op_conv_shape(graph, node);
        *attr_out = sti_op_conv_kept_attr(&shape, a->winograd != 0, false);
        attr_out->has_bias = a->has_bias;
        attr_out->relu = a->relu;
    } else if (node->op == &sti_op_conv2d_grad_x) {
        const sti_conv2d_grad_attr *a = node->attr;
        const sti_conv_shape shape = sti_op_conv_grad_shape(graph, node, true);
        *attr_out = sti_op_conv_kept_attr(&shape, a->winograd != 0, true);
    } else {
        return false;
    }
    return sti_op_conv_kept_floats(attr_out) > 0;
}

/* ---- making them ready ---- */

static stint_status infer_keep(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const sti_conv_kept_attr *a = node->attr;
    const stint_shape w = STINT_SHAPE(a->kh, a->kw, a->ci / a->groups, a->co);
    const int64_t floats = sti_op_conv_kept_floats(a);
    stint_status st = sti_op_check_count(node, 1);
    if (st == STINT_OK)
        st = sti_op_check_shape(graph, node, 0, &w);
    if (st == STINT_OK && floats == 0)
        st =
            sti_fail(STINT_E_BUG, "%s: this convolution keeps nothing", node->op->name);
    out[0] = STINT_SHAPE(floats);
    return st;
}

static size_t keep_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    (void)graph;
    return plan_of(node, false, threads).scratch_bytes;
}

static void run_keep(const sti_call *call)
{
    const sti_conv_plan plan = plan_of(call->node, false, call->team->threads);
    sti_conv_keep(call->team, &plan, call->in[0], call->out[0], call->scratch);
}

static void print_kept(const sti_node *node, sti_text *out)
{
    const sti_conv_kept_attr *a = node->attr;
    sti_text_add(out, a->winograd ? "winograd" : "panels");
    sti_text_add(out, a->has_bias ? " bias" : "");
    sti_text_add(out, a->relu ? " relu" : "");
}

const sti_op sti_op_conv2d_keep = {
    .name = "conv2d_keep",
    .n_out = 1,
    .attr_bytes = sizeof(sti_conv_kept_attr),
    .infer = infer_keep,
    .scratch_bytes = keep_scratch,
    .run = {[STI_CPU] = run_keep},
    .print = print_kept,
};

/* ---- reading them ---- */

/* Images of these lengths, and weights that were made ready. */
static stint_status check_operands(const stint_graph *graph, const sti_node *node,
                                   const stint_shape *images)
{
    const stint_shape kept = STINT_SHAPE(sti_op_conv_kept_floats(node->attr));
    const stint_status st = sti_op_check_shape(graph, node, 0, images);
    return st == STINT_OK ? sti_op_check_shape(graph, node, 1, &kept) : st;
}

static stint_status infer_kept(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const sti_conv_kept_attr *a = node->attr;
    const sti_conv_shape s = sti_op_conv_kept_shape(a);
    const stint_shape x = STINT_SHAPE(s.n, s.h, s.w, s.ci);
    const stint_shape bias = STINT_SHAPE(s.co);
    if (node->n_in != 2 && node->n_in != 3)
        return sti_op_check_count(node, 3);
    out[0] = STINT_SHAPE(s.n, s.oh, s.ow, s.co);
    out[1] = sti_op_bits_shape(&out[0]);
    const stint_status st = check_operands(graph, node, &x);
    return st == STINT_OK && a->has_bias ? sti_op_check_shape(graph, node, 2, &bias)
                                         : st;
}

static stint_status infer_grad(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const sti_conv_shape s = sti_op_conv_kept_shape(node->attr);
    const stint_shape dy = STINT_SHAPE(s.n, s.oh, s.ow, s.co);
    const stint_status st = sti_op_check_count(node, 2);
    out[0] = STINT_SHAPE(s.n, s.h, s.w, s.ci);
    return st == STINT_OK ? check_operands(graph, node, &dy) : st;
}

static sti_cost kept_cost(const stint_graph *graph, const sti_node *node)
{
    const sti_conv_shape shape = sti_op_conv_kept_shape(node->attr);
    return sti_op_conv_cost(graph, node, &shape);
}

static size_t kept_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    (void)graph;
    return plan_of(node, true, threads).scratch_bytes;
}

static void run_kept(const sti_call *call)
{
    const sti_conv_kept_attr *a = call->node->attr;
    const sti_conv_plan plan = plan_of(call->node, true, call->team->threads);
    const sti_epilogue epilogue = {.bias = a->has_bias ? call->in[2] : NULL,
                                   .relu = a->relu != 0,
                                   .relu_mask = a->relu ? call->out[1] : NULL};
    sti_conv_forward_f32(call->team, &plan, call->in[0], call->in[1], &epilogue,
                         call->out[0], call->scratch);
}

static void run_grad(const sti_call *call)
{
    const sti_conv_plan plan = plan_of(call->node, true, call->team->threads);
    sti_conv_backward_data_f32(call->team, &plan, call->in[0], call->in[1],
                               call->out[0], call->scratch);
}

const sti_op sti_op_conv2d_kept = {
    .name = "conv2d_kept",
    .n_out = 2,
    .attr_bytes = sizeof(sti_conv_kept_attr),
    .optional_out = 1u << 1,
    .infer = infer_kept,
    .cost = kept_cost,
    .scratch_bytes = kept_scratch,
    .run = {[STI_CPU] = run_kept},
    .print = print_kept,
};

const sti_op sti_op_conv2d_grad_x_kept = {
    .name = "conv2d_grad_x_kept",
    .n_out = 1,
    .attr_bytes = sizeof(sti_conv_kept_attr),
    .infer = infer_grad,
    .cost = kept_cost,
    .scratch_bytes = kept_scratch,
    .run = {[STI_CPU] = run_grad},
    .print = print_kept,
};
