#include "kernel/topk/topk_pool.h"

#include <string.h>

void sti_topk_pool_init(sti_topk_pool *pool, sti_topk_scratch *scratch,
                        int64_t segments, int64_t elements)
{
    pool->scratch = scratch;
    pool->segments = segments;
    pool->elements = elements;
    atomic_init(&pool->next, 0);
    atomic_init(&pool->full, false);
}

void sti_topk_pool_give_up(sti_topk_pool *pool)
{
    atomic_store_explicit(&pool->full, true, memory_order_relaxed);
}

sti_topk_run *sti_topk_pool_next(sti_topk_pool *pool, int64_t piece)
{
    const int64_t at = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
    if (at >= pool->segments) {
        sti_topk_pool_give_up(pool);
        return NULL;
    }
    sti_topk_run *run = &pool->scratch->runs[at];
    *run = (sti_topk_run){.at = pool->scratch->pool + at * pool->elements,
                          .piece = (int32_t)piece};
    return run;
}

bool sti_topk_pool_is_full(sti_topk_pool *pool)
{
    return atomic_load_explicit(&pool->full, memory_order_relaxed);
}

int64_t sti_topk_pool_order(sti_topk_pool *pool, int64_t pieces)
{
    const sti_topk_scratch *scratch = pool->scratch;
    const int64_t runs = (int64_t)atomic_load(&pool->next);
    int64_t *place = scratch->offset;
    memset(place, 0, (size_t)(pieces + 1) * sizeof *place);
    for (int64_t r = 0; r < runs; r++)
        place[scratch->runs[r].piece + 1]++;
    for (int64_t i = 0; i < pieces; i++)
        place[i + 1] += place[i];
    for (int64_t r = 0; r < runs; r++)
        scratch->ordered[place[scratch->runs[r].piece]++] = scratch->runs[r];
    return runs;
}
