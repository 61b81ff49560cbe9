/* The shortest way there is: a few floats, straight from the public call. Keys are made
 * in registers, as in topk_tiny_avx512.h; a row with a NaN goes the other ways. Only
 * for topk_avx512.c. */
#ifndef STI_KERNEL_TOPK_STRAIGHT_AVX512_H
#define STI_KERNEL_TOPK_STRAIGHT_AVX512_H

#include "kernel/topk/topk_tiny_avx512.h"

enum { STRAIGHT_ROWS = STI_TOPK_STRAIGHT / STI_TOPK_TINY };

/* For x, -x or |x|, in memory so that a load makes a vector of each. */
typedef struct straight_map {
    uint32_t keep, flip, top_bit;
    uint32_t low, nan; /* order of -infinity, which is the least key; key of a NaN */
} straight_map;
static const straight_map straight_maps[] = {
    {0xFFFFFFFF, 0x00000000, 0x80000000, 0x007FFFFF, 0xFF000002},
    {0xFFFFFFFF, 0x80000000, 0x80000000, 0x007FFFFF, 0xFF000002},
    {0x7FFFFFFF, 0x00000000, 0x80000000, 0x007FFFFF, 0xFF000002}};

/* Keys of 64 elements, zero where there are none. */
INLINE void straight_keys(const unsigned char *x, const straight_map *m, uint64_t valid,
                          vec key[TINY_VECS])
{
    for (int j = 0; j < TINY_VECS; j++) {
        const __mmask16 here = (__mmask16)(valid >> (j * WORDS));
        const vec raw = vec_load_some32(x + 4 * j * WORDS, here);
        const vec bits = _mm512_ternarylogic_epi32(raw, vec_splat32(m->keep),
                                                   vec_splat32(m->flip), 0x6A);
        const vec sign = _mm512_srai_epi32(bits, 31);
        const vec order =
            _mm512_ternarylogic_epi32(bits, sign, vec_splat32(m->top_bit), 0x1E);
        key[j] = _mm512_maskz_sub_epi32(here, order, vec_splat32(m->low));
    }
}

INLINE bool straight_nan(const vec key[TINY_VECS], const straight_map *m)
{
    const vec most = vec_max32(vec_max32(key[0], key[1]), vec_max32(key[2], key[3]));
    return vec_ge32(most, vec_splat32(m->nan)) != 0;
}

/* No more elements than 64. */
INLINE bool straight_one(const sti_topk_short_row *b, const straight_map *m,
                         bool handful)
{
    const uint64_t valid = UINT64_MAX >> (STI_TOPK_TINY - b->n);
    vec key[TINY_VECS];
    straight_keys(b->raw, m, valid, key);
    if (straight_nan(key, m))
        return false;
    if (!handful) {
        tiny_emit(b, key, tiny_mask(key, b->k, valid));
        return true;
    }
    const vec kth = b->k == 1   ? tiny_best(key)
                    : b->k == 2 ? tiny_of_two(key)
                                : tiny_of_four(key, b->k);
    uint64_t mask = tiny_chosen(key, b->k, valid, kth);
    for (int64_t at = 0; at < b->k; at++, mask &= mask - 1)
        tiny_put(b, at, __builtin_ctzll(mask));
    return true;
}

static __attribute__((noinline)) bool straight_many(const sti_topk_short_row *b,
                                                    const straight_map *m)
{
    return straight_one(b, m, false);
}

/* The k-th of no more than 16, `best` having the best of each column: the k-th of these
 * is it, unless k elements are above that one. Of columns with such there are fewer
 * than k, so no more elements than fill four registers. */
static vec straight_kth(vec key[STRAIGHT_ROWS][TINY_VECS], int64_t rows,
                        const vec best[TINY_VECS], int64_t k)
{
    const vec bound = tiny_kth_lanes(best, k);
    uint32_t above[STI_TOPK_TINY + WORDS];
    int64_t count = 0;
    for (int64_t r = 0; r < rows; r++)
        count += __builtin_popcountll(tiny_above(key[r], bound));
    if (count < k)
        return bound;
    count = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int j = 0; j < TINY_VECS; j++)
            count +=
                keep32(key[r][j], whole_mask(_mm512_cmpgt_epu32_mask(key[r][j], bound)),
                       above + count);
    memset(above + count, 0, (size_t)(STI_TOPK_TINY - count) * sizeof *above);
    const vec few[TINY_VECS] = {vec_load(above), vec_load(above + WORDS),
                                vec_load(above + 2 * WORDS),
                                vec_load(above + 3 * WORDS)};
    return tiny_kth_lanes(few, k);
}

