/* Top-k's loops, scalar: always built, the model of the others. */
#include "kernel/topk/topk_scalar.h"

static void ref_delegates(const sti_topk_view *v, int a, int64_t first, int64_t last,
                          uint32_t *d)
{
    for (int64_t s = first; s < last; s++)
        d[s - first] = topk_delegate(v, s << a, sti_topk_min((s + 1) << a, v->n));
}

static void ref_delegates2(const sti_topk_view *v, int a, int64_t first, int64_t last,
                           uint32_t *d, uint16_t *position,
                           sti_topk_early_candidates *early)
{
    if (early)
        early->blocks = 0;
    for (int64_t s = first; s < last; s++)
        topk_delegate2(v, s << a, sti_topk_min((s + 1) << a, v->n), d + 2 * (s - first),
                       position + (s - first));
}

static int64_t ref_collect(const sti_topk_view *v, int64_t begin, int64_t end,
                           uint32_t lo, uint32_t hi, uint64_t *out, int64_t *above)
{
    return topk_collect(v, begin, end, lo, hi, out, above);
}

static int64_t ref_rare(const sti_topk_view *v, int64_t begin, int64_t end, uint32_t lo,
                        uint64_t *out)
{
    int64_t none = 0;
    return topk_collect(v, begin, end, lo, UINT32_MAX, out, &none);
}

static int64_t ref_count(const sti_topk_view *v, int64_t begin, int64_t end,
                         uint32_t lo, uint32_t hi, int64_t *above)
{
    return topk_count(v, begin, end, lo, hi, above);
}

static int64_t ref_keys(const sti_topk_view *v, int64_t begin, int64_t end, uint32_t lo,
                        uint32_t hi, uint32_t *out, int64_t *above)
{
    return topk_keys(v, begin, end, lo, hi, out, above);
}

#define BISECT         ref_bisect
#define COUNT_AT_LEAST topk_at_least
#include "kernel/topk/topk_bisect.h"

static void ref_count_three(const uint32_t *keys, int64_t count, const uint32_t lo[3],
                            int64_t at_least[3])
{
    for (int j = 0; j < 3; j++)
        at_least[j] = topk_at_least(keys, count, lo[j]);
}

static int64_t ref_keep_range(const uint32_t *keys, int64_t count, uint32_t lo,
                              uint32_t hi, uint32_t *out, int64_t *at_least)
{
    int64_t kept = 0, from_lo = 0;
    for (int64_t i = 0; i < count; i++) {
        from_lo += keys[i] >= lo;
        if (keys[i] >= lo && keys[i] <= hi)
            out[kept++] = keys[i];
    }
    *at_least = from_lo;
    return kept;
}

static int64_t ref_next_below(const uint32_t *keys, int64_t count, uint32_t bound,
                              uint32_t *next)
{
    int64_t at_least = 0;
    *next = 0;
    for (int64_t i = 0; i < count; i++) {
        at_least += keys[i] >= bound;
        if (keys[i] < bound && keys[i] > *next)
            *next = keys[i];
    }
    return at_least;
}

static int64_t ref_find_equal(const uint32_t *keys, uint32_t wanted, int64_t rank)
{
    int64_t i = 0;
    while (keys[i] != wanted || --rank > 0)
        i++;
    return i;
}

static int64_t ref_emit_range(const sti_topk_short_row *b, int64_t begin, int64_t end,
                              uint32_t lo, int64_t at)
{
    return topk_emit_range(b, begin, end, lo, at);
}

#define NAME_OF(verb) ref_##verb
#define AT_LEAST      topk_at_least
#include "kernel/topk/topk_winners.h"

static void ref_short_row(const sti_topk_view *v, sti_topk_short_row *b)
{
    b->best = 0;
    memset(b->high, 0, sizeof b->high);
    memset(b->low, 0xFF, sizeof b->low);
    topk_short_row(v, 0, b);
}

static int64_t ref_emit(const sti_topk_view *v, int64_t begin, int64_t end, uint32_t lo,
                        int64_t base, int64_t *index_out, unsigned char *value_out)
{
    return topk_emit(v, begin, end, lo, base, index_out, value_out);
}

static void ref_histogram(const sti_topk_view *v, int64_t begin, int64_t end,
                          uint32_t lo, uint32_t hi, int shift, uint32_t *counts)
{
    topk_histogram(v, begin, end, lo, hi, shift, counts);
}

static const sti_topk_ops ops = {
    .delegates = ref_delegates,
    .delegates2 = ref_delegates2,
    .collect = ref_collect,
    .rare = ref_rare,
    .count = ref_count,
    .keys = ref_keys,
    .bisect = ref_bisect,
    .emit = ref_emit,
    .short_row = ref_short_row,
    .winners = ref_winners,
    .histogram = ref_histogram,
};

const sti_topk_ops *const sti_topk_ref[STI_TOPK_FORMS] = {&ops, &ops, &ops, &ops,
                                                          &ops, &ops, &ops};
