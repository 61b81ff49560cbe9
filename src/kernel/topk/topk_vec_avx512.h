/* AVX-512 words of top-k: lanes of 32, 16 or 8 bits in 64 bytes. A mask has one bit a
 * lane. Only for topk_avx512.c. */
#ifndef STI_KERNEL_TOPK_VEC_AVX512_H
#define STI_KERNEL_TOPK_VEC_AVX512_H

#include <stdint.h>

#include <immintrin.h>

enum { VEC_BYTES = 64, WORDS = 16, STREAMS = 4 }; /* WORDS: 32-bit lanes */
typedef __m512i vec;

/* A comparison's mask, extended. Where gcc 12 finds one used by itself too, it joins
 * the two and loses the extension if it has to spill: 16 or 32 bits are stored, 64
 * loaded. Masks are spilled for calls, which only sanitizers put into the loops here.
 */
static inline uint64_t whole_mask(uint32_t mask)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    __asm__("" : "+r"(mask)); /* not to be joined */
#endif
    return mask;
}

/* Before code of other files runs: gcc 12 forgets this at the end of some functions,
 * and the next SSE instruction, wherever it is, would wait for the upper halves. */
#define vec_leave() _mm256_zeroupper()
#define vec_load(p) _mm512_loadu_si512(p)
/* Lanes whose bit is clear are zero, and are not read. */
#define vec_load_some32(p, mask) _mm512_maskz_loadu_epi32((__mmask16)(mask), p)
#define vec_load_some16(p, mask) _mm512_maskz_loadu_epi16((__mmask32)(mask), p)
#define vec_load_some8(p, mask)  _mm512_maskz_loadu_epi8((__mmask64)(mask), p)
#define vec_store(p, x)          _mm512_storeu_si512(p, x)
#define vec_splat32(x)           _mm512_set1_epi32((int)(x))
#define vec_splat16(x)           _mm512_set1_epi16((short)(x))
#define vec_splat8(x)            _mm512_set1_epi8((char)(x))
#define vec_max32(a, b)          _mm512_max_epu32(a, b)
#define vec_max16(a, b)          _mm512_max_epu16(a, b)
#define vec_max8(a, b)           _mm512_max_epu8(a, b)
#define vec_min32(a, b)          _mm512_min_epu32(a, b)
#define vec_min16(a, b)          _mm512_min_epu16(a, b)
#define vec_min8(a, b)           _mm512_min_epu8(a, b)
#define vec_ge32(a, b)           whole_mask(_mm512_cmpge_epu32_mask(a, b))
#define vec_ge16(a, b)           whole_mask(_mm512_cmpge_epu16_mask(a, b))
#define vec_ge8(a, b)            (uint64_t) _mm512_cmpge_epu8_mask(a, b)
/* Lanes of a below those of b; others zero. */
#define vec_below32(a, b) _mm512_maskz_mov_epi32(_mm512_cmplt_epu32_mask(a, b), a)
#define vec_add_floats(a, b) \
    _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)))

/* Best of the lanes that share a 32-bit word after folding halves: 16 words, each at
 * least one of the lanes, together all of them. */
static inline vec fold32(vec x)
{
    return x;
}

static inline vec fold16(vec x)
{
    const __m256i half =
        _mm256_max_epu16(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    return _mm512_cvtepu16_epi32(half);
}

static inline vec fold8(vec x)
{
    const __m256i half =
        _mm256_max_epu8(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    return _mm512_cvtepu8_epi32(
        _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}

/* Lanes as words, in order. */
static inline void widen32(vec x, vec *out)
{
    out[0] = x;
}

static inline void widen16(vec x, vec *out)
{
    out[0] = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(x));
    out[1] = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(x, 1));
}

static inline void widen8(vec x, vec *out)
{
    out[0] = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(x));
    out[1] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(x, 1));
    out[2] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(x, 2));
    out[3] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(x, 3));
}

/* The best word of each of 16 vectors, in order: a transposition with a maximum at
 * every step, 45 instructions for 16 results. */
static inline void store_best_words(const vec r[WORDS], uint32_t *out)
{
    vec four[4], two[2];
    for (int i = 0; i < 4; i++) {
        const vec *q = r + 4 * i;
        const vec a = _mm512_max_epu32(_mm512_unpacklo_epi32(q[0], q[1]),
                                       _mm512_unpackhi_epi32(q[0], q[1]));
        const vec b = _mm512_max_epu32(_mm512_unpacklo_epi32(q[2], q[3]),
                                       _mm512_unpackhi_epi32(q[2], q[3]));
        four[i] =
            _mm512_max_epu32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    }
    for (int i = 0; i < 2; i++) {
        const vec a = four[2 * i], b = four[2 * i + 1];
        two[i] = _mm512_max_epu32(_mm512_shuffle_i32x4(a, b, 0x44),
                                  _mm512_shuffle_i32x4(a, b, 0xEE));
    }
    _mm512_storeu_si512(out,
                        _mm512_max_epu32(_mm512_shuffle_i32x4(two[0], two[1], 0x88),
                                         _mm512_shuffle_i32x4(two[0], two[1], 0xDD)));
}

