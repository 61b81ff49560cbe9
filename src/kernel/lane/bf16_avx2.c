/* Loops on bfloat16 for AVX2. */
#if defined(__x86_64__)
#define STI_LANES    8
#define BF16_KERNELS sti_bf16_kernels_avx2
#include "kernel/lane/bf16_body.h"
#else
typedef int sti_bf16_avx2_unused;
#endif
