/* Narrowing: a few keys, taken all over the list, bound the k-th from both sides; one
 * pass keeps the keys between the bounds, bare, and the same is done to those; among
 * the last few a threshold is bisected. What a sample gets wrong is seen by counting,
 * and the pass is made again on the side where the k-th is; where equal keys keep a
 * list from getting shorter, it is bisected as it is. A last pass over the row emits.
 * Rows whose keys the nearer caches hold are left to topk_short_row.c. */
#include <math.h>
#include <string.h>

#include "kernel/topk/topk_key.h"

enum {
    FEW = 256, /* are bisected at once */
    SAMPLE_LEAST = 64,
    SAMPLE_MOST = 1024,
    SHARED_LEAST = 1 << 16 /* of a list that threads share */
};

typedef struct narrowing {
    const sti_team *team;
    const sti_topk_ops *ops; /* of the list */
    const sti_topk_ops *keys;
    sti_topk_view list;
    int64_t rank; /* of the threshold in the list */
} narrowing;

static int64_t sample_size(int64_t n)
{
    const double s = cbrt((double)n * (double)n / 64);
    return (int64_t)fmin(fmax(s, SAMPLE_LEAST), SAMPLE_MOST) & ~INT64_C(15);
}

/* One key of each of `size` equal shares, at a place in it that follows no period. */
static void take_sample(const sti_topk_view *v, uint32_t *sample, int64_t size)
{
    const int64_t share = v->n / size;
    for (int64_t j = 0; j < size; j++) {
        const uint32_t mixed = (uint32_t)j * UINT32_C(2654435761) >> 16;
        const int64_t at =
            j * share + (int64_t)((uint64_t)mixed * (uint64_t)share >> 16);
        sample[j] = sti_topk_key_at(v, at);
    }
}

typedef struct bounds {
    uint32_t lo, hi;
} bounds;

/* Two and a half standard deviations of the rank in the sample on either side. */
static bounds bound_threshold(const narrowing *w, uint32_t *sample)
{
    const int64_t size = sample_size(w->list.n);
    take_sample(&w->list, sample, size);
    const double q = (double)w->rank * (double)size / (double)w->list.n;
    const double spread = 2.5 * sqrt(q * (1 - q / (double)size)) + 1.5;
    const int64_t lower = (int64_t)ceil(q + spread), upper = (int64_t)(q - spread);
    bounds b = {0, UINT32_MAX};
    int64_t at_least;
    if (lower < size)
        b.lo = w->keys->bisect(sample, size, lower, &at_least);
    if (upper > 0)
        b.hi = w->keys->bisect(sample, size, upper, &at_least);
    return b;
}

/* A long list, or their number alone, by shares. */
typedef struct keeping {
    const narrowing *w;
    bounds b;
    uint32_t *out; /* NULL: count */
    int64_t kept[STI_TOPK_SHARES], above[STI_TOPK_SHARES];
} keeping;

static int64_t share_begin(const narrowing *w, int64_t share)
{
    return sti_topk_min(share * sti_topk_ceil(w->list.n, STI_TOPK_SHARES), w->list.n);
}

static int64_t keep_range(const keeping *p, int64_t begin, int64_t end, uint32_t *out,
                          int64_t *above)
{
    const narrowing *w = p->w;
    return out ? w->ops->keys(&w->list, begin, end, p->b.lo, p->b.hi, out, above)
               : w->ops->count(&w->list, begin, end, p->b.lo, p->b.hi, above);
}

static void keep_share(void *arg, int64_t share, int worker)
{
    keeping *p = arg;
    const int64_t begin = share_begin(p->w, share);
    int64_t above = 0;
    (void)worker;
    p->kept[share] =
        keep_range(p, begin, share_begin(p->w, share + 1),
                   p->out ? p->out + begin + share * STI_TOPK_SLACK : NULL, &above);
    p->above[share] = above;
}

static int64_t keep(const narrowing *w, bounds b, uint32_t *out, int64_t *above)
{
    keeping p = {w, b, b.lo == b.hi ? NULL : out, {0}, {0}};
    if (w->list.n < SHARED_LEAST)
        return keep_range(&p, 0, w->list.n, p.out, above);
    sti_team_take(w->team, STI_TOPK_SHARES, keep_share, &p);
    int64_t kept = 0;
    for (int64_t share = 0; share < STI_TOPK_SHARES; share++) {
        if (p.out && share > 0)
            memmove(out + kept, out + share_begin(w, share) + share * STI_TOPK_SLACK,
                    (size_t)p.kept[share] * sizeof *out);
        kept += p.kept[share];
        *above += p.above[share];
    }
    return kept;
}

/* Keys of the list between the bounds, which are moved to where the threshold is; only
 * their number where the bounds are equal. */
static int64_t keep_between(narrowing *w, bounds *b, uint32_t *out)
{
    for (;;) {
        int64_t above = 0;
        const int64_t kept = keep(w, *b, out, &above);
        if (above >= w->rank) {
            *b = (bounds){b->hi + 1, UINT32_MAX};
        } else if (above + kept < w->rank) {
            *b = (bounds){0, b->lo - 1};
        } else {
            w->rank -= above;
            return kept;
        }
    }
}

bool sti_topk_narrows(const sti_topk_plan *p)
{
    return p->method == STINT_TOPK_NARROW && p->n > STI_TOPK_SHORT_ROW_MOST;
}

uint32_t sti_topk_narrow(const sti_topk_job *job, int64_t *ties_out)
{
    const sti_topk_scratch *scratch = job->scratch;
    uint32_t *free_list = scratch->keys,
             *spare = scratch->keys + sti_topk_key_room(job->plan);
    narrowing w = {.team = job->team,
                   .ops = job->ops,
                   .keys = sti_topk_ops_now(STI_TOPK_KEYS),
                   .list = *job->view,
                   .rank = job->plan->k};
    bool shorter = true;
    *ties_out = 0;
    do {
        bounds b = {0, UINT32_MAX};
        if (w.list.n > FEW)
            b = bound_threshold(&w, scratch->sample);
        const int64_t before = w.list.n, kept = keep_between(&w, &b, free_list);
        if (b.lo == b.hi) {
            *ties_out = w.rank < kept ? w.rank : 0;
            return b.lo;
        }
        w.list = (sti_topk_view){
            .form = STI_TOPK_KEYS, .x = (const unsigned char *)free_list, .n = kept};
        w.ops = w.keys;
        shorter = kept < before - before / 4;
        uint32_t *swap = free_list;
        free_list = spare;
        spare = swap;
    } while (w.list.n > FEW && shorter);
    int64_t at_least = 0, more = 0;
    const uint32_t *list = (const uint32_t *)(const void *)w.list.x;
    const uint32_t key = w.keys->bisect(list, w.list.n, w.rank, &at_least);
    if (at_least > w.rank) {
        const int64_t equal = w.keys->count(&w.list, 0, w.list.n, key, key, &more);
        *ties_out = w.rank - (at_least - equal);
    }
    return key;
}

void sti_topk_by_narrowing(const sti_topk_job *job)
{
    int64_t ties;
    if (!sti_topk_narrows(job->plan)) {
        sti_topk_by_short_row(job);
        return;
    }
    const uint32_t key = sti_topk_narrow(job, &ties);
    sti_topk_emit_row(job, key, ties);
}
