/* Short rows, where a call itself counts: keys are made once, in one pass that also
 * finds the best, the least and any NaN; winners are found among the keys
 * (topk_winners.h). No plan, and a layout of a few additions. */
#include "kernel/topk_key.h"

#include "base/team.h"

int64_t sti_topk_brief_words(int64_t n)
{
    return (n + STI_TOPK_LANES + STI_TOPK_SLACK) & ~INT64_C(15);
}

static size_t list_bytes(int64_t k)
{
    return ((size_t)k * sizeof(uint64_t) + 63) & ~(size_t)63;
}

static size_t keys_bytes(int64_t n)
{
    return ((size_t)sti_topk_brief_words(n) * sizeof(uint32_t) + 63) & ~(size_t)63;
}

size_t sti_topk_brief_bytes(int64_t n, int64_t k, bool sorted)
{
    const size_t sort = 2 * list_bytes(k) + STI_TOPK_BINS * sizeof(uint32_t);
    return 2 * keys_bytes(n) + (sorted ? sort : 0);
}

/* Whether elements can be given as they lie in memory. */
static bool are_words(const sti_topk_view *v)
{
    return v->form == STI_TOPK_F32 || v->form == STI_TOPK_I32;
}

/* Not all of it: what brief makes need not be cleared. */
static void brief_init(sti_topk_brief *b, const sti_topk_view *view, int64_t k,
                       const sti_topk_sink *sink)
{
    b->n = view->n;
    b->k = k;
    b->base = sink->base;
    b->index = sink->index;
    b->raw = view->x;
    b->values = are_words(view) ? sink->values : NULL;
    b->packed = sink->packed;
}

bool sti_topk_brief_row(const sti_topk_brief_call *call, const sti_topk_view *view,
                        const sti_topk_sink *sink)
{
    const size_t bytes = keys_bytes(view->n), sort_bytes = list_bytes(call->k);
    unsigned char *memory = call->memory;
    const sti_topk_ops *ops = sti_topk_ops_now(view->form);
    sti_topk_brief b;
    brief_init(&b, view, call->k, sink);
    b.keys = (uint32_t *)(void *)memory;
    b.spare = (uint32_t *)(void *)(memory + bytes);
    memory += 2 * bytes;
    ops->brief(view, &b);
    if (call->refuse_nan && b.best == view->map.top) {
        b.k = 1; /* NaN ranks first: the best one is the first NaN */
        ops->winners(&b);
        return false;
    }
    if (call->sorted)
        b.packed = (uint64_t *)(void *)memory;
    ops->winners(&b);
    if (call->sorted) {
        uint64_t *other = (uint64_t *)(void *)(memory + sort_bytes);
        uint32_t *counts = (uint32_t *)(void *)(memory + 2 * sort_bytes);
        const uint64_t *best = sti_topk_sort(b.packed, other, b.k, counts);
        for (int64_t i = 0; i < b.k; i++)
            sink->index[i] = sink->base + sti_topk_packed_index(best[i]);
    }
    if (sink->values && (call->sorted || !b.values))
        sti_topk_put_values(view, sink->base, sink->index, b.k, sink->values);
    return true;
}

/* As a part of another method; the room is that of narrowing. */
void sti_topk_by_brief(const sti_topk_job *job)
{
    const sti_topk_sink *sink = job->sink;
    sti_topk_brief b;
    brief_init(&b, job->view, job->plan->k, sink);
    b.keys = job->room->keys;
    b.spare = job->room->keys + sti_topk_key_room(job->plan);
    job->ops->brief(job->view, &b);
    job->ops->winners(&b);
    if (!sink->packed && sink->values && !b.values)
        sti_topk_put_values(job->view, sink->base, sink->index, b.k, sink->values);
}
