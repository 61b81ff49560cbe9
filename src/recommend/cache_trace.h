/* Traces of requests through a cache, one at a time or a batch: hit ratios of the
 * policies. */
#ifndef STI_RECOMMEND_CACHE_TRACE_H
#define STI_RECOMMEND_CACHE_TRACE_H

#include "embed/cache_flow.h"

typedef struct sti_cache_trace {
    int64_t requests, distinct;
    uint32_t *rank; /* [requests]: ids by frequency, ties by first appearance */
} sti_cache_trace;

/* A file of libCacheSim's oracleGeneral format (records of 24 bytes: time u32, id u64,
 * size u32, next i64), by the ending .bin, or text with an id a line. STINT_E_INPUT;
 * STINT_E_IO; STINT_E_MEMORY. */
stint_status sti_cache_trace_read(const char *path, sti_cache_trace *trace_out);
void sti_cache_trace_fini(sti_cache_trace *trace); /* also of a zeroed one */

typedef struct sti_cache_ratio {
    int64_t batches;
    int64_t requests, misses; /* an id that a batch has several times counts once */
} sti_cache_ratio;

/* Through a cache of `slots` ids, `batch` requests at a time. `static` begins
 * with the most frequent ones, `future` with those that come first, `lfu` and `lru`
 * empty. lookahead: batches that
 * `future` sees; 0: all. STINT_E_BUDGET: a batch has more ids than slots;
 * STINT_E_MEMORY. */
stint_status sti_cache_trace_run(const sti_cache_trace *trace, int64_t slots,
                                 sti_cache_policy policy, int64_t lookahead,
                                 int64_t batch, sti_cache_ratio *ratio_out);

#endif
