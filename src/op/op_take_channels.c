/* Some channels of a tensor, by a list of them: what a share of a weight's gradient
 * reads, so that nothing else is saved for it (pass/shares.c).
 *
 * take_channels: x [.., c] f32, channels [n] i32, each below c -> [.., n]. It is made
 * when gradients are there already and has no rule of its own. */
#include <inttypes.h>

#include "kernel/elementwise/take_channels.h"
#include "op/op_priv.h"

static stint_status infer_take_channels(const stint_graph *graph, const sti_node *node,
                                        stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    const stint_shape *list = sti_op_in_shape(graph, node, 1);
    if (x->rank < 1 || list->dtype != STINT_I32 || list->rank != 1 ||
        list->dim[0] < 1 || list->dim[0] > x->dim[x->rank - 1])
        return sti_fail(STINT_E_INPUT,
                        "take_channels: x is %s and the list %s; wanted [n] i32 of the "
                        "channels of the last axis",
                        sti_shape_text(x), sti_shape_text(list));
    out[0] = *x;
    out[0].dim[x->rank - 1] = list->dim[0];
    return STINT_OK;
}

static sti_cost cost_take_channels(const stint_graph *graph, const sti_node *node)
{
    const double bytes = (double)stint_shape_bytes(sti_op_out_shape(graph, node, 0));
    return (sti_cost){.read_bytes = bytes, .write_bytes = bytes};
}

static void run_take_channels(const sti_call *call)
{
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    const int64_t c = x->dim[x->rank - 1];
    sti_take_channels_f32(call->team, stint_shape_count(x) / c, c,
                          sti_op_in_count(call, 1), call->in[0], call->in[1],
                          call->out[0]);
}

const sti_op sti_op_take_channels = {
    .name = "take_channels",
    .n_out = 1,
    .flags = STI_OP_NO_GRAD,
    .infer = infer_take_channels,
    .cost = cost_take_channels,
    .run = {[STI_CPU] = run_take_channels},
};
