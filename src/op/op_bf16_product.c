/* Convolution and matrix products of bfloat16. */
#include <assert.h>
#include <inttypes.h>

#include "kernel/conv/conv_bf16.h"
#include "kernel/gemm/gemm_bf16.h"
#include "op/op_bf16_priv.h"
#include "op/op_conv_priv.h"
#include "op/op_matmul_priv.h"

/* ---- convolution ---- */

static const char w_layout[] = "[kh, kw, c, filters] f32";

static stint_status check_groups(const sti_node *node, int64_t groups)
{
    if (groups != 1)
        return sti_fail(STINT_E_INPUT, "%s: %" PRId64 " groups, wanted 1",
                        node->op->name, groups);
    return STINT_OK;
}

static stint_status infer_conv(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const sti_conv2d_attr *attr = node->attr;
    stint_status st;
    if ((st = sti_op_check_count(node, 3)) != STINT_OK ||
        (st = sti_op_check_bf16(graph, node, 0, 4)) != STINT_OK ||
        (st = sti_op_conv_check_f32(graph, node, 1, w_layout)) != STINT_OK ||
        (st = check_groups(node, attr->groups)) != STINT_OK ||
        (st = sti_op_conv_out(node, sti_op_in_shape(graph, node, 0),
                              sti_op_in_shape(graph, node, 1), attr->stride, attr->pad,
                              attr->groups, &out[0])) != STINT_OK)
        return st;
    out[0].dtype = STINT_BF16;
    out[1] = sti_op_bits_shape(&out[0]);
    const stint_shape bias = STINT_SHAPE(out[0].dim[3]);
    return attr->has_bias ? sti_op_check_shape(graph, node, 2, &bias) : STINT_OK;
}

static sti_conv_plan conv_plan(const stint_graph *graph, const sti_node *node,
                               int threads)
{
    const sti_conv_shape shape = sti_op_conv_shape(graph, node);
    return sti_conv_plan_bf16(&shape, STI_CONV_FORWARD, threads);
}

static size_t conv_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    return conv_plan(graph, node, threads).scratch_bytes;
}

static sti_cost conv_cost(const stint_graph *graph, const sti_node *node)
{
    const sti_conv_shape shape = sti_op_conv_shape(graph, node);
    return sti_op_conv_cost(graph, node, &shape);
}

