/* The table of byte_matrix_body.h's kernels. Private to the kernel room. */
#ifndef STI_KERNEL_BYTE_MATRIX_PRIV_H
#define STI_KERNEL_BYTE_MATRIX_PRIV_H

#include <stdint.h>

typedef struct sti_byte_matrix_kernels {
    /* out[i] = code[i] * scale[i] */
    void (*widen)(int64_t count, const int8_t *restrict code,
                  const float *restrict scale, float *restrict out);
} sti_byte_matrix_kernels;

extern const sti_byte_matrix_kernels sti_byte_matrix_kernels_ref;
#if defined(__x86_64__)
extern const sti_byte_matrix_kernels sti_byte_matrix_kernels_avx2,
    sti_byte_matrix_kernels_avx512;
#endif

#endif
