/* The loops of row_norm.h over one row. Private to the kernel room. */
#ifndef STI_KERNEL_ROW_NORM_ROW_H
#define STI_KERNEL_ROW_NORM_ROW_H

#include <stdint.h>

typedef struct sti_row_norm_kernels {
    float (*sum)(int64_t n, const float *x);
    /* Sum of (x - m)^2. */
    float (*squares)(int64_t n, const float *x, float m);
    /* y = scale (x - mean) inv + shift; shift may be NULL. */
    void (*apply)(int64_t n, const float *x, float mean, float inv, const float *scale,
                  const float *shift, float *y);
    /* sum[0] = sum of g, sum[1] = sum of g h, where g = dy scale and
     * h = (x - mean) inv. */
    void (*moments)(int64_t n, const float *dy, const float *x, const float *scale,
                    float mean, float inv, float sum[2]);
    /* dscale += dy h and, unless NULL, dshift += dy; then dx = inv (g - a - h b). */
    void (*grad)(int64_t n, const float *dy, const float *x, const float *scale,
                 float mean, float inv, float a, float b, float *dscale, float *dshift,
                 float *dx);
    void (*add)(int64_t n, const float *x, float *y); /* y += x */
} sti_row_norm_kernels;

extern const sti_row_norm_kernels sti_row_norm_kernels_ref;
#if defined(__x86_64__)
extern const sti_row_norm_kernels sti_row_norm_kernels_avx2,
    sti_row_norm_kernels_avx512;
#endif

#endif
