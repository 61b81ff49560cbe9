/* 32 blocks of Philox at once, for AVX-512 files of this room and of the codec. */
#ifndef STI_KERNEL_PHILOX_AVX512_H
#define STI_KERNEL_PHILOX_AVX512_H

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

#define PHILOX_INLINE static inline __attribute__((always_inline))
#define PHILOX_M0     0xD2511F53u
#define PHILOX_M1     0xCD9E8D57u
#define PHILOX_XOR    0x96 /* of three */

/* Upper halves of lanes of 64 put where lower ones are: by a shuffle, because the port
 * of shifts is busy with products. */
PHILOX_INLINE __m512i philox_high(__m512i product)
{
    return _mm512_shuffle_epi32(product, _MM_PERM_DDBB);
}

/* The lower halves of both; and the upper ones: those of `odd` go where upper halves
 * are.
 */
PHILOX_INLINE __m512i philox_join(__m512i even, __m512i odd)
{
    return _mm512_mask_shuffle_epi32(even, 0xaaaa, odd, _MM_PERM_CCAA);
}

PHILOX_INLINE __m512i philox_join_high(__m512i even, __m512i odd)
{
    return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
}

PHILOX_INLINE __m512i philox_key(uint32_t key)
{
    return _mm512_set1_epi32((int)key);
}

PHILOX_INLINE void philox_round(philox_half *h, uint32_t k0, uint32_t k1)
{
    const __m512i p = _mm512_mul_epu32(h->c0, philox_key(PHILOX_M0));
    const __m512i q = _mm512_mul_epu32(h->c2, philox_key(PHILOX_M1));
    h->c0 =
        _mm512_ternarylogic_epi32(philox_high(q), h->c1, philox_key(k0), PHILOX_XOR);
    h->c2 =
        _mm512_ternarylogic_epi32(philox_high(p), h->c3, philox_key(k1), PHILOX_XOR);
    h->c1 = q;
    h->c3 = p;
}

/* What the first two rounds make of all that is the same in every block. */
typedef struct philox_start {
    uint32_t c0, c1, c2, c3;
} philox_start;

PHILOX_INLINE philox_start philox_start_of(const philox_keys *k, uint64_t a, uint64_t b)
{
    const uint64_t p = (uint64_t)PHILOX_M0 * (uint32_t)a;
    const uint32_t c2 = (uint32_t)(p >> 32) ^ (uint32_t)(b >> 32) ^ k->k1[0];
    const uint64_t q = (uint64_t)PHILOX_M1 * c2;
    return (philox_start){.c0 = (uint32_t)(a >> 32) ^ k->k0[0],
                          .c1 = (uint32_t)(q >> 32) ^ k->k0[1],
                          .c2 = (uint32_t)p ^ k->k1[1],
                          .c3 = (uint32_t)q};
}

/* Two rounds of the blocks whose lower halves of b are `low`. */
PHILOX_INLINE philox_half philox_begin(const philox_start *s, __m512i low)
{
    const __m512i q = _mm512_mul_epu32(low, philox_key(PHILOX_M1));
    const __m512i c0 = _mm512_xor_si512(philox_high(q), philox_key(s->c0));
    const __m512i p = _mm512_mul_epu32(c0, philox_key(PHILOX_M0));
    return (philox_half){.c0 = _mm512_xor_si512(q, philox_key(s->c1)),
                         .c1 = philox_key(s->c3),
                         .c2 = _mm512_xor_si512(philox_high(p), philox_key(s->c2)),
                         .c3 = p};
}

/* The last round of both halves, and their words side by side. */
PHILOX_INLINE void philox_end(const philox_half h[2], uint32_t k0, uint32_t k1,
                              __m512i out[4])
{
    __m512i p[2], q[2];
    for (int i = 0; i < 2; i++) {
        p[i] = _mm512_mul_epu32(h[i].c0, philox_key(PHILOX_M0));
        q[i] = _mm512_mul_epu32(h[i].c2, philox_key(PHILOX_M1));
    }
    out[0] = _mm512_ternarylogic_epi32(philox_join_high(q[0], q[1]),
                                       philox_join(h[0].c1, h[1].c1), philox_key(k0),
                                       PHILOX_XOR);
    out[1] = philox_join(q[0], q[1]);
    out[2] = _mm512_ternarylogic_epi32(philox_join_high(p[0], p[1]),
                                       philox_join(h[0].c3, h[1].c3), philox_key(k1),
                                       PHILOX_XOR);
    out[3] = philox_join(p[0], p[1]);
}

/* sti_random4(seed, stream, a, b + lane) by its keys, b a multiple of 16: word k of
 * lane i is lane i of out[k]; lanes 16 to 31 are in out[4..7]. The rounds of one 16
 * wait for each other longer than the processor looks ahead; two fill the wait. */
PHILOX_INLINE void philox_32(const philox_keys *keys, uint64_t a, uint64_t b,
                             __m512i out[8])
{
    const __m512i lane = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    philox_half h[4];
    for (int i = 0; i < 4; i += 2, b += 16) {
        const philox_start start = philox_start_of(keys, a, b);
        const __m512i even = _mm512_or_si512(philox_key((uint32_t)b), lane);
        h[i] = philox_begin(&start, even);
        h[i + 1] = philox_begin(&start, _mm512_or_si512(even, _mm512_set1_epi64(1)));
    }
    for (int round = 2; round < 9; round++)
        for (int i = 0; i < 4; i++)
            philox_round(h + i, keys->k0[round], keys->k1[round]);
    philox_end(h, keys->k0[9], keys->k1[9], out);
    philox_end(h + 2, keys->k0[9], keys->k1[9], out + 4);
}

#endif
