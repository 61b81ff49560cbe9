/* One table of serial loops an instruction set over at most STI_BAYES_CHUNK elements;
 * drawn.c makes the numbers eps, cuts work into pieces and picks the table. */
#ifndef STI_KERNEL_DRAWN_PRIV_H
#define STI_KERNEL_DRAWN_PRIV_H

#include "kernel/drawn/drawn.h"

enum { STI_BAYES_CHUNK = 512 };

/* A prior as the loops want it. Of a mixture, the log of the odds of its wide part at w
 * is odds - w^2 slope, and the density's log is that of the narrow part plus
 * softplus(odds - w^2 slope). */
typedef struct sti_prior_terms {
    float precision;        /* 1 / s^2 */
    float log_deviation;    /* log s */
    float narrow_precision; /* 1 / t^2 */
    float odds, slope;
    float narrow_log; /* log((1 - p) / t) */
} sti_prior_terms;

typedef struct sti_bayes_table {
    void (*deviations)(int64_t n, const float *rho, float *sigma);
    void (*draw)(int64_t n, const float *mu, const float *sigma, const float *eps,
                 float *w);
    /* dkl times the gradients of KL, added to dmu and dsigma [n]. */
    void (*gauss_grad)(int64_t n, const sti_prior_terms *prior, float dkl,
                       const float *mu, const float *sigma, float *dmu, float *dsigma);
    void (*mixture_grad)(int64_t n, const sti_prior_terms *prior, float dkl,
                         const float *w, const float *eps, float *dmu, float *dsigma);
    /* drho = sigmoid(rho) dsigma - dkl sigmoid(rho) / sigma; drho may be dsigma. */
    void (*to_rho)(int64_t n, float dkl, const float *rho, const float *sigma,
                   const float *dsigma, float *drho);
    /* A KL for each element. */
    void (*gauss_kl)(int64_t n, const sti_prior_terms *prior, const float *mu,
                     const float *rho, float *kl);
    void (*mixture_kl)(int64_t n, const sti_prior_terms *prior, const float *w,
                       const float *rho, const float *eps, float *kl);
    void (*draw_output)(int64_t n, const float *m, const float *v, const float *eps,
                        float *y);
    void (*draw_output_grad)(int64_t n, const float *v, const float *dy,
                             const float *eps, float *dv);
} sti_bayes_table;

extern const sti_bayes_table sti_bayes_ref, sti_bayes_avx2, sti_bayes_avx512;
const sti_bayes_table *sti_bayes_now(void); /* by sti_isa_now() */

sti_prior_terms sti_prior_terms_of(const sti_prior *prior);
/* n weights, n <= STI_BAYES_CHUNK, of numbers eps. */
void sti_draw_chunk(const sti_bayes_table *table, int64_t n, const float *mu,
                    const float *rho, const float *eps, float *w);
/* Elements first .. first + n - 1 of grad's, n <= STI_BAYES_CHUNK, of numbers eps. */
void sti_draw_grad_chunk(const sti_bayes_table *table, const sti_prior *prior,
                         const sti_prior_terms *terms, const sti_draw_grad *grad,
                         int64_t first, int64_t n, const float *eps);
/* KL of n weights, n <= STI_BAYES_CHUNK; eps is looked at with a mixture only. */
double sti_kl_chunk(const sti_bayes_table *table, const sti_prior *prior,
                    const sti_prior_terms *terms, int64_t n, const float *mu,
                    const float *rho, const float *eps);

#endif
