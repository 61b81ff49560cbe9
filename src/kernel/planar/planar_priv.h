/* Inside kernel/planar: loops of each instruction set. */
#ifndef STI_KERNEL_PLANAR_PRIV_H
#define STI_KERNEL_PLANAR_PRIV_H

#include "kernel/planar/planar.h"

/* A kept weight: where its inputs begin in a tile's block, in floats. */
typedef struct sti_planar_tap {
    int32_t offset;
    float weight;
} sti_planar_tap;

typedef struct sti_planar_kernels {
    /* sum[0..n) = chain of x[offset..offset + n) weight over the taps, from zero if
     * `first`, else from what it is. n a multiple of 16, at most 16 STI_PLANAR_VECTORS.
     */
    void (*sums)(int64_t n, const float *x, const sti_planar_tap *tap, int64_t taps,
                 bool first, float *sum);
    /* y[0..n) from sums by one filter's factors: scale NULL or one number, and so on.
     */
    void (*finish)(int64_t n, const float *sum, const float *scale, const float *shift,
                   const float *residual, bool relu, float *y);
} sti_planar_kernels;

enum { STI_PLANAR_VECTORS = 14 }; /* sums that stay in registers, AVX-512 */

extern const sti_planar_kernels sti_planar_kernels_ref, sti_planar_kernels_avx2,
    sti_planar_kernels_avx512;

#endif
