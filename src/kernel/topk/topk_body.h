/* The vector loops of top-k for one form of elements. The including file defines
 *   FORM   f32, f16, ... (names)      BITS   32, 16 or 8
 *   KIND   FLOATS, SUMS, INTEGERS or KEYS (how bits become keys, see topk_key.h)
 * and has included the vector words of its machine. Keys come first: what their loops
 * are is for all forms. */

#define FLOATS   1
#define SUMS     2
#define INTEGERS 3
#define KEYS     4

#define JOIN_(a, b)     a##b
#define JOIN(a, b)      JOIN_(a, b)
#define NAME(verb)      JOIN(JOIN(verb, _), FORM)
#define AS_UINT_(b)     uint##b##_t
#define AS_UINT(b)      AS_UINT_(b)
#define AS_INT_(b)      int##b##_t
#define AS_INT(b)       AS_INT_(b)
#define SPLAT(x)        JOIN(vec_splat, BITS)(x)
#define MAX(a, b)       JOIN(vec_max, BITS)(a, b)
#define MIN(a, b)       JOIN(vec_min, BITS)(a, b)
#define GE(a, b)        JOIN(vec_ge, BITS)(a, b)
#define LOAD_SOME(p, m) JOIN(vec_load_some, BITS)(p, m)
#define LANES           (VEC_BYTES / (BITS / 8))
#define ONES            (UINT32_MAX >> (32 - BITS))
#define FETCH_AHEAD     (2048 / (BITS / 8))
#define FAR_BYTES       (1 << 17) /* of a row, that the nearest cache does not hold */

typedef AS_UINT(BITS) NAME(ulanes) __attribute__((vector_size(VEC_BYTES)));
typedef AS_INT(BITS) NAME(slanes) __attribute__((vector_size(VEC_BYTES)));

typedef struct NAME(map) {
    vec keep, flip, zero, low, top, shift, top_bit;
} NAME(map);

INLINE NAME(map) NAME(map_of)(const sti_topk_view *v)
{
    const sti_topk_map *m = &v->map;
    return (NAME(map)){SPLAT(m->keep),         SPLAT(m->flip), SPLAT(m->zero),
                       SPLAT(m->low),          SPLAT(m->top),  SPLAT(m->shift),
                       SPLAT(1U << (BITS - 1))};
}

/* Half a page ahead: the processor's own prefetching stops at the end of each page, and
 * the few operations on a key keep it from running far enough ahead by itself. */
INLINE void NAME(fetch)(const sti_topk_view *v, int64_t i)
{
    const size_t at = (size_t)(i + FETCH_AHEAD) * (BITS / 8);
    __builtin_prefetch((const void *)((uintptr_t)v->x + at));
#if KIND == SUMS
    __builtin_prefetch((const void *)((uintptr_t)v->addend + at));
#endif
}

INLINE vec NAME(raw)(const sti_topk_view *v, int64_t i)
{
#if KIND == SUMS
    return vec_add_floats(vec_load(v->x + i * 4), vec_load(v->addend + i * 4));
#else
    return vec_load(v->x + i * (BITS / 8));
#endif
}

/* Neither equal zeros nor NaN last, the usual case, saves three operations of nine. */
static inline bool NAME(is_plain)(const sti_topk_view *v)
{
    return v->map.zero == 0 && v->map.shift == 0;
}

/* The key but for the minimum that makes all NaN one; in the plain case that may come
 * after a maximum instead of before it. */
INLINE vec NAME(order)(vec raw, const NAME(map) * m, bool plain)
{
#if KIND == FLOATS || KIND == SUMS
    typedef NAME(ulanes) u;
    const u b = ((u)raw & (u)m->keep) ^ (u)m->flip;
    const u sign = (u)((NAME(slanes))b >> (BITS - 1));
    const u order = (b ^ (sign | (u)m->top_bit)) - (u)m->low;
    return (vec)(plain ? order : order + (sign & (u)m->zero));
#elif KIND == INTEGERS
    typedef NAME(ulanes) u;
    const u sign = (u)raw >= (u)m->top_bit;
    const u turn = sign & (u)m->keep;
    (void)plain;
    return (vec)((((u)raw ^ turn) - turn) ^ (u)m->flip);
#else
    (void)m, (void)plain;
    return raw;
#endif
}

