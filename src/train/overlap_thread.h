/* A thread that sums the results of a step over the ranks while the lanes still work
 * on it.
 *
 * The graph is one shard's, so only the results of a lane's last shard are final: as
 * the backward pass of that shard leaves a gradient behind (sti_plan_final_points), the
 * lane tells so. Where all lanes have, the overlap thread joins that stretch of their
 * blocks along the shard tree, as the lanes would have done, and hands it to the
 * exchange. Joins are element by element and exchanges work on fixed parts of the
 * vector, so the bits are those of a sum that begins when all is done. */
#ifndef STI_TRAIN_OVERLAP_THREAD_H
#define STI_TRAIN_OVERLAP_THREAD_H

#include "exec/exec.h"
#include "net/tree_sum.h"
#include "train/exchange.h"

typedef struct sti_overlap_thread sti_overlap_thread;

typedef struct sti_overlap_thread_desc {
    sti_comm *comm;
    sti_tree_sum *sum;      /* one of the two */
    sti_exchange *exchange; /* (NULL: the other) */
    const sti_plan *plan;
    sti_shard_range local; /* shards of this rank, shared out to the lanes */
    int lanes;
    char *results; /* blocks of block_bytes; */
    size_t block_bytes;
    const int *first_slot; /* [lanes]: of a lane's blocks */
    int first_spare;       /* the slot of lane 0's spare block; others follow */
    int32_t packed_node;   /* with an exchange: after which a run has packed all its
                              blocks; -1: it packs none */
    /* Was one of them, or of the lane's runs before, too small? */
    bool (*overflows)(void *user, int lane);
    void *overflows_user;
} sti_overlap_thread_desc;

/* Borrows all; first_slot is read here only. */
stint_status sti_overlap_thread_create(const sti_overlap_thread_desc *desc,
                                       sti_overlap_thread **out);
void sti_overlap_thread_destroy(sti_overlap_thread *overlap_thread); /* NULL is fine */
/* Bytes that it takes, stack included. */
size_t sti_overlap_thread_bytes(void);

/* A step begins; the communicator is the overlap thread's until the end. accumulated:
 * the last run of a lane leaves its results in the lane's spare block, and they are to
 * be added to its last shard's. trial: no use is made of the sum, so that an exchange
 * owes nothing for it, as for a step in which a packed block is too small on any rank;
 * whether one is, ranks agree on as soon as their last runs have packed. */
void sti_overlap_thread_begin(sti_overlap_thread *overlap_thread, int64_t step,
                              bool accumulated, bool trial);
/* The next run of this lane's graph is of its last shard (of its last micro-batch), and
 * tells the overlap thread. Its block is not to be joined. */
void sti_overlap_thread_last_shard(sti_overlap_thread *overlap_thread, int lane,
                                   sti_exec *exec);
/* Waits. The sum is in the block of slot 0. status: of the lanes; a failure is told to
 * the other ranks, and given back. */
stint_status sti_overlap_thread_end(sti_overlap_thread *overlap_thread,
                                    stint_status status);

#endif
