/* Batches of samples in the order that a recipe says: position p of the stream is
 * sample p mod n of epoch p / n, which for the order `shuffle` stands where a
 * permutation without memory puts it (sti_permute). So any batch can be read at any
 * time. */
#ifndef STI_RECOMMEND_FEED_H
#define STI_RECOMMEND_FEED_H

#include "data/clicks.h"

typedef struct sti_feed_desc {
    const sti_clicks *clicks; /* borrowed */
    int64_t first, count;     /* samples of it */
    bool shuffle;
    uint64_t seed;
    bool once; /* one pass, whose last batch may be short */
    int64_t batch;
    int rings;            /* batches that are held */
    uint32_t part, parts; /* sti_feed_look: only ranks that are `part` modulo parts,
                             over that; parts 0: all */
} sti_feed_desc;

/* What a ring slot holds of a batch. */
typedef struct sti_feed_slot {
    char *samples;     /* [batch][sample_bytes] */
    uint32_t *id_from; /* [batch + 1]: ids of the batch before each sample */
    int64_t count;     /* samples */
} sti_feed_slot;

typedef struct sti_feed {
    sti_feed_desc desc;
    sti_feed_slot *slot; /* [rings] */
    char *look;          /* [batch][sample_bytes] */
    uint32_t *scratch;   /* [batch slots] */
} sti_feed;

size_t sti_feed_bytes(const sti_feed_desc *desc);
stint_status sti_feed_init(sti_feed *feed, const sti_feed_desc *desc);
void sti_feed_fini(sti_feed *feed); /* also of a zeroed one */
/* Ids of a batch at most; batches of one pass, the last short one included. */
int64_t sti_feed_most(const sti_feed_desc *desc);
int64_t sti_feed_batches(const sti_feed_desc *desc);

/* A batch into a ring slot, its ids' ranks and vectors (sample times fields + field)
 * out: a sti_row_load_fn with user: the feed. */
stint_status sti_feed_load(void *feed, int64_t batch, int ring, uint32_t *rank,
                           uint32_t *vector, int64_t *ids_out);
/* The different ranks of a batch, ascending: a sti_cache_look_fn. Not at once with
 * itself; with sti_feed_load it may be. */
stint_status sti_feed_look(void *feed, int64_t batch, uint32_t *rank_out,
                           int64_t *count_out);

#endif
