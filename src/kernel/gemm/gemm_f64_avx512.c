/* Products of matrices in double for AVX-512 (flags by file, see src/CMakeLists.txt).
 */
#if defined(__AVX512F__)
#include "kernel/lane/eight_avx512.h"

#define TABLE sti_gemm_f64_kernels_avx512
#define MR    8

#include "kernel/gemm/gemm_f64_body.h"
#else
typedef int gemm_f64_avx512_is_for_x86;
#endif
