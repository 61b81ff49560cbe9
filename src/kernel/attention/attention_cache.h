/* Causal attention of a few new rows against all rows so far, whose keys and values
 * are kept: what attention.h gives for those rows, to the bit, however many come at a
 * time.
 *
 * Keys lie as the product of queries and keys reads them, [kv_heads][block][size][64],
 * values as [kv_heads][row][size]; blocks are those of attention.h. */
#ifndef STI_KERNEL_ATTENTION_CACHE_H
#define STI_KERNEL_ATTENTION_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

typedef struct sti_attention_cache {
    int64_t heads, kv_heads, size;
    int64_t capacity; /* rows, a multiple of 64 */
    int64_t window;   /* as in attention.h; 0: none */
    float *keys, *values;
} sti_attention_cache;

/* Floats of the keys; the values have as many. */
static inline int64_t sti_attention_cache_floats(const sti_attention_cache *c)
{
    return c->kv_heads * c->capacity * c->size;
}

/* Keys and values of rows position .. position + rows, from qkv [rows, (heads + 2
 * kv_heads) size] as in attention.h. */
void sti_attention_cache_put(const sti_attention_cache *cache, int64_t position,
                             int64_t rows, const float *qkv);

/* y [rows, heads size] of the queries in qkv; row t sees rows 0 .. position + t, which
 * have been put. scratch: 64-byte aligned. */
size_t sti_attention_cache_scratch_bytes(const sti_attention_cache *cache, int64_t rows,
                                         int threads);
void sti_attention_cache_f32(const sti_team *team, const sti_attention_cache *cache,
                             int64_t position, int64_t rows, const float *qkv, float *y,
                             void *scratch);

#endif
