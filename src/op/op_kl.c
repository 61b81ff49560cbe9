/* The divergence of drawn weights from their prior where no node draws the weights
 * themselves: closed for a Gaussian prior, of a weight drawn for this for a mixture. */
#include "op/op_bayes.h"
#include "op/op_bayes_priv.h"

enum { MU, RHO, DKL };

static stint_status infer_kl(const stint_graph *graph, const sti_node *node,
                             stint_shape *out)
{
    const stint_status st = sti_op_check_pair(graph, node, 2);
    if (st == STINT_OK)
        out[0] = stint_shape_make(STINT_F32, 0, NULL);
    return st;
}

static size_t kl_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    (void)threads;
    return (size_t)sti_kl_pieces(stint_shape_count(sti_op_in_shape(graph, node, MU))) *
           sizeof(double);
}

static void run_kl(const sti_call *call)
{
    const sti_normal_key key = sti_op_noise_key(call);
    const sti_prior prior = sti_op_noise_prior(call->node);
    float *out = call->out[0];
    *out = (float)sti_kl_f32(call->team, &key, &prior, sti_op_in_count(call, MU),
                             call->in[MU], call->in[RHO], call->scratch);
}

static stint_status grad_kl(stint_graph *g, const sti_node *node, const stint_value *dy,
                            const bool *need, stint_value *dx)
{
    const stint_value in[] = {node->in[MU], node->in[RHO], dy[0]};
    const stint_value first = sti_graph_add(g, &sti_op_kl_grad, node->attr, 3, in);
    if (first < 0)
        return sti_graph_status(g);
    for (int i = 0; i < 2; i++)
        if (need[i])
            dx[i] = first + i;
    return STINT_OK;
}

static sti_cost cost_kl(const stint_graph *graph, const sti_node *node)
{
    sti_cost cost = sti_op_cost_move(graph, node);
    cost.flop = 60 * (double)stint_shape_count(sti_op_in_shape(graph, node, MU));
    return cost;
}

const sti_op sti_op_kl = {
    .name = "kl",
    .n_out = 1,
    .attr_bytes = sizeof(sti_noise_attr),
    .flags = STI_OP_RANDOM,
    .infer = infer_kl,
    .grad = grad_kl,
    .cost = cost_kl,
    .scratch_bytes = kl_scratch,
    .run = {[STI_CPU] = run_kl},
    .print = sti_op_print_noise,
};

static stint_status infer_kl_grad(const stint_graph *graph, const sti_node *node,
                                  stint_shape *out)
{
    const stint_shape scalar = stint_shape_make(STINT_F32, 0, NULL);
    stint_status st = sti_op_check_pair(graph, node, 3);
    if (st == STINT_OK)
        st = sti_op_check_shape(graph, node, DKL, &scalar);
    if (st == STINT_OK)
        out[0] = out[1] = *sti_op_in_shape(graph, node, MU);
    return st;
}

static void run_kl_grad(const sti_call *call)
{
    const sti_normal_key key = sti_op_noise_key(call);
    const sti_prior prior = sti_op_noise_prior(call->node);
    const sti_draw_grad grad = {.mu = call->in[MU],
                                .rho = call->in[RHO],
                                .dkl = *(const float *)call->in[DKL],
                                .dmu = call->out[0],
                                .drho = call->out[1]};
    sti_draw_grad_f32(call->team, &key, &prior, sti_op_in_count(call, MU), &grad);
}

static stint_status expand_kl_grad(stint_graph *g, const sti_node *node,
                                   stint_value *out)
{
    stint_value all[3];
    const stint_value eps =
        sti_op_noise_numbers(g, node->attr, sti_op_in_shape(g, node, MU));
    sti_op_noise_expand(g, node->attr, node->in[MU], node->in[RHO], eps, -1,
                        node->in[DKL], all);
    out[0] = all[0];
    out[1] = all[1];
    return STINT_OK;
}

const sti_op sti_op_kl_grad = {
    .name = "kl_grad",
    .n_out = 2,
    .attr_bytes = sizeof(sti_noise_attr),
    .flags = STI_OP_RANDOM,
    .infer = infer_kl_grad,
    .expand = expand_kl_grad,
    .cost = cost_kl,
    .run = {[STI_CPU] = run_kl_grad},
    .print = sti_op_print_noise,
};

stint_value sti_op_add_kl(stint_graph *g, const sti_noise_attr *attr, stint_value mu,
                          stint_value rho)
{
    return sti_op_add2(g, &sti_op_kl, attr, mu, rho);
}
