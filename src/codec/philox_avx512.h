/* 32 blocks of Philox at once, for the AVX-512 files of this room. */
#ifndef STI_CODEC_PHILOX_AVX512_H
#define STI_CODEC_PHILOX_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#include "base/rng.h"

/* Keys of the ten rounds, made once for many blocks: read from memory by every lane,
 * they take nothing of the ports that multiply. */
typedef struct philox_keys {
    uint32_t k0[10], k1[10];
} philox_keys;

/* Those that sti_random4 takes for (seed, stream). */
static inline philox_keys philox_keys_of(uint64_t seed, sti_stream stream)
{
    const uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    const uint32_t k0 = low ^ high, k1 = ((uint32_t)stream * 0x9E3779B9u) ^ high;
    philox_keys keys;
    for (uint32_t round = 0; round < 10; round++) {
        keys.k0[round] = k0 + round * 0x9E3779B9u;
        keys.k1[round] = k1 + round * 0xBB67AE85u;
    }
    return keys;
}

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

/* Lower halves of both: those of `odd` go where upper halves are. */
static inline __attribute__((always_inline)) __m512i philox_join(__m512i even,
                                                                 __m512i odd)
{
    return _mm512_mask_shuffle_epi32(even, 0xaaaa, odd, _MM_PERM_CCAA);
}

/* Where blocks (a, b + lane) begin, lanes even and odd. */
static inline __attribute__((always_inline)) void philox_begin(uint64_t a, uint64_t b,
                                                               philox_half h[2])
{
    const __m512i lane = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    h[0] = (philox_half){.c0 = _mm512_set1_epi64((int64_t)a),
                         .c1 = _mm512_set1_epi64((int64_t)(a >> 32)),
                         .c2 = _mm512_or_si512(_mm512_set1_epi64((int64_t)b), lane),
                         .c3 = _mm512_set1_epi64((int64_t)(b >> 32))};
    h[1] = h[0];
    h[1].c2 = _mm512_or_si512(h[0].c2, _mm512_set1_epi64(1));
}

static inline __attribute__((always_inline)) void philox_end(const philox_half h[2],
                                                             __m512i out[4])
{
    out[0] = philox_join(h[0].c0, h[1].c0);
    out[1] = philox_join(h[0].c1, h[1].c1);
    out[2] = philox_join(h[0].c2, h[1].c2);
    out[3] = philox_join(h[0].c3, h[1].c3);
}

/* sti_random4(seed, stream, a, b + lane) by its keys, b a multiple of 16: word k of
 * lane i is lane i of out[k]; lanes 16 to 31 are in out[4..7]. The rounds of one 16
 * wait for each other longer than the processor looks ahead; two fill the wait. */
static inline __attribute__((always_inline)) void
philox_32(const philox_keys *keys, uint64_t a, uint64_t b, __m512i out[8])
{
    const __m512i m0 = _mm512_set1_epi32((int)0xD2511F53u);
    const __m512i m1 = _mm512_set1_epi32((int)0xCD9E8D57u);
    philox_half h[4];
    philox_begin(a, b, h);
    philox_begin(a, b + 16, h + 2);
    for (int round = 0; round < 10; round++) {
        const __m512i k0 = _mm512_set1_epi32((int)keys->k0[round]);
        const __m512i k1 = _mm512_set1_epi32((int)keys->k1[round]);
        for (int i = 0; i < 4; i++)
            philox_round(h + i, m0, m1, k0, k1);
    }
    philox_end(h, out);
    philox_end(h + 2, out + 4);
}

#endif
