/* Top-k's loops, scalar: always built, the model of the others. */
#include "kernel/topk_scalar.h"

static void ref_delegates(const sti_topk_view *v, int a, int64_t first, int64_t last,
                          uint32_t *d)
{
    for (int64_t s = first; s < last; s++)
        d[s - first] = topk_delegate(v, s << a, sti_topk_min((s + 1) << a, v->n));
}

static void ref_delegates2(const sti_topk_view *v, int a, int64_t first, int64_t last,
                           uint32_t *d, uint32_t *position)
{
    for (int64_t s = first; s < last; s++)
        topk_delegate2(v, s << a, sti_topk_min((s + 1) << a, v->n), d + 2 * (s - first),
                       position + (s - first));
}

static int64_t ref_collect(const sti_topk_view *v, int64_t begin, int64_t end,
                           uint32_t lo, uint32_t hi, uint64_t *out, int64_t *above)
{
    return topk_collect(v, begin, end, lo, hi, out, above);
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
#include "kernel/topk_bisect.h"

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
    .count = ref_count,
    .keys = ref_keys,
    .bisect = ref_bisect,
    .emit = ref_emit,
    .histogram = ref_histogram,
};

const sti_topk_ops *const sti_topk_ref[STI_TOPK_FORMS] = {&ops, &ops, &ops, &ops,
                                                          &ops, &ops, &ops};
