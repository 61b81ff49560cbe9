/* The winners of a row of at most 64 elements, whose keys lie in four registers: a
 * network orders as many of them as are asked for, without a branch that the values
 * decide, and one comparison with the k-th of these marks the winners. Only for
 * topk_avx512.c.
 *
 * A column is a lane of the four registers, best in the first one. Columns in order,
 * side by side, are one list: its element e is lane e / 4 of register e % 4. */
#ifndef STI_KERNEL_TOPK_TINY_AVX512_H
#define STI_KERNEL_TOPK_TINY_AVX512_H

#include "kernel/topk/topk_vec_avx512.h"

enum { TINY_VECS = STI_TOPK_TINY / WORDS, TINY_SCALAR = 8 };

/* Lanes and their partners 1, 2, 4, 8 away, and groups of 2, 4, 8, 16 reversed. */
#define SWAP1(x)     _mm512_shuffle_epi32(x, 0xB1)
#define SWAP2(x)     _mm512_shuffle_epi32(x, 0x4E)
#define SWAP4(x)     _mm512_shuffle_i32x4(x, x, 0xB1)
#define SWAP8(x)     _mm512_shuffle_i32x4(x, x, 0x4E)
#define REVERSE4(x)  _mm512_shuffle_epi32(x, 0x1B)
#define REVERSE8(x)  SWAP4(REVERSE4(x))
#define REVERSE16(x) SWAP8(REVERSE8(x))
enum { BIT1 = 0xAAAA, BIT2 = 0xCCCC, BIT4 = 0xF0F0, BIT8 = 0xFF00 };

static inline void tiny_order(vec *a, vec *b)
{
    const vec better = vec_max32(*a, *b);
    *b = vec_min32(*a, *b);
    *a = better;
}

/* Columns that rise and then fall, or the other way about. */
static inline void tiny_settle(vec r[TINY_VECS])
{
    tiny_order(&r[0], &r[2]);
    tiny_order(&r[1], &r[3]);
    tiny_order(&r[0], &r[1]);
    tiny_order(&r[2], &r[3]);
}

static inline void tiny_columns(vec r[TINY_VECS])
{
    tiny_order(&r[0], &r[1]);
    tiny_order(&r[2], &r[3]);
    tiny_order(&r[0], &r[2]);
    tiny_order(&r[1], &r[3]);
    tiny_order(&r[1], &r[2]);
}

/* Lanes of `worse` keep the worse one of themselves and their partner. */
static inline vec tiny_pair(vec x, vec partner, __mmask16 worse)
{
    return _mm512_mask_min_epu32(vec_max32(x, partner), worse, x, partner);
}

#define TINY_STEP(r, swap, worse)                      \
    for (int j_ = 0; j_ < TINY_VECS; j_++) {           \
        const vec partner_ = swap((r)[j_]);            \
        (r)[j_] = tiny_pair((r)[j_], partner_, worse); \
    }

/* The lists in neighbouring groups of columns become one: the best half of both is in
 * the first group, though not in order yet. */
#define TINY_CROSS(r, reverse, worse)                                     \
    {                                                                     \
        const vec other_[TINY_VECS] = {reverse((r)[3]), reverse((r)[2]),  \
                                       reverse((r)[1]), reverse((r)[0])}; \
        for (int j_ = 0; j_ < TINY_VECS; j_++)                            \
            (r)[j_] = tiny_pair((r)[j_], other_[j_], worse);              \
    }

/* The best of all keys, in every lane, by registers that get shorter: the shorter ones
 * have twice the units. */
INLINE vec tiny_best(const vec key[TINY_VECS])
{
    const vec all = vec_max32(vec_max32(key[0], key[1]), vec_max32(key[2], key[3]));
    const __m256i half = _mm256_max_epu32(_mm512_castsi512_si256(all),
                                          _mm512_extracti64x4_epi64(all, 1));
    __m128i best =
        _mm_max_epu32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    best = _mm_max_epu32(best, _mm_shuffle_epi32(best, 0x4E));
    best = _mm_max_epu32(best, _mm_shuffle_epi32(best, 0xB1));
    return _mm512_broadcastd_epi32(best);
}

/* The four best of the columns of a and b, in the columns of a. */
#define TINY_HALF(type, max, min, a, b)                                     \
    {                                                                       \
        const type w_ = max((a)[0], (b)[3]), x_ = max((a)[1], (b)[2]),      \
                   y_ = max((a)[2], (b)[1]), z_ = max((a)[3], (b)[0]);      \
        const type wy_ = max(w_, y_), yw_ = min(w_, y_), xz_ = max(x_, z_), \
                   zx_ = min(x_, z_);                                       \
        (a)[0] = max(wy_, xz_);                                             \
        (a)[1] = min(wy_, xz_);                                             \
        (a)[2] = max(yw_, zx_);                                             \
        (a)[3] = min(yw_, zx_);                                             \
    }

