#define BYTE_MATRIX_KERNELS sti_byte_matrix_kernels_ref
#include "kernel/gemm/byte_matrix_body.h"
