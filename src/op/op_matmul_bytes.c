/* Matrix products with a frozen weight that is held in bytes: x W and, for the gradient
 * of x, dy W^T, with the epilogue of matmul. The weight itself has no gradient. */
#include "kernel/gemm/gemm_byte.h"
#include "op/op_matmul_priv.h"

static stint_status infer_bytes(const stint_graph *graph, const sti_node *node,
                                stint_shape *out)
{
    const sti_matmul_attr *attr = node->attr;
    stint_status st;
    if (node->n_in != 2 && node->n_in != 3)
        return sti_op_check_count(node, 2);
    if ((st = sti_op_check_f32(graph, node, 0)) != STINT_OK ||
        (st = sti_op_check_f32(graph, node, 1)) != STINT_OK)
        return st;
    if (attr->trans_a || sti_op_in_shape(graph, node, 1)->rank != 2 ||
        !sti_graph_value(graph, node->in[1])->in_bytes)
        return sti_fail(STINT_E_INPUT, "matmul_bytes: wanted x as it lies and a "
                                       "parameter [k, n] that is held in bytes");
    return sti_op_product_out(graph, node, attr, STINT_F32, out);
}

static sti_gemm_byte_shape shape_of(const stint_graph *graph, const sti_node *node)
{
    const sti_matmul_attr *attr = node->attr;
    const stint_shape *w = sti_op_in_shape(graph, node, 1);
    return (sti_gemm_byte_shape){.m = sti_op_product(graph, node, attr).m,
                                 .rows = w->dim[0],
                                 .columns = w->dim[1],
                                 .trans_b = attr->trans_b != 0};
}

static size_t bytes_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    const sti_matmul_attr *attr = node->attr;
    const sti_gemm_byte_shape shape = shape_of(graph, node);
    return sti_gemm_byte_scratch_bytes(&shape, attr->has_bias != 0, threads);
}

static sti_cost bytes_cost(const stint_graph *graph, const sti_node *node)
{
    const sti_product p = sti_op_product(graph, node, node->attr);
    sti_cost cost = sti_op_cost_bytes(graph, node, 2.0 * (double)p.k);
    cost.read_bytes -= 3.0 * (double)(p.k * p.n); /* of four a number */
    return cost;
}

static void run_bytes(const sti_call *call)
{
    const sti_matmul_attr *attr = call->node->attr;
    const sti_gemm_byte_shape shape = shape_of(call->graph, call->node);
    const sti_byte_matrix w =
        sti_byte_matrix_at(call->in[1], shape.rows, shape.columns);
    const sti_epilogue epilogue = {.bias = attr->has_bias ? call->in[2] : NULL,
                                   .relu = attr->relu != 0,
                                   .relu_mask = attr->relu ? call->out[1] : NULL};
    sti_gemm_byte_f32(call->team, &shape, call->in[0], &w, &epilogue, call->out[0],
                      call->scratch);
}

static stint_status grad_bytes(stint_graph *g, const sti_node *node,
                               const stint_value *dy, const bool *need, stint_value *dx)
{
    const sti_matmul_attr *attr = node->attr;
    const sti_matmul_attr other = {.trans_b = !attr->trans_b};
    stint_value d = dy[0];
    if (need[1])
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: a weight that is held in bytes is not trained",
                        stint_value_name(g, node->in[1]));
    if (attr->relu)
        d = sti_op_add2(g, &sti_op_relu_grad, NULL, d, node->out[1]);
    if (need[0])
        dx[0] = sti_op_add2(g, &sti_op_matmul_bytes, &other, d, node->in[1]);
    if (attr->has_bias && need[2]) {
        const stint_shape shape = *sti_op_in_shape(g, node, 2);
        dx[2] = sti_op_reduce_to(g, d, &shape);
    }
    return STINT_OK;
}

const sti_op sti_op_matmul_bytes = {
    .name = "matmul_bytes",
    .n_out = 2,
    .attr_bytes = sizeof(sti_matmul_attr),
    .optional_out = 1u << 1,
    .infer = infer_bytes,
    .grad = grad_bytes,
    .cost = bytes_cost,
    .scratch_bytes = bytes_scratch,
    .run = {[STI_CPU] = run_bytes},
};