INLINE vec NAME(key)(vec raw, const NAME(map) * m, bool plain)
{
    const vec order = NAME(order)(raw, m, plain);
#if KIND == FLOATS || KIND == SUMS
    typedef NAME(ulanes) u;
    const vec key = MIN(order, m->top);
    return plain ? key : (vec)((u)key + (u)m->shift);
#else
    return order;
#endif
}

INLINE vec NAME(load)(const sti_topk_view *v, int64_t i, const NAME(map) * m,
                      bool plain)
{
    return NAME(key)(NAME(raw)(v, i), m, plain);
}

INLINE vec NAME(load_order)(const sti_topk_view *v, int64_t i, const NAME(map) * m,
                            bool plain)
{
    const vec raw = NAME(raw)(v, i);
    NAME(fetch)(v, i);
    return plain ? NAME(order)(raw, m, true) : NAME(key)(raw, m, false);
}

#include "kernel/topk/topk_body_delegates.h"

/* One branch for four vectors: winners are rare. Where there are some, packing them
 * without looking costs less than guessing which vectors hold them. */
INLINE int64_t NAME(collect_above)(const sti_topk_view *v, int64_t begin, int64_t end,
                                   uint32_t lo, uint64_t *out, bool plain)
{
    const NAME(map) m = NAME(map_of)(v);
    const vec bound = SPLAT(lo);
    const bool stream = end - begin >= STI_TOPK_LOOK; /* of a row, not of a block */
    int64_t i = begin, count = 0, none = 0;
    for (; i + 4 * LANES <= end; i += 4 * LANES) {
        vec key[4];
        for (int j = 0; j < 4; j++) {
            if (stream)
                NAME(fetch)(v, i + j * LANES);
            key[j] = NAME(load)(v, i + j * LANES, &m, plain);
        }
        if (!GE(MAX(MAX(key[0], key[1]), MAX(key[2], key[3])), bound))
            continue;
        for (int j = 0; j < 4; j++)
            count += JOIN(pack, BITS)(key[j], GE(key[j], bound),
                                      (uint32_t)(i + j * LANES), out + count);
    }
    for (; i + LANES <= end; i += LANES) {
        const vec key = NAME(load)(v, i, &m, plain);
        count += JOIN(pack, BITS)(key, GE(key, bound), (uint32_t)i, out + count);
    }
    return count + topk_collect(v, i, end, lo, ONES, out + count, &none);
}

/* No branch on hits: between bounds of a sample they are too many to be guessed. */
INLINE int64_t NAME(collect_between)(const sti_topk_view *v, int64_t begin, int64_t end,
                                     uint32_t lo, uint32_t hi, uint64_t *out,
                                     int64_t *above, bool plain)
{
    const NAME(map) m = NAME(map_of)(v);
    const vec bound = SPLAT(lo), roof = SPLAT(hi + 1);
    int64_t i = begin, count = 0, over = 0;
    for (; i + LANES <= end; i += LANES) {
        const vec key = NAME(load)(v, i, &m, plain);
        NAME(fetch)(v, i);
        const uint64_t high = GE(key, roof), mask = GE(key, bound) & ~high;
        over += __builtin_popcountll(high);
        count += JOIN(pack, BITS)(key, mask, (uint32_t)i, out + count);
    }
    *above += over;
    return count + topk_collect(v, i, end, lo, hi, out + count, above);
}

static int64_t NAME(collect)(const sti_topk_view *v, int64_t begin, int64_t end,
                             uint32_t lo, uint32_t hi, uint64_t *out, int64_t *above)
{
    const bool plain = NAME(is_plain)(v);
    int64_t count = 0;
    if (lo > ONES)
        return 0;
    if (hi >= ONES)
        count = plain ? NAME(collect_above)(v, begin, end, lo, out, true)
                      : NAME(collect_above)(v, begin, end, lo, out, false);
    else
        count = plain ? NAME(collect_between)(v, begin, end, lo, hi, out, above, true)
                      : NAME(collect_between)(v, begin, end, lo, hi, out, above, false);
    vec_leave();
    return count;
}

