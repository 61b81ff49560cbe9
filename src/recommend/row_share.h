/* Rows of a batch shared out to ranks: row r of the table is that of rank r modulo
 * their number, and so is all work on it. Samples are shared out as shards are, each
 * rank has consecutive ones.
 *
 * Every rank reads all ids of a batch, as the window of a policy must anyhow, so both
 * ends of every pair know what the other needs: no ids are sent. Before a step owners
 * send each rank the different rows that its samples have; behind it everyone sends
 * owners the gradients of their rows, each one by itself, and the owner adds those of a
 * row in the order of the batch. Sums of a rank's own would be fewer bytes, and other
 * bits than those of one process. */
#ifndef STI_RECOMMEND_ROW_SHARE_H
#define STI_RECOMMEND_ROW_SHARE_H

#include "embed/row_batch.h"
#include "net/comm.h"
#include "recommend/feed.h"

typedef struct sti_row_share_desc {
    sti_comm *comm; /* borrowed */
    sti_feed *feed; /* borrowed: of the whole batches; its ranks are of the table */
    int64_t shards, width;
} sti_row_share_desc;

typedef struct sti_row_share {
    sti_row_share_desc desc;
    int rank, ranks;
    int64_t first, count;   /* samples of a batch that are this rank's */
    uint32_t *bound;        /* [ranks + 1]: vectors of a batch by the rank of their
                               sample */
    uint32_t *id, *vector;  /* [ids of a batch] */
    sti_row_batch *need;    /* [rings]: rows of the table by own samples */
    float *near;            /* [own ids, width]: rows that came, gradients that go */
    float *far;             /* [ids, width]: rows that go, gradients that came */
    float **row;            /* [own ids]: of need's rows, in `near` */
    uint32_t *index;        /* [ids] where in `far` the gradient of an owned id is */
    size_t *send, *receive; /* [ranks] bytes */
    int64_t *at;            /* [ranks] vectors */
} sti_row_share;

/* Samples of a batch that are a rank's, in the place of shards. */
void sti_row_share_samples(int64_t shards, int64_t batch, int ranks, int rank,
                           int64_t *first_out, int64_t *count_out);
size_t sti_row_share_bytes(const sti_feed_desc *feed, int64_t shards, int64_t width,
                           int ranks);
/* STINT_E_MEMORY. */
stint_status sti_row_share_init(sti_row_share *share, const sti_row_share_desc *desc);
void sti_row_share_fini(sti_row_share *share); /* also of a zeroed one */

/* A batch into a ring slot of the feed; out come the ids that are this rank's alone, as
 * rows of its own part of the table: a sti_row_load_fn with user: the share. */
stint_status sti_row_share_load(void *share, int64_t batch, int ring, uint32_t *rank,
                                uint32_t *vector, int64_t *ids_out);

/* Rows of ring's batch to whoever needs them; owned: this rank's rows of that batch,
 * and record[u] where row u's weights are. Then share->row[u] are the rows of
 * share->need[ring]. Collective. STINT_E_PEER, or what a rank gave up for. */
stint_status sti_row_share_rows(sti_row_share *share, int ring,
                                const sti_row_batch *owned, float *const *record);
/* Gradients of own samples' vectors [own vectors, width] to the owners; then `far` and
 * `index` [owned->ids] are what sti_row_update_f32 asks for. Likewise. */
stint_status sti_row_share_gradients(sti_row_share *share, int ring,
                                     const sti_row_batch *owned, const float *gradient);

#endif
