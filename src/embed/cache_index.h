/* Which rows of a table are in memory: without the rows, so that the very same code
 * plans a cache and runs it.
 *
 * Rows are named by rank, the most frequent first. Ranks below `hot` are always there,
 * in the slot of their number, and cost no look-up. The others share `slots` slots,
 * found by a hash of the rank; all bookkeeping is by slot, none by row of the table. A
 * step costs O(log slots) for each row that it touches.
 *
 * A slot that a batch under way uses is pinned and cannot be given away. Of the others
 * the victim is the one of the largest key, kept in a heap:
 *   future  the farthest next use that is known; before these, rows with none in the
 *           window, the least frequent first (Belady's rule within a window; a row that
 *           would be evicted next anyway has used a slot only while its batch had it,
 *           which is what bypassing the cache is)
 *   static  the least frequent (of the paper's order, DATASET)
 *   lfu     the fewest batches since it came in; of equal ones the oldest
 *   lru     the longest unused */
#ifndef STI_EMBED_CACHE_INDEX_H
#define STI_EMBED_CACHE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

typedef enum sti_cache_policy {
    STI_CACHE_FUTURE,
    STI_CACHE_STATIC,
    STI_CACHE_LFU,
    STI_CACHE_LRU
} sti_cache_policy;

const char *sti_cache_policy_name(sti_cache_policy policy);

#define STI_CACHE_NONE  UINT32_MAX /* no slot, no rank */
#define STI_CACHE_NEVER UINT32_MAX /* no next use is known */

typedef struct sti_cache_index {
    sti_cache_policy policy;
    int64_t rows, hot, slots;
    /* By slot; slot s of the cache is number hot + s outside. */
    uint32_t *rank, *use; /* STI_CACHE_NONE: free; uses (lfu), or next use (future) */
    uint64_t *time;       /* of the last use (lru) or coming in (lfu) */
    uint32_t *heap, *at;  /* [slots]: slots, the victim first; place in it, or NONE */
    uint8_t *pins, *dirty;
    uint32_t *table; /* [table_size] slot + 1 or 0 */
    uint32_t table_mask;
    int64_t heap_count, filled; /* slots that were ever given out */
    uint64_t clock;
} sti_cache_index;

/* Bytes a slot of the cache takes here, at most. */
size_t sti_cache_index_slot_bytes(void);
/* At least one slot where hot < rows. STINT_E_MEMORY. */
stint_status sti_cache_index_init(sti_cache_index *index, sti_cache_policy policy,
                                  int64_t rows, int64_t hot, int64_t slots);
void sti_cache_index_fini(sti_cache_index *index); /* also of a zeroed one */
/* Slots that are free get the rows behind the hot ones, in order: what a cache begins
 * with. Returns how many. */
int64_t sti_cache_index_warm(sti_cache_index *index);

/* The slot of a rank, or STI_CACHE_NONE: it is not in memory. */
uint32_t sti_cache_index_find(const sti_cache_index *index, uint32_t rank);
/* Keep it until as many releases. */
void sti_cache_index_pin(sti_cache_index *index, uint32_t slot);
/* A slot for a rank that is not in memory, pinned; *victim_out is whose it was, or
 * STI_CACHE_NONE. STI_CACHE_NONE: every slot is pinned. */
uint32_t sti_cache_index_take(sti_cache_index *index, uint32_t rank,
                              uint32_t *victim_out);
/* A batch is done with it. next: the batch that uses it next, or STI_CACHE_NEVER. */
void sti_cache_index_release(sti_cache_index *index, uint32_t slot, uint32_t next);
/* No next use is known any more: another course begins. O(slots). */
void sti_cache_index_forget(sti_cache_index *index);
/* The next use of a row became known. */
void sti_cache_index_expect(sti_cache_index *index, uint32_t rank, uint32_t next);

#endif
