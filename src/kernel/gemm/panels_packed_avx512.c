#if defined(__x86_64__)
#include "kernel/gemm/gemm_vec_avx512.h"

static inline vec packed_bytes(const uint8_t *at)
{
    const __m128i q = _mm_loadu_si128((const __m128i *)(const void *)at);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q));
}

static inline vec packed_half(const uint8_t *at, int high)
{
    __m512i q =
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
    q = high ? _mm512_srli_epi32(q, 4) : _mm512_and_si512(q, _mm512_set1_epi32(15));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(q, _mm512_set1_epi32(8)));
}

#define PACKED_KERNELS sti_packed_kernels_avx512
#include "kernel/gemm/panels_packed_body.h"
#else
typedef int sti_panels_packed_avx512_unused;
#endif