static inline uint32_t best_word(vec x)
{
    return _mm512_reduce_max_epu32(x);
}

/* Pack the words whose bit is set; nothing is written behind them. Compressing to a
 * register and storing under a mask is fast on every maker's CPUs; compressing to
 * memory is not. */
static inline int64_t pack_words(vec keys, uint64_t mask, uint32_t base, uint64_t *out)
{
    const vec lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const vec inverse = _mm512_sub_epi32(_mm512_set1_epi32((int)~base), lane);
    const __mmask16 m = (__mmask16)mask;
    const int count = __builtin_popcount(m);
    const vec k = _mm512_maskz_compress_epi32(m, keys);
    const vec i = _mm512_maskz_compress_epi32(m, inverse);
    const vec lo = _mm512_or_si512(
        _mm512_slli_epi64(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(k)), 32),
        _mm512_cvtepu32_epi64(_mm512_castsi512_si256(i)));
    const uint32_t full = (1U << count) - 1U;
    _mm512_mask_storeu_epi64(out, (__mmask8)full, lo);
    if (count > 8) {
        const vec hi = _mm512_or_si512(
            _mm512_slli_epi64(_mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(k, 1)),
                              32),
            _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(i, 1)));
        _mm512_mask_storeu_epi64(out + 8, (__mmask8)(full >> 8), hi);
    }
    return count;
}

static inline int64_t pack32(vec keys, uint64_t mask, uint32_t base, uint64_t *out)
{
    return pack_words(keys, mask, base, out);
}

static inline int64_t pack16(vec keys, uint64_t mask, uint32_t base, uint64_t *out)
{
    const uint32_t m = (uint32_t)mask;
    int64_t count = 0;
    if (m & 0xFFFF)
        count = pack_words(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(keys)),
                           m & 0xFFFF, base, out);
    if (m >> 16)
        count += pack_words(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(keys, 1)),
                            m >> 16, base + 16, out + count);
    return count;
}

static inline int64_t pack8(vec keys, uint64_t mask, uint32_t base, uint64_t *out)
{
    const __m128i q[4] = {
        _mm512_extracti32x4_epi32(keys, 0), _mm512_extracti32x4_epi32(keys, 1),
        _mm512_extracti32x4_epi32(keys, 2), _mm512_extracti32x4_epi32(keys, 3)};
    int64_t count = 0;
    for (uint32_t i = 0; i < 4; i++, mask >>= 16)
        if ((uint16_t)mask)
            count += pack_words(_mm512_cvtepu8_epi32(q[i]), mask & 0xFFFF,
                                base + 16 * i, out + count);
    return count;
}

/* Keep the words whose bit is set; a whole vector is written. */
static inline int64_t keep32(vec keys, uint64_t mask, uint32_t *out)
{
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32((__mmask16)mask, keys));
    return __builtin_popcountll(mask);
}

static inline int64_t keep16(vec keys, uint64_t mask, uint32_t *out)
{
    const int64_t count =
        keep32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(keys)), mask & 0xFFFF, out);
    return count + keep32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(keys, 1)),
                          (uint32_t)mask >> 16, out + count);
}

static inline int64_t keep8(vec keys, uint64_t mask, uint32_t *out)
{
    const __m128i q[4] = {
        _mm512_extracti32x4_epi32(keys, 0), _mm512_extracti32x4_epi32(keys, 1),
        _mm512_extracti32x4_epi32(keys, 2), _mm512_extracti32x4_epi32(keys, 3)};
    int64_t count = 0;
    for (int part = 0; part < 4; part++, mask >>= 16)
        count += keep32(_mm512_cvtepu8_epi32(q[part]), mask & 0xFFFF, out + count);
    return count;
}

/* Index and value of the lanes whose bit is set. */
static inline int64_t emit_indices(uint32_t mask, int64_t base, int64_t *index_out)
{
    const vec lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const vec i = _mm512_maskz_compress_epi32((__mmask16)mask, lane);
    const vec start = _mm512_set1_epi64(base);
    const int count = __builtin_popcount(mask);
    const uint32_t full = (1U << count) - 1U;
    _mm512_mask_storeu_epi64(
        index_out, (__mmask8)full,
        _mm512_add_epi64(start, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(i))));
    if (count > 8)
        _mm512_mask_storeu_epi64(
            index_out + 8, (__mmask8)(full >> 8),
            _mm512_add_epi64(start,
                             _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(i, 1))));
    return count;
}

