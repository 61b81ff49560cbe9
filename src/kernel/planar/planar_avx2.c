/* Planar convolutions for AVX2 with FMA. */
#if defined(__x86_64__)
#define STI_LANES      8
#define PLANAR_AT_ONCE 12
#define PLANAR_HELD    2
#define PLANAR_KERNELS sti_planar_kernels_avx2
#include "kernel/lane/lane.h"

typedef float planar_four __attribute__((vector_size(16), aligned(4), may_alias));

static inline lane_f planar_fma(lane_f a, lane_f b, lane_f c)
{
    return (lane_f)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

static inline planar_four planar_fma_four(planar_four a, planar_four b, planar_four c)
{
    return (planar_four)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
}

static inline lane_f planar_load_some(const float *p, uint32_t set)
{
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i hit = _mm256_and_si256(_mm256_set1_epi32((int)set), each);
    return (lane_f)_mm256_maskload_ps(p, _mm256_cmpeq_epi32(hit, each));
}

#include "kernel/planar/planar_body.h"
#endif
