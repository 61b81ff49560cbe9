/* Weights that are drawn, w = mu + softplus(rho) eps. The gradient is one node, for
 * which eps is made once: it gives what mu and rho are moved by, KL's share included,
 * and the weights once more for whoever still needs them. */
#include <inttypes.h>

#include "op/op_bayes.h"
#include "op/op_bayes_priv.h"

sti_normal_key sti_op_noise_key(const sti_call *call)
{
    const sti_noise_attr *attr = call->node->attr;
    return (sti_normal_key){.generator = (sti_normal_generator)attr->generator,
                            .seed = call->step->seed,
                            .step = call->step->step,
                            .micro = call->step->shard,
                            .sample = (int32_t)call->step->sample,
                            .layer = attr->layer};
}

sti_prior sti_op_noise_prior(const sti_node *node)
{
    const sti_noise_attr *attr = node->attr;
    return (sti_prior){.kind = (sti_prior_kind)attr->prior,
                       .deviation = attr->deviation,
                       .narrow = attr->narrow,
                       .wide_share = attr->wide_share};
}

stint_status sti_op_check_pair(const stint_graph *graph, const sti_node *node, int n_in)
{
    stint_status st = sti_op_check_count(node, n_in);
    if (st == STINT_OK)
        st = sti_op_check_f32(graph, node, 0);
    return st == STINT_OK
               ? sti_op_check_shape(graph, node, 1, sti_op_in_shape(graph, node, 0))
               : st;
}

void sti_op_print_noise(const sti_node *node, sti_text *out)
{
    const sti_noise_attr *attr = node->attr;
    sti_text_printf(out, "layer %" PRId32 " deviation %.9g", attr->layer,
                    (double)attr->deviation);
    if (attr->prior == STI_PRIOR_MIXTURE)
        sti_text_printf(out, " narrow %.9g wide share %.9g", (double)attr->narrow,
                        (double)attr->wide_share);
}

/* ---- noise ---- */

static stint_status infer_noise(const stint_graph *graph, const sti_node *node,
                                stint_shape *out)
{
    const stint_status st = sti_op_check_pair(graph, node, 2);
    if (st != STINT_OK)
        return st;
    out[STI_NOISE_W] = *sti_op_in_shape(graph, node, STI_NOISE_MU);
    out[STI_NOISE_KL] = stint_shape_make(STINT_F32, 0, NULL);
    return STINT_OK;
}

static size_t noise_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    (void)threads;
    return (size_t)sti_kl_pieces(stint_shape_count(sti_op_in_shape(graph, node, 0))) *
           sizeof(double);
}

static void run_noise(const sti_call *call)
{
    const sti_normal_key key = sti_op_noise_key(call);
    const sti_prior prior = sti_op_noise_prior(call->node);
    const int64_t n = sti_op_in_count(call, STI_NOISE_MU);
    const float *mu = call->in[STI_NOISE_MU], *rho = call->in[STI_NOISE_RHO];
    float *kl = call->out[STI_NOISE_KL];
    sti_draw_f32(call->team, &key, n, mu, rho, call->out[STI_NOISE_W]);
    if (kl)
        *kl = (float)sti_kl_f32(call->team, &key, &prior, n, mu, rho, call->scratch);
}

static stint_status grad_noise(stint_graph *g, const sti_node *node,
                               const stint_value *dy, const bool *need, stint_value *dx)
{
    const stint_value in[] = {node->in[STI_NOISE_MU], node->in[STI_NOISE_RHO],
                              dy[STI_NOISE_W] < 0 ? STI_NO_INPUT : dy[STI_NOISE_W],
                              dy[STI_NOISE_KL] < 0 ? STI_NO_INPUT : dy[STI_NOISE_KL]};
    const stint_value first = sti_graph_add(g, &sti_op_noise_grad, node->attr, 4, in);
    if (first < 0)
        return sti_graph_status(g);
    if (need[STI_NOISE_MU])
        dx[STI_NOISE_MU] = first + STI_NOISE_GRAD_DMU;
    if (need[STI_NOISE_RHO])
        dx[STI_NOISE_RHO] = first + STI_NOISE_GRAD_DRHO;
    return STINT_OK;
}

