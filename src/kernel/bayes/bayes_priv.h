/* One table of serial loops an instruction set over at most STI_BAYES_CHUNK elements;
 * bayes.c makes the numbers eps, cuts work into pieces and picks the table. */
#ifndef STI_KERNEL_BAYES_PRIV_H
#define STI_KERNEL_BAYES_PRIV_H

#include "kernel/bayes/bayes.h"

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
    void (*draw)(int64_t n, const float *mu, const float *rho, const float *eps,
                 float *w);
    /* dkl times the gradients of KL, added to dmu and dsigma [n]. */
    void (*gauss_grad)(int64_t n, const sti_prior_terms *prior, float dkl,
                       const float *mu, const float *rho, float *dmu, float *dsigma);
    void (*mixture_grad)(int64_t n, const sti_prior_terms *prior, float dkl,
                         const float *w, const float *eps, float *dmu, float *dsigma);
    /* drho = sigmoid(rho) dsigma - dkl sigmoid(rho) / sigma; drho may be dsigma. */
    void (*to_rho)(int64_t n, float dkl, const float *rho, const float *dsigma,
                   float *drho);
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

#endif
