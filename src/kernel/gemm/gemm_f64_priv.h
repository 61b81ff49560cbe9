/* The loop of gemm_f64.h that differs by instruction set. */
#ifndef STI_KERNEL_GEMM_F64_PRIV_H
#define STI_KERNEL_GEMM_F64_PRIV_H

#include "kernel/gemm/gemm_f64.h"

/* Columns of B side by side in a packed panel [k, STI_GEMM_F64_PANEL]. */
enum { STI_GEMM_F64_PANEL = 16 };

typedef struct sti_gemm_f64_kernels {
    /* c[i, j] (+)= sum over k of a[i, k] panel[k, j], for m rows and one panel. */
    void (*panel)(int64_t m, int64_t k, sti_view_f64 a, const double *panel,
                  bool accumulate, double *c, int64_t ldc);
} sti_gemm_f64_kernels;

extern const sti_gemm_f64_kernels sti_gemm_f64_kernels_ref;
#if defined(__x86_64__)
extern const sti_gemm_f64_kernels sti_gemm_f64_kernels_avx2,
    sti_gemm_f64_kernels_avx512;
#endif

#endif
