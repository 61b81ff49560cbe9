/* The loop of panels.h for one row. Private to the kernel room. */
#ifndef STI_KERNEL_PANELS_ROW_H
#define STI_KERNEL_PANELS_ROW_H

#include <stdint.h>

/* y[j] = sum of x[i] panel[i][j] over i < k, j < 64: a chain of fused multiply-adds in
 * ascending i, from 0. */
typedef struct sti_panels_kernels {
    void (*row)(int64_t k, const float *x, const float *panel, float *y);
} sti_panels_kernels;

extern const sti_panels_kernels sti_panels_kernels_ref;
#if defined(__x86_64__)
extern const sti_panels_kernels sti_panels_kernels_avx2, sti_panels_kernels_avx512;
#endif

#endif
