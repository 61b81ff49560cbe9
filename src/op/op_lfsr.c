/* Weights that are drawn by shift registers. The registers' state is a value of the
 * graph, so that the order in which layers draw, and the reverse of it, are data
 * dependences, which no pass can break. */
#include <string.h>

#include "kernel/drawn/drawn_lfsr.h"
#include "op/op_bayes.h"
#include "op/op_bayes_priv.h"

static stint_shape state_shape(void)
{
    return stint_shape_make(STINT_U8, 1, (int64_t[]){STI_LFSR_BYTES});
}

static stint_status check_state(const stint_graph *graph, const sti_node *node,
                                int n_in)
{
    const stint_shape state = state_shape();
    const stint_status st = sti_op_check_count(node, n_in);
    return st == STINT_OK ? sti_op_check_shape(graph, node, STI_LFSR_STATE, &state)
                          : st;
}

static stint_status check_weights(const stint_graph *graph, const sti_node *node)
{
    const stint_status st = sti_op_check_f32(graph, node, STI_LFSR_MU);
    return st == STINT_OK
               ? sti_op_check_shape(graph, node, STI_LFSR_RHO,
                                    sti_op_in_shape(graph, node, STI_LFSR_MU))
               : st;
}

static const sti_lfsr_taps *taps_of(const sti_call *call)
{
    return &((const sti_lfsr_attr *)call->node->attr)->taps;
}

/* The bytes of the state that a node goes on with: its operand's, as a rule, which are
 * then its result's. */
static void *take_state(const sti_call *call)
{
    if (call->out[STI_LFSR_STATE] != call->in[STI_LFSR_STATE])
        memcpy(call->out[STI_LFSR_STATE], call->in[STI_LFSR_STATE], STI_LFSR_BYTES);
    return call->out[STI_LFSR_STATE];
}

static void print_lfsr(const sti_node *node, sti_text *out)
{
    const sti_lfsr_attr *attr = node->attr;
    sti_op_print_noise(node, out);
    sti_text_printf(out, " taps %d,%d,%d,%d", sti_lfsr_bits(attr->taps.generator),
                    attr->taps.a, attr->taps.b, attr->taps.c);
}

/* ---- the first state ---- */

static stint_status infer_seed(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    (void)graph;
    out[0] = state_shape();
    return sti_op_check_count(node, 0);
}

static void run_seed(const sti_call *call)
{
    const sti_normal_key key = sti_op_noise_key(call);
    sti_lfsr_seed(&key, call->out[0]);
}

const sti_op sti_op_lfsr_seed = {
    .name = "lfsr_seed",
    .n_out = 1,
    .attr_bytes = sizeof(sti_lfsr_attr),
    .flags = STI_OP_RANDOM | STI_OP_NO_GRAD,
    .infer = infer_seed,
    .run = {[STI_CPU] = run_seed},
    .print = print_lfsr,
};

stint_value sti_op_add_lfsr_seed(stint_graph *g, const sti_lfsr_attr *attr)
{
    return sti_graph_add(g, &sti_op_lfsr_seed, attr, 0, NULL);
}

/* ---- weights ---- */

static stint_status infer_noise(const stint_graph *graph, const sti_node *node,
                                stint_shape *out)
{
    stint_status st = check_state(graph, node, 3);
    if (st == STINT_OK)
        st = check_weights(graph, node);
    if (st != STINT_OK)
        return st;
    out[STI_LFSR_STATE] = state_shape();
    out[STI_LFSR_W] = *sti_op_in_shape(graph, node, STI_LFSR_MU);
    out[STI_LFSR_KL] = stint_shape_make(STINT_F32, 0, NULL);
    return STINT_OK;
}

static void run_noise(const sti_call *call)
{
    const sti_prior prior = sti_op_noise_prior(call->node);
    float *kl = call->out[STI_LFSR_KL];
    const double sum = sti_draw_lfsr_f32(taps_of(call), take_state(call),
                                         sti_op_in_count(call, STI_LFSR_MU),
                                         call->in[STI_LFSR_MU], call->in[STI_LFSR_RHO],
                                         call->out[STI_LFSR_W], kl ? &prior : NULL);
    if (kl)
        *kl = (float)sum;
}

/* The gradient wants the state that this node left behind. Which bytes hold it by then
 * is pass/noise_again's to say. */
static stint_status grad_noise(stint_graph *g, const sti_node *node,
                               const stint_value *dy, const bool *need, stint_value *dx)
{
    const stint_value in[] = {node->out[STI_LFSR_STATE], node->in[STI_LFSR_MU],
                              node->in[STI_LFSR_RHO],
                              dy[STI_LFSR_W] < 0 ? STI_NO_INPUT : dy[STI_LFSR_W],
                              dy[STI_LFSR_KL] < 0 ? STI_NO_INPUT : dy[STI_LFSR_KL]};
    const stint_value first =
        sti_graph_add(g, &sti_op_lfsr_noise_grad, node->attr, 5, in);
    if (first < 0)
        return sti_graph_status(g);
    if (need[STI_LFSR_MU])
        dx[STI_LFSR_MU] = first + STI_LFSR_GRAD_DMU;
    if (need[STI_LFSR_RHO])
        dx[STI_LFSR_RHO] = first + STI_LFSR_GRAD_DRHO;
    return STINT_OK;
}

static sti_cost cost_lfsr(const stint_graph *graph, const sti_node *node)
{
    sti_cost cost = sti_op_cost_bytes(graph, node, 0);
    cost.flop =
        60 * (double)stint_shape_count(sti_op_in_shape(graph, node, STI_LFSR_MU));
    return cost;
}

