/* The loop of byte_matrix.h that products run, vectorised by the compiler: included
 * once by each instruction set's file, which defines BYTE_MATRIX_KERNELS. */
#include "kernel/gemm/byte_matrix_priv.h"

static void widen(int64_t count, const int8_t *restrict code,
                  const float *restrict scale, float *restrict out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)code[i] * scale[i];
}

const sti_byte_matrix_kernels BYTE_MATRIX_KERNELS = {.widen = widen};
