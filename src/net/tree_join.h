/* The sum of all shards of all ranks in double, along the shard tree (shard_tree.h),
 * for vectors that are small beside what it took to make them: ranks bring their blocks
 * to rank 0, which joins them in the tree's order and sends the sum to all. So the
 * bits are those of one process. Large vectors of floats go by tree_sum.h. */
#ifndef STI_NET_TREE_JOIN_H
#define STI_NET_TREE_JOIN_H

#include "net/comm.h"
#include "net/shard_tree.h"

/* The tag of its messages. */
enum { STI_TAG_JOIN = 0x21000000 };

/* A rank's shards: sti_shard_part of all of them. blocks: [slots, stride] doubles, a
 * slot's first `count` of them used, slots as one lane of all shards wants them
 * (sti_shard_slots). stack: this rank's blocks; slot i of it is i. The sum is then in
 * slot 0 of every rank. add is sti_shard_push's. Allocates nothing. */
stint_status sti_tree_join_f64(sti_comm *comm, int64_t shards, int64_t count,
                               double *blocks, int64_t stride, sti_shard_stack *stack,
                               sti_shard_add_fn *add, void *user);

#endif
