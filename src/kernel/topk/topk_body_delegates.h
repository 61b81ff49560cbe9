/* The part of topk_body.h, which includes it, that makes the delegates of blocks: the
 * best of each, or the two best, and what is caught on the way. */

/* Best lanes of 2^a elements at i, a power of two of whole vectors. */
INLINE vec NAME(best_lanes)(const sti_topk_view *v, int64_t i, int a,
                            const NAME(map) * m, bool plain)
{
    const int64_t end = i + ((int64_t)1 << a);
    vec best = NAME(load_order)(v, i, m, plain), other = best;
    i += LANES;
    if (i < end) {
        other = NAME(load_order)(v, i, m, plain);
        i += LANES;
    }
    if (i < end) {
        best = MAX(best, NAME(load_order)(v, i, m, plain));
        other = MAX(other, NAME(load_order)(v, i + LANES, m, plain));
        i += 2 * LANES;
    }
    for (; i < end; i += 4 * LANES) {
        best = MAX(best, NAME(load_order)(v, i, m, plain));
        other = MAX(other, NAME(load_order)(v, i + LANES, m, plain));
        best = MAX(best, NAME(load_order)(v, i + 2 * LANES, m, plain));
        other = MAX(other, NAME(load_order)(v, i + 3 * LANES, m, plain));
    }
    best = MAX(best, other);
#if KIND == FLOATS || KIND == SUMS
    return plain ? MIN(best, m->top) : best;
#else
    return best;
#endif
}

/* Whole blocks [first, whole). */
INLINE void NAME(delegates_as)(const sti_topk_view *v, int a, int64_t first,
                               int64_t whole, uint32_t *d, bool plain)
{
    const NAME(map) m = NAME(map_of)(v);
    int64_t s = first;
    for (; s + WORDS <= whole; s += WORDS) {
        vec best[WORDS];
        for (int64_t w = 0; w < WORDS; w++)
            best[w] = JOIN(fold, BITS)(NAME(best_lanes)(v, (s + w) << a, a, &m, plain));
        store_best_words(best, d + (s - first));
    }
    for (; s < whole; s++)
        d[s - first] =
            best_word(JOIN(fold, BITS)(NAME(best_lanes)(v, s << a, a, &m, plain)));
}

/* Best lanes of the blocks of 2^a elements at i, i + gap, ...: what memory gives one
 * reader of one page after the other is less than what it has, so four places are read
 * at once. */
INLINE void NAME(best_of_streams)(const sti_topk_view *v, int64_t i, int64_t gap, int a,
                                  const NAME(map) * m, bool plain, vec best[STREAMS])
{
    const int64_t end = i + ((int64_t)1 << a);
    for (int j = 0; j < STREAMS; j++)
        best[j] = SPLAT(0);
    for (; i < end; i += LANES)
        for (int j = 0; j < STREAMS; j++)
            best[j] = MAX(best[j], NAME(load_order)(v, i + j * gap, m, plain));
#if KIND == FLOATS || KIND == SUMS
    for (int j = 0; plain && j < STREAMS; j++)
        best[j] = MIN(best[j], m->top);
#endif
}

/* Blocks of STREAMS equal shares, the first of which begins at block `first`. */
INLINE void NAME(delegates_far)(const sti_topk_view *v, int a, int64_t first,
                                int64_t share, uint32_t *d, bool plain)
{
    const NAME(map) m = NAME(map_of)(v);
    const int64_t gap = share << a;
    vec best[STREAMS][WORDS], lanes[STREAMS];
    int64_t s = 0;
    for (; s + WORDS <= share; s += WORDS) {
        for (int64_t w = 0; w < WORDS; w++) {
            NAME(best_of_streams)(v, (first + s + w) << a, gap, a, &m, plain, lanes);
            for (int j = 0; j < STREAMS; j++)
                best[j][w] = JOIN(fold, BITS)(lanes[j]);
        }
        for (int j = 0; j < STREAMS; j++)
            store_best_words(best[j], d + s + j * share);
    }
    for (; s < share; s++) {
        NAME(best_of_streams)(v, (first + s) << a, gap, a, &m, plain, lanes);
        for (int j = 0; j < STREAMS; j++)
            d[s + j * share] = best_word(JOIN(fold, BITS)(lanes[j]));
    }
}

