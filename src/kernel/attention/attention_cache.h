/* Causal attention of a few new rows against all rows so far, whose keys and values
 * are kept: what attention.h gives for those rows, to the bit, however many come at a
 * time, and whatever rows of other sequences come with them.
 *
 * Rows are kept in blocks of 64, those of attention.h: keys
 * [block][kv_heads][size][64], as the product of queries and keys reads them, values
 * [block][kv_heads][64][size]. A sequence's blocks may lie anywhere among those of the
 * cache; its page table says where, so that many sequences share one cache and each
 * takes no more than it has rows. */
#ifndef STI_KERNEL_ATTENTION_CACHE_H
#define STI_KERNEL_ATTENTION_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

enum { STI_ATTENTION_BLOCK = 64 }; /* rows */

typedef struct sti_attention_cache {
    int64_t heads, kv_heads, size;
    int64_t capacity; /* rows of all blocks, a multiple of 64 */
    int64_t window;   /* as in attention.h; 0: none */
    float *keys, *values;
} sti_attention_cache;

/* New rows of one sequence. */
typedef struct sti_attention_rows {
    int64_t position, rows; /* rows position .. position + rows of the sequence */
    /* [blocks]: where in the cache each block of the sequence is; NULL: block i is the
     * i-th. Two sequences share no block. */
    const int32_t *page;
} sti_attention_rows;

/* Floats of the keys; the values have as many. */
static inline int64_t sti_attention_cache_floats(const sti_attention_cache *c)
{
    return c->kv_heads * c->capacity * c->size;
}

/* Keep keys and values of new rows of `count` sequences, one after another in qkv
 * [rows of all, (heads + 2 kv_heads) size], which is as in attention.h. */
void sti_attention_cache_put(const sti_attention_cache *cache,
                             const sti_attention_rows *sequences, int count,
                             const float *qkv);

/* y [rows of all, heads size] of the queries in qkv; row t of a sequence sees its rows
 * 0
 * .. position + t, which have been put. scratch: 64-byte aligned; its size holds for as
 * many rows of all together. */
size_t sti_attention_cache_scratch_bytes(const sti_attention_cache *cache, int64_t rows,
                                         int threads);
void sti_attention_cache_f32(const sti_team *team, const sti_attention_cache *cache,
                             const sti_attention_rows *sequences, int count,
                             const float *qkv, float *y, void *scratch);

#endif