INLINE int64_t NAME(rare_as)(const sti_topk_view *v, int64_t begin, int64_t end,
                             uint32_t lo, uint64_t *out, bool plain)
{
    const NAME(map) m = NAME(map_of)(v);
    const vec bound = SPLAT(lo);
    AS_UINT(BITS) key[64];
    int64_t i = begin, count = 0;
    for (; i + 64 <= end; i += 64) {
        uint64_t mask = 0;
        for (int j = 0; j < 64; j += LANES) {
            const vec keys = NAME(load)(v, i + j, &m, plain);
            vec_store(key + j, keys);
            mask |= GE(keys, bound) << j;
        }
        for (int j = 0; j < 2 || mask; j++) {
            const int at = __builtin_ctzll(mask | UINT64_C(1) << 63);
            out[count] = sti_topk_pack(key[at], i + at);
            count += mask != 0;
            mask &= mask - (mask != 0);
        }
    }
    if (i < end)
        count += NAME(collect_above)(v, i, end, lo, out + count, plain);
    return count;
}

static int64_t NAME(rare)(const sti_topk_view *v, int64_t begin, int64_t end,
                          uint32_t lo, uint64_t *out)
{
    if (lo > ONES)
        return 0;
    const int64_t count = NAME(is_plain)(v)
                              ? NAME(rare_as)(v, begin, end, lo, out, true)
                              : NAME(rare_as)(v, begin, end, lo, out, false);
    vec_leave();
    return count;
}

static int64_t NAME(count)(const sti_topk_view *v, int64_t begin, int64_t end,
                           uint32_t lo, uint32_t hi, int64_t *above)
{
    if (lo > ONES)
        return 0;
    const NAME(map) m = NAME(map_of)(v);
    const bool roofless = hi >= ONES;
    const vec bound = SPLAT(lo), roof = SPLAT(hi + 1);
    int64_t i = begin, at_least = 0, over = 0;
    for (; i + LANES <= end; i += LANES) {
        const vec key = NAME(load)(v, i, &m, false);
        NAME(fetch)(v, i);
        at_least += __builtin_popcountll(GE(key, bound));
        if (!roofless)
            over += __builtin_popcountll(GE(key, roof));
    }
    *above += over;
    return at_least - over + topk_count(v, i, end, lo, hi, above);
}

INLINE int64_t NAME(keys_as)(const sti_topk_view *v, int64_t begin, int64_t end,
                             uint32_t lo, uint32_t hi, uint32_t *out, int64_t *above,
                             bool roofless, bool plain)
{
    const NAME(map) m = NAME(map_of)(v);
    const vec bound = SPLAT(lo), roof = SPLAT(hi + 1);
    int64_t i = begin, count = 0, over = 0;
    for (; i + LANES <= end; i += LANES) {
        const vec key = NAME(load)(v, i, &m, plain);
        NAME(fetch)(v, i);
        const uint64_t high = roofless ? 0 : GE(key, roof);
        over += __builtin_popcountll(high);
        count += JOIN(keep, BITS)(key, GE(key, bound) & ~high, out + count);
    }
    *above += over;
    return count + topk_keys(v, i, end, lo, hi, out + count, above);
}

static int64_t NAME(keys)(const sti_topk_view *v, int64_t begin, int64_t end,
                          uint32_t lo, uint32_t hi, uint32_t *out, int64_t *above)
{
    if (lo > ONES)
        return 0;
    if (!NAME(is_plain)(v))
        return hi >= ONES
                   ? NAME(keys_as)(v, begin, end, lo, hi, out, above, true, false)
                   : NAME(keys_as)(v, begin, end, lo, hi, out, above, false, false);
    return hi >= ONES ? NAME(keys_as)(v, begin, end, lo, hi, out, above, true, true)
                      : NAME(keys_as)(v, begin, end, lo, hi, out, above, false, true);
}

