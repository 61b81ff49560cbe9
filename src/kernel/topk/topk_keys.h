/* Loops over lists of bare keys: the winners of short rows, and thresholds. Only for
 * topk_body.h, once for each machine, where the form is that of keys. */
static inline int64_t count_at_least(const uint32_t *keys, int64_t count, uint32_t lo)
{
    const vec bound = SPLAT(lo);
    int64_t i = 0, at_least = 0;
    for (; i + LANES <= count; i += LANES)
        at_least += __builtin_popcountll(GE(vec_load(keys + i), bound));
    return at_least + topk_at_least(keys + i, count - i, lo);
}

/* The same for a whole number of STI_TOPK_LANES. */
static inline int64_t count_in_lanes(const uint32_t *keys, int64_t count, uint32_t lo)
{
    const vec bound = SPLAT(lo);
    int64_t at_least = 0;
    for (int64_t i = 0; i < count; i += STI_TOPK_LANES)
        for (int64_t j = i; j < i + STI_TOPK_LANES; j += LANES)
            at_least += __builtin_popcountll(GE(vec_load(keys + j), bound));
    return at_least;
}

/* For three of them. */
static inline void count_three(const uint32_t *keys, int64_t count,
                               const uint32_t lo[3], int64_t at_least[3])
{
    const vec a = SPLAT(lo[0]), b = SPLAT(lo[1]), c = SPLAT(lo[2]);
    int64_t from_a = 0, from_b = 0, from_c = 0;
    for (int64_t i = 0; i < count; i += LANES) {
        const vec key = vec_load(keys + i);
        from_a += __builtin_popcountll(GE(key, a));
        from_b += __builtin_popcountll(GE(key, b));
        from_c += __builtin_popcountll(GE(key, c));
    }
    at_least[0] = from_a;
    at_least[1] = from_b;
    at_least[2] = from_c;
}

/* Keys between the bounds of a whole number of lanes; `out` may be `keys`. */
static inline int64_t keep_range(const uint32_t *keys, int64_t count, uint32_t lo,
                                 uint32_t hi, uint32_t *out, int64_t *at_least)
{
    const vec bound = SPLAT(lo), roof = SPLAT(hi);
    int64_t kept = 0, from_lo = 0;
    for (int64_t i = 0; i < count; i += LANES) {
        const vec key = vec_load(keys + i);
        const uint64_t mask = GE(key, bound);
        from_lo += __builtin_popcountll(mask);
        kept += keep32(key, mask & GE(roof, key), out + kept);
    }
    *at_least = from_lo;
    return kept;
}

/* How many of a whole number of lanes are at least `bound`, and the best of the rest.
 */
static inline int64_t next_below(const uint32_t *keys, int64_t count, uint32_t bound,
                                 uint32_t *next)
{
    const vec limit = SPLAT(bound);
    vec best = SPLAT(0);
    int64_t at_least = 0;
    for (int64_t i = 0; i < count; i += LANES) {
        const vec key = vec_load(keys + i);
        at_least += __builtin_popcountll(GE(key, limit));
        best = MAX(best, vec_below32(key, limit));
    }
    *next = best_word(best);
    return at_least;
}

static inline int64_t find_equal(const uint32_t *keys, uint32_t wanted, int64_t rank)
{
    const vec bound = SPLAT(wanted);
    for (int64_t i = 0;; i += 64) {
        uint64_t mask = 0;
        for (int j = 0; j < 64; j += LANES) {
            const vec key = vec_load(keys + i + j);
            mask |= (GE(key, bound) & GE(bound, key)) << j;
        }
        const int64_t here = __builtin_popcountll(mask);
        if (rank > here) {
            rank -= here;
            continue;
        }
        for (; rank > 1; rank--)
            mask &= mask - 1;
        return i + __builtin_ctzll(mask);
    }
}

static inline int64_t emit_words_at(const sti_topk_short_row *b, int64_t i, vec key,
                                    uint64_t mask, int64_t at)
{
    if (b->packed)
        return at + pack32(key, mask, (uint32_t)i, b->packed + at);
    return at + emit32(b->values ? vec_load(b->raw + 4 * i) : key, mask, b->base + i,
                       b->index + at, b->values ? b->values + 4 * at : NULL);
}

/* Does any of four vectors have a key of at least the bound? */
static inline bool any_at_least(const uint32_t *keys, vec bound)
{
    const vec a = MAX(vec_load(keys), vec_load(keys + LANES));
    const vec b = MAX(vec_load(keys + 2 * LANES), vec_load(keys + 3 * LANES));
    return GE(MAX(a, b), bound) != 0;
}

