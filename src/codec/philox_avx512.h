/* Sixteen blocks of Philox at once, for the AVX-512 files of this room. */
#ifndef STI_CODEC_PHILOX_AVX512_H
#define STI_CODEC_PHILOX_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#include "base/rng.h"

typedef struct philox_product {
    __m512i low, high;
} philox_product;

static inline __attribute__((always_inline)) philox_product philox_multiply(__m512i a,
                                                                            __m512i m)
{
    const __m512i even = _mm512_mul_epu32(a, m);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), m);
    return (philox_product){
        _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32)),
        _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd)};
}

/* sti_random4(seed, stream, a, b + lane), b a multiple of 16: word k of lane i is lane
 * i of out[k]. */
static inline void philox_16(uint64_t seed, sti_stream stream, uint64_t a, uint64_t b,
                             __m512i out[4])
{
    const uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    const __m512i lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i m0 = _mm512_set1_epi32((int)0xD2511F53u);
    const __m512i m1 = _mm512_set1_epi32((int)0xCD9E8D57u);
    uint32_t k0 = low ^ high;
    uint32_t k1 = ((uint32_t)stream * 0x9E3779B9u) ^ high;
    __m512i c0 = _mm512_set1_epi32((int)(uint32_t)a);
    __m512i c1 = _mm512_set1_epi32((int)(uint32_t)(a >> 32));
    __m512i c2 = _mm512_or_si512(_mm512_set1_epi32((int)(uint32_t)b), lane);
    __m512i c3 = _mm512_set1_epi32((int)(uint32_t)(b >> 32));
    for (int round = 0; round < 10; round++) {
        const philox_product p = philox_multiply(c0, m0);
        const philox_product q = philox_multiply(c2, m1);
        c0 = _mm512_ternarylogic_epi32(q.high, c1, _mm512_set1_epi32((int)k0), 0x96);
        c2 = _mm512_ternarylogic_epi32(p.high, c3, _mm512_set1_epi32((int)k1), 0x96);
        c1 = q.low;
        c3 = p.low;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

#endif
