/* Outputs that are drawn, y = m + sqrt(v) eps: what noise on the weights of a layer
 * does to its outputs, one number an output in the place of one a weight. */
#include "op/op_bayes.h"
#include "op/op_bayes_priv.h"

static stint_status infer_pair(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const stint_status st = sti_op_check_pair(graph, node, 2);
    if (st == STINT_OK)
        out[0] = *sti_op_in_shape(graph, node, 0);
    return st;
}

static sti_cost cost_output_noise(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 40.0);
}

enum { M, V };

static void run_output_noise(const sti_call *call)
{
    const sti_normal_key key = sti_op_noise_key(call);
    sti_draw_output_f32(call->team, &key, sti_op_out_count(call, 0), call->in[M],
                        call->in[V], call->out[0]);
}

/* dm = dy */
static stint_status grad_output_noise(stint_graph *g, const sti_node *node,
                                      const stint_value *dy, const bool *need,
                                      stint_value *dx)
{
    if (need[M])
        dx[M] = dy[0];
    if (need[V])
        dx[V] =
            sti_op_add2(g, &sti_op_output_noise_grad, node->attr, node->in[V], dy[0]);
    return STINT_OK;
}

const sti_op sti_op_output_noise = {
    .name = "output_noise",
    .n_out = 1,
    .attr_bytes = sizeof(sti_noise_attr),
    .flags = STI_OP_INPLACE_0 | STI_OP_RANDOM,
    .infer = infer_pair,
    .grad = grad_output_noise,
    .cost = cost_output_noise,
    .run = {[STI_CPU] = run_output_noise},
    .print = sti_op_print_noise,
};

enum { VARIANCE, DY };

static void run_output_noise_grad(const sti_call *call)
{
    const sti_normal_key key = sti_op_noise_key(call);
    sti_draw_output_grad_f32(call->team, &key, sti_op_out_count(call, 0),
                             call->in[VARIANCE], call->in[DY], call->out[0]);
}

/* dy eps / (2 sqrt(v)), and 0 where v is 0 or less, without a root of that. */
static stint_status expand_output_noise_grad(stint_graph *g, const sti_node *node,
                                             stint_value *out)
{
    const stint_shape shape = *sti_op_in_shape(g, node, VARIANCE);
    const stint_value v = node->in[VARIANCE];
    const stint_value zero = sti_op_fill(g, &shape, 0.0f);
    const stint_value one = sti_op_fill(g, &shape, 1.0f);
    const stint_value eps = sti_op_add_output_noise(g, node->attr, zero, one);
    const stint_value none = stint_less_equal(g, v, zero);
    const stint_value root = stint_sqrt(g, stint_select(g, none, one, v));
    const stint_value half = stint_scale(g, stint_mul(g, node->in[DY], eps), 0.5f);
    out[0] = stint_select(g, none, zero, stint_div(g, half, root));
    return STINT_OK;
}

const sti_op sti_op_output_noise_grad = {
    .name = "output_noise_grad",
    .n_out = 1,
    .attr_bytes = sizeof(sti_noise_attr),
    .flags = STI_OP_INPLACE_0 | STI_OP_INPLACE_1 | STI_OP_RANDOM,
    .infer = infer_pair,
    .expand = expand_output_noise_grad,
    .cost = cost_output_noise,
    .run = {[STI_CPU] = run_output_noise_grad},
    .print = sti_op_print_noise,
};

stint_value sti_op_add_output_noise(stint_graph *g, const sti_noise_attr *attr,
                                    stint_value m, stint_value v)
{
    return sti_op_add2(g, &sti_op_output_noise, attr, m, v);
}
