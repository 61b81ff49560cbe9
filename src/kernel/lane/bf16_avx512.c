/* Loops on bfloat16 for AVX-512. */
#if defined(__x86_64__)
#define STI_LANES    16
#define BF16_KERNELS sti_bf16_kernels_avx512
#include "kernel/lane/bf16_body.h"
#else
typedef int sti_bf16_avx512_unused;
#endif