static inline void emit_words(vec words, uint32_t mask, unsigned char *value_out)
{
    const uint32_t full = (1U << __builtin_popcount(mask)) - 1U;
    _mm512_mask_storeu_epi32(value_out, (__mmask16)full,
                             _mm512_maskz_compress_epi32((__mmask16)mask, words));
}

static inline int64_t emit32(vec raw, uint64_t mask, int64_t base, int64_t *index_out,
                             unsigned char *value_out)
{
    if (value_out)
        emit_words(raw, (uint32_t)mask, value_out);
    return emit_indices((uint32_t)mask, base, index_out);
}

static inline int64_t emit16(vec raw, uint64_t mask, int64_t base, int64_t *index_out,
                             unsigned char *value_out)
{
    int64_t count = 0;
    for (int part = 0; part < 2; part++, mask >>= 16, base += 16) {
        const uint32_t m = (uint32_t)mask & 0xFFFF;
        const __m256i half =
            part ? _mm512_extracti64x4_epi64(raw, 1) : _mm512_castsi512_si256(raw);
        if (m == 0)
            continue;
        if (value_out) {
            const vec packed =
                _mm512_maskz_compress_epi32((__mmask16)m, _mm512_cvtepu16_epi32(half));
            const uint32_t full = (1U << __builtin_popcount(m)) - 1U;
            _mm256_mask_storeu_epi16(value_out + 2 * count, (__mmask16)full,
                                     _mm512_cvtepi32_epi16(packed));
        }
        count += emit_indices(m, base, index_out + count);
    }
    return count;
}

static inline int64_t emit8(vec raw, uint64_t mask, int64_t base, int64_t *index_out,
                            unsigned char *value_out)
{
    const __m128i q[4] = {
        _mm512_extracti32x4_epi32(raw, 0), _mm512_extracti32x4_epi32(raw, 1),
        _mm512_extracti32x4_epi32(raw, 2), _mm512_extracti32x4_epi32(raw, 3)};
    int64_t count = 0;
    for (int part = 0; part < 4; part++, mask >>= 16, base += 16) {
        const uint32_t m = (uint32_t)mask & 0xFFFF;
        if (m == 0)
            continue;
        if (value_out) {
            const vec packed = _mm512_maskz_compress_epi32(
                (__mmask16)m, _mm512_cvtepu8_epi32(q[part]));
            const uint32_t full = (1U << __builtin_popcount(m)) - 1U;
            _mm_mask_storeu_epi8(value_out + count, (__mmask16)full,
                                 _mm512_cvtepi32_epi8(packed));
        }
        count += emit_indices(m, base, index_out + count);
    }
    return count;
}

/* Two best words of each lane so far, and at which step the best one came. */
typedef struct best_two {
    vec best, second, step;
} best_two;

static inline void best_two_add(best_two *b, vec key, uint32_t step)
{
    const __mmask16 better = _mm512_cmpgt_epu32_mask(key, b->best);
    b->second = _mm512_max_epu32(b->second, _mm512_min_epu32(b->best, key));
    b->best = _mm512_max_epu32(b->best, key);
    b->step = _mm512_mask_mov_epi32(b->step, better, _mm512_set1_epi32((int)step));
}

/* Position of the best, the first one of equals; `best` in every lane. Where it is in
 * one lane only, that lane's step says it all. */
static inline uint16_t best_two_place(const best_two *b, vec best)
{
    const uint32_t at = (uint32_t)whole_mask(_mm512_cmpeq_epu32_mask(b->best, best));
    const uint32_t lane = (uint32_t)__builtin_ctz(at);
    uint32_t step[WORDS];
    if ((at & (at - 1)) == 0) {
        vec_store(step, b->step);
        return (uint16_t)(step[lane] * WORDS + lane);
    }
    const vec lanes =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const vec where = _mm512_add_epi32(_mm512_slli_epi32(b->step, 4), lanes);
    return (uint16_t)_mm512_mask_reduce_min_epu32((__mmask16)at, where);
}

/* The two best of all lanes; position of the best. */
static inline void best_two_store(const best_two *b, uint32_t d[2], uint16_t *position)
{
    const uint32_t best = _mm512_reduce_max_epu32(b->best);
    *position = best_two_place(b, vec_splat32(best));
    const __mmask16 others = (__mmask16) ~(1U << (*position & 15));
    const vec rest = _mm512_mask_max_epu32(b->second, others, b->second, b->best);
    d[0] = best;
    d[1] = _mm512_reduce_max_epu32(rest);
}

