/* The inner loops of softmax.h: one row. Private to the kernel room. */
#ifndef STI_KERNEL_SOFTMAX_ROW_H
#define STI_KERNEL_SOFTMAX_ROW_H

#include <math.h>
#include <stdint.h>

/* A row of logits u against another's v (linear_distillation.h): what its sums are
 * taken with, and what its gradient is made of afterwards. */
typedef struct sti_distil_row {
    float max_u, max_v, inverse; /* of the temperature */
    float least_v;               /* what is below has no share of the soft targets */
    float pairing;               /* what this row counts there */
    float by_u, by_soft_u, by_soft_v, by_apart;
} sti_distil_row;
enum {
    STI_DISTIL_SUM_U,       /* exp(u - max_u) */
    STI_DISTIL_SUM_SOFT_U,  /* exp((u - max_u) inverse) */
    STI_DISTIL_SUM_SOFT_V,  /* q = exp((v - max_v) inverse), of v >= least_v */
    STI_DISTIL_SUM_PRODUCT, /* q (u - max_u) inverse */
    STI_DISTIL_SUM_SQUARES, /* (u - v)^2 */
    STI_DISTIL_SUMS
};

typedef struct sti_softmax_kernels {
    /* Largest entry (-infinity if all are NaN). */
    float (*max)(int64_t n, const float *x);
    /* Sum of exp(x - m); y [n] gets the terms and may be x, or NULL. */
    float (*exp_sum)(int64_t n, float m, const float *x, float *y);
    /* Sum of x - m. */
    float (*shifted_sum)(int64_t n, float m, const float *x);
    /* y = factor * (y / sum - base) */
    void (*finish)(int64_t n, float sum, float base, float factor, float *y);
    /* A running softmax (Milakov and Gimelshein 2018). stats: largest score and sum of
     * exp(score - largest) so far, -infinity and 0 at first; out [size] the weighted
     * values so far. Takes n more scores in: s becomes their weights, by which the
     * caller adds their values to out, shrunk here to the new largest. At the end
     * out / stats[1]. */
    void (*join)(int64_t n, float *s, float *stats, int64_t size, float *out);
    /* Scores s become weights s = exp(s - m) * inverse, and ds, the weights' gradient,
     * that of the scores before their scaling: s * (ds - d) * factor. */
    void (*weights)(int64_t n, float m, float inverse, float d, float factor, float *s,
                    float *ds);
    void (*distil_sums)(int64_t n, const sti_distil_row *d, const float *u,
                        const float *v, float *sums_out);
    /* u = by_u exp(u - max_u) + by_soft_u exp((u - max_u) inverse) - by_soft_v q
     *     + by_apart (u - v) */
    void (*distil_gradient)(int64_t n, const sti_distil_row *d, float *u,
                            const float *v);
} sti_softmax_kernels;

/* Scores that weigh nothing behind the n of s, which has room for a multiple of 16: so
 * many there are then. Whole vectors are what the loops are fast at. */
static inline int64_t sti_softmax_pad(int64_t n, float *s)
{
    const int64_t end = (n + 15) / 16 * 16;
    for (int64_t i = n; i < end; i++)
        s[i] = -INFINITY;
    return end;
}

extern const sti_softmax_kernels sti_softmax_kernels_ref;
#if defined(__x86_64__)
extern const sti_softmax_kernels sti_softmax_kernels_avx2, sti_softmax_kernels_avx512;
#endif

#endif
