#if defined(__x86_64__)
#define BYTE_MATRIX_KERNELS sti_byte_matrix_kernels_avx2
#include "kernel/gemm/byte_matrix_body.h"
#endif
