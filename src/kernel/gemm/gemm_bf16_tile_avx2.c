/* Register tiles of bfloat16 products for AVX2 and FMA. */
#if defined(__x86_64__)
#define STI_LANES    8
#define EMULATE_ROWS 2
#define EMULATE_FMA(a, b, c) \
    (lane_f) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#define EMULATE_ADD(a, b) ((a) + (b))
#define TILE_KERNELS      sti_bf16_tiles_avx2
#include "kernel/gemm/gemm_bf16_emulate.h"
#else
typedef int sti_gemm_bf16_tile_avx2_unused;
#endif
