/* Maximum over a set of axes. Its gradient is shared equally by all elements that
 * attain it.
 */
#include "op/op_reduce_priv.h"

static stint_status grad_max(stint_graph *g, const sti_node *node,
                             const stint_value *dy, const bool *need, stint_value *dx)
{
    const sti_reduce_attr *attr = node->attr;
    if (!need[0])
        return STINT_OK;
    stint_value y = sti_op_reduce_keep(g, node, node->out[0]);
    stint_value hit = sti_op_add2(g, &sti_op_equal, NULL, node->in[0], y);
    stint_value share = stint_sum(g, hit, attr->axes, true);
    share = stint_div(g, sti_op_reduce_keep(g, node, dy[0]), share);
    dx[0] = stint_mul(g, hit, share);
    return STINT_OK;
}

static void run_max(const sti_call *call)
{
    sti_op_reduce_run(call, STI_REDUCE_MAX);
}

const sti_op sti_op_max = {
    .name = "max",
    .n_out = 1,
    .attr_bytes = sizeof(sti_reduce_attr),
    .infer = sti_op_reduce_infer,
    .grad = grad_max,
    .cost = sti_op_reduce_cost,
    .scratch_bytes = sti_op_reduce_scratch,
    .run = {[STI_CPU] = run_max},
    .print = sti_op_reduce_print,
};

stint_value stint_max(stint_graph *g, stint_value x, unsigned axes, bool keep)
{
    return sti_op_add1(g, &sti_op_max, &(sti_reduce_attr){axes, keep}, x);
}