#if KIND == KEYS
#include "kernel/topk/topk_keys.h"
#endif

/* Elements that fill whole vectors of words and all lanes. */
#define GROUP (LANES > STI_TOPK_LANES ? LANES : STI_TOPK_LANES)
enum { NAME(PARTS) = STI_TOPK_LANES / WORDS };

INLINE int64_t NAME(short_row_as)(const sti_topk_view *v, sti_topk_short_row *b,
                                  bool plain)
{
    const NAME(map) m = NAME(map_of)(v);
    vec high[NAME(PARTS)], low[NAME(PARTS)];
    int64_t i = 0;
    for (int p = 0; p < NAME(PARTS); p++) {
        high[p] = vec_splat32(0);
        low[p] = ~high[p];
    }
    for (; i + GROUP <= v->n; i += GROUP) {
        vec word[GROUP / WORDS];
        for (int j = 0; j < GROUP / LANES; j++)
            JOIN(widen, BITS)
        (NAME(load)(v, i + j * LANES, &m, plain), word + j * (LANES / WORDS));
        for (int j = 0; j < GROUP / WORDS; j++) {
            const int p = j % NAME(PARTS);
            vec_store(b->keys + i + j * WORDS, word[j]);
            high[p] = vec_max32(high[p], word[j]);
            low[p] = vec_min32(low[p], word[j]);
        }
    }
    for (int p = 0; p < NAME(PARTS); p++) {
        vec_store(b->high + p * WORDS, high[p]);
        vec_store(b->low + p * WORDS, low[p]);
    }
    b->best = best_word(vec_max32(high[0], high[NAME(PARTS) - 1]));
    return i;
}

static void NAME(short_row)(const sti_topk_view *v, sti_topk_short_row *b)
{
    const int64_t done = NAME(is_plain)(v) ? NAME(short_row_as)(v, b, true)
                                           : NAME(short_row_as)(v, b, false);
    vec_leave();
    topk_short_row(v, done, b);
}

/* Emission from a row is for many winners: no branch on hits either. */
INLINE int64_t NAME(emit_as)(const sti_topk_view *v, int64_t begin, int64_t end,
                             uint32_t lo, int64_t base, int64_t *index_out,
                             unsigned char *value_out, bool plain)
{
    const NAME(map) m = NAME(map_of)(v);
    const vec bound = SPLAT(lo);
    int64_t i = begin, count = 0;
    for (; i + LANES <= end; i += LANES) {
        const vec raw = NAME(raw)(v, i);
        NAME(fetch)(v, i);
        const uint64_t mask = GE(NAME(key)(raw, &m, plain), bound);
        count += JOIN(emit, BITS)(raw, mask, base + i, index_out + count,
                                  value_out ? value_out + count * (BITS / 8) : NULL);
    }
    return count + topk_emit(v, i, end, lo, base, index_out + count,
                             value_out ? value_out + count * (BITS / 8) : NULL);
}

static int64_t NAME(emit)(const sti_topk_view *v, int64_t begin, int64_t end,
                          uint32_t lo, int64_t base, int64_t *index_out,
                          unsigned char *value_out)
{
    if (lo > ONES)
        return 0;
    const int64_t count =
        NAME(is_plain)(v)
            ? NAME(emit_as)(v, begin, end, lo, base, index_out, value_out, true)
            : NAME(emit_as)(v, begin, end, lo, base, index_out, value_out, false);
    vec_leave();
    return count;
}

/* The counters are scalar; keys are made a few vectors ahead of them. */
static void NAME(histogram)(const sti_topk_view *v, int64_t begin, int64_t end,
                            uint32_t lo, uint32_t hi, int shift, uint32_t *counts)
{
    const NAME(map) m = NAME(map_of)(v);
    AS_UINT(BITS) key[4 * LANES];
    int64_t i = begin;
    for (; i + 4 * LANES <= end; i += 4 * LANES) {
        for (int j = 0; j < 4; j++) {
            const vec keys = NAME(load)(v, i + j * LANES, &m, false);
            memcpy(key + j * LANES, &keys, sizeof keys);
        }
        for (int j = 0; j < 4 * LANES; j++)
            if (key[j] - lo <= hi - lo)
                counts[(key[j] - lo) >> shift]++;
    }
    topk_histogram(v, i, end, lo, hi, shift, counts);
}

