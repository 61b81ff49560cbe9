/* AVX2 words of top-k: lanes of 32, 16 or 8 bits in 32 bytes. A mask has one bit a
 * lane. Only for topk_avx2.c. */
#ifndef STI_KERNEL_TOPK_VEC_AVX2_H
#define STI_KERNEL_TOPK_VEC_AVX2_H

#include <stdint.h>
#include <string.h>

#include <immintrin.h>

enum { VEC_BYTES = 32, WORDS = 8, STREAMS = 4 }; /* WORDS: 32-bit lanes */
typedef __m256i vec;

/* Before code of other files runs: gcc 12 forgets this at the end of some functions,
 * and the next SSE instruction, wherever it is, would wait for the upper halves. */
#define vec_leave()     _mm256_zeroupper()
#define vec_load(p)     _mm256_loadu_si256((const __m256i_u *)(const void *)(p))
#define vec_store(p, x) _mm256_storeu_si256((__m256i_u *)(void *)(p), x)
#define vec_splat32(x)  _mm256_set1_epi32((int)(x))
#define vec_splat16(x)  _mm256_set1_epi16((short)(x))
#define vec_splat8(x)   _mm256_set1_epi8((char)(x))
#define vec_max32(a, b) _mm256_max_epu32(a, b)
#define vec_max16(a, b) _mm256_max_epu16(a, b)
#define vec_max8(a, b)  _mm256_max_epu8(a, b)
#define vec_min32(a, b) _mm256_min_epu32(a, b)
#define vec_min16(a, b) _mm256_min_epu16(a, b)
#define vec_min8(a, b)  _mm256_min_epu8(a, b)
/* Lanes of a below those of b; others zero. */
#define vec_below32(a, b) \
    _mm256_andnot_si256(_mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a), a)
#define vec_add_floats(a, b) \
    _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)))

/* a >= b where the larger of both is a. */
static inline uint64_t vec_ge32(vec a, vec b)
{
    const vec ge = _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(ge));
}

static inline uint64_t vec_ge16(vec a, vec b)
{
    const vec ge = _mm256_cmpeq_epi16(_mm256_max_epu16(a, b), a);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(ge), _mm256_extracti128_si256(ge, 1));
    return (uint32_t)_mm_movemask_epi8(bytes);
}

static inline uint64_t vec_ge8(vec a, vec b)
{
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(a, b), a));
}

static inline vec fold32(vec x)
{
    return x;
}

static inline vec fold16(vec x)
{
    return _mm256_cvtepu16_epi32(
        _mm_max_epu16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)));
}

static inline vec fold8(vec x)
{
    const __m128i half =
        _mm_max_epu8(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    return _mm256_cvtepu8_epi32(_mm_max_epu8(half, _mm_srli_si128(half, 8)));
}

/* Lanes as words, in order. */
static inline void widen32(vec x, vec *out)
{
    out[0] = x;
}

static inline void widen16(vec x, vec *out)
{
    out[0] = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(x));
    out[1] = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x, 1));
}

static inline void widen8(vec x, vec *out)
{
    const __m128i low = _mm256_castsi256_si128(x),
                  high = _mm256_extracti128_si256(x, 1);
    out[0] = _mm256_cvtepu8_epi32(low);
    out[1] = _mm256_cvtepu8_epi32(_mm_srli_si128(low, 8));
    out[2] = _mm256_cvtepu8_epi32(high);
    out[3] = _mm256_cvtepu8_epi32(_mm_srli_si128(high, 8));
}

/* The best word of each of 8 vectors, in order. */
static inline void store_best_words(const vec r[WORDS], uint32_t *out)
{
    vec four[2];
    for (int i = 0; i < 2; i++) {
        const vec *q = r + 4 * i;
        const vec a = _mm256_max_epu32(_mm256_unpacklo_epi32(q[0], q[1]),
                                       _mm256_unpackhi_epi32(q[0], q[1]));
        const vec b = _mm256_max_epu32(_mm256_unpacklo_epi32(q[2], q[3]),
                                       _mm256_unpackhi_epi32(q[2], q[3]));
        four[i] =
            _mm256_max_epu32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    }
    const vec best =
        _mm256_max_epu32(_mm256_permute2x128_si256(four[0], four[1], 0x20),
                         _mm256_permute2x128_si256(four[0], four[1], 0x31));
    _mm256_storeu_si256((__m256i_u *)(void *)out, best);
}