const sti_op sti_op_lfsr_noise = {
    .name = "lfsr_noise",
    .n_out = 3,
    .attr_bytes = sizeof(sti_lfsr_attr),
    .flags = STI_OP_INPLACE_0 | STI_OP_RANDOM,
    .optional_out = 1u << STI_LFSR_KL,
    .infer = infer_noise,
    .grad = grad_noise,
    .cost = cost_lfsr,
    .run = {[STI_CPU] = run_noise},
    .print = print_lfsr,
};

stint_value sti_op_add_lfsr_noise(stint_graph *g, const sti_lfsr_attr *attr,
                                  stint_value state, stint_value mu, stint_value rho)
{
    const stint_value in[] = {state, mu, rho};
    return sti_graph_add(g, &sti_op_lfsr_noise, attr, 3, in);
}

/* ---- their gradient ---- */

enum { DW = 3, DKL };

static stint_status infer_noise_grad(const stint_graph *graph, const sti_node *node,
                                     stint_shape *out)
{
    const stint_shape scalar = stint_shape_make(STINT_F32, 0, NULL);
    stint_status st = check_state(graph, node, 5);
    if (st == STINT_OK)
        st = check_weights(graph, node);
    if (st == STINT_OK && sti_op_has_in(node, DW))
        st = sti_op_check_shape(graph, node, DW,
                                sti_op_in_shape(graph, node, STI_LFSR_MU));
    if (st == STINT_OK && sti_op_has_in(node, DKL))
        st = sti_op_check_shape(graph, node, DKL, &scalar);
    if (st != STINT_OK)
        return st;
    out[STI_LFSR_STATE] = state_shape();
    for (int i = STI_LFSR_GRAD_DMU; i <= STI_LFSR_GRAD_W; i++)
        out[i] = *sti_op_in_shape(graph, node, STI_LFSR_MU);
    return STINT_OK;
}

static void run_noise_grad(const sti_call *call)
{
    const sti_prior prior = sti_op_noise_prior(call->node);
    const sti_draw_grad grad = {
        .mu = call->in[STI_LFSR_MU],
        .rho = call->in[STI_LFSR_RHO],
        .dw = sti_op_has_in(call->node, DW) ? call->in[DW] : NULL,
        .dkl = sti_op_has_in(call->node, DKL) ? *(const float *)call->in[DKL] : 0,
        .add = call->step->add,
        .dmu = call->out[STI_LFSR_GRAD_DMU],
        .drho = call->out[STI_LFSR_GRAD_DRHO],
        .w = call->out[STI_LFSR_GRAD_W]};
    sti_draw_grad_lfsr_f32(taps_of(call), take_state(call), &prior,
                           sti_op_in_count(call, STI_LFSR_MU), &grad);
}

/* The numbers eps that registers give behind this state. */
static stint_value numbers(stint_graph *g, const sti_lfsr_attr *attr, stint_value state,
                           const stint_shape *shape)
{
    const stint_value in[5] = {state, sti_op_fill(g, shape, 0.0f),
                               sti_op_fill(g, shape, STI_NOISE_SPREAD), STI_NO_INPUT,
                               STI_NO_INPUT};
    const stint_value first = sti_graph_add(g, &sti_op_lfsr_noise_grad, attr, 5, in);
    return first < 0 ? -1
                     : stint_scale(g, first + STI_LFSR_GRAD_W, 1.0f / STI_NOISE_SPREAD);
}

/* The state that it gives back is out of the gradient's sight. */
static stint_status expand_noise_grad(stint_graph *g, const sti_node *node,
                                      stint_value *out)
{
    const sti_lfsr_attr *attr = node->attr;
    const stint_shape shape = *sti_op_in_shape(g, node, STI_LFSR_MU);
    sti_op_noise_expand(g, &attr->noise, node->in[STI_LFSR_MU], node->in[STI_LFSR_RHO],
                        numbers(g, attr, node->in[STI_LFSR_STATE], &shape),
                        node->in[DW], node->in[DKL], out + STI_LFSR_GRAD_DMU);
    return STINT_OK;
}

const sti_op sti_op_lfsr_noise_grad = {
    .name = "lfsr_noise_grad",
    .n_out = 4,
    .attr_bytes = sizeof(sti_lfsr_attr),
    .flags = STI_OP_INPLACE_0 | STI_OP_RANDOM | STI_OP_ADDS,
    .optional_out = 1u << STI_LFSR_GRAD_W,
    .infer = infer_noise_grad,
    .expand = expand_noise_grad,
    .cost = cost_lfsr,
    .run = {[STI_CPU] = run_noise_grad},
    .print = print_lfsr,
};

/* ---- the last state ---- */

static stint_status infer_end(const stint_graph *graph, const sti_node *node,
                              stint_shape *out)
{
    out[0] = stint_shape_make(STINT_F32, 0, NULL);
    return check_state(graph, node, 1);
}

static void run_end(const sti_call *call)
{
    const sti_normal_key key = sti_op_noise_key(call);
    float *out = call->out[0];
    *out = sti_lfsr_is_seed(&key, call->in[0]) ? 0.0f : 1.0f;
}

const sti_op sti_op_lfsr_end = {
    .name = "lfsr_end",
    .n_out = 1,
    .attr_bytes = sizeof(sti_lfsr_attr),
    .flags = STI_OP_RANDOM | STI_OP_NO_GRAD,
    .infer = infer_end,
    .run = {[STI_CPU] = run_end},
    .print = print_lfsr,
};

stint_value sti_op_add_lfsr_end(stint_graph *g, const sti_lfsr_attr *attr,
                                stint_value state)
{
    return sti_op_add1(g, &sti_op_lfsr_end, attr, state);
}
