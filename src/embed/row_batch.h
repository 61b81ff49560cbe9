/* The ids of a batch by row: which rows it touches, each once, and where. */
#ifndef STI_EMBED_ROW_BATCH_H
#define STI_EMBED_ROW_BATCH_H

#include <stdint.h>

#include "stint/status.h"

/* Rows [count] ascend by rank; row u is that of the ids start[u] to start[u + 1] - 1 of
 * `vector`, in the order in which the batch has them: that is the order in which their
 * gradients are summed, whatever is in memory. */
typedef struct sti_row_batch {
    int64_t ids, most; /* now, and room for */
    int64_t count;     /* different rows */
    uint32_t *rank;    /* [count] */
    uint32_t *start;   /* [count + 1] */
    uint32_t *vector;  /* [ids]: of the batch's vectors [samples, fields] */
    uint32_t *place;   /* [ids]: row of each id, in the order of the batch */
    uint32_t *scratch; /* [4 most] */
} sti_row_batch;

stint_status sti_row_batch_init(sti_row_batch *batch, int64_t most);
void sti_row_batch_fini(sti_row_batch *batch); /* also of a zeroed one */
int64_t sti_row_batch_bytes(int64_t most);
/* From the ids' ranks and vectors, [ids] of at most `most`. */
void sti_row_batch_build(sti_row_batch *batch, const uint32_t *rank,
                         const uint32_t *vector, int64_t ids);

/* The different ranks alone, ascending, of `ids` ranks that are sorted in their place;
 * scratch [ids]. Returns how many. */
int64_t sti_row_batch_unique(uint32_t *rank, int64_t ids, uint32_t *scratch);

#endif
