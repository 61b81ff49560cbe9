#if defined(__x86_64__)
#include "kernel/gemm/gemm_vec_avx512.h"

static inline vec packed_bytes(const uint8_t *at)
{
    const __m128i q = _mm_loadu_si128((const __m128i *)(const void *)at);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q));
}

static inline vec packed_wide(const uint8_t *at)
{
    const __m256i q = _mm256_loadu_si256((const __m256i *)(const void *)at);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(q), 16));
}

/* Numbers by a table: of an index the lowest four bits count. */
static inline void packed_halves(const uint8_t *at, vec *low, vec *high)
{
    const __m512 table =
        _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i q =
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
    *low = _mm512_permutexvar_ps(q, table);
    *high = _mm512_permutexvar_ps(_mm512_srli_epi32(q, 4), table);
}

#define PACKED_KERNELS sti_packed_kernels_avx512
#include "kernel/gemm/panels_packed_body.h"
#else
typedef int sti_panels_packed_avx512_unused;
#endif
