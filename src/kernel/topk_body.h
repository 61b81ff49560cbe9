/* The vector loops of top-k for one form of elements. The including file defines
 *   FORM   f32, f16, ... (names)      BITS   32, 16 or 8
 *   KIND   FLOATS, SUMS, INTEGERS or KEYS (how bits become keys, see topk_key.h)
 * and has included the vector words of its machine. */

#define FLOATS   1
#define SUMS     2
#define INTEGERS 3
#define KEYS     4

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define NAME(verb)  JOIN(JOIN(verb, _), FORM)
#define AS_UINT_(b) uint##b##_t
#define AS_UINT(b)  AS_UINT_(b)
#define AS_INT_(b)  int##b##_t
#define AS_INT(b)   AS_INT_(b)
#define SPLAT(x)    JOIN(vec_splat, BITS)(x)
#define MAX(a, b)   JOIN(vec_max, BITS)(a, b)
#define GE(a, b)    JOIN(vec_ge, BITS)(a, b)
#define LANES       (VEC_BYTES / (BITS / 8))
#define ONES        (UINT32_MAX >> (32 - BITS))

typedef AS_UINT(BITS) NAME(ulanes) __attribute__((vector_size(VEC_BYTES)));
typedef AS_INT(BITS) NAME(slanes) __attribute__((vector_size(VEC_BYTES)));

typedef struct NAME(map) {
    vec keep, flip, zero, low, top, shift, top_bit;
} NAME(map);

static inline NAME(map) NAME(map_of)(const sti_topk_view *v)
{
    const sti_topk_map *m = &v->map;
    return (NAME(map)){SPLAT(m->keep),         SPLAT(m->flip), SPLAT(m->zero),
                       SPLAT(m->low),          SPLAT(m->top),  SPLAT(m->shift),
                       SPLAT(1U << (BITS - 1))};
}

static inline vec NAME(raw)(const sti_topk_view *v, int64_t i)
{
#if KIND == SUMS
    return vec_add_floats(vec_load(v->x + i * 4), vec_load(v->addend + i * 4));
#else
    return vec_load(v->x + i * (BITS / 8));
#endif
}

static inline vec NAME(key)(vec raw, const NAME(map) * m)
{
#if KIND == FLOATS || KIND == SUMS
    typedef NAME(ulanes) u;
    const u b = ((u)raw & (u)m->keep) ^ (u)m->flip;
    const u sign = (u)((NAME(slanes))b >> (BITS - 1));
    const u order = (b ^ (sign | (u)m->top_bit)) + (sign & (u)m->zero) - (u)m->low;
    return (vec)((u)JOIN(vec_min, BITS)((vec)order, m->top) + (u)m->shift);
#elif KIND == INTEGERS
    typedef NAME(ulanes) u;
    const u sign = (u)raw >= (u)m->top_bit;
    const u turn = sign & (u)m->keep;
    return (vec)((((u)raw ^ turn) - turn) ^ (u)m->flip);
#else
    (void)m;
    return raw;
#endif
}

static inline vec NAME(load)(const sti_topk_view *v, int64_t i, const NAME(map) * m)
{
    return NAME(key)(NAME(raw)(v, i), m);
}

/* Best lanes of 2^a elements at i, a power of two of whole vectors. */
static inline vec NAME(best_lanes)(const sti_topk_view *v, int64_t i, int a,
                                   const NAME(map) * m)
{
    const int64_t end = i + ((int64_t)1 << a);
    vec best = NAME(load)(v, i, m), other = best;
    i += LANES;
    if (i < end) {
        other = NAME(load)(v, i, m);
        i += LANES;
    }
    for (; i < end; i += 2 * LANES) {
        best = MAX(best, NAME(load)(v, i, m));
        other = MAX(other, NAME(load)(v, i + LANES, m));
    }
    return MAX(best, other);
}

static void NAME(delegates)(const sti_topk_view *v, int a, int64_t first, int64_t last,
                            uint32_t *d)
{
    const NAME(map) m = NAME(map_of)(v);
    const int64_t whole = sti_topk_min(last, v->n >> a);
    int64_t s = first;
    for (; ((int64_t)1 << a) >= LANES && s + WORDS <= whole; s += WORDS) {
        vec best[WORDS];
        for (int64_t w = 0; w < WORDS; w++)
            best[w] = JOIN(fold, BITS)(NAME(best_lanes)(v, (s + w) << a, a, &m));
        store_best_words(best, d + (s - first));
    }
    for (; ((int64_t)1 << a) >= LANES && s < whole; s++)
        d[s - first] = best_word(JOIN(fold, BITS)(NAME(best_lanes)(v, s << a, a, &m)));
    for (; s < last; s++)
        d[s - first] = topk_delegate(v, s << a, sti_topk_min((s + 1) << a, v->n));
}

