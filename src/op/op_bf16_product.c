/* Convolution and matrix products of bfloat16. */
#include <inttypes.h>

#include "kernel/conv_bf16.h"
#include "kernel/gemm_bf16.h"
#include "op/op_bf16_priv.h"

/* ---- convolution ---- */

static sti_conv_shape shape_of(const stint_shape *x, const stint_shape *w,
                               const stint_shape *y, int64_t stride, int64_t pad)
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
                            .groups = 1,
                            .oh = y->dim[1],
                            .ow = y->dim[2]};
}

static stint_status check_weights(const stint_graph *graph, const sti_node *node,
                                  const stint_shape **w)
{
    stint_status st = sti_op_check_f32(graph, node, 1);
    if (st != STINT_OK)
        return st;
    *w = sti_op_in_shape(graph, node, 1);
    if ((*w)->rank != 4)
        return sti_fail(STINT_E_INPUT,
                        "%s: weights are %s, wanted [kh, kw, c, filters]",
                        node->op->name, sti_shape_text(*w));
    return STINT_OK;
}

/* The shape of y for images x and weights w. */
static stint_status window_shape(const sti_node *node, const stint_shape *x,
                                 const stint_shape *w, int64_t stride, int64_t pad,
                                 int64_t groups, stint_shape *y)
{
    const bool fits = stride >= 1 && pad >= 0 && groups == 1 && x->dim[3] == w->dim[2];
    const int64_t oh =
        fits ? sti_conv_out_length(x->dim[1], w->dim[0], stride, pad) : 0;
    const int64_t ow =
        fits ? sti_conv_out_length(x->dim[2], w->dim[1], stride, pad) : 0;
    if (oh < 1 || ow < 1)
        return sti_fail(
            STINT_E_INPUT,
            "%s: images %s and weights %s with %" PRId64
            " groups; wanted the same channels, one group, and windows that "
            "fit",
            node->op->name, sti_shape_text(x), sti_shape_text(w), groups);
    *y = STINT_SHAPE(x->dim[0], oh, ow, w->dim[3]);
    y->dtype = STINT_BF16;
    return STINT_OK;
}

static stint_status check_equal(const sti_node *node, const stint_shape *seen,
                                const stint_shape *want)
{
    if (sti_shape_equal(seen, want))
        return STINT_OK;
    return sti_fail(STINT_E_INPUT, "%s: dy is %s, wanted %s", node->op->name,
                    sti_shape_text(seen), sti_shape_text(want));
}

static stint_status infer_conv(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const sti_conv2d_attr *attr = node->attr;
    const stint_shape *w;
    stint_status st;
    if ((st = sti_op_check_count(node, 3)) != STINT_OK ||
        (st = sti_op_check_bf16(graph, node, 0, 4)) != STINT_OK ||
        (st = check_weights(graph, node, &w)) != STINT_OK ||
        (st = window_shape(node, sti_op_in_shape(graph, node, 0), w, attr->stride,
                           attr->pad, attr->groups, &out[0])) != STINT_OK)
        return st;
    out[1] = sti_op_bits_shape(&out[0]);
    const stint_shape bias = STINT_SHAPE(out[0].dim[3]);
    return attr->has_bias ? sti_op_check_shape(graph, node, 2, &bias) : STINT_OK;
}

static sti_conv_shape conv_shape(const stint_graph *graph, const sti_node *node)
{
    const sti_conv2d_attr *attr = node->attr;
    return shape_of(sti_op_in_shape(graph, node, 0), sti_op_in_shape(graph, node, 1),
                    sti_op_out_shape(graph, node, 0), attr->stride, attr->pad);
}

static size_t conv_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    const sti_conv_shape shape = conv_shape(graph, node);
    return sti_conv_bf16_forward_scratch_bytes(&shape, threads);
}

static sti_cost cost_of(const stint_graph *graph, const sti_node *node,
                        const sti_conv_shape *shape)
{
    sti_cost cost = sti_op_cost_bytes(graph, node, 0.0);
    cost.flop = sti_conv_flop(shape);
    return cost;
}

