/* Inside the gradient quantiser: what the loops of an instruction set get. */
#ifndef STI_CODEC_GRADIENT_CODEC_PRIV_H
#define STI_CODEC_GRADIENT_CODEC_PRIV_H

#include "codec/gradient_codec.h"

enum { STI_GRADIENT_RUN = 128 }; /* values that 16 Philox blocks serve, 16 bits each */

/* The grid of one bucket. */
typedef struct sti_gradient_grid {
    float lo, u, inverse; /* 1 / u, or 0 */
    int bits, top;        /* top: largest code, or largest level of QSGD */
    int zero;             /* the code of 0: QSGD's s, else 0 */
    bool sign;            /* QSGD */
} sti_gradient_grid;

/* Philox counters of a bucket: block i of it is (a, b + i). */
typedef struct sti_gradient_dither {
    uint64_t seed, a, b;
    uint32_t shift; /* added to each 16 bits */
} sti_gradient_dither;

typedef struct sti_gradient_kernels {
    /* y += x */
    void (*add)(int64_t n, const float *x, float *y);
    /* Least and largest of n values in an order of integers (`ordered` of
     * gradient_codec_body.h) in which NaN and infinities are at the ends. */
    void (*range)(int64_t n, const float *x, int32_t *lo_out, int32_t *hi_out);
    /* Sum and sum of squares, in 16 lanes. */
    void (*moments)(int64_t n, const float *x, double *sum_out, double *squares_out);
    /* Squared error of x on the grid, expected if `unbiased`; in 16 lanes. */
    float (*error)(const sti_gradient_grid *grid, bool unbiased, int64_t n,
                   const float *x);
    /* Codes of a bucket of n values, ceil(n * bits / 8) bytes; dither NULL: nearest. */
    void (*encode)(const sti_gradient_grid *grid, const sti_gradient_dither *dither,
                   int64_t n, const float *x, uint8_t *out);
    void (*decode)(const sti_gradient_grid *grid, int64_t n, const uint8_t *in,
                   sti_gradient_into into, float *y);
} sti_gradient_kernels;

/* The line will be read soon; it may lie outside of the array. */
static inline void sti_gradient_ahead(const float *p)
{
    __builtin_prefetch(p, 0, 2);
}

extern const sti_gradient_kernels sti_gradient_kernels_ref;
#if defined(__x86_64__)
extern const sti_gradient_kernels sti_gradient_kernels_avx2,
    sti_gradient_kernels_avx512;
#endif

#endif