static void NAME(delegates)(const sti_topk_view *v, int a, int64_t first, int64_t last,
                            uint32_t *d)
{
    int64_t s = first;
    if (((int64_t)1 << a) >= LANES) {
        const int64_t whole = sti_topk_max(first, sti_topk_min(last, v->n >> a));
        const bool plain = NAME(is_plain)(v);
        if (v->n * (BITS / 8) > FAR_BYTES) {
            const int64_t share = (whole - first) / STREAMS;
            if (plain)
                NAME(delegates_far)(v, a, first, share, d, true);
            else
                NAME(delegates_far)(v, a, first, share, d, false);
            s += STREAMS * share;
        }
        if (plain)
            NAME(delegates_as)(v, a, s, whole, d + (s - first), true);
        else
            NAME(delegates_as)(v, a, s, whole, d + (s - first), false);
        s = whole;
    }
    for (; s < last; s++)
        d[s - first] = topk_delegate(v, s << a, sti_topk_min((s + 1) << a, v->n));
}

#if BITS == 32
INLINE void NAME(delegates2_as)(const sti_topk_view *v, int a, int64_t first,
                                int64_t whole, uint32_t *d, uint16_t *position,
                                bool plain)
{
    const NAME(map) m = NAME(map_of)(v);
    const int64_t steps = ((int64_t)1 << a) / LANES;
    for (int64_t s = first; s < whole; s++) {
        const int64_t at = s << a;
        best_two b = {NAME(load)(v, at, &m, plain), SPLAT(0), SPLAT(0)};
        NAME(fetch)(v, at);
        for (int64_t step = 1; step < steps; step++) {
            NAME(fetch)(v, at + step * LANES);
            best_two_add(&b, NAME(load)(v, at + step * LANES, &m, plain),
                         (uint32_t)step);
        }
        best_two_store(&b, d + 2 * (s - first), position + (s - first));
    }
}
#endif

#if BITS == 32
/* As order in the plain case, where x itself is ranked. */
INLINE vec NAME(order_of_max)(vec raw, const NAME(map) * m)
{
#if KIND == FLOATS || KIND == SUMS
    typedef NAME(ulanes) u;
    const u sign = (u)((NAME(slanes))raw >> (BITS - 1));
    return (vec)(((u)raw ^ (sign | (u)m->top_bit)) - (u)m->low);
#elif KIND == INTEGERS
    return raw ^ m->top_bit;
#else
    (void)m;
    return raw;
#endif
}

static inline bool NAME(is_max)(const sti_topk_view *v)
{
#if KIND == INTEGERS
    return v->map.keep == 0 && v->map.flip == 1U << (BITS - 1);
#else
    return NAME(is_plain)(v) && v->map.keep == ONES && v->map.flip == 0;
#endif
}

static int64_t NAME(rare)(const sti_topk_view *v, int64_t begin, int64_t end,
                          uint32_t lo, uint64_t *out);

/* What is caught of `count` blocks from `block` on, at most 16: the best of each, or
 * all that the block has where the second is caught too. -1: it may be more than there
 * is room for. */
static int64_t NAME(catch_blocks)(const sti_topk_view *v, int a, int64_t block,
                                  int64_t count, const uint32_t *d,
                                  const uint16_t *position, uint32_t bound,
                                  uint64_t *out, int64_t room)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t begin = (block + i) << a, end = (block + i + 1) << a;
        if (d[2 * i + 1] < bound) {
            out[found] = sti_topk_pack(d[2 * i], begin + position[i]);
            found += d[2 * i] >= bound;
            continue;
        }
        if (found + (end - begin) > room)
            return -1;
        found += NAME(rare)(v, begin, end, bound, out + found);
    }
    return found;
}

/* Rows [begin, begin + 16) of the four shares, or what there is of them. False where
 * there is too little room for them and for all rows that come. */
static bool NAME(catch_rows)(sti_topk_early_candidates *early, const sti_topk_view *v,
                             int a, int64_t first, int64_t share, int64_t begin,
                             const uint32_t *d, const uint16_t *position)
{
    const int64_t rows = sti_topk_min(16, share - begin);
    for (int j = 0; j < STREAMS; j++) {
        const int64_t at = begin + j * share, left = share - begin;
        uint64_t *out = early->list[j] + early->count[j];
        uint32_t seconds = 0;
        int64_t found = 0;
        if (rows == 16)
            found = catch_best(d + 2 * at, position + at, (uint32_t)((first + at) << a),
                               a, early->bound, out, &seconds);
        if (seconds || rows < 16)
            found = NAME(catch_blocks)(v, a, first + at, rows, d + 2 * at,
                                       position + at, early->bound, out,
                                       STI_TOPK_EARLY - early->count[j] - left);
        if (found < 0)
            return false;
        early->count[j] += found;
    }
    return true;
}

