/* ReLU, ReLU6 and leaky ReLU. The backward half needs only the sign of x (of ReLU6
 * whether it is strictly inside), one bit an element,
 * which is an extra output of the forward node: x itself need not be kept. The gradient
 * is linear in dy, so its own gradient is itself again. */
#include "kernel/elementwise/elementwise.h"
#include "op/jet_rule.h"
#include "op/op_priv.h"

typedef struct slope_attr {
    float slope;
} slope_attr;

static float slope_of(const sti_node *node)
{
    return node->attr ? ((const slope_attr *)node->attr)->slope : 0.0f;
}

static stint_status infer_relu(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    stint_status st = sti_op_infer_same(graph, node, out);
    if (st == STINT_OK)
        out[1] = sti_op_bits_shape(&out[0]);
    return st;
}

static stint_status infer_relu_grad(const stint_graph *graph, const sti_node *node,
                                    stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    out[0] = *sti_op_in_shape(graph, node, 0);
    stint_shape bits = sti_op_bits_shape(&out[0]);
    return sti_op_check_shape(graph, node, 1, &bits);
}

static void run_relu(const sti_call *call)
{
    sti_relu_f32(call->team, sti_op_in_count(call, 0), slope_of(call->node),
                 call->in[0], call->out[0], call->out[1]);
}

static void run_relu6(const sti_call *call)
{
    sti_relu6_f32(call->team, sti_op_in_count(call, 0), call->in[0], call->out[0],
                  call->out[1]);
}

static void run_relu_grad(const sti_call *call)
{
    sti_relu_grad_f32(call->team, sti_op_in_count(call, 0), slope_of(call->node),
                      call->in[0], call->in[1], call->out[0]);
}

static stint_status grad_relu(stint_graph *g, const sti_node *node,
                              const stint_value *dy, const bool *need, stint_value *dx)
{
    if (need[0])
        dx[0] = sti_op_add2(g, &sti_op_relu_grad, NULL, dy[0], node->out[1]);
    return STINT_OK;
}

static stint_status grad_leaky_relu(stint_graph *g, const sti_node *node,
                                    const stint_value *dy, const bool *need,
                                    stint_value *dx)
{
    if (need[0])
        dx[0] =
            sti_op_add2(g, &sti_op_leaky_relu_grad, node->attr, dy[0], node->out[1]);
    return STINT_OK;
}

/* The gradient of relu_grad and of leaky_relu_grad, which are linear in input 0. */
static stint_status grad_relu_grad(stint_graph *g, const sti_node *node,
                                   const stint_value *dy, const bool *need,
                                   stint_value *dx)
{
    if (need[0])
        dx[0] = sti_op_add2(g, node->op, node->attr, dy[0], node->in[1]);
    return STINT_OK;
}

static void print_slope(const sti_node *node, sti_text *out)
{
    sti_text_printf(out, "slope %.9g", (double)slope_of(node));
}

STI_JET_RULE(relu, STI_JET_RELU)

const sti_op sti_op_relu = {
    .name = "relu",
    .n_out = 2,
    .flags = STI_OP_INPLACE_0,
    .optional_out = 1u << 1,
    .infer = infer_relu,
    .grad = grad_relu,
    .jet = jet_relu,
    .run = {[STI_CPU] = run_relu},
};

/* Its gradient is relu_grad of other bits. */
const sti_op sti_op_relu6 = {
    .name = "relu6",
    .n_out = 2,
    .flags = STI_OP_INPLACE_0,
    .optional_out = 1u << 1,
    .infer = infer_relu,
    .grad = grad_relu,
    .run = {[STI_CPU] = run_relu6},
};

const sti_op sti_op_relu_grad = {
    .name = "relu_grad",
    .n_out = 1,
    .flags = STI_OP_INPLACE_0,
    .infer = infer_relu_grad,
    .grad = grad_relu_grad,
    .run = {[STI_CPU] = run_relu_grad},
};

const sti_op sti_op_leaky_relu = {
    .name = "leaky_relu",
    .n_out = 2,
    .attr_bytes = sizeof(slope_attr),
    .flags = STI_OP_INPLACE_0,
    .optional_out = 1u << 1,
    .infer = infer_relu,
    .grad = grad_leaky_relu,
    .run = {[STI_CPU] = run_relu},
    .print = print_slope,
};

const sti_op sti_op_leaky_relu_grad = {
    .name = "leaky_relu_grad",
    .n_out = 1,
    .attr_bytes = sizeof(slope_attr),
    .flags = STI_OP_INPLACE_0,
    .infer = infer_relu_grad,
    .grad = grad_relu_grad,
    .run = {[STI_CPU] = run_relu_grad},
    .print = print_slope,
};

stint_value stint_relu(stint_graph *g, stint_value x)
{
    return sti_op_add1(g, &sti_op_relu, NULL, x);
}

stint_value stint_relu6(stint_graph *g, stint_value x)
{
    return sti_op_add1(g, &sti_op_relu6, NULL, x);
}

stint_value stint_leaky_relu(stint_graph *g, stint_value x, float slope)
{
    return sti_op_add1(g, &sti_op_leaky_relu, &(slope_attr){slope}, x);
}
