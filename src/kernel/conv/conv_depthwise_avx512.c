/* Depthwise kernels for AVX-512. */
#include "kernel/conv/conv_depthwise.h"

#if defined(__x86_64__)
#include "kernel/gemm/gemm_vec_avx512.h"

#include "kernel/conv/conv_depthwise_body.h"

#define STI_DEPTHWISE_BLOCKS 7
#include "kernel/conv/conv_depthwise_block_body.h"

const sti_depthwise_kernels sti_depthwise_kernels_avx512 = {
    depthwise_line, depthwise_grad, depthwise_block, depthwise_nine};
#else
typedef int sti_conv_depthwise_avx512_unused;
#endif
