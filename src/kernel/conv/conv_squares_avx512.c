/* Sums of squares for AVX-512. */
#include "kernel/conv/conv_squares.h"

#if defined(__x86_64__)
#include "kernel/gemm/gemm_vec_avx512.h"

#include "kernel/conv/conv_squares_body.h"

const sti_conv_squares_kernels sti_conv_squares_kernels_avx512 = {squares_chunk};
#else
typedef int sti_conv_squares_avx512_unused;
#endif