static void run_conv(const sti_call *call)
{
    const sti_conv_plan plan = conv_plan(call->graph, call->node, call->team->threads);
    const sti_epilogue epilogue = sti_op_conv_epilogue(call);
    sti_conv_bf16_forward(call->team, &plan, call->in[0], call->in[1], &epilogue,
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
    .flags = STI_OP_BF16,
    .cost = conv_cost,
    .scratch_bytes = conv_scratch,
    .run = {[STI_CPU] = run_conv},
    .print = print_conv,
};

/* ---- its gradients ---- */

static bool gives_dx(const sti_node *node)
{
    return node->op == &sti_op_conv2d_bf16_grad_x;
}

static sti_conv_shape grad_shape(const stint_graph *graph, const sti_node *node)
{
    return sti_op_conv_grad_shape(graph, node, gives_dx(node));
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
    return sti_conv_plan_bf16(
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
    sti_text_printf(out, "stride %" PRId64 " pad %" PRId64, attr->stride, attr->pad);
}

/* in: dy, w. */
static stint_status infer_grad_x(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const sti_conv2d_grad_attr *attr = node->attr;
    stint_status st;
    if ((st = sti_op_check_count(node, 2)) != STINT_OK ||
        (st = sti_op_check_bf16(graph, node, 0, 4)) != STINT_OK ||
        (st = sti_op_conv_check_f32(graph, node, 1, w_layout)) != STINT_OK ||
        (st = check_groups(node, attr->groups)) != STINT_OK)
        return st;
    const stint_shape *dy = sti_op_in_shape(graph, node, 0);
    const stint_shape *w = sti_op_in_shape(graph, node, 1);
    out[0] = STINT_SHAPE(dy->dim[0], attr->height, attr->width, w->dim[2]);
    out[0].dtype = STINT_BF16;
    return sti_op_conv_check_dy(node, &out[0], w, dy);
}

static void run_grad_x(const sti_call *call)
{
    const sti_conv_plan plan = grad_plan(call->graph, call->node, call->team->threads);
    sti_conv_bf16_data(call->team, &plan, call->in[0], call->in[1], call->out[0],
                       call->scratch);
}

const sti_op sti_op_conv2d_bf16_grad_x = {
    .name = "conv2d_bf16_grad_x",
    .n_out = 1,
    .attr_bytes = sizeof(sti_conv2d_grad_attr),
    .infer = infer_grad_x,
    .flags = STI_OP_BF16,
    .cost = grad_cost,
    .scratch_bytes = grad_scratch,
    .run = {[STI_CPU] = run_grad_x},
    .print = print_grad,
};

/* in: x, dy. */
static stint_status infer_grad_w(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const sti_conv2d_grad_attr *attr = node->attr;
    stint_status st;
    if ((st = sti_op_check_count(node, 2)) != STINT_OK ||
        (st = sti_op_check_bf16(graph, node, 0, 4)) != STINT_OK ||
        (st = sti_op_check_bf16(graph, node, 1, 4)) != STINT_OK ||
        (st = check_groups(node, attr->groups)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    const stint_shape *dy = sti_op_in_shape(graph, node, 1);
    out[0] = STINT_SHAPE(attr->height, attr->width, x->dim[3], dy->dim[3]);
    return sti_op_conv_check_dy(node, x, &out[0], dy);
}

static void run_grad_w(const sti_call *call)
{
    const sti_conv_plan plan = grad_plan(call->graph, call->node, call->team->threads);
    sti_conv_bf16_weight(call->team, &plan, call->in[0], call->in[1], call->out[0],
                         call->scratch);
}

const sti_op sti_op_conv2d_bf16_grad_w = {
    .name = "conv2d_bf16_grad_w",
    .n_out = 1,
    .attr_bytes = sizeof(sti_conv2d_grad_attr),
    .infer = infer_grad_w,
    .flags = STI_OP_BF16,
    .cost = grad_cost,
    .scratch_bytes = grad_scratch,
    .run = {[STI_CPU] = run_grad_w},
    .print = print_grad,
};

/* ---- matrix products ---- */

static sti_product product_of(const stint_graph *graph, const sti_node *node)
{
    const sti_matmul_bf16_attr *attr = node->attr;
    return sti_op_product(graph, node, &attr->matmul);
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
    return sti_op_product_out(graph, node, &attr->matmul,
                              attr->y_f32 ? STINT_F32 : STINT_BF16, out);
}

static sti_gemm_bf16_shape gemm_shape(const sti_matmul_bf16_attr *attr,
                                      const sti_product *p)
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
    const sti_product p = product_of(graph, node);
    const sti_gemm_bf16_shape shape = gemm_shape(node->attr, &p);
    return sti_gemm_bf16_scratch_bytes(&shape, threads);
}

static sti_cost matmul_cost(const stint_graph *graph, const sti_node *node)
{
    const sti_product p = product_of(graph, node);
    return sti_op_cost_bytes(graph, node, 2.0 * (double)p.k);
}

static void run_matmul(const sti_call *call)
{
    const sti_matmul_bf16_attr *attr = call->node->attr;
    const sti_product p = product_of(call->graph, call->node);
    const sti_gemm_bf16_shape shape = gemm_shape(attr, &p);
    const sti_bf16 *a = call->in[0], *b = call->in[1];
    sti_epilogue epilogue = {.bias = attr->matmul.has_bias ? call->in[2] : NULL,
                             .relu = attr->matmul.relu != 0};
    const size_t c_bytes = (size_t)(p.m * p.n) * (attr->y_f32 ? 4 : 2);
    if (p.count == 1 && attr->matmul.relu)
        epilogue.relu_mask = call->out[1];
    sti_gemm_bf16_plan plan;
    sti_gemm_plan_bf16(&shape, call->team->threads, &plan);
    assert(plan.scratch_bytes <= call->scratch_bytes);
    for (int64_t i = 0; i < p.count; i++)
        sti_gemm_run_bf16(call->team, &plan, a + i * p.m * p.k, b + i * p.k * p.n,
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
    .flags = STI_OP_BF16,
    .cost = matmul_cost,
    .scratch_bytes = matmul_scratch,
    .run = {[STI_CPU] = run_matmul},
    .print = print_matmul,
};
