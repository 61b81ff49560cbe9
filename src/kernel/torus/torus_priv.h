/* The table of an instruction set. Private to the family. */
#ifndef STI_KERNEL_TORUS_PRIV_H
#define STI_KERNEL_TORUS_PRIV_H

#include "kernel/torus/torus.h"

typedef struct sti_torus_kernels {
    void (*rotate_digits)(int64_t n, int levels, int bits, const uint32_t *x,
                          const int32_t *by, int32_t *digit);
    void (*rotate_digits_one)(int64_t n, int levels, int bits, int cols,
                              const uint32_t *x, int32_t by, int32_t *digit);
    void (*key_switch)(int64_t count, int levels, int bits, int64_t width, int lanes,
                       const uint32_t *a, const uint32_t *key, uint32_t *out);
} sti_torus_kernels;

extern const sti_torus_kernels sti_torus_kernels_ref;
#if defined(__x86_64__)
extern const sti_torus_kernels sti_torus_kernels_avx2, sti_torus_kernels_avx512;
#endif

#endif
