/* Products of matrices in double in plain C. */
#include "kernel/lane/eight_ref.h"

#define TABLE sti_gemm_f64_kernels_ref
#define MR    2

#include "kernel/gemm/gemm_f64_body.h"
