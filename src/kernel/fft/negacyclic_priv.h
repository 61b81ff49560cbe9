/* The table of an instruction set. Private to the family. */
#ifndef STI_KERNEL_NEGACYCLIC_PRIV_H
#define STI_KERNEL_NEGACYCLIC_PRIV_H

#include "kernel/fft/negacyclic.h"

typedef struct sti_negacyclic_kernels {
    void (*forward)(int64_t n, const double *factors, const int32_t *x, double *z);
    void (*inverse_add)(int64_t n, const double *factors, double *z, uint32_t *sum);
    void (*product)(int64_t m, int rows, int cols, const double *d, const double *g,
                    double *out);
    void (*product_one)(int64_t m, int levels, int cols, const double *d,
                        const double *g, double *out);
    void (*binary_add)(int64_t n, const uint32_t *a, const uint32_t *bit,
                       uint32_t *a_twice, uint32_t *sum);
} sti_negacyclic_kernels;

extern const sti_negacyclic_kernels sti_negacyclic_kernels_ref;
#if defined(__x86_64__)
extern const sti_negacyclic_kernels sti_negacyclic_kernels_avx2,
    sti_negacyclic_kernels_avx512;
#endif

#endif
