/* Operators of Bayesian networks: weights, or outputs, that are drawn anew in each run.
 * Their numbers are a function of (seed, step, micro-batch, sample, layer, element), so
 * that gradients make them again (kernel/bayes/bayes.h). */
#ifndef STI_OP_OP_BAYES_H
#define STI_OP_OP_BAYES_H

#include "kernel/bayes/bayes.h"
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
