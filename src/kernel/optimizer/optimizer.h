/* Parameter updates in one pass over parameter, gradient and moments, with the formulas
 * of PyTorch 1.13 (torch.optim), element by element and without fused multiply-adds, so
 * the bits do not depend on how a flat buffer is cut.
 *
 * All arrays are [n] segments of flat buffers; param and moments are updated in place,
 * the gradient is only read. g below is gradient * gradient_scale (1 / shards, times a
 * clipping factor). Decay is 0 for segments that are not decayed. */
#ifndef STI_KERNEL_OPTIMIZER_H
#define STI_KERNEL_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/team.h"

/*     decoupled: p -= lr decay p;        else: g += decay p
 *     momentum:  m = momentum m + g;     nesterov: g += momentum m, else g = m
 *     p -= lr g
 * m starts at 0 (and is not read or written when momentum is 0: NULL is fine). */
typedef struct sti_sgd {
    float lr, momentum, decay, gradient_scale;
    bool nesterov, decoupled;
} sti_sgd;
void sti_sgd_f32(const sti_team *team, const sti_sgd *args, int64_t n, float *p,
                 const float *g, float *m);

/* Adam (Kingma and Ba 2015); decoupled: AdamW (Loshchilov and Hutter 2019).
 *     decoupled: p -= lr decay p;        else: g += decay p
 *     m = beta1 m + (1 - beta1) g;       v = beta2 v + (1 - beta2) g^2
 *     p -= lr / correction1 * m / (sqrt(v) / sqrt(correction2) + epsilon)
 * correction_i = 1 - beta_i^t for the t-th step, t from 1, computed by the caller. */
typedef struct sti_adam {
    float lr, decay, gradient_scale, epsilon;
    double beta1, beta2; /* 1 - beta is taken in float64, then rounded */
    double correction1, correction2;
    bool decoupled;
} sti_adam;
void sti_adam_f32(const sti_team *team, const sti_adam *args, int64_t n, float *p,
                  const float *g, float *m, float *v);

/* RMSprop (Tieleman and Hinton 2012), neither centred nor with momentum.
 *     decoupled: p -= lr decay p;        else: g += decay p
 *     v = alpha v + (1 - alpha) g^2;     p -= lr g / (sqrt(v) + epsilon) */
typedef struct sti_rmsprop {
    float lr, decay, gradient_scale, epsilon;
    double alpha; /* 1 - alpha is taken in float64, then rounded */
    bool decoupled;
} sti_rmsprop;
void sti_rmsprop_f32(const sti_team *team, const sti_rmsprop *args, int64_t n, float *p,
                     const float *g, float *v);

/* Any of the three. */
typedef struct sti_optimizer_rule {
    enum { STI_RULE_SGD, STI_RULE_ADAM, STI_RULE_RMSPROP } kind;
    union {
        sti_sgd sgd;
        sti_adam adam;
        sti_rmsprop rmsprop;
    };
} sti_optimizer_rule;
/* moment[0] and [1]: as far as the rule has them. decays: false is a decay of 0. */
void sti_optimizer_f32(const sti_team *team, const sti_optimizer_rule *rule,
                       bool decays, int64_t n, float *p, const float *g,
                       float *const moment[2]);

#endif
