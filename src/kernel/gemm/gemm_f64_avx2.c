/* Products of matrices in double for AVX2 and FMA (flags by file, see
 * src/CMakeLists.txt). */
#if defined(__AVX2__)
#include "kernel/lane/eight_avx2.h"

#define TABLE sti_gemm_f64_kernels_avx2
#define MR    2

#include "kernel/gemm/gemm_f64_body.h"
#else
typedef int gemm_f64_avx2_is_for_x86;
#endif
