/* The sum of all shards of all ranks, along the shard tree (shard_tree.h).
 *
 * A rank has run consecutive shards and joined what can be joined: its blocks are the
 * maximal aligned parts of the tree within its shards. The rest of the tree joins
 * blocks of different ranks: one sends, the other adds. Which of the two adds
 * alternates from segment to segment of the block (x + y and y + x have the same bits),
 * so that for a power of two of ranks this is recursive halving: each ends with its
 * share of the sum, (R-1)/R of a block sent and received. Then every segment goes from
 * where its sum is to all, as bytes. So the result is bitwise the same on every rank
 * and for any number of ranks, and no rank is a bottleneck.
 *
 * Segments go from the end of the block to its beginning, as a backward pass finishes
 * them; several are in flight at a time: one is added while others travel. */
#ifndef STI_NET_TREE_SUM_H
#define STI_NET_TREE_SUM_H

#include "base/team.h"
#include "net/comm.h"
#include "net/gate.h"
#include "net/shard_tree.h"

/* Tags of its messages; sums go down under one of their own a segment. */
enum { STI_TAG_SUM_UP = 0x1000, STI_TAG_SUM_DOWN = 0x20000000 };

/* Segments that a rank sends before their turn (no more than receives are posted for),
 * and sends that may be on their way. */
enum { STI_TREE_SUM_LEAD = 6, STI_TREE_SUM_SENDS = 16 };

typedef struct sti_tree_sum sti_tree_sum;

/* Shards of a rank. */
sti_shard_range sti_tree_sum_shards(int64_t shards, int size, int rank);

/* Blocks of `count` floats. Called by all ranks with the same numbers; borrows comm. */
stint_status sti_tree_sum_create(sti_comm *comm, int64_t shards, int64_t count,
                                 sti_tree_sum **sum_out);
void sti_tree_sum_destroy(sti_tree_sum *sum); /* NULL is fine */
/* Bytes that one allocates, about. */
size_t sti_tree_sum_bytes(int size, int64_t count);

/* blocks: of this rank's part of the tree, from the left, as its stack has them; the
 * gate (NULL: all is there) is for all of them at once. The sum is then in blocks[0] of
 * every rank; the others are used up. Allocates nothing. */
stint_status sti_tree_sum_run(sti_tree_sum *sum, const sti_team *team, sti_gate *gate,
                              float *const *blocks, int block_count);

/* What all ranks do, for those who rehearse it: a block goes in segments of so many
 * floats, of which the s-th is of class s modulo the number of classes. */
typedef struct sti_tree_join {
    int32_t by, to; /* ranks: `by` sends, `to` adds */
} sti_tree_join;
int64_t sti_tree_sum_segment(int size, int64_t count);
int sti_tree_sum_classes(int size);
/* The size - 1 joins of a class among as many ranks of one shard each, each rank's in
 * their order; *root_out: where the sum ends. Then the sum of a segment goes down a
 * binomial tree: place p counted from the root gets it from p without its lowest bit.
 */
stint_status sti_tree_sum_list(int size, int class, sti_tree_join *joins,
                               int *root_out);

/* What a run sends from this rank. */
void sti_tree_sum_traffic(const sti_tree_sum *sum, int64_t *messages_out,
                          int64_t *bytes_out);

#endif