/* Likewise the k-th best, k <= 4, of columns in order. */
INLINE vec tiny_of_columns(const vec r[TINY_VECS], int64_t k)
{
    __m256i half[TINY_VECS], upper[TINY_VECS];
    __m128i quarter[TINY_VECS], other[TINY_VECS];
    for (int j = 0; j < TINY_VECS; j++) {
        half[j] = _mm512_castsi512_si256(r[j]);
        upper[j] = _mm512_extracti64x4_epi64(r[j], 1);
    }
    TINY_HALF(__m256i, _mm256_max_epu32, _mm256_min_epu32, half, upper);
    for (int j = 0; j < TINY_VECS; j++) {
        quarter[j] = _mm256_castsi256_si128(half[j]);
        other[j] = _mm256_extracti128_si256(half[j], 1);
    }
    TINY_HALF(__m128i, _mm_max_epu32, _mm_min_epu32, quarter, other);
    for (int j = 0; j < TINY_VECS; j++)
        other[j] = _mm_shuffle_epi32(quarter[j], 0x4E);
    TINY_HALF(__m128i, _mm_max_epu32, _mm_min_epu32, quarter, other);
    for (int j = 0; j < TINY_VECS; j++)
        other[j] = _mm_shuffle_epi32(quarter[j], 0xB1);
    TINY_HALF(__m128i, _mm_max_epu32, _mm_min_epu32, quarter, other);
    return _mm512_broadcastd_epi32(quarter[k - 1]);
}

/* The best eight of two lists of eight, each in a pair of lanes, go to the first: one
 * of them turned around, they fall and rise. */
#define TINY_EIGHT(type, bits, worse, a, b)                                         \
    {                                                                               \
        type m_[TINY_VECS];                                                         \
        for (int j_ = 0; j_ < TINY_VECS; j_++)                                      \
            m_[j_] =                                                                \
                bits##_max_epu32((a)[j_], bits##_shuffle_epi32((b)[3 - j_], 0xB1)); \
        for (int j_ = 0; j_ < TINY_VECS; j_++) {                                    \
            const type other_ = bits##_shuffle_epi32(m_[j_], 0xB1);                 \
            m_[j_] = bits##_mask_min_epu32(bits##_max_epu32(m_[j_], other_), worse, \
                                           m_[j_], other_);                         \
        }                                                                           \
        const type w_ = bits##_max_epu32(m_[0], m_[2]),                             \
                   y_ = bits##_min_epu32(m_[0], m_[2]),                             \
                   x_ = bits##_max_epu32(m_[1], m_[3]),                             \
                   z_ = bits##_min_epu32(m_[1], m_[3]);                             \
        (a)[0] = bits##_max_epu32(w_, x_);                                          \
        (a)[1] = bits##_min_epu32(w_, x_);                                          \
        (a)[2] = bits##_max_epu32(y_, z_);                                          \
        (a)[3] = bits##_min_epu32(y_, z_);                                          \
    }

/* The k-th best of all in every lane, 4 < k <= 8. */
static inline vec tiny_of_eight(const vec key[TINY_VECS], int64_t k)
{
    vec r[TINY_VECS] = {key[0], key[1], key[2], key[3]};
    __m256i half[TINY_VECS], upper[TINY_VECS];
    __m128i quarter[TINY_VECS], other[TINY_VECS];
    tiny_columns(r);
    TINY_CROSS(r, SWAP1, BIT1);
    tiny_settle(r);
    for (int j = 0; j < TINY_VECS; j++) {
        half[j] = _mm512_castsi512_si256(r[j]);
        upper[j] = _mm512_extracti64x4_epi64(r[j], 1);
    }
    TINY_EIGHT(__m256i, _mm256, BIT1 & 0xFF, half, upper);
    for (int j = 0; j < TINY_VECS; j++) {
        quarter[j] = _mm256_castsi256_si128(half[j]);
        other[j] = _mm256_extracti128_si256(half[j], 1);
    }
    TINY_EIGHT(__m128i, _mm, BIT1 & 0xF, quarter, other);
    for (int j = 0; j < TINY_VECS; j++)
        other[j] = _mm_shuffle_epi32(quarter[j], 0x4E);
    TINY_EIGHT(__m128i, _mm, BIT1 & 0xF, quarter, other);
    return _mm512_broadcastd_epi32(_mm_shuffle_epi32(quarter[k - 5], 0x55));
}

