/* A result that several runs of a graph add up in one block. */
#include <string.h>

#include "kernel/elementwise/elementwise.h"
#include "op/op_bayes.h"
#include "op/op_priv.h"

static void run_add_up(const sti_call *call)
{
    const int64_t n = sti_op_out_count(call, 0);
    if (call->step->add)
        sti_add_f32(call->team, n, call->in[0], call->out[0]);
    else
        memcpy(call->out[0], call->in[0], (size_t)n * sizeof(float));
}

static stint_status grad_add_up(stint_graph *g, const sti_node *node,
                                const stint_value *dy, const bool *need,
                                stint_value *dx)
{
    (void)g, (void)node;
    if (need[0])
        dx[0] = dy[0];
    return STINT_OK;
}

const sti_op sti_op_add_up = {
    .name = "add_up",
    .n_out = 1,
    .flags = STI_OP_ADDS,
    .infer = sti_op_infer_same,
    .grad = grad_add_up,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_add_up},
};
