#if defined(__x86_64__)
#include "kernel/gemm/gemm_vec_avx2.h"

static inline vec packed_bytes(const uint8_t *at)
{
    const __m128i q = _mm_loadl_epi64((const __m128i *)(const void *)at);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q));
}

static inline vec packed_wide(const uint8_t *at)
{
    const __m128i q = _mm_loadu_si128((const __m128i *)(const void *)at);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(q), 16));
}

static inline vec packed_number(__m256i q)
{
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(q, _mm256_set1_epi32(8)));
}

static inline void packed_halves(const uint8_t *at, vec *low, vec *high)
{
    const __m256i q =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at));
    *low = packed_number(_mm256_and_si256(q, _mm256_set1_epi32(15)));
    *high = packed_number(_mm256_srli_epi32(q, 4));
}

#define PACKED_KERNELS sti_packed_kernels_avx2
#include "kernel/gemm/panels_packed_body.h"
#else
typedef int sti_panels_packed_avx2_unused;
#endif
