/* One element of each row, by index: the likelihood of the action that was taken.
 *
 * pick: x [n, c], index [n] i32 -> [n].
 * pick_grad: index [n], dy [n] -> [n, c], zero but where the index points. */
#include <string.h>

#include "op/op_priv.h"

typedef struct pick_attr {
    int64_t columns;
} pick_attr;

static stint_status infer_pick(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = sti_op_check_logits(graph, node, 0)) != STINT_OK ||
        (st = sti_op_check_labels(graph, node, 1)) != STINT_OK)
        return st;
    out[0] = STINT_SHAPE(sti_op_in_shape(graph, node, 0)->dim[0]);
    return STINT_OK;
}

static stint_status infer_pick_grad(const stint_graph *graph, const sti_node *node,
                                    stint_shape *out)
{
    const pick_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK)
        return st;
    const stint_shape *index = sti_op_in_shape(graph, node, 0);
    if (index->dtype != STINT_I32 || index->rank != 1)
        return sti_fail(STINT_E_INPUT, "pick_grad: index is %s, wanted [n] i32",
                        sti_shape_text(index));
    const stint_shape want = STINT_SHAPE(index->dim[0]);
    out[0] = STINT_SHAPE(index->dim[0], attr->columns);
    return sti_op_check_shape(graph, node, 1, &want);
}

static bool points(int32_t index, int64_t columns)
{
    return index >= 0 && index < columns;
}

static void run_pick(const sti_call *call)
{
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    const float *from = call->in[0];
    const int32_t *index = call->in[1];
    float *out = call->out[0];
    for (int64_t i = 0; i < x->dim[0]; i++)
        out[i] = points(index[i], x->dim[1]) ? from[i * x->dim[1] + index[i]] : 0.0f;
}

static void run_pick_grad(const sti_call *call)
{
    const stint_shape *dx = sti_op_out_shape(call->graph, call->node, 0);
    const int32_t *index = call->in[0];
    const float *dy = call->in[1];
    float *out = call->out[0];
    memset(out, 0, stint_shape_bytes(dx));
    for (int64_t i = 0; i < dx->dim[0]; i++)
        if (points(index[i], dx->dim[1]))
            out[i * dx->dim[1] + index[i]] = dy[i];
}

static stint_status grad_pick(stint_graph *g, const sti_node *node,
                              const stint_value *dy, const bool *need, stint_value *dx)
{
    const pick_attr attr = {sti_op_in_shape(g, node, 0)->dim[1]};
    if (need[0])
        dx[0] = sti_op_add2(g, &sti_op_pick_grad, &attr, node->in[1], dy[0]);
    return STINT_OK;
}

static stint_status grad_pick_grad(stint_graph *g, const sti_node *node,
                                   const stint_value *dy, const bool *need,
                                   stint_value *dx)
{
    if (need[1])
        dx[1] = sti_op_add2(g, &sti_op_pick, NULL, dy[0], node->in[0]);
    return STINT_OK;
}

const sti_op sti_op_pick = {
    .name = "pick",
    .n_out = 1,
    .infer = infer_pick,
    .grad = grad_pick,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_pick},
};

const sti_op sti_op_pick_grad = {
    .name = "pick_grad",
    .n_out = 1,
    .attr_bytes = sizeof(pick_attr),
    .infer = infer_pick_grad,
    .grad = grad_pick_grad,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_pick_grad},
};

stint_value stint_pick(stint_graph *g, stint_value x, stint_value index)
{
    return sti_op_add2(g, &sti_op_pick, NULL, x, index);
}
