/* The tables of sparse.h, one an instruction set. */
#ifndef STI_KERNEL_SPARSE_PRIV_H
#define STI_KERNEL_SPARSE_PRIV_H

#include "kernel/sparse/sparse.h"

extern const sti_sparse_kernels sti_sparse_f64_ref, sti_sparse_f32_ref;
#if defined(__x86_64__)
extern const sti_sparse_kernels sti_sparse_f64_avx2, sti_sparse_f32_avx2;
extern const sti_sparse_kernels sti_sparse_f64_avx512, sti_sparse_f32_avx512;
#endif

#endif
