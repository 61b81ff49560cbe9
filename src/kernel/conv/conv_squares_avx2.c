/* Sums of squares for AVX2 with FMA. */
#include "kernel/conv/conv_squares.h"

#if defined(__x86_64__)
#include "kernel/gemm/gemm_vec_avx2.h"

#include "kernel/conv/conv_squares_body.h"

const sti_conv_squares_kernels sti_conv_squares_kernels_avx2 = {squares_chunk};
#else
typedef int sti_conv_squares_avx2_unused;
#endif
