/* The winners of a short row, from its keys: the k-th key is bisected between the least
 * and the best, in a list that is kept short as the bounds close in. The including file
 * defines NAME_OF(verb), AT_LEAST(keys, count, key) and, by the names NAME_OF makes,
 *   count_three  AT_LEAST of three keys
 *   keep_range   keys with lo <= key <= hi, and how many there are from lo on; up to 16
 *                words more may be written
 *   next_below   the number of keys at or above one, and the best below it
 *   find_equal   index of the rank-th key (from 1) that is equal to one
 *   emit_range   the elements of [begin, end) with key >= lo, no more than k in all
 * Lists are whole numbers of STI_TOPK_LANES, with zeros behind their end. */

/* SORT_SAMPLE(keys), where it is defined, puts 64 keys in an order in which the
 * rank-th best is at SORTED_AT(rank); samples are then worth while sooner. */
#ifdef SORT_SAMPLE
#define SAMPLED_FROM 768
#else
#define SAMPLED_FROM 1536
#endif

/* A key with exactly k at or above it; or where equals forbid that, the k-th itself and
 * how many of its equals are winners. */
typedef struct NAME_OF(threshold) {
    uint32_t key;
    int64_t ties; /* 0: all */
} NAME_OF(threshold);

/* What is known of a list and its rank-th key, lo <= it <= hi. */
typedef struct NAME_OF(search) {
    const uint32_t *list;
    int64_t count, rank, here, above; /* elements from lo on, beyond hi */
    uint32_t lo, hi;
} NAME_OF(search);

static inline void NAME_OF(narrow)(NAME_OF(search) * s, uint32_t *spare)
{
    int64_t from_lo;
    s->count = NAME_OF(keep_range)(s->list, s->count, s->lo, s->hi, spare, &from_lo);
    s->above = from_lo - s->count;
    s->list = spare;
    s->rank -= s->above;
    s->here = s->count;
    s->above = 0;
    while (s->count % STI_TOPK_LANES != 0)
        spare[s->count++] = 0;
}

/* One step: `upper` elements are at or above the middle. No branch: it could not be
 * guessed. */
static inline void NAME_OF(halve)(NAME_OF(search) * s, int64_t upper)
{
    const uint32_t span = s->hi - s->lo, half = span / 2;
    const int64_t up = -(int64_t)(upper >= s->rank);
    s->lo += (half + 1) & (uint32_t)up;
    s->hi = s->lo + half - (((span & 1) ^ 1) & (uint32_t)up);
    s->here += (upper - s->here) & up;
    s->above += (upper - s->above) & ~up;
}

static inline uint32_t NAME_OF(middle)(uint32_t lo, uint32_t span)
{
    return lo + span / 2 + 1;
}

/* The best key that is not above hi, if that is the one: where values are few, halving
 * takes long to come upon it. */
static void NAME_OF(try_best)(NAME_OF(search) * s)
{
    uint32_t best;
    if (s->hi == UINT32_MAX || s->lo == s->hi)
        return;
    NAME_OF(next_below)(s->list, s->count, s->hi + 1, &best);
    if (best <= s->lo) { /* in a sample there may be none from lo to hi */
        s->hi = s->lo;
        return;
    }
    const int64_t here = AT_LEAST(s->list, s->count, best);
    if (here >= s->rank) {
        s->lo = s->hi = best;
        s->here = here;
    } else {
        s->hi = best - 1;
        s->above = here;
    }
}

/* Until the key is found, or a list that is not short has three times what is left. */
static inline void NAME_OF(close_in)(NAME_OF(search) * given)
{
    NAME_OF(search) s = *given;
    const int64_t enough = s.count < 128 ? -1 : s.count / 3;
    int steps = 0;
    while (s.lo < s.hi && s.here > s.rank && s.here - s.above > enough) {
        const uint32_t span = s.hi - s.lo, half = span / 2;
        if (++steps % 12 == 0) {
            NAME_OF(try_best)(&s);
        } else if (s.count > 128 || span < 3) {
            NAME_OF(halve)(&s, AT_LEAST(s.list, s.count, s.lo + half + 1));
        } else { /* two steps by one look */
            const uint32_t at[3] = {NAME_OF(middle)(s.lo, half), s.lo + half + 1,
                                    NAME_OF(middle)(s.lo + half + 1, span - half - 1)};
            int64_t upper[3];
            NAME_OF(count_three)(s.list, s.count, at, upper);
            const int64_t up = -(int64_t)(upper[1] >= s.rank);
            NAME_OF(halve)(&s, upper[1]);
            NAME_OF(halve)(&s, upper[0] + ((upper[2] - upper[0]) & up));
        }
    }
    *given = s;
}

static NAME_OF(threshold) NAME_OF(bisect_list)(NAME_OF(search) s, uint32_t *spare)
{
    for (;;) {
        NAME_OF(close_in)(&s);
        if (s.lo >= s.hi || s.here == s.rank)
            break;
        NAME_OF(narrow)(&s, spare);
    }
    return (NAME_OF(threshold)){s.lo, s.here == s.rank ? 0 : s.rank - s.above};
}