static void NAME(delegates2)(const sti_topk_view *v, int a, int64_t first, int64_t last,
                             uint32_t *d, uint32_t *position)
{
    int64_t s = first;
#if BITS == 32
    const NAME(map) m = NAME(map_of)(v);
    const int64_t whole = sti_topk_min(last, v->n >> a);
    const uint32_t steps = (uint32_t)(((int64_t)1 << a) / LANES);
    for (; steps > 0 && s < whole; s++) {
        best_two b = {NAME(load)(v, s << a, &m), SPLAT(0), SPLAT(0)};
        for (uint32_t step = 1; step < steps; step++)
            best_two_add(&b, NAME(load)(v, (s << a) + (int64_t)step * LANES, &m), step);
        best_two_store(&b, d + 2 * (s - first), position + (s - first));
    }
#endif
    for (; s < last; s++)
        topk_delegate2(v, s << a, sti_topk_min((s + 1) << a, v->n), d + 2 * (s - first),
                       position + (s - first));
}

/* Four vectors between two branches: winners are rare. */
static int64_t NAME(collect_above)(const sti_topk_view *v, int64_t begin, int64_t end,
                                   uint32_t lo, uint64_t *out)
{
    const NAME(map) m = NAME(map_of)(v);
    const vec bound = SPLAT(lo);
    int64_t i = begin, count = 0;
    for (; i + 4 * LANES <= end; i += 4 * LANES) {
        vec key[4];
        uint64_t mask[4];
        for (int j = 0; j < 4; j++) {
            key[j] = NAME(load)(v, i + j * LANES, &m);
            mask[j] = GE(key[j], bound);
        }
        if ((mask[0] | mask[1] | mask[2] | mask[3]) == 0)
            continue;
        for (int j = 0; j < 4; j++)
            if (mask[j])
                count += JOIN(pack, BITS)(key[j], mask[j], (uint32_t)(i + j * LANES),
                                          out + count);
    }
    for (; i + LANES <= end; i += LANES) {
        const vec key = NAME(load)(v, i, &m);
        const uint64_t mask = GE(key, bound);
        if (mask)
            count += JOIN(pack, BITS)(key, mask, (uint32_t)i, out + count);
    }
    int64_t none = 0;
    return count + topk_collect(v, i, end, lo, ONES, out + count, &none);
}

static int64_t NAME(collect)(const sti_topk_view *v, int64_t begin, int64_t end,
                             uint32_t lo, uint32_t hi, uint64_t *out, int64_t *above)
{
    if (lo > ONES)
        return 0;
    if (hi >= ONES)
        return NAME(collect_above)(v, begin, end, lo, out);
    const NAME(map) m = NAME(map_of)(v);
    const vec bound = SPLAT(lo), roof = SPLAT(hi + 1);
    int64_t i = begin, count = 0, over = 0;
    for (; i + LANES <= end; i += LANES) {
        const vec key = NAME(load)(v, i, &m);
        const uint64_t high = GE(key, roof), mask = GE(key, bound) & ~high;
        over += __builtin_popcountll(high);
        if (mask)
            count += JOIN(pack, BITS)(key, mask, (uint32_t)i, out + count);
    }
    *above += over;
    return count + topk_collect(v, i, end, lo, hi, out + count, above);
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
        const vec key = NAME(load)(v, i, &m);
        at_least += __builtin_popcountll(GE(key, bound));
        if (!roofless)
            over += __builtin_popcountll(GE(key, roof));
    }
    *above += over;
    return at_least - over + topk_count(v, i, end, lo, hi, above);
}

static int64_t NAME(emit)(const sti_topk_view *v, int64_t begin, int64_t end,
                          uint32_t lo, int64_t base, int64_t *index_out,
                          unsigned char *value_out)
{
    if (lo > ONES)
        return 0;
    const NAME(map) m = NAME(map_of)(v);
    const vec bound = SPLAT(lo);
    int64_t i = begin, count = 0;
    for (; i + LANES <= end; i += LANES) {
        const vec raw = NAME(raw)(v, i);
        const uint64_t mask = GE(NAME(key)(raw, &m), bound);
        if (mask)
            count +=
                JOIN(emit, BITS)(raw, mask, base + i, index_out + count,
                                 value_out ? value_out + count * (BITS / 8) : NULL);
    }
    return count + topk_emit(v, i, end, lo, base, index_out + count,
                             value_out ? value_out + count * (BITS / 8) : NULL);
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
            const vec keys = NAME(load)(v, i + j * LANES, &m);
            memcpy(key + j * LANES, &keys, sizeof keys);
        }
        for (int j = 0; j < 4 * LANES; j++)
            if (key[j] - lo <= hi - lo)
                counts[(key[j] - lo) >> shift]++;
    }
    topk_histogram(v, i, end, lo, hi, shift, counts);
}

static const sti_topk_ops NAME(ops) = {
    .delegates = NAME(delegates),
    .delegates2 = NAME(delegates2),
    .collect = NAME(collect),
    .count = NAME(count),
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
#undef GE
#undef LANES
#undef ONES