static inline int64_t emit_range(const sti_topk_short_row *b, int64_t begin,
                                 int64_t end, uint32_t lo, int64_t at)
{
    const vec bound = SPLAT(lo);
    const bool few = 64 * b->k <= b->n; /* worth a branch */
    int64_t i = begin;
    while (i + 4 * LANES <= end && !any_at_least(b->keys + i, bound))
        i += 4 * LANES; /* where data ascend, winners begin late */
    for (; i + 4 * LANES <= end && at < b->k; i += 4 * LANES) {
        vec key[4];
        for (int j = 0; j < 4; j++)
            key[j] = vec_load(b->keys + i + j * LANES);
        if (few && !GE(MAX(MAX(key[0], key[1]), MAX(key[2], key[3])), bound))
            continue;
        for (int j = 0; j < 4; j++)
            at = emit_words_at(b, i + j * LANES, key[j], GE(key[j], bound), at);
    }
    for (; i + LANES <= end && at < b->k; i += LANES) {
        const vec key = vec_load(b->keys + i);
        at = emit_words_at(b, i, key, GE(key, bound), at);
    }
    return at < b->k ? topk_emit_range(b, i, end, lo, at) : at;
}

#define NAME_OF(verb) verb
#define AT_LEAST      count_in_lanes
#ifdef STI_KERNEL_TOPK_TINY_AVX512_H
#define SORT_SAMPLE     tiny_sort
#define SORTED_AT(rank) tiny_at(rank)
#endif
#include "kernel/topk/topk_winners.h"

static void short_row_winners(const sti_topk_short_row *b)
{
    winners(b);
    vec_leave();
}

#ifdef STI_KERNEL_TOPK_TINY_AVX512_H
/* Keys of at least lo; their number. They are few, hence a branch. */
static inline int64_t keep_few(const sti_topk_short_row *b, uint32_t lo)
{
    const vec bound = SPLAT(lo);
    int64_t kept = 0;
    for (int64_t i = 0; i < b->n; i += STI_TOPK_TINY) {
        vec key[TINY_VECS];
        for (int j = 0; j < TINY_VECS; j++)
            key[j] = vec_load(b->keys + i + j * WORDS);
        if (!GE(MAX(MAX(key[0], key[1]), MAX(key[2], key[3])), bound))
            continue;
        for (int j = 0; j < TINY_VECS; j++)
            kept += keep32(key[j], GE(key[j], bound), b->spare + kept);
    }
    return kept;
}

/* `best` has the best element of each of 64 columns: the k-th of these is a bound of
 * the k-th of all, and hardly more than k elements are above it. */
static threshold few_threshold(const sti_topk_short_row *b, const vec best[TINY_VECS],
                               uint32_t most)
{
    vec key[TINY_VECS];
    const uint32_t lo = tiny_kth(best, b->k);
    if (lo == most)
        return (threshold){lo, b->k};
    int64_t count = keep_few(b, lo);
    if (count == b->k)
        return (threshold){lo, 0};
    for (int j = 0; j < TINY_VECS; j++)
        vec_store(b->spare + count + j * WORDS, SPLAT(0));
    if (count > STI_TOPK_TINY) {
        const int64_t padded = sti_topk_ceil(count, STI_TOPK_LANES) * STI_TOPK_LANES;
        const search s = {b->spare, padded, b->k, count, 0, lo, most};
        return bisect_list(s, b->spare);
    }
    for (int j = 0; j < TINY_VECS; j++)
        key[j] = vec_load(b->spare + j * WORDS);
    const uint32_t kth = tiny_kth(key, b->k);
    return (threshold){kth,
                       b->k - __builtin_popcountll(tiny_above(key, vec_splat32(kth)))};
}

static bool few_winners(const sti_topk_short_row *b, const vec best[TINY_VECS],
                        uint32_t refused)
{
    const uint32_t most = tiny_kth(best, 1);
    if (refused && most >= refused) {
        b->index[0] = b->base + find_equal(b->keys, most, 1);
        return false;
    }
    emit_threshold(b, b->k == 1 ? (threshold){most, 1} : few_threshold(b, best, most));
    return true;
}
#endif

#define BISECT         bisect_keys
#define COUNT_AT_LEAST count_at_least
#include "kernel/topk/topk_bisect.h"