static sti_cost conv_cost(const stint_graph *graph, const sti_node *node)
{
    const sti_conv_shape shape = conv_shape(graph, node);
    return cost_of(graph, node, &shape);
}

static void run_conv(const sti_call *call)
{
    const sti_conv2d_attr *attr = call->node->attr;
    const sti_conv_shape shape = conv_shape(call->graph, call->node);
    const sti_epilogue epilogue = {.bias = attr->has_bias ? call->in[2] : NULL,
                                   .relu = attr->relu != 0,
                                   .relu_mask = attr->relu ? call->out[1] : NULL};
    sti_conv_bf16_forward(call->team, &shape, call->in[0], call->in[1], &epilogue,
                          call->out[0], call->scratch);
}

static void print_conv(const sti_node *node, sti_text *out)
{
    const sti_conv2d_attr *attr = node->attr;
    sti_text_printf(out, "stride %" PRId64 " pad %" PRId64 "%s%s", attr->stride,
                    attr->pad, attr->has_bias ? " bias" : "",
                    attr->relu ? " relu" : "");
}

const sti_op sti_op_conv2d_bf16 = {
    .name = "conv2d_bf16",
    .n_out = 2,
    .attr_bytes = sizeof(sti_conv2d_attr),
    .optional_out = 1u << 1,
    .infer = infer_conv,
    .cost = conv_cost,
    .scratch_bytes = conv_scratch,
    .run = {[STI_CPU] = run_conv},
    .print = print_conv,
};

/* ---- its gradients ---- */

static void print_conv_grad(const sti_node *node, sti_text *out)
{
    const sti_conv2d_grad_attr *attr = node->attr;
    sti_text_printf(out, "stride %" PRId64 " pad %" PRId64, attr->stride, attr->pad);
}

/* in: dy, w. */
static stint_status infer_grad_x(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const sti_conv2d_grad_attr *attr = node->attr;
    const stint_shape *w;
    stint_shape y;
    stint_status st;
    if ((st = sti_op_check_count(node, 2)) != STINT_OK ||
        (st = sti_op_check_bf16(graph, node, 0, 4)) != STINT_OK ||
        (st = check_weights(graph, node, &w)) != STINT_OK)
        return st;
    const stint_shape *dy = sti_op_in_shape(graph, node, 0);
    out[0] = STINT_SHAPE(dy->dim[0], attr->height, attr->width, w->dim[2]);
    out[0].dtype = STINT_BF16;
    st = window_shape(node, &out[0], w, attr->stride, attr->pad, attr->groups, &y);
    return st == STINT_OK ? check_equal(node, dy, &y) : st;
}

static sti_conv_shape grad_x_shape(const stint_graph *graph, const sti_node *node)
{
    const sti_conv2d_grad_attr *attr = node->attr;
    return shape_of(sti_op_out_shape(graph, node, 0), sti_op_in_shape(graph, node, 1),
                    sti_op_in_shape(graph, node, 0), attr->stride, attr->pad);
}

static size_t grad_x_scratch(const stint_graph *graph, const sti_node *node,
                             int threads)
{
    const sti_conv_shape shape = grad_x_shape(graph, node);
    return sti_conv_bf16_data_scratch_bytes(&shape, threads);
}

static sti_cost grad_x_cost(const stint_graph *graph, const sti_node *node)
{
    const sti_conv_shape shape = grad_x_shape(graph, node);
    return cost_of(graph, node, &shape);
}

static void run_grad_x(const sti_call *call)
{
    const sti_conv_shape shape = grad_x_shape(call->graph, call->node);
    sti_conv_bf16_data(call->team, &shape, call->in[0], call->in[1], call->out[0],
                       call->scratch);
}