static inline uint32_t best_word(vec x)
{
    __m128i m =
        _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

/* There is no compression: the set lanes are few, and are taken one by one. */
#define TAKE_LANES(bits, type)                                                     \
    static inline int64_t pack##bits(vec keys, uint64_t mask, uint32_t base,       \
                                     uint64_t *out)                                \
    {                                                                              \
        type key[VEC_BYTES / sizeof(type)];                                        \
        int64_t count = 0;                                                         \
        memcpy(key, &keys, sizeof key);                                            \
        for (; mask; mask &= mask - 1) {                                           \
            const uint32_t lane = (uint32_t)__builtin_ctzll(mask);                 \
            out[count++] = (uint64_t)key[lane] << 32 | (uint32_t) ~(base + lane);  \
        }                                                                          \
        return count;                                                              \
    }                                                                              \
    static inline int64_t keep##bits(vec keys, uint64_t mask, uint32_t *out)       \
    {                                                                              \
        type key[VEC_BYTES / sizeof(type)];                                        \
        int64_t count = 0;                                                         \
        memcpy(key, &keys, sizeof key);                                            \
        for (; mask; mask &= mask - 1)                                             \
            out[count++] = key[__builtin_ctzll(mask)];                             \
        return count;                                                              \
    }                                                                              \
    static inline int64_t emit##bits(vec raw, uint64_t mask, int64_t base,         \
                                     int64_t *index_out, unsigned char *value_out) \
    {                                                                              \
        type value[VEC_BYTES / sizeof(type)];                                      \
        int64_t count = 0;                                                         \
        memcpy(value, &raw, sizeof value);                                         \
        for (; mask; mask &= mask - 1) {                                           \
            const int lane = __builtin_ctzll(mask);                                \
            if (value_out)                                                         \
                memcpy(value_out + (size_t)count * sizeof(type), &value[lane],     \
                       sizeof(type));                                              \
            index_out[count++] = base + lane;                                      \
        }                                                                          \
        return count;                                                              \
    }

TAKE_LANES(32, uint32_t)
TAKE_LANES(16, uint16_t)
TAKE_LANES(8, uint8_t)

/* Two best words of each lane so far, and at which step the best one came. */
typedef struct best_two {
    vec best, second, step;
} best_two;

static inline void best_two_add(best_two *b, vec key, uint32_t step)
{
    const vec not_better = _mm256_cmpeq_epi32(_mm256_max_epu32(b->best, key), b->best);
    b->second = _mm256_max_epu32(b->second, _mm256_min_epu32(b->best, key));
    b->best = _mm256_max_epu32(b->best, key);
    b->step = _mm256_blendv_epi8(_mm256_set1_epi32((int)step), b->step, not_better);
}

/* The two best of all lanes; position of the best, the first one of equals. */
static inline void best_two_store(const best_two *b, uint32_t d[2], uint16_t *position)
{
    uint32_t best[WORDS], second[WORDS], step[WORDS], at = 0;
    memcpy(best, &b->best, sizeof best);
    memcpy(second, &b->second, sizeof second);
    memcpy(step, &b->step, sizeof step);
    for (uint32_t lane = 1; lane < WORDS; lane++)
        if (best[lane] > best[at] || (best[lane] == best[at] && step[lane] < step[at]))
            at = lane;
    *position = (uint16_t)(step[at] * WORDS + at);
    d[0] = best[at];
    d[1] = second[at];
    for (uint32_t lane = 0; lane < WORDS; lane++) {
        const uint32_t rest = lane == at ? second[lane] : best[lane];
        d[1] = rest > d[1] ? rest : d[1];
    }
}

static inline void best_two_store_four(const best_two b[4], uint32_t d[8],
                                       uint16_t position[4])
{
    for (int j = 0; j < 4; j++)
        best_two_store(&b[j], d + 2 * j, position + j);
}

/* Look at 16 blocks of 2^a elements from index `begin` on: the best key of each that is
 * at or above the bound, packed; their number. Blocks whose second best is, too, a bit
 * each. 16 places are written to. */
static inline int64_t catch_best(const uint32_t *d, const uint16_t *position,
                                 uint32_t begin, int a, uint32_t bound, uint64_t *out,
                                 uint32_t *seconds)
{
    int64_t found = 0;
    *seconds = 0;
    for (uint32_t i = 0; i < 16; i++) {
        out[found] = sti_topk_pack(d[2 * i], begin + (i << a) + position[i]);
        found += d[2 * i] >= bound;
        *seconds |= (uint32_t)(d[2 * i + 1] >= bound) << i;
    }
    return found;
}

#endif