/* More elements than 64. Of no more than four winners the four best of each column tell
 * the k-th, of no more than 16 the best do. */
INLINE bool straight_rows(const sti_topk_short_row *b, const straight_map *m,
                          int64_t rows, bool by_four)
{
    vec key[STRAIGHT_ROWS][TINY_VECS], best[TINY_VECS];
    uint64_t valid[STRAIGHT_ROWS], better[STRAIGHT_ROWS], equal[STRAIGHT_ROWS];
    for (int j = 0; j < TINY_VECS; j++)
        best[j] = vec_splat32(0);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t left = b->n - r * STI_TOPK_TINY;
        valid[r] =
            left < STI_TOPK_TINY ? UINT64_MAX >> (STI_TOPK_TINY - left) : UINT64_MAX;
        straight_keys(b->raw + 4 * r * STI_TOPK_TINY, m, valid[r], key[r]);
        vec more[TINY_VECS] = {key[r][0], key[r][1], key[r][2], key[r][3]};
        if (by_four) {
            tiny_columns(more);
            TINY_HALF(vec, vec_max32, vec_min32, best, more)
        } else {
            for (int j = 0; j < TINY_VECS; j++)
                best[j] = vec_max32(best[j], more[j]);
        }
    }
    if (straight_nan(best, m))
        return false;
    const vec kth = by_four    ? tiny_of_columns(best, b->k)
                    : b->k > 1 ? straight_kth(key, rows, best, b->k)
                               : tiny_best(best);
    int64_t ties = b->k, at = 0;
    for (int64_t r = 0; r < rows; r++) {
        better[r] = tiny_above(key[r], kth);
        equal[r] = tiny_at_least(key[r], kth) & valid[r] & ~better[r];
        ties -= __builtin_popcountll(better[r]);
    }
    for (int64_t r = 0; at < b->k; r++) {
        uint64_t mask = better[r];
        for (; ties > 0 && equal[r]; ties--, equal[r] &= equal[r] - 1)
            mask |= equal[r] & -equal[r];
        for (; mask; mask &= mask - 1)
            tiny_put(b, at++, r * STI_TOPK_TINY + __builtin_ctzll(mask));
    }
    return true;
}

/* Two rows, whose keys then stay in registers, and more. */
static __attribute__((noinline)) bool straight_two(const sti_topk_short_row *b,
                                                   const straight_map *m)
{
    return b->k > 1 && b->k <= STI_TOPK_HANDFUL ? straight_rows(b, m, 2, true)
                                                : straight_rows(b, m, 2, false);
}

static __attribute__((noinline)) bool straight_more(const sti_topk_short_row *b,
                                                    const straight_map *m)
{
    const int64_t rows = (b->n + STI_TOPK_TINY - 1) / STI_TOPK_TINY;
    return straight_rows(b, m, rows, b->k > 1 && b->k <= STI_TOPK_HANDFUL);
}

bool sti_topk_straight_avx512(const stint_topk_desc *d, const void *x, int64_t *index,
                              void *values)
{
    sti_topk_short_row b; /* what is not needed need not be cleared */
    b.n = d->n;
    b.k = d->k;
    b.base = d->index_base;
    b.index = index;
    b.raw = x;
    b.values = values;
    b.packed = NULL;
    const straight_map *m = &straight_maps[d->key];
    return b.n > 2 * STI_TOPK_TINY  ? straight_more(&b, m)
           : b.n > STI_TOPK_TINY    ? straight_two(&b, m)
           : b.k > STI_TOPK_HANDFUL ? straight_many(&b, m)
                                    : straight_one(&b, m, true);
}

#endif
