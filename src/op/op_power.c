/* a to the power of b, with broadcasting. It stands above the other functions of two
 * numbers, because its gradient takes a logarithm. */
#include "op/op_binary.h"

static stint_status grad_power(stint_graph *g, const sti_node *node,
                               const stint_value *dy, const bool *need, stint_value *dx)
{
    const stint_value a = node->in[0], b = node->in[1], y = node->out[0], d = dy[0];
    if (need[0]) {
        const stint_value less = stint_power(g, a, stint_add_scalar(g, b, -1.0f));
        const stint_shape shape = *sti_op_in_shape(g, node, 0);
        dx[0] = sti_op_reduce_to(g, stint_mul(g, d, stint_mul(g, b, less)), &shape);
    }
    if (need[1]) {
        const stint_value slope = stint_mul(g, y, stint_log(g, a));
        const stint_shape shape = *sti_op_in_shape(g, node, 1);
        dx[1] = sti_op_reduce_to(g, stint_mul(g, d, slope), &shape);
    }
    return STINT_OK;
}

static void run_power(const sti_call *call)
{
    sti_op_run_binary(call, STI_BINARY_POWER);
}

const sti_op sti_op_power = {
    .name = "power",
    .n_out = 1,
    .flags = STI_OP_INPLACE_0 | STI_OP_INPLACE_1,
    .infer = sti_op_infer_binary,
    .grad = grad_power,
    .run = {[STI_CPU] = run_power},
};

stint_value stint_power(stint_graph *g, stint_value a, stint_value b)
{
    return sti_op_add2(g, &sti_op_power, NULL, a, b);
}
