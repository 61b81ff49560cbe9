/* The inner loops of softmax.h: one row. Private to the kernel room. */
#ifndef STI_KERNEL_SOFTMAX_ROW_H
#define STI_KERNEL_SOFTMAX_ROW_H

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
} sti_softmax_kernels;

extern const sti_softmax_kernels sti_softmax_kernels_ref;
#if defined(__x86_64__)
extern const sti_softmax_kernels sti_softmax_kernels_avx2, sti_softmax_kernels_avx512;
#endif

#endif