/* The second best of all in every lane: of two lists of two, the best of the lesser
 * best and the two second. */
INLINE vec tiny_of_two(const vec key[TINY_VECS])
{
    const vec a = vec_max32(key[0], key[1]), b = vec_min32(key[0], key[1]);
    const vec c = vec_max32(key[2], key[3]), d = vec_min32(key[2], key[3]);
    const vec best = vec_max32(a, c),
              second = vec_max32(vec_min32(a, c), vec_max32(b, d));
    __m256i x = _mm512_castsi512_si256(best), y = _mm512_extracti64x4_epi64(best, 1);
    const __m256i rest = _mm256_max_epu32(_mm512_castsi512_si256(second),
                                          _mm512_extracti64x4_epi64(second, 1));
    const __m256i half = _mm256_max_epu32(_mm256_min_epu32(x, y), rest);
    x = _mm256_max_epu32(x, y);
    __m128i most = _mm256_castsi256_si128(x), other = _mm256_extracti128_si256(x, 1);
    __m128i next =
        _mm_max_epu32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    next = _mm_max_epu32(next, _mm_min_epu32(most, other));
    most = _mm_max_epu32(most, other);
    other = _mm_shuffle_epi32(most, 0x4E);
    next = _mm_max_epu32(next, _mm_shuffle_epi32(next, 0x4E));
    next = _mm_max_epu32(next, _mm_min_epu32(most, other));
    most = _mm_max_epu32(most, other);
    other = _mm_shuffle_epi32(most, 0xB1);
    next = _mm_max_epu32(next, _mm_shuffle_epi32(next, 0xB1));
    return _mm512_broadcastd_epi32(_mm_max_epu32(next, _mm_min_epu32(most, other)));
}

INLINE vec tiny_of_four(const vec key[TINY_VECS], int64_t k)
{
    vec r[TINY_VECS] = {key[0], key[1], key[2], key[3]};
    tiny_columns(r);
    return tiny_of_columns(r, k);
}

/* Where the k-th best (from 1) is once all are in order. */
static inline int64_t tiny_at(int64_t k)
{
    return (k - 1) % TINY_VECS * WORDS + (k - 1) / TINY_VECS;
}

static inline void tiny_order_all(const vec key[TINY_VECS],
                                  uint32_t ordered[STI_TOPK_TINY])
{
    vec r[TINY_VECS] = {key[0], key[1], key[2], key[3]};
    tiny_columns(r);
    TINY_CROSS(r, SWAP1, BIT1);
    tiny_settle(r);
    TINY_CROSS(r, REVERSE4, BIT2);
    TINY_STEP(r, SWAP1, BIT1);
    tiny_settle(r);
    TINY_CROSS(r, REVERSE8, BIT4);
    TINY_STEP(r, SWAP2, BIT2);
    TINY_STEP(r, SWAP1, BIT1);
    tiny_settle(r);
    TINY_CROSS(r, REVERSE16, BIT8);
    TINY_STEP(r, SWAP4, BIT4);
    TINY_STEP(r, SWAP2, BIT2);
    TINY_STEP(r, SWAP1, BIT1);
    tiny_settle(r);
    for (int j = 0; j < TINY_VECS; j++)
        vec_store(ordered + j * WORDS, r[j]);
}

static void tiny_sort(uint32_t keys[STI_TOPK_TINY])
{
    vec key[TINY_VECS];
    for (int j = 0; j < TINY_VECS; j++)
        key[j] = vec_load(keys + j * WORDS);
    tiny_order_all(key, keys);
}

/* Likewise for any k: all of them are put in order. */
static inline vec tiny_of_all(const vec key[TINY_VECS], int64_t k)
{
    uint32_t ordered[STI_TOPK_TINY];
    tiny_order_all(key, ordered);
    return vec_splat32(ordered[tiny_at(k)]);
}

static inline vec tiny_kth_lanes(const vec key[TINY_VECS], int64_t k)
{
    return k == 1               ? tiny_best(key)
           : k == 2             ? tiny_of_two(key)
           : k <= TINY_VECS     ? tiny_of_four(key, k)
           : k <= 2 * TINY_VECS ? tiny_of_eight(key, k)
                                : tiny_of_all(key, k);
}

static uint32_t tiny_kth(const vec key[TINY_VECS], int64_t k)
{
    return (uint32_t)_mm512_cvtsi512_si32(tiny_kth_lanes(key, k));
}

/* Joined in registers for masks: gcc 12 may spill one with 16 bits and read back 64. */
static inline uint64_t tiny_join(const __mmask16 at[TINY_VECS])
{
    return _cvtmask64_u64(
        _mm512_kunpackd(_mm512_kunpackw(at[3], at[2]), _mm512_kunpackw(at[1], at[0])));
}

