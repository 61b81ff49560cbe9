/* Register tiles of bfloat16 products for AVX-512 without a matrix unit. */
#if defined(__x86_64__)
#define STI_LANES    16
#define EMULATE_ROWS 4
#define EMULATE_FMA(a, b, c) \
    (lane_f) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#define EMULATE_ADD(a, b) ((a) + (b))
#define TILE_KERNELS      sti_bf16_tiles_avx512
#include "kernel/gemm/gemm_bf16_emulate.h"
#else
typedef int sti_gemm_bf16_tile_avx512_unused;
#endif
