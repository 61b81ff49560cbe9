#include "embed/cache_flow.h"

#include <inttypes.h>

#include "base/fail.h"
#include "base/memory.h"

size_t sti_cache_flow_bytes(const sti_cache_desc *d)
{
    const size_t window =
        d->policy == STI_CACHE_FUTURE ? sti_cache_window_bytes(d->entries) : 0;
    return (size_t)d->slots * sti_cache_index_slot_bytes() + window +
           20 * (size_t)d->most;
}

stint_status sti_cache_flow_init(sti_cache_flow *flow, const sti_cache_desc *desc)
{
    const int64_t entries = desc->policy == STI_CACHE_FUTURE ? desc->entries : 1;
    const int64_t ahead = desc->policy == STI_CACHE_FUTURE ? desc->lookahead : 1;
    stint_status st;
    *flow = (sti_cache_flow){.desc = *desc};
    STI_TRY(sti_cache_index_init(&flow->index, desc->policy, desc->rows, desc->hot,
                                 desc->slots));
    STI_TRY(sti_cache_window_init(&flow->window, ahead, entries, desc->first));
    flow->look = sti_alloc_array(desc->most + 1, sizeof *flow->look, "embed.flow");
    flow->missed = sti_alloc_array(desc->most + 1, sizeof *flow->missed, "embed.flow");
    flow->evicted =
        sti_alloc_array(desc->most + 1, sizeof *flow->evicted, "embed.flow");
    if (!flow->look || !flow->missed || !flow->evicted)
        st = STINT_E_MEMORY;
out:
    return st;
}

void sti_cache_flow_fini(sti_cache_flow *flow)
{
    sti_cache_index_fini(&flow->index);
    sti_cache_window_fini(&flow->window);
    sti_free(flow->look);
    sti_free(flow->missed);
    sti_free(flow->evicted);
    *flow = (sti_cache_flow){.look = NULL};
}

/* Batches come into sight, as far as the window goes. The one that is prepared must be
 * in it, which a window with room for one batch always has: others wait. */
static stint_status look_ahead(sti_cache_flow *flow)
{
    sti_cache_window *w = &flow->window;
    stint_status st = STINT_OK;
    while (st == STINT_OK && w->end < flow->desc.batches &&
           sti_cache_window_has_room(w, flow->desc.most)) {
        int64_t count = 0;
        st = flow->desc.look(flow->desc.user, w->end, flow->look, &count);
        if (st == STINT_OK)
            sti_cache_window_add(w, &flow->index, flow->look, count);
    }
    return st;
}

static stint_status too_small(const sti_cache_flow *flow, int64_t batch)
{
    return sti_fail(STINT_E_BUDGET,
                    "batch %" PRId64 ": the rows of it and of the batches under way do "
                    "not fit the %" PRId64 " rows that are kept in memory",
                    batch, flow->desc.hot + flow->desc.slots);
}

stint_status sti_cache_flow_prepare(sti_cache_flow *flow, int64_t batch,
                                    const uint32_t *rank, int64_t count,
                                    uint32_t *slot_out)
{
    sti_cache_index *c = &flow->index;
    stint_status st = STINT_OK;
    flow->missed_count = flow->evicted_count = 0;
    if (flow->desc.policy == STI_CACHE_FUTURE && flow->desc.slots > 0)
        st = look_ahead(flow);
    if (st != STINT_OK)
        return st;
    for (int64_t i = 0; i < count; i++) {
        slot_out[i] = sti_cache_index_find(c, rank[i]);
        if (slot_out[i] != STI_CACHE_NONE)
            sti_cache_index_pin(c, slot_out[i]);
    }
    for (int64_t i = 0; i < count; i++) {
        uint32_t victim;
        if (slot_out[i] != STI_CACHE_NONE)
            continue;
        slot_out[i] = sti_cache_index_take(c, rank[i], &victim);
        if (slot_out[i] == STI_CACHE_NONE)
            return too_small(flow, batch);
        uint8_t *dirty = &c->dirty[slot_out[i] - (uint32_t)c->hot];
        flow->given += victim != STI_CACHE_NONE;
        if (victim != STI_CACHE_NONE && *dirty)
            flow->evicted[flow->evicted_count++] =
                (sti_cache_place){victim, slot_out[i]};
        *dirty = 0;
        flow->missed[flow->missed_count++] = (sti_cache_place){rank[i], slot_out[i]};
    }
    flow->touched += count;
    flow->missed_all += flow->missed_count;
    flow->given_dirty += flow->evicted_count;
    return STINT_OK;
}

void sti_cache_flow_release(sti_cache_flow *flow, int64_t batch, const uint32_t *slot,
                            int64_t count, bool trained)
{
    const bool sees = flow->desc.policy == STI_CACHE_FUTURE && flow->desc.slots > 0 &&
                      batch >= flow->window.first && batch < flow->window.end;
    sti_cache_index *c = &flow->index;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t next =
            sees ? sti_cache_window_next(&flow->window, batch, i) : STI_CACHE_NEVER;
        if (trained && slot[i] >= c->hot)
            c->dirty[slot[i] - (uint32_t)c->hot] = 1;
        sti_cache_index_release(c, slot[i], next);
    }
    if (sees)
        sti_cache_window_drop(&flow->window);
}

/* ---- a plan ---- */

typedef struct ring {
    uint32_t *rank, *slot;
    int64_t count;
} ring;

static stint_status plan_prepare(sti_cache_flow *flow, int64_t batch, ring *r,
                                 sti_cache_look_fn *ranks, void *user)
{
    const stint_status st = ranks(user, batch, r->rank, &r->count);
    return st == STINT_OK
               ? sti_cache_flow_prepare(flow, batch, r->rank, r->count, r->slot)
               : st;
}

stint_status sti_cache_flow_plan(const sti_cache_desc *desc, int64_t depth,
                                 sti_cache_look_fn *ranks, void *user,
                                 sti_cache_flow *flow_out)
{
    ring *r = sti_alloc_array(depth + 1, sizeof *r, "embed.plan");
    stint_status st = r ? sti_cache_flow_init(flow_out, desc) : STINT_E_MEMORY;
    for (int64_t i = 0; i <= depth && st == STINT_OK; i++) {
        r[i].rank = sti_alloc_array(desc->most + 1, 4, "embed.plan");
        r[i].slot = sti_alloc_array(desc->most + 1, 4, "embed.plan");
        st = r[i].rank && r[i].slot ? STINT_OK : STINT_E_MEMORY;
    }
    if (st == STINT_OK)
        (void)sti_cache_index_warm(&flow_out->index);
    for (int64_t b = desc->first; b < desc->batches + depth && st == STINT_OK; b++) {
        const int64_t done = b - depth;
        if (b < desc->batches)
            st = plan_prepare(flow_out, b, &r[b % (depth + 1)], ranks, user);
        if (st == STINT_OK && done >= desc->first)
            sti_cache_flow_release(flow_out, done, r[done % (depth + 1)].slot,
                                   r[done % (depth + 1)].count, true);
    }
    for (int64_t i = 0; r && i <= depth; i++) {
        sti_free(r[i].rank);
        sti_free(r[i].slot);
    }
    sti_free(r);
    return st;
}
