/* Weights that are drawn: w = mu + sigma eps with sigma = log(1 + e^rho), after "Weight
 * Uncertainty in Neural Networks" (Blundell et al. 2015), and what training needs of
 * them. The numbers eps are made again whenever they are wanted, 512 at a time, and
 * never lie in memory ("Shift-BNN", Wan et al. 2021).
 *
 * KL is the divergence of the weights from their prior, summed over them:
 *   Gaussian prior of deviation s:
 *     log(s / sigma) + (sigma^2 + mu^2) / (2 s^2) - 1/2
 *   mixture p N(0, s^2) + (1 - p) N(0, t^2), which has no closed form, by the weight
 *   drawn: log q(w) - log P(w); its gradient is the total derivative.
 * All loops give the same bits for any number of threads and any instruction set. */
#ifndef STI_KERNEL_BAYES_H
#define STI_KERNEL_BAYES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/team.h"
#include "kernel/normal/normal.h"

typedef enum sti_prior_kind { STI_PRIOR_GAUSS, STI_PRIOR_MIXTURE } sti_prior_kind;

typedef struct sti_prior {
    sti_prior_kind kind;
    float deviation;  /* s */
    float narrow;     /* t, of a mixture */
    float wide_share; /* p, of a mixture */
} sti_prior;

/* rho of a deviation > 0. */
float sti_spread_of_deviation(double sigma);

/* w [n] of the numbers of key. */
void sti_draw_f32(const sti_team *team, const sti_normal_key *key, int64_t n,
                  const float *mu, const float *rho, float *w);

/* The gradients by mu and rho of a loss whose gradient by w is dw, plus dkl times those
 * of KL:  dmu = dw + dkl KL'mu,  drho = sigmoid(rho) (dw eps + dkl KL'sigma).
 * add: to what dmu and drho hold. w: the weights once more; NULL: not wanted. Outputs
 * overlap nothing. */
typedef struct sti_draw_grad {
    const float *mu, *rho, *dw; /* [n]; dw NULL: zeros */
    float dkl;
    bool add;
    float *dmu, *drho, *w;
} sti_draw_grad;
void sti_draw_grad_f32(const sti_team *team, const sti_normal_key *key,
                       const sti_prior *prior, int64_t n, const sti_draw_grad *grad);

/* KL. partial: scratch of sti_kl_pieces(n) doubles. The key's numbers are looked at
 * with a mixture only. */
int64_t sti_kl_pieces(int64_t n);
double sti_kl_f32(const sti_team *team, const sti_normal_key *key,
                  const sti_prior *prior, int64_t n, const float *mu, const float *rho,
                  double *partial);

/* Outputs that are drawn, for weights whose noise is moved there ("Variational Dropout
 * and the Local Reparameterization Trick", Kingma et al. 2015):
 *   y = m + sqrt(v) eps,  dv = dy eps / (2 sqrt(v)), and 0 where v is 0 or less.
 * y may be m, dv may be dy. */
void sti_draw_output_f32(const sti_team *team, const sti_normal_key *key, int64_t n,
                         const float *m, const float *v, float *y);
void sti_draw_output_grad_f32(const sti_team *team, const sti_normal_key *key,
                              int64_t n, const float *v, const float *dy, float *dv);

#endif
