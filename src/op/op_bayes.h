/* Operators of Bayesian networks: weights, or outputs, that are drawn anew in each run.
 * Their numbers are a function of (seed, step, micro-batch, sample, layer, element), so
 * that gradients make them again (kernel/drawn/drawn.h). */
#ifndef STI_OP_OP_BAYES_H
#define STI_OP_OP_BAYES_H

#include "kernel/drawn/drawn.h"
#include "kernel/normal/lfsr.h"
#include "op/op.h"

typedef struct sti_noise_attr {
    int32_t generator; /* sti_normal_generator */
    int32_t layer;     /* of the key; no two nodes of a graph share one */
    int32_t prior;     /* sti_prior_kind */
    float deviation, narrow, wide_share;
} sti_noise_attr;

/* in: mu, rho of one shape. out: w = mu + softplus(rho) eps; KL, a scalar (optional),
 * of the prior and, with a mixture, of this w. */
extern const sti_op sti_op_noise;
enum { STI_NOISE_MU, STI_NOISE_RHO };
enum { STI_NOISE_W, STI_NOISE_KL };
stint_value sti_op_add_noise(stint_graph *g, const sti_noise_attr *attr, stint_value mu,
                             stint_value rho);

/* in: mu, rho, dw and dkl (either may be STI_NO_INPUT). out: dmu, drho, and w once more
 * (optional), which is what pass/noise_again hands to the layer's data gradient. */
extern const sti_op sti_op_noise_grad;
enum { STI_NOISE_GRAD_DMU, STI_NOISE_GRAD_DRHO, STI_NOISE_GRAD_W };

/* The same by shift registers (kernel/normal/lfsr.h). Their state is a value, U8
 * [STI_LFSR_BYTES]: each noise takes it and passes it on, each gradient takes it from
 * the layer behind and gives it back as it was before, all in the same bytes.
 *   lfsr_seed        -> state
 *   lfsr_noise       state, mu, rho -> state, w, KL (optional)
 *   lfsr_noise_grad  state, mu, rho, dw, dkl (either may be STI_NO_INPUT)
 *                    -> state, dmu, drho, w once more (optional)
 *   lfsr_end         state -> 0 if it is the seed's again, else 1 */
typedef struct sti_lfsr_attr {
    sti_noise_attr noise;
    sti_lfsr_taps taps;
} sti_lfsr_attr;

extern const sti_op sti_op_lfsr_seed, sti_op_lfsr_noise, sti_op_lfsr_noise_grad,
    sti_op_lfsr_end;
enum { STI_LFSR_STATE, STI_LFSR_MU, STI_LFSR_RHO };
enum { STI_LFSR_W = 1, STI_LFSR_KL };
enum { STI_LFSR_GRAD_DMU = 1, STI_LFSR_GRAD_DRHO, STI_LFSR_GRAD_W };
stint_value sti_op_add_lfsr_seed(stint_graph *g, const sti_lfsr_attr *attr);
/* Gives back the state; w and KL follow. */
stint_value sti_op_add_lfsr_noise(stint_graph *g, const sti_lfsr_attr *attr,
                                  stint_value state, stint_value mu, stint_value rho);
stint_value sti_op_add_lfsr_end(stint_graph *g, const sti_lfsr_attr *attr,
                                stint_value state);

/* in: mu, rho. out: KL alone, for layers whose outputs are drawn; its gradient. */
extern const sti_op sti_op_kl, sti_op_kl_grad;
stint_value sti_op_add_kl(stint_graph *g, const sti_noise_attr *attr, stint_value mu,
                          stint_value rho);

/* in: m, v of one shape. out: m + sqrt(v) eps. */
extern const sti_op sti_op_output_noise, sti_op_output_noise_grad;
stint_value sti_op_add_output_noise(stint_graph *g, const sti_noise_attr *attr,
                                    stint_value m, stint_value v);

/* x, where sti_step.add says so added to what the result's block holds; it leaves the
 * graph (pass/adds). */
extern const sti_op sti_op_add_up;

#endif