/* As delegates_far; `share` blocks of each of STREAMS shares. Without the minimum that
 * makes all NaN one, blocks with a NaN are done again. */
INLINE void NAME(delegates2_far)(const sti_topk_view *v, int a, int64_t first,
                                 int64_t share, uint32_t *d, uint16_t *position,
                                 bool plain, bool max, sti_topk_early_candidates *early)
{
    const NAME(map) m = NAME(map_of)(v);
    const int64_t steps = ((int64_t)1 << a) / LANES, gap = share << a;
    _Static_assert(STREAMS == 4 && (int)STREAMS == (int)STI_TOPK_STREAMS,
                   "best_two_store_four");
    if (share > STI_TOPK_EARLY)
        early = NULL;
    for (int64_t s = 0; s < share; s++) {
        best_two b[STREAMS];
        for (int j = 0; j < STREAMS; j++)
            b[j] = (best_two){SPLAT(0), SPLAT(0), SPLAT(0)};
        for (int64_t step = 0; step < steps; step++)
            for (int j = 0; j < STREAMS; j++) {
                const int64_t i = ((first + s) << a) + j * gap + step * LANES;
                const vec raw = NAME(raw)(v, i);
                NAME(fetch)(v, i);
                best_two_add(&b[j],
                             max     ? NAME(order_of_max)(raw, &m)
                             : plain ? NAME(order)(raw, &m, true)
                                     : NAME(key)(raw, &m, false),
                             (uint32_t)step);
            }
        uint32_t two[2 * STREAMS];
        uint16_t place[STREAMS];
        best_two_store_four(b, two, place);
        for (int j = 0; j < STREAMS; j++) {
            const int64_t at = s + j * share, begin = (first + at) << a;
            memcpy(d + 2 * at, two + 2 * j, 2 * sizeof *d);
            position[at] = place[j];
            if (KIND != INTEGERS && KIND != KEYS && plain && two[2 * j] >= v->map.top)
                topk_delegate2(v, begin, begin + (INT64_C(1) << a), d + 2 * at,
                               position + at);
        }
        /* Rows whose keys have long been stored: a load would wait for them. */
        if (early && s % 16 == 7 && s > 16 &&
            !NAME(catch_rows)(early, v, a, first, share, s - 23, d, position))
            early = NULL;
    }
    for (int64_t s = sti_topk_max(0, (share - 8) / 16 * 16); early && s < share;
         s += 16)
        if (!NAME(catch_rows)(early, v, a, first, share, s, d, position))
            early = NULL;
    if (early)
        early->blocks = STREAMS * share;
}
#endif

static void NAME(delegates2)(const sti_topk_view *v, int a, int64_t first, int64_t last,
                             uint32_t *d, uint16_t *position,
                             sti_topk_early_candidates *early)
{
    int64_t s = first;
    for (int j = 0; early && j < STREAMS; j++)
        early->count[j] = early->blocks = 0;
#if BITS == 32
    if (((int64_t)1 << a) >= LANES) {
        const int64_t whole = sti_topk_max(first, sti_topk_min(last, v->n >> a));
        const bool plain = NAME(is_plain)(v);
        if (v->n * (BITS / 8) > FAR_BYTES) {
            const int64_t share = (whole - first) / STREAMS;
            if (NAME(is_max)(v))
                NAME(delegates2_far)
            (v, a, first, share, d, position, true, true, early);
            else if (plain) NAME(delegates2_far)(v, a, first, share, d, position, true,
                                                 false, early);
            else NAME(delegates2_far)(v, a, first, share, d, position, false, false,
                                      early);
            s += STREAMS * share;
        }
        uint32_t *rest = d + 2 * (s - first);
        uint16_t *where = position + (s - first);
        if (plain)
            NAME(delegates2_as)(v, a, s, whole, rest, where, true);
        else
            NAME(delegates2_as)(v, a, s, whole, rest, where, false);
        s = whole;
    }
#endif
    for (; s < last; s++)
        topk_delegate2(v, s << a, sti_topk_min((s + 1) << a, v->n), d + 2 * (s - first),
                       position + (s - first));
}