static inline uint64_t tiny_at_least(const vec key[TINY_VECS], vec bound)
{
    const __mmask16 at[TINY_VECS] = {
        _mm512_cmpge_epu32_mask(key[0], bound), _mm512_cmpge_epu32_mask(key[1], bound),
        _mm512_cmpge_epu32_mask(key[2], bound), _mm512_cmpge_epu32_mask(key[3], bound)};
    return tiny_join(at);
}

static inline uint64_t tiny_above(const vec key[TINY_VECS], vec bound)
{
    const __mmask16 at[TINY_VECS] = {
        _mm512_cmpgt_epu32_mask(key[0], bound), _mm512_cmpgt_epu32_mask(key[1], bound),
        _mm512_cmpgt_epu32_mask(key[2], bound), _mm512_cmpgt_epu32_mask(key[3], bound)};
    return tiny_join(at);
}

/* The lowest `count` of the set bits. */
static inline uint64_t tiny_lowest(uint64_t mask, int64_t count)
{
    uint64_t rest = mask;
    for (; count > 0; count--)
        rest &= rest - 1;
    return mask ^ rest;
}

/* One bit for each winner, or more behind those of the k winners where all are equal;
 * `valid` has one for each element. */
static inline uint64_t tiny_chosen(const vec key[TINY_VECS], int64_t k, uint64_t valid,
                                   vec kth)
{
    const uint64_t at_least = tiny_at_least(key, kth) & valid;
    if (k == 1)
        return at_least & -at_least;
    if (__builtin_popcountll(at_least) <= k)
        return at_least;
    const uint64_t better = tiny_above(key, kth);
    if (better == 0)
        return at_least;
    return better | tiny_lowest(at_least & ~better, k - __builtin_popcountll(better));
}

static inline uint64_t tiny_mask(const vec key[TINY_VECS], int64_t k, uint64_t valid)
{
    const uint64_t mask = tiny_chosen(key, k, valid, tiny_kth_lanes(key, k));
    return __builtin_popcountll(mask) > k ? tiny_lowest(mask, k) : mask;
}

static inline void tiny_put(const sti_topk_short_row *b, int64_t at, int64_t i)
{
    b->index[at] = b->base + i;
    if (b->values)
        memcpy(b->values + 4 * at, b->raw + 4 * i, 4);
}

static inline void tiny_emit(const sti_topk_short_row *b, const vec key[TINY_VECS],
                             uint64_t mask)
{
    int64_t at = 0;
    if (b->k <= TINY_SCALAR && !b->packed) {
        for (; at < b->k; at++, mask &= mask - 1)
            tiny_put(b, at, __builtin_ctzll(mask));
        return;
    }
    for (int j = 0; j < TINY_VECS; j++, mask >>= WORDS) {
        const uint64_t here = mask & 0xFFFF;
        if (b->packed)
            at += pack32(key[j], here, (uint32_t)(j * WORDS), b->packed + at);
        else if (b->values)
            at += emit32(vec_load_some32(b->raw + 4 * j * WORDS, here), here,
                         b->base + j * WORDS, b->index + at, b->values + 4 * at);
        else
            at += emit_indices((uint32_t)here, b->base + j * WORDS, b->index + at);
    }
}

/* False where the best key is `refused` (0: none is): index[0] is then where the first
 * one is. */
static inline bool tiny_winner(const sti_topk_short_row *b, const vec key[TINY_VECS],
                               uint64_t valid, uint32_t refused)
{
    const vec best = tiny_best(key);
    const uint32_t most = (uint32_t)_mm512_cvtsi512_si32(best);
    const int64_t i = __builtin_ctzll(tiny_at_least(key, best) & valid);
    if (b->packed)
        b->packed[0] = sti_topk_pack(most, i);
    tiny_put(b, 0, i);
    return !refused || most < refused;
}

/* Keys behind the row are zero. */
static bool tiny_winners(const sti_topk_short_row *b, const vec given[TINY_VECS],
                         uint64_t valid, uint32_t refused)
{
    const vec key[TINY_VECS] = {given[0], given[1], given[2], given[3]};
    if (b->k == 1)
        return tiny_winner(b, key, valid, refused);
    const vec most = vec_max32(vec_max32(key[0], key[1]), vec_max32(key[2], key[3]));
    if (refused && vec_ge32(most, vec_splat32(refused)))
        return tiny_winner(b, key, valid, refused);
    tiny_emit(b, key, tiny_mask(key, b->k, valid));
    return true;
}

#endif
