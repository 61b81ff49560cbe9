/* The loops of pair.h that differ by instruction set. */
#ifndef STI_KERNEL_PAIR_PRIV_H
#define STI_KERNEL_PAIR_PRIV_H

#include "kernel/pair/pair.h"

typedef struct sti_pair_kernels {
    int64_t (*second)(int64_t count, double v_first, double d_first, const float *row,
                      const double *diagonal, const double *v, const double *low,
                      double *gain_out);
    sti_pair_state (*move)(int64_t count, double step, const float *row_first,
                           const float *row_second, double *v, const double *up,
                           const double *low);
    void (*add)(int64_t rows, const float *const *row, const double *factor,
                int64_t count, double *out);
} sti_pair_kernels;

extern const sti_pair_kernels sti_pair_kernels_ref;
#if defined(__x86_64__)
extern const sti_pair_kernels sti_pair_kernels_avx2, sti_pair_kernels_avx512;
#endif

#endif