#ifdef STI_KERNEL_TOPK_TINY_AVX512_H
static inline vec NAME(raw_some)(const sti_topk_view *v, int64_t i, uint64_t mask)
{
    const vec x = LOAD_SOME(v->x + i * (BITS / 8), mask);
#if KIND == SUMS
    return vec_add_floats(x, LOAD_SOME(v->addend + i * 4, mask));
#else
    return x;
#endif
}

/* Keys of the 64 elements at i, zero where there are none. */
INLINE void NAME(tiny_keys)(const sti_topk_view *v, int64_t i, const NAME(map) * m,
                            bool plain, uint64_t valid, vec key[TINY_VECS])
{
    for (int j = 0; j < STI_TOPK_TINY / LANES; j++) {
        const vec raw = NAME(raw_some)(v, i + j * LANES, valid >> (j * LANES));
        vec word[LANES / WORDS];
        JOIN(widen, BITS)(NAME(key)(raw, m, plain), word);
        for (int w = 0; w < LANES / WORDS; w++) {
            const int at = j * (LANES / WORDS) + w;
            key[at] =
                _mm512_maskz_mov_epi32((__mmask16)(valid >> (at * WORDS)), word[w]);
        }
    }
}

INLINE bool NAME(few_as)(const sti_topk_view *v, const sti_topk_short_row *b,
                         uint32_t refused, bool plain)
{
    const NAME(map) m = NAME(map_of)(v);
    const int64_t last = (v->n - 1) / STI_TOPK_TINY * STI_TOPK_TINY;
    const uint64_t valid = UINT64_MAX >> (last + STI_TOPK_TINY - v->n);
    vec key[TINY_VECS], best[TINY_VECS];
    if (last == 0) {
        NAME(tiny_keys)(v, 0, &m, plain, valid, key);
        return tiny_winners(b, key, valid, refused);
    }
    for (int j = 0; j < TINY_VECS; j++)
        best[j] = SPLAT(0);
    for (int64_t i = 0; i <= last; i += STI_TOPK_TINY) {
        NAME(tiny_keys)(v, i, &m, plain, i < last ? UINT64_MAX : valid, key);
        for (int j = 0; j < TINY_VECS; j++) {
            vec_store(b->keys + i + j * WORDS, key[j]);
            best[j] = vec_max32(best[j], key[j]);
        }
    }
    return few_winners(b, best, refused);
}

static bool NAME(few)(const sti_topk_view *v, const sti_topk_short_row *b,
                      uint32_t refused)
{
    const bool good = NAME(is_plain)(v) ? NAME(few_as)(v, b, refused, true)
                                        : NAME(few_as)(v, b, refused, false);
    vec_leave();
    return good;
}
#endif

static const sti_topk_ops NAME(ops) = {
#ifdef STI_KERNEL_TOPK_TINY_AVX512_H
    .few = NAME(few),
#endif
    .delegates = NAME(delegates),
    .delegates2 = NAME(delegates2),
    .collect = NAME(collect),
    .rare = NAME(rare),
    .count = NAME(count),
    .keys = NAME(keys),
    .short_row = NAME(short_row),
    .winners = short_row_winners,
#if KIND == KEYS
    .bisect = bisect_keys,
#endif
    .emit = NAME(emit),
    .histogram = NAME(histogram),
};

#undef FORM
#undef BITS
#undef KIND
#undef FLOATS
#undef SUMS
#undef INTEGERS
#undef KEYS
#undef JOIN_
#undef JOIN
#undef NAME
#undef AS_UINT_
#undef AS_UINT
#undef AS_INT_
#undef AS_INT
#undef SPLAT
#undef MAX
#undef MIN
#undef GE
#undef LOAD_SOME
#undef LANES
#undef ONES
#undef FETCH_AHEAD
#undef GROUP
#undef FAR_BYTES