/* For few winners: from the best key to the next lower one until there are enough. */
static inline NAME_OF(threshold)
    NAME_OF(step_down)(const uint32_t *keys, int64_t count, int64_t rank, uint32_t best)
{
    int64_t above = 0;
    uint32_t key = best, next;
    for (;;) {
        const int64_t here = NAME_OF(next_below)(keys, count, key, &next);
        if (here >= rank)
            return (NAME_OF(threshold)){key, here == rank ? 0 : rank - above};
        above = here;
        key = next;
    }
}

/* A few keys bound the k-th, by two standard deviations and a half on either side;
 * false where they do not. */
static bool NAME_OF(bound_by_sample)(NAME_OF(search) * s, uint32_t *spare)
{
    const int64_t size = s->count <= STI_TOPK_SHORT ? 64 : s->count / 64 & ~INT64_C(15);
    const uint32_t share = (uint32_t)(s->count / size);
    const double q = (double)s->rank * (double)size / (double)s->count;
    const double spread = 2.5 * sqrt(q * (1 - q / (double)size)) + 1.5;
    const int64_t lower = (int64_t)(q + spread) + 1, upper = (int64_t)(q - spread);
    NAME_OF(search) sample = {spare, size, lower, size, 0, s->lo, s->hi};
    NAME_OF(search) found = *s;
    for (uint32_t j = 0; j < size; j++)
        spare[j] =
            s->list[share * j + ((j * UINT32_C(2654435761) >> 16) * share >> 16)];
#ifdef SORT_SAMPLE
    if (size == 64) {
        SORT_SAMPLE(spare);
        found.lo = lower < size ? spare[SORTED_AT(lower)] : found.lo;
        found.hi = upper > 0 ? spare[SORTED_AT(upper)] : found.hi;
    } else
#endif
    {
        if (lower < size)
            found.lo = NAME_OF(bisect_list)(sample, spare + size).key;
        sample.rank = upper;
        if (upper > 0)
            found.hi = NAME_OF(bisect_list)(sample, spare + size).key;
    }
    NAME_OF(narrow)(&found, spare);
    if (found.rank < 1 || found.rank > found.here)
        return false;
    *s = found;
    return true;
}

static NAME_OF(threshold) NAME_OF(find_threshold)(const sti_topk_short_row *b)
{
    const int64_t padded = sti_topk_ceil(b->n, STI_TOPK_LANES) * STI_TOPK_LANES;
    if (b->n <= 512 && b->k <= 6)
        return NAME_OF(step_down)(b->keys, padded, b->k, b->best);
    const int64_t shared = AT_LEAST(b->high, STI_TOPK_LANES, b->best);
    if (shared > 1 && AT_LEAST(b->keys, padded, b->best) >= b->k)
        return (NAME_OF(threshold)){b->best, b->k};
    /* Every lane has an element that is no less than the least of the lanes' best; how
     * many there are in all is not asked before the bound has been raised. */
    const bool lanes_do = b->k <= STI_TOPK_LANES && b->k < b->n;
    const uint32_t *floor = lanes_do ? b->high : b->low;
    NAME_OF(search) s = {b->keys, padded, b->k, b->n, 0, floor[0], b->best};
    for (int i = 1; i < STI_TOPK_LANES; i++)
        s.lo = floor[i] < s.lo ? floor[i] : s.lo;
    if (b->n > 512 && b->k <= 4) {
        /* The k-th of the lanes' best bounds the k-th of all, and hardly more than k
         * elements are above it. */
        s.lo = NAME_OF(step_down)(b->high, STI_TOPK_LANES, b->k, b->best).key;
        NAME_OF(narrow)(&s, b->spare);
        return NAME_OF(step_down)(s.list, s.count, b->k, b->best);
    }
    if (b->n >= SAMPLED_FROM)
        NAME_OF(bound_by_sample)(&s, b->spare);
    return NAME_OF(bisect_list)(s, b->spare);
}

static inline void NAME_OF(emit_threshold)(const sti_topk_short_row *b,
                                           NAME_OF(threshold) t)
{
    int64_t at = 0, last = b->n - 1;
    if (t.ties > 0)
        last = NAME_OF(find_equal)(b->keys, t.key, t.ties);
    if (b->k > 1)
        at = NAME_OF(emit_range)(b, 0, last + 1, t.key, 0);
    else
        at = topk_emit_range(b, last, last + 1, t.key, 0);
    if (at < b->k)
        NAME_OF(emit_range)(b, last + 1, b->n, t.key + 1, at);
}

static void NAME_OF(winners)(const sti_topk_short_row *b)
{
    NAME_OF(threshold) t = {b->best, 1};
    if (b->k > 1)
        t = NAME_OF(find_threshold)(b);
    NAME_OF(emit_threshold)(b, t);
}

#undef NAME_OF
#undef AT_LEAST
#undef SAMPLED_FROM
#undef SORT_SAMPLE
#undef SORTED_AT
