/* A thread that sums the results of a step over the ranks while the lanes still work
 * on it.
 *
 * The graph is one shard's, so only the results of a lane's last shard are final: as
 * the backward pass of that shard leaves a gradient behind (sti_plan_final_points), the
 * lane tells so. Where all lanes have, the courier joins that stretch of their blocks
 * along the shard tree, as the lanes would have done, and hands it to the exchange.
 * Joins are element by element and exchanges work on fixed parts of the vector, so the
 * bits are those of a sum that begins when all is done. */
#ifndef STI_TRAIN_COURIER_H
#define STI_TRAIN_COURIER_H

#include "exec/exec.h"
#include "net/tree_sum.h"
#include "train/exchange.h"

typedef struct sti_courier sti_courier;

typedef struct sti_courier_desc {
    sti_comm *comm;
    sti_tree_sum *sum;      /* one of the two */
    sti_exchange *exchange; /* (NULL: the other) */
    const sti_plan *plan;
    sti_shard_range own; /* shards of this rank, shared out to the lanes */
    int lanes;
    char *results; /* blocks of block_bytes; */
    size_t block_bytes;
    const int *first_slot; /* [lanes]: of a lane's blocks */
} sti_courier_desc;

/* Borrows all; first_slot is read here only. */
stint_status sti_courier_create(const sti_courier_desc *desc, sti_courier **out);
void sti_courier_destroy(sti_courier *courier); /* NULL is fine */
/* Bytes that it takes, stack included. */
size_t sti_courier_bytes(void);

/* A step begins; the communicator is the courier's until the end. */
void sti_courier_begin(sti_courier *courier, int64_t step);
/* The next run of this lane's graph is of its last shard, and tells the courier. Its
 * block is not to be joined. */
void sti_courier_last_shard(sti_courier *courier, int lane, sti_exec *exec);
/* Waits. The sum is in the block of slot 0. status: of the lanes; a failure is told to
 * the other ranks, and given back. */
stint_status sti_courier_end(sti_courier *courier, stint_status status);

#endif
