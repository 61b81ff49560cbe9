/* Element-wise operators on bfloat16, the cast, and pooling of whole images. */
#include <inttypes.h>

#include "kernel/elementwise/elementwise_bf16.h"
#include "op/op_bf16_priv.h"

stint_status sti_op_check_bf16(const stint_graph *graph, const sti_node *node, int i,
                               int rank)
{
    if (!sti_op_has_in(node, i))
        return sti_fail(STINT_E_INPUT, "%s: input %d is missing", node->op->name, i);
    const stint_shape *shape = sti_op_in_shape(graph, node, i);
    if (shape->dtype != STINT_BF16 || (rank > 0 && shape->rank != rank))
        return sti_fail(STINT_E_INPUT, "%s: input %d is %s, wanted bf16 of rank %d",
                        node->op->name, i, sti_shape_text(shape),
                        rank > 0 ? rank : (int)shape->rank);
    return STINT_OK;
}

/* ---- cast ---- */

static stint_status infer_cast(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const sti_cast_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK)
        return st;
    *out = *sti_op_in_shape(graph, node, 0);
    const bool up = out->dtype == STINT_BF16 && attr->dtype == STINT_F32;
    const bool down = out->dtype == STINT_F32 && attr->dtype == STINT_BF16;
    if (!up && !down)
        return sti_fail(STINT_E_INPUT, "cast: x is %s, wanted f32 to bf16 or back",
                        sti_shape_text(out));
    out->dtype = (stint_dtype)attr->dtype;
    return STINT_OK;
}

static stint_status grad_cast(stint_graph *g, const sti_node *node,
                              const stint_value *dy, const bool *need, stint_value *dx)
{
    if (need[0])
        dx[0] = sti_op_add_cast(g, dy[0], sti_op_in_shape(g, node, 0)->dtype);
    return STINT_OK;
}

static void run_cast(const sti_call *call)
{
    const sti_cast_attr *attr = call->node->attr;
    const int64_t n = sti_op_in_count(call, 0);
    if (attr->dtype == STINT_F32)
        sti_bf16_widen(call->team, n, call->in[0], call->out[0]);
    else
        sti_bf16_round(call->team, n, call->in[0], call->out[0]);
}

static void print_cast(const sti_node *node, sti_text *out)
{
    const sti_cast_attr *attr = node->attr;
    sti_text_add(out, attr->dtype == STINT_F32 ? "to f32" : "to bf16");
}

const sti_op sti_op_cast = {
    .name = "cast",
    .n_out = 1,
    .attr_bytes = sizeof(sti_cast_attr),
    .infer = infer_cast,
    .grad = grad_cast,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_cast},
    .print = print_cast,
};

stint_value sti_op_add_cast(stint_graph *g, stint_value x, stint_dtype dtype)
{
    return sti_op_add1(g, &sti_op_cast, &(sti_cast_attr){(int32_t)dtype}, x);
}

/* ---- add, ReLU ---- */

static stint_status infer_add(const stint_graph *graph, const sti_node *node,
                              stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = sti_op_check_bf16(graph, node, 0, 0)) != STINT_OK)
        return st;
    *out = *sti_op_in_shape(graph, node, 0);
    return sti_op_check_shape(graph, node, 1, out);
}

static sti_cost cost_each(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 1.0);
}

static void run_add(const sti_call *call)
{
    sti_bf16_add(call->team, sti_op_in_count(call, 0), call->in[0], call->in[1],
                 call->out[0]);
}

const sti_op sti_op_add_bf16 = {
    .name = "add_bf16",
    .n_out = 1,
    .flags = STI_OP_INPLACE_0 | STI_OP_INPLACE_1,
    .infer = infer_add,
    .cost = cost_each,
    .run = {[STI_CPU] = run_add},
};

static stint_status infer_relu(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_bf16(graph, node, 0, 0)) != STINT_OK)
        return st;
    out[0] = *sti_op_in_shape(graph, node, 0);
    out[1] = sti_op_bits_shape(&out[0]);
    return STINT_OK;
}

static void run_relu(const sti_call *call)
{
    sti_bf16_relu(call->team, sti_op_in_count(call, 0), call->in[0], call->out[0],
                  call->out[1]);
}

const sti_op sti_op_relu_bf16 = {
    .name = "relu_bf16",
    .n_out = 2,
    .flags = STI_OP_INPLACE_0,
    .optional_out = 1u << 1,
    .infer = infer_relu,
    .cost = cost_each,
    .run = {[STI_CPU] = run_relu},
};

static stint_status infer_relu_grad(const stint_graph *graph, const sti_node *node,
                                    stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = sti_op_check_bf16(graph, node, 0, 0)) != STINT_OK)
        return st;
    out[0] = *sti_op_in_shape(graph, node, 0);
    const stint_shape bits = sti_op_bits_shape(&out[0]);
    return sti_op_check_shape(graph, node, 1, &bits);
}

static void run_relu_grad(const sti_call *call)
{
    sti_bf16_relu_grad(call->team, sti_op_in_count(call, 0), call->in[0], call->in[1],
                       call->out[0]);
}

const sti_op sti_op_relu_bf16_grad = {
    .name = "relu_bf16_grad",
    .n_out = 1,
    .flags = STI_OP_INPLACE_0,
    .infer = infer_relu_grad,
    .cost = cost_each,
    .run = {[STI_CPU] = run_relu_grad},
};

/* ---- whole images ---- */

static stint_status infer_pool(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_bf16(graph, node, 0, 4)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    out[0] = STINT_SHAPE(x->dim[0], x->dim[3]);
    return STINT_OK;
}

static void run_pool(const sti_call *call)
{
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    sti_bf16_global_pool(call->team, x->dim[0], x->dim[1] * x->dim[2], x->dim[3],
                         call->in[0], call->out[0]);
}

const sti_op sti_op_global_avg_pool_bf16 = {
    .name = "global_avg_pool_bf16",
    .n_out = 1,
    .infer = infer_pool,
    .cost = cost_each,
    .run = {[STI_CPU] = run_pool},
};

static stint_status infer_unpool(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const sti_unpool_bf16_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    const stint_shape *dy = sti_op_in_shape(graph, node, 0);
    if (dy->rank != 2 || attr->height < 1 || attr->width < 1)
        return sti_fail(STINT_E_INPUT, "%s: dy is %s, wanted [n, c]", node->op->name,
                        sti_shape_text(dy));
    out[0] = STINT_SHAPE(dy->dim[0], attr->height, attr->width, dy->dim[1]);
    out[0].dtype = STINT_BF16;
    return STINT_OK;
}

static void run_unpool(const sti_call *call)
{
    const stint_shape *dx = sti_op_out_shape(call->graph, call->node, 0);
    sti_bf16_global_unpool(call->team, dx->dim[0], dx->dim[1] * dx->dim[2], dx->dim[3],
                           call->in[0], call->out[0]);
}

static void print_unpool(const sti_node *node, sti_text *out)
{
    const sti_unpool_bf16_attr *attr = node->attr;
    sti_text_printf(out, "to %" PRId64 " x %" PRId64, attr->height, attr->width);
}

const sti_op sti_op_global_avg_unpool_bf16 = {
    .name = "global_avg_unpool_bf16",
    .n_out = 1,
    .attr_bytes = sizeof(sti_unpool_bf16_attr),
    .infer = infer_unpool,
    .cost = cost_each,
    .run = {[STI_CPU] = run_unpool},
    .print = print_unpool,
};
