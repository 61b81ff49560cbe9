/* Loops on bfloat16 for AVX-512 with AVX512_BF16's conversion. */
#if defined(__x86_64__)
#define STI_LANES      16
#define BF16_KERNELS   sti_bf16_kernels_avx512bf16
#define LANE_NARROW(x) _mm512_cvtneps_pbh((__m512)(x))
#include "kernel/lane/bf16_body.h"
#else
typedef int sti_bf16_avx512bf16_unused;
#endif
