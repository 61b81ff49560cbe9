/* The inner loops of softmax.h: one row. Private to the kernel room. */
#ifndef STI_KERNEL_SOFTMAX_ROW_H
#define STI_KERNEL_SOFTMAX_ROW_H

#include <math.h>
#include <stdint.h>

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