/* A generator of some 30 steps, a softplus of as many. */
static sti_cost cost_noise(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 60.0);
}

const sti_op sti_op_noise = {
    .name = "noise",
    .n_out = 2,
    .attr_bytes = sizeof(sti_noise_attr),
    .flags = STI_OP_RANDOM,
    .optional_out = 1u << STI_NOISE_KL,
    .infer = infer_noise,
    .grad = grad_noise,
    .cost = cost_noise,
    .scratch_bytes = noise_scratch,
    .run = {[STI_CPU] = run_noise},
    .print = sti_op_print_noise,
};

stint_value sti_op_add_noise(stint_graph *g, const sti_noise_attr *attr, stint_value mu,
                             stint_value rho)
{
    return sti_op_add2(g, &sti_op_noise, attr, mu, rho);
}

stint_value sti_op_noise_numbers(stint_graph *g, const sti_noise_attr *attr,
                                 const stint_shape *shape)
{
    const stint_value none = sti_op_fill(g, shape, 0.0f);
    const stint_value spread = sti_op_fill(g, shape, STI_NOISE_SPREAD);
    return stint_scale(g, sti_op_add_noise(g, attr, none, spread),
                       1.0f / STI_NOISE_SPREAD);
}

/* ---- its gradient ---- */

enum { MU, RHO, DW, DKL };

static stint_status infer_noise_grad(const stint_graph *graph, const sti_node *node,
                                     stint_shape *out)
{
    const stint_shape scalar = stint_shape_make(STINT_F32, 0, NULL);
    stint_status st = sti_op_check_pair(graph, node, 4);
    if (st == STINT_OK && sti_op_has_in(node, DW))
        st = sti_op_check_shape(graph, node, DW, sti_op_in_shape(graph, node, MU));
    if (st == STINT_OK && sti_op_has_in(node, DKL))
        st = sti_op_check_shape(graph, node, DKL, &scalar);
    if (st != STINT_OK)
        return st;
    for (int i = 0; i <= STI_NOISE_GRAD_W; i++)
        out[i] = *sti_op_in_shape(graph, node, MU);
    return STINT_OK;
}

static void run_noise_grad(const sti_call *call)
{
    const sti_normal_key key = sti_op_noise_key(call);
    const sti_prior prior = sti_op_noise_prior(call->node);
    const sti_draw_grad grad = {
        .mu = call->in[MU],
        .rho = call->in[RHO],
        .dw = sti_op_has_in(call->node, DW) ? call->in[DW] : NULL,
        .dkl = sti_op_has_in(call->node, DKL) ? *(const float *)call->in[DKL] : 0,
        .add = call->step->add,
        .dmu = call->out[STI_NOISE_GRAD_DMU],
        .drho = call->out[STI_NOISE_GRAD_DRHO],
        .w = call->out[STI_NOISE_GRAD_W]};
    sti_draw_grad_f32(call->team, &key, &prior, sti_op_in_count(call, MU), &grad);
}

static sti_cost cost_noise_grad(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 100.0);
}

static stint_status expand_noise_grad(stint_graph *g, const sti_node *node,
                                      stint_value *out)
{
    const stint_shape shape = *sti_op_in_shape(g, node, MU);
    sti_op_noise_expand(g, node->attr, node->in[MU], node->in[RHO],
                        sti_op_noise_numbers(g, node->attr, &shape), node->in[DW],
                        node->in[DKL], out);
    return STINT_OK;
}

const sti_op sti_op_noise_grad = {
    .name = "noise_grad",
    .n_out = 3,
    .attr_bytes = sizeof(sti_noise_attr),
    .flags = STI_OP_RANDOM | STI_OP_ADDS,
    .optional_out = 1u << STI_NOISE_GRAD_W,
    .infer = infer_noise_grad,
    .expand = expand_noise_grad,
    .cost = cost_noise_grad,
    .run = {[STI_CPU] = run_noise_grad},
    .print = sti_op_print_noise,
};