/* Look at 16 blocks of 2^a elements from index `begin` on: the best key of each that is
 * at or above the bound, packed; their number. Blocks whose second best is, too, a bit
 * each. No branch: nothing tells which are. 16 places are written to. */
static inline int64_t catch_best(const uint32_t *d, const uint16_t *position,
                                 uint32_t begin, int a, uint32_t bound, uint64_t *out,
                                 uint32_t *seconds)
{
    const vec lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const vec even = _mm512_slli_epi32(lane, 1), least = vec_splat32(bound);
    const vec odd = _mm512_or_si512(even, vec_splat32(1));
    const vec lo = vec_load(d), hi = vec_load(d + WORDS);
    const vec best = _mm512_permutex2var_epi32(lo, even, hi);
    const vec second = _mm512_permutex2var_epi32(lo, odd, hi);
    const vec place = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)position));
    const vec block = _mm512_sll_epi32(lane, _mm_cvtsi32_si128(a));
    const vec index =
        _mm512_add_epi32(_mm512_add_epi32(vec_splat32(begin), block), place);
    const __mmask16 mask = (__mmask16)vec_ge32(best, least);
    const vec k = _mm512_maskz_compress_epi32(mask, best);
    const vec i = _mm512_maskz_compress_epi32(mask, ~index);
    *seconds = (uint32_t)vec_ge32(second, least);
    for (int half = 0; half < 2; half++) {
        const __m256i key =
            half ? _mm512_extracti64x4_epi64(k, 1) : _mm512_castsi512_si256(k);
        const __m256i at =
            half ? _mm512_extracti64x4_epi64(i, 1) : _mm512_castsi512_si256(i);
        vec_store(out + 8 * half,
                  _mm512_or_si512(_mm512_slli_epi64(_mm512_cvtepu32_epi64(key), 32),
                                  _mm512_cvtepu32_epi64(at)));
    }
    return __builtin_popcount(mask);
}

typedef struct best_pair {
    vec best, second;
} best_pair;

static inline best_pair best_pair_join(best_pair a, best_pair b)
{
    const vec lesser = vec_min32(a.best, b.best);
    return (best_pair){vec_max32(a.best, b.best),
                       vec_max32(lesser, vec_max32(a.second, b.second))};
}

static inline best_pair best_pair_unpack32(best_pair a, best_pair b)
{
    return best_pair_join((best_pair){_mm512_unpacklo_epi32(a.best, b.best),
                                      _mm512_unpacklo_epi32(a.second, b.second)},
                          (best_pair){_mm512_unpackhi_epi32(a.best, b.best),
                                      _mm512_unpackhi_epi32(a.second, b.second)});
}

static inline best_pair best_pair_unpack64(best_pair a, best_pair b)
{
    return best_pair_join((best_pair){_mm512_unpacklo_epi64(a.best, b.best),
                                      _mm512_unpacklo_epi64(a.second, b.second)},
                          (best_pair){_mm512_unpackhi_epi64(a.best, b.best),
                                      _mm512_unpackhi_epi64(a.second, b.second)});
}

/* best_two_store of four, by a transposition as in store_best_words. */
static inline void best_two_store_four(const best_two b[4], uint32_t d[8],
                                       uint16_t position[4])
{
    const best_pair q[4] = {{b[0].best, b[0].second},
                            {b[1].best, b[1].second},
                            {b[2].best, b[2].second},
                            {b[3].best, b[3].second}};
    best_pair p = best_pair_unpack64(best_pair_unpack32(q[0], q[1]),
                                     best_pair_unpack32(q[2], q[3]));
    p = best_pair_join(p, (best_pair){_mm512_shuffle_i32x4(p.best, p.best, 0x4E),
                                      _mm512_shuffle_i32x4(p.second, p.second, 0x4E)});
    p = best_pair_join(p, (best_pair){_mm512_shuffle_i32x4(p.best, p.best, 0xB1),
                                      _mm512_shuffle_i32x4(p.second, p.second, 0xB1)});
    _mm_storeu_si128((__m128i *)(void *)d,
                     _mm512_castsi512_si128(_mm512_unpacklo_epi32(p.best, p.second)));
    _mm_storeu_si128((__m128i *)(void *)(d + 4),
                     _mm512_castsi512_si128(_mm512_unpackhi_epi32(p.best, p.second)));
    position[0] = best_two_place(&b[0], _mm512_shuffle_epi32(p.best, 0x00));
    position[1] = best_two_place(&b[1], _mm512_shuffle_epi32(p.best, 0x55));
    position[2] = best_two_place(&b[2], _mm512_shuffle_epi32(p.best, 0xAA));
    position[3] = best_two_place(&b[3], _mm512_shuffle_epi32(p.best, 0xFF));
}

#endif
