/* Sixteen blocks of Philox at once, for the AVX-512 files of this room. */
#ifndef STI_CODEC_PHILOX_AVX512_H
#define STI_CODEC_PHILOX_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#include "base/rng.h"

/* Numbers of 32 bits in the lower halves of lanes of 64; what is in the upper halves
 * does not matter, since products are of the lower ones alone. */
typedef struct philox_half {
    __m512i c0, c1, c2, c3;
} philox_half;

/* Upper halves of lanes of 64 put where lower ones are: by a shuffle, because the port
 * of shifts is busy with products. */
static inline __attribute__((always_inline)) __m512i philox_high(__m512i product)
{
    return _mm512_shuffle_epi32(product, _MM_PERM_DDBB);
}

static inline __attribute__((always_inline)) void
philox_round(philox_half *h, __m512i m0, __m512i m1, __m512i k0, __m512i k1)
{
    const __m512i p = _mm512_mul_epu32(h->c0, m0), q = _mm512_mul_epu32(h->c2, m1);
    h->c0 = _mm512_ternarylogic_epi32(philox_high(q), h->c1, k0, 0x96);
    h->c2 = _mm512_ternarylogic_epi32(philox_high(p), h->c3, k1, 0x96);
    h->c1 = q;
    h->c3 = p;
}

static inline __attribute__((always_inline)) __m512i philox_join(__m512i even,
                                                                 __m512i odd)
{
    return _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}

/* sti_random4(seed, stream, a, b + lane), b a multiple of 16: word k of lane i is lane
 * i of out[k]. */
static inline void philox_16(uint64_t seed, sti_stream stream, uint64_t a, uint64_t b,
                             __m512i out[4])
{
    const uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    const __m512i lane = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    const __m512i m0 = _mm512_set1_epi32((int)0xD2511F53u);
    const __m512i m1 = _mm512_set1_epi32((int)0xCD9E8D57u);
    const __m512i step0 = _mm512_set1_epi32((int)0x9E3779B9u);
    const __m512i step1 = _mm512_set1_epi32((int)0xBB67AE85u);
    __m512i k0 = _mm512_set1_epi32((int)(low ^ high));
    __m512i k1 = _mm512_set1_epi32((int)(((uint32_t)stream * 0x9E3779B9u) ^ high));
    philox_half even = {.c0 = _mm512_set1_epi64((int64_t)a),
                        .c1 = _mm512_set1_epi64((int64_t)(a >> 32)),
                        .c2 = _mm512_or_si512(_mm512_set1_epi64((int64_t)b), lane),
                        .c3 = _mm512_set1_epi64((int64_t)(b >> 32))};
    philox_half odd = even;
    odd.c2 = _mm512_or_si512(odd.c2, _mm512_set1_epi64(1));
    for (int round = 0; round < 10; round++) {
        philox_round(&even, m0, m1, k0, k1);
        philox_round(&odd, m0, m1, k0, k1);
        k0 = _mm512_add_epi32(k0, step0);
        k1 = _mm512_add_epi32(k1, step1);
    }
    out[0] = philox_join(even.c0, odd.c0);
    out[1] = philox_join(even.c1, odd.c1);
    out[2] = philox_join(even.c2, odd.c2);
    out[3] = philox_join(even.c3, odd.c3);
}

#endif
