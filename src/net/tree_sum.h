/* The sum of all shards of all ranks, along the shard tree (shard_tree.h).
 *
 * A rank has run consecutive shards and joined what can be joined: its blocks are the
 * maximal aligned parts of the tree within its shards. The rest of the tree joins
 * blocks of different ranks. The vector is cut into parts, each part into a slice a
 * rank. Everyone sends each rank its slice of all blocks; that rank, the slice's owner,
 * adds them in the tree's order and sends the sum to all. So the result is bitwise the
 * same on every rank and for any number of ranks, no rank is a bottleneck, and no join
 * waits for another rank's.
 *
 * Where every host has as many neighbouring ranks, or a multiple of that, these first
 * join what they can of the tree, a column of slices each, and rank i of every host
 * sends the blocks that are left to the same local rank of others: a host's link
 * carries one copy of the vector. These are the schedules of exchange_schedule.h.
 *
 * Parts go from the end of the block to its beginning, as a backward pass finishes
 * them; some are on their way at a time (rounds.h). */
#ifndef STI_NET_TREE_SUM_H
#define STI_NET_TREE_SUM_H

#include "base/team.h"
#include "net/comm.h"
#include "net/exchange_schedule.h"
#include "net/ready_watermark.h"
#include "net/shard_tree.h"

/* The tag of a message is this and the number of its part. */
enum { STI_TAG_SUM = 0x20000000 };

/* Parts on their way at a time. */
enum { STI_TREE_SUM_WINDOW = 4 };

typedef struct sti_tree_sum sti_tree_sum;

/* Shards of a rank. */
sti_shard_range sti_tree_sum_shards(int64_t shards, int size, int rank);

/* Blocks of `count` floats. Called by all ranks with the same numbers; borrows comm. */
stint_status sti_tree_sum_create(sti_comm *comm, int64_t shards, int64_t count,
                                 sti_tree_sum **sum_out);
void sti_tree_sum_destroy(sti_tree_sum *sum); /* NULL is fine */
/* Bytes that one takes; 0: there is not even memory to count them. */
size_t sti_tree_sum_bytes(sti_comm *comm, int64_t shards, int64_t count);

/* blocks: of this rank's part of the tree, from the left, as its stack has them; the
 * watermark (NULL: all is there) is for all of them at once. The sum is then in
 * blocks[0] of every rank; the others are used up. Allocates nothing. */
stint_status sti_tree_sum_run(sti_tree_sum *sum, const sti_team *team,
                              sti_ready_watermark *watermark, float *const *blocks,
                              int block_count);

/* What a run sends from this rank. */
void sti_tree_sum_traffic(const sti_tree_sum *sum, int64_t *messages_out,
                          int64_t *bytes_out);

/* What a rank sends on average over all, without one; comm may be of ranks that are
 * only planned. */
double sti_tree_sum_sent(sti_comm *comm, int64_t shards, int64_t count);

/* ---- what all ranks do, for those who rehearse it ---- */

/* Values of a part, at most; and of the part that begins where `left` are left. */
int64_t sti_tree_sum_max_part_floats(int size);
int64_t sti_tree_sum_part(int64_t max_floats, int64_t left);
/* `group`: neighbouring ranks that share a host. */
sti_scheme sti_tree_sum_scheme(int size, int group);
/* Blocks that these ranks leave, when they have joined what they can. */
int sti_tree_sum_blocks(int64_t shards, int size, int first_rank, int ranks);

#endif