const sti_op sti_op_conv2d_bf16_grad_x = {
    .name = "conv2d_bf16_grad_x",
    .n_out = 1,
    .attr_bytes = sizeof(sti_conv2d_grad_attr),
    .infer = infer_grad_x,
    .cost = grad_x_cost,
    .scratch_bytes = grad_x_scratch,
    .run = {[STI_CPU] = run_grad_x},
    .print = print_conv_grad,
};

/* in: x, dy. */
static stint_status infer_grad_w(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const sti_conv2d_grad_attr *attr = node->attr;
    stint_shape y;
    stint_status st;
    if ((st = sti_op_check_count(node, 2)) != STINT_OK ||
        (st = sti_op_check_bf16(graph, node, 0, 4)) != STINT_OK ||
        (st = sti_op_check_bf16(graph, node, 1, 4)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    const stint_shape *dy = sti_op_in_shape(graph, node, 1);
    out[0] = STINT_SHAPE(attr->height, attr->width, x->dim[3], dy->dim[3]);
    st = window_shape(node, x, &out[0], attr->stride, attr->pad, attr->groups, &y);
    return st == STINT_OK ? check_equal(node, dy, &y) : st;
}

static sti_conv_shape grad_w_shape(const stint_graph *graph, const sti_node *node)
{
    const sti_conv2d_grad_attr *attr = node->attr;
    return shape_of(sti_op_in_shape(graph, node, 0), sti_op_out_shape(graph, node, 0),
                    sti_op_in_shape(graph, node, 1), attr->stride, attr->pad);
}

static size_t grad_w_scratch(const stint_graph *graph, const sti_node *node,
                             int threads)
{
    const sti_conv_shape shape = grad_w_shape(graph, node);
    return sti_conv_bf16_weight_scratch_bytes(&shape, threads);
}

static sti_cost grad_w_cost(const stint_graph *graph, const sti_node *node)
{
    const sti_conv_shape shape = grad_w_shape(graph, node);
    return cost_of(graph, node, &shape);
}

static void run_grad_w(const sti_call *call)
{
    const sti_conv_shape shape = grad_w_shape(call->graph, call->node);
    sti_conv_bf16_weight(call->team, &shape, call->in[0], call->in[1], call->out[0],
                         call->scratch);
}

const sti_op sti_op_conv2d_bf16_grad_w = {
    .name = "conv2d_bf16_grad_w",
    .n_out = 1,
    .attr_bytes = sizeof(sti_conv2d_grad_attr),
    .infer = infer_grad_w,
    .cost = grad_w_cost,
    .scratch_bytes = grad_w_scratch,
    .run = {[STI_CPU] = run_grad_w},
    .print = print_conv_grad,
};

/* ---- matrix products ---- */

typedef struct product {
    int64_t count, m, n, k;
} product;

static product product_of(const stint_graph *graph, const sti_node *node)
{
    const sti_matmul_bf16_attr *attr = node->attr;
    const stint_shape *a = sti_op_in_shape(graph, node, 0);
    const stint_shape *b = sti_op_in_shape(graph, node, 1);
    product p = {.count = 1};
    for (int i = 0; i < a->rank - 2; i++)
        p.count *= a->dim[i];
    p.m = a->dim[a->rank - (attr->matmul.trans_a ? 1 : 2)];
    p.k = a->dim[a->rank - (attr->matmul.trans_a ? 2 : 1)];
    p.n = b->dim[b->rank - (attr->matmul.trans_b ? 2 : 1)];
    return p;
}

static stint_status infer_matmul(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const sti_matmul_bf16_attr *attr = node->attr;
    stint_status st;
    if (node->n_in != 2 && node->n_in != 3)
        return sti_op_check_count(node, 2);
    if ((st = sti_op_check_bf16(graph, node, 0, 0)) != STINT_OK ||
        (st = sti_op_check_bf16(graph, node, 1, 0)) != STINT_OK)
        return st;
    const stint_shape *a = sti_op_in_shape(graph, node, 0);
    const stint_shape *b = sti_op_in_shape(graph, node, 1);
    bool fits = a->rank >= 2 && a->rank == b->rank;
    for (int i = 0; fits && i < a->rank - 2; i++)
        fits = a->dim[i] == b->dim[i];
    if (!fits || a->dim[a->rank - (attr->matmul.trans_a ? 2 : 1)] !=
                     b->dim[b->rank - (attr->matmul.trans_b ? 1 : 2)])
        return sti_fail(STINT_E_INPUT, "%s: %s and %s do not go together",
                        node->op->name, sti_shape_text(a), sti_shape_text(b));
    const product p = product_of(graph, node);
    out[0] = *a;
    out[0].dim[a->rank - 2] = p.m;
    out[0].dim[a->rank - 1] = p.n;
    out[0].dtype = attr->y_f32 ? STINT_F32 : STINT_BF16;
    out[1] = sti_op_bits_shape(&out[0]);
    const stint_shape bias = STINT_SHAPE(p.n);
    return attr->matmul.has_bias ? sti_op_check_shape(graph, node, 2, &bias) : STINT_OK;
}

static sti_gemm_bf16_shape gemm_shape(const sti_matmul_bf16_attr *attr,
                                      const product *p)
{
    return (sti_gemm_bf16_shape){.m = p->m,
                                 .n = p->n,
                                 .k = p->k,
                                 .lda = attr->matmul.trans_a ? p->m : p->k,
                                 .ldb = attr->matmul.trans_b ? p->k : p->n,
                                 .ldc = p->n,
                                 .trans_a = attr->matmul.trans_a != 0,
                                 .trans_b = attr->matmul.trans_b != 0,
                                 .c_bf16 = !attr->y_f32};
}

static size_t matmul_scratch(const stint_graph *graph, const sti_node *node,
                             int threads)
{
    const product p = product_of(graph, node);
    const sti_gemm_bf16_shape shape = gemm_shape(node->attr, &p);
    return sti_gemm_bf16_scratch_bytes(&shape, threads);
}

static sti_cost matmul_cost(const stint_graph *graph, const sti_node *node)
{
    const product p = product_of(graph, node);
    return sti_op_cost_bytes(graph, node, 2.0 * (double)p.k);
}

static void run_matmul(const sti_call *call)
{
    const sti_matmul_bf16_attr *attr = call->node->attr;
    const product p = product_of(call->graph, call->node);
    const sti_gemm_bf16_shape shape = gemm_shape(attr, &p);
    const sti_bf16 *a = call->in[0], *b = call->in[1];
    sti_epilogue epilogue = {.bias = attr->matmul.has_bias ? call->in[2] : NULL,
                             .relu = attr->matmul.relu != 0};
    const size_t c_bytes = (size_t)(p.m * p.n) * (attr->y_f32 ? 4 : 2);
    if (p.count == 1 && attr->matmul.relu)
        epilogue.relu_mask = call->out[1];
    for (int64_t i = 0; i < p.count; i++)
        sti_gemm_bf16(call->team, &shape, a + i * p.m * p.k, b + i * p.k * p.n,
                      &epilogue, (char *)call->out[0] + (size_t)i * c_bytes,
                      call->scratch);
}

static void print_matmul(const sti_node *node, sti_text *out)
{
    const sti_matmul_bf16_attr *attr = node->attr;
    sti_text_printf(
        out, "%s%s%s%s%s", attr->y_f32 ? "to f32" : "to bf16",
        attr->matmul.trans_a ? " trans_a" : "", attr->matmul.trans_b ? " trans_b" : "",
        attr->matmul.has_bias ? " bias" : "", attr->matmul.relu ? " relu" : "");
}

const sti_op sti_op_matmul_bf16 = {
    .name = "matmul_bf16",
    .n_out = 2,
    .attr_bytes = sizeof(sti_matmul_bf16_attr),
    .optional_out = 1u << 1,
    .infer = infer_matmul,
    .cost = matmul_cost,
    .scratch_bytes = matmul_scratch,
    .run = {[STI_CPU] = run_matmul},
    .print = print_matmul,
};
