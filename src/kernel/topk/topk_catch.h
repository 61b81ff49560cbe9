/* Winners caught during the pass that makes delegates: between topk_delegate.c and
 * topk_catch.c. */
#ifndef STI_KERNEL_TOPK_CATCH_H
#define STI_KERNEL_TOPK_CATCH_H

#include "kernel/topk/topk_pool.h"

/* Elements of a piece at or above the bound. */
struct sti_topk_tally {
    atomic_llong count;
};

typedef struct sti_topk_catch {
    const sti_topk_job *job;
    atomic_ullong bound; /* key that is caught, once it is known */
    sti_topk_pool pool;
} sti_topk_catch;

/* Before the pass; only for a plan with sti_topk_catches. */
void sti_topk_catch_begin(sti_topk_catch *c, const sti_topk_job *job);
/* The two best of blocks [first, last), which are all those of a piece, and what is
 * caught of them. Pieces may come side by side. */
void sti_topk_catch_piece(sti_topk_catch *c, int64_t piece, int64_t first,
                          int64_t last);
/* After the pass: the number of runs in scratch->ordered, which hold all winners; 0:
 * they may not. */
int64_t sti_topk_catch_end(sti_topk_catch *c);

#endif
