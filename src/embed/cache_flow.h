/* Batches through a cache: which rows a batch misses and which give way, in an order
 * that is fixed by the batches alone. A plan runs this without rows, a store with them,
 * so what is planned is what happens.
 *
 * The order of calls: prepare(b + depth), then whatever batch b computes, then
 * release(b): a batch's rows stay until it is done, while those of the next `depth`
 * batches come in. */
#ifndef STI_EMBED_CACHE_FLOW_H
#define STI_EMBED_CACHE_FLOW_H

#include "embed/cache_window.h"

typedef struct sti_cache_desc {
    sti_cache_policy policy;
    int64_t rows, hot, slots;
    int64_t lookahead, entries; /* of the window, at most; future */
    int64_t most;               /* rows of a batch */
    int64_t first, batches;     /* that come: [first, batches) */
    sti_cache_look_fn *look;    /* future */
    void *user;
} sti_cache_desc;

/* A row and where it is. */
typedef struct sti_cache_place {
    uint32_t rank, slot;
} sti_cache_place;

typedef struct sti_cache_flow {
    sti_cache_desc desc;
    sti_cache_index index;
    sti_cache_window window;
    uint32_t *look; /* [most], of a batch further on */
    /* What the last prepared batch came to: rows to be read; dirty ones that lost their
     * slots to them. */
    sti_cache_place *missed, *evicted;
    int64_t missed_count, evicted_count;
    /* Sums over all batches so far: different rows, of these not there, that gave way,
     * and of those dirty. */
    int64_t touched, missed_all, given, given_dirty;
} sti_cache_flow;

size_t sti_cache_flow_bytes(const sti_cache_desc *desc);
stint_status sti_cache_flow_init(sti_cache_flow *flow, const sti_cache_desc *desc);
void sti_cache_flow_fini(sti_cache_flow *flow); /* also of a zeroed one */

/* Slots for the rows of a batch, [count] of both, ascending ranks; all are pinned.
 * STINT_E_BUDGET: batches under way have more rows than there are slots. */
stint_status sti_cache_flow_prepare(sti_cache_flow *flow, int64_t batch,
                                    const uint32_t *rank, int64_t count,
                                    uint32_t *slot_out);
/* The batch is done; trained: its rows are dirty. slot [count] as prepare gave them. */
void sti_cache_flow_release(sti_cache_flow *flow, int64_t batch, const uint32_t *slot,
                            int64_t count, bool trained);

/* Run batches [first, batches) through a cache that holds no rows. ranks gives every
 * batch's rows, as desc->look does. What it came to is in *flow_out's counts; the
 * caller calls sti_cache_flow_fini. */
stint_status sti_cache_flow_plan(const sti_cache_desc *desc, int64_t depth,
                                 sti_cache_look_fn *ranks, void *user,
                                 sti_cache_flow *flow_out);

#endif
