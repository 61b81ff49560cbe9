/* Short rows, where a call itself counts: keys are made once, in one pass that also
 * finds the best, the least and any NaN; winners are found among the keys
 * (topk_winners.h). No plan, and a layout of a few additions. */
#include "kernel/topk/topk_key.h"

/* Whether elements can be given as they lie in memory. */
static bool are_words(const sti_topk_view *v)
{
    return v->form == STI_TOPK_F32 || v->form == STI_TOPK_I32;
}

static bool find_winners(const sti_topk_view *view, sti_topk_short_row *b)
{
    const sti_topk_ops *ops = sti_topk_ops_now(view->form);
    if (ops->few && (b->n <= STI_TOPK_TINY || b->k <= STI_TOPK_FEW))
        return ops->few(view, b, b->refuse_nan ? view->map.top : 0);
    ops->short_row(view, b);
    const bool good = !b->refuse_nan || b->best != view->map.top;
    if (!good) {
        b->k = 1; /* NaN ranks first: the best one is the first NaN */
        b->packed = NULL;
    }
    ops->winners(b);
    return good;
}

/* b->packed, best first. */
static void give_sorted(const sti_topk_short_row *b)
{
    uint64_t *other = b->packed + sti_topk_winners_bytes(b->k) / sizeof *other;
    uint32_t *counts =
        (uint32_t *)(void *)(other + sti_topk_winners_bytes(b->k) / sizeof *other);
    const uint64_t *best = sti_topk_sort(b->packed, other, b->k, counts);
    for (int64_t i = 0; i < b->k; i++)
        b->index[i] = b->base + sti_topk_packed_index(best[i]);
}

bool sti_topk_short_row_select(const sti_topk_view *view, sti_topk_short_row *b)
{
    const size_t bytes = sti_topk_keys_bytes(b->n);
    b->keys = (uint32_t *)(void *)b->memory;
    b->spare = (uint32_t *)(void *)(b->memory + bytes);
    b->packed = b->sorted ? (uint64_t *)(void *)(b->memory + 2 * bytes) : NULL;
    b->raw = view->x;
    b->values = are_words(view) ? b->given : NULL;
    if (!find_winners(view, b))
        return false;
    if (b->sorted)
        give_sorted(b);
    if (b->given && (b->sorted || !b->values))
        sti_topk_put_values(view, b->base, b->index, b->k, b->given);
    return true;
}

/* As a part of another method; the scratch is that of narrowing. */
void sti_topk_by_short_row(const sti_topk_job *job)
{
    const sti_topk_sink *sink = job->sink;
    sti_topk_short_row b; /* what short_row makes need not be cleared */
    b.n = job->view->n;
    b.k = job->plan->k;
    b.base = sink->base;
    b.index = sink->index;
    b.raw = job->view->x;
    b.values = are_words(job->view) ? sink->values : NULL;
    b.packed = sink->packed;
    b.keys = job->scratch->keys;
    b.spare = job->scratch->keys + sti_topk_key_room(job->plan);
    job->ops->short_row(job->view, &b);
    job->ops->winners(&b);
    if (!sink->packed && sink->values && !b.values)
        sti_topk_put_values(job->view, sink->base, sink->index, b.k, sink->values);
}
