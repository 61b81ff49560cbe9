/* Dot products of all pairs of vectors of a sample, as a recommendation model's
 * interaction of features. */
#include "base/memory.h"
#include "kernel/interaction/interaction.h"
#include "op/op_priv.h"

/* interaction: x [n, v, d] -> [n, v (v - 1) / 2]. interaction_grad: x, dy -> [n, v, d].
 */
static stint_status check_vectors(const stint_graph *graph, const sti_node *node,
                                  int inputs)
{
    stint_status st = sti_op_check_count(node, inputs);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    if (x->rank != 3 || x->dim[1] < 2)
        return sti_fail(STINT_E_INPUT,
                        "%s: x is %s, wanted [n, vectors, width] of 2 vectors or more",
                        node->op->name, sti_shape_text(x));
    return STINT_OK;
}

static stint_shape pairs_shape(const stint_shape *x)
{
    return STINT_SHAPE(x->dim[0], sti_interaction_pairs(x->dim[1]));
}

static stint_status infer_interaction(const stint_graph *graph, const sti_node *node,
                                      stint_shape *out)
{
    const stint_status st = check_vectors(graph, node, 1);
    if (st == STINT_OK)
        *out = pairs_shape(sti_op_in_shape(graph, node, 0));
    return st;
}

static stint_status infer_interaction_grad(const stint_graph *graph,
                                           const sti_node *node, stint_shape *out)
{
    const stint_status st = check_vectors(graph, node, 2);
    if (st != STINT_OK)
        return st;
    *out = *sti_op_in_shape(graph, node, 0);
    const stint_shape want = pairs_shape(out);
    return sti_op_check_shape(graph, node, 1, &want);
}

static void run_interaction(const sti_call *call)
{
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    sti_interaction_f32(call->team, x->dim[0], x->dim[1], x->dim[2], call->in[0],
                        call->out[0]);
}

static void run_interaction_grad(const sti_call *call)
{
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    sti_interaction_grad_f32(call->team, x->dim[0], x->dim[1], x->dim[2], call->in[0],
                             call->in[1], call->out[0]);
}

static stint_status grad_interaction(stint_graph *g, const sti_node *node,
                                     const stint_value *dy, const bool *need,
                                     stint_value *dx)
{
    if (need[0])
        dx[0] = sti_op_add2(g, &sti_op_interaction_grad, NULL, node->in[0], dy[0]);
    return STINT_OK;
}

/* x_i y_j + y_i x_j of all pairs of vectors: the upper triangle of x y^T + y x^T. */
static stint_value cross_pairs(stint_graph *g, stint_value x, stint_value y)
{
    const stint_shape shape = stint_value_shape(g, x);
    const int64_t n = shape.dim[0], v = shape.dim[1];
    const stint_value all = stint_add(g, stint_matmul(g, x, y, false, true),
                                      stint_matmul(g, y, x, false, true));
    stint_value *part = sti_alloc((size_t)(v - 1) * sizeof *part, "op.interaction");
    if (!part)
        return sti_graph_fail(g, STINT_E_MEMORY);
    for (int64_t i = 0; i < v - 1; i++) {
        const stint_shape row = STINT_SHAPE(n, v - 1 - i);
        const stint_value of = stint_slice(g, all, 1, i, i + 1, 1);
        part[i] = stint_reshape(g, stint_slice(g, of, 2, i + 1, v, 1), &row);
    }
    const stint_value pairs = stint_concat(g, part, (int)(v - 1), 1);
    sti_free(part);
    return pairs;
}

/* dx = D x with the symmetric D [v, v] that dy fills: linear in both. */
static stint_status grad_interaction_grad(stint_graph *g, const sti_node *node,
                                          const stint_value *dy, const bool *need,
                                          stint_value *dx)
{
    if (need[0])
        dx[0] = sti_op_add2(g, &sti_op_interaction_grad, NULL, dy[0], node->in[1]);
    if (need[1])
        dx[1] = cross_pairs(g, node->in[0], dy[0]);
    return STINT_OK;
}

static sti_cost cost_interaction(const stint_graph *graph, const sti_node *node)
{
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    sti_cost cost = sti_op_cost_bytes(graph, node, 0.0);
    cost.flop = 2.0 * (double)stint_shape_count(x) * (double)(x->dim[1] - 1);
    return cost;
}

const sti_op sti_op_interaction = {
    .name = "interaction",
    .n_out = 1,
    .infer = infer_interaction,
    .grad = grad_interaction,
    .cost = cost_interaction,
    .run = {[STI_CPU] = run_interaction},
};

const sti_op sti_op_interaction_grad = {
    .name = "interaction_grad",
    .n_out = 1,
    .infer = infer_interaction_grad,
    .grad = grad_interaction_grad,
    .cost = cost_interaction,
    .run = {[STI_CPU] = run_interaction_grad},
};

stint_value stint_interaction(stint_graph *g, stint_value x)
{
    return sti_op_add1(g, &sti_op_interaction, NULL, x);
}
