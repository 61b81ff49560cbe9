/* Segments of a common pool, which pieces of a row fetch as they go: a row whose
 * candidates lie all in one place needs no more room than any other. Which piece got
 * which segment does not matter, for they are put in order afterwards. */
#ifndef STI_KERNEL_TOPK_POOL_H
#define STI_KERNEL_TOPK_POOL_H

#include <stdatomic.h>

#include "kernel/topk/topk_priv.h"

typedef struct sti_topk_pool {
    sti_topk_scratch *scratch;  /* pool, runs, ordered, offset */
    int64_t segments, elements; /* of a segment */
    atomic_llong next;          /* segment */
    atomic_bool full;
} sti_topk_pool;

void sti_topk_pool_init(sti_topk_pool *pool, sti_topk_scratch *scratch,
                        int64_t segments, int64_t elements);
/* An empty run; NULL where the pool is full. */
sti_topk_run *sti_topk_pool_next(sti_topk_pool *pool, int64_t piece);
bool sti_topk_pool_is_full(sti_topk_pool *pool);
/* As if it were full. */
void sti_topk_pool_give_up(sti_topk_pool *pool);
/* The runs to scratch->ordered, by piece; those of one piece were fetched in the order
 * of the row. Their number. */
int64_t sti_topk_pool_order(sti_topk_pool *pool, int64_t pieces);

#endif
