/* The fixed binary tree that joins the shards of a step.
 *
 *     sum(lo, hi) = result(lo)                          if hi = lo + 1
 *                   sum(lo, mid) + sum(mid, hi)         with mid = lo + the largest
 *                                                       power of two below hi - lo
 *
 * Every node but those on the right edge is an aligned block of 2^k shards. A lane or
 * rank that runs consecutive shards keeps a stack of finished blocks, as a binary
 * counter keeps digits, and joins two as soon as they are the halves of an aligned
 * block. What the lanes and ranks leave is joined by the same rule, then from the
 * right. So the sum's bits do not depend on who ran what, and a lane needs about
 * log2(shards) + 1 result blocks.
 *
 * Here is only the book-keeping: which slot to write, which to add to which. */
#ifndef STI_NET_SHARD_TREE_H
#define STI_NET_SHARD_TREE_H

#include <stdint.h>

#define STI_SHARD_STACK_MAX 64

/* A stack of finished blocks; block i is in the owner's slot slot[i]. */
typedef struct sti_shard_stack {
    int64_t first[STI_SHARD_STACK_MAX], size[STI_SHARD_STACK_MAX];
    int slot[STI_SHARD_STACK_MAX];
    int depth;
} sti_shard_stack;

/* slot[into] += slot[from]. */
typedef void sti_shard_add_fn(void *user, int into, int from);

/* Put the block [first, first + size) of `slot` on top and join what can be joined. */
void sti_shard_push(sti_shard_stack *stack, int64_t first, int64_t size, int slot,
                    sti_shard_add_fn *add, void *user);
/* Join all that is left, from the right; the sum is in the slot returned. */
int sti_shard_finish(sti_shard_stack *stack, sti_shard_add_fn *add, void *user);

/* Consecutive shards, and part i of so many nearly equal ones: of a rank, of a lane. */
typedef struct sti_shard_range {
    int64_t first, count;
} sti_shard_range;
sti_shard_range sti_shard_part(sti_shard_range whole, int parts, int i);

/* Slots that a lane needs at once (it uses slot base + depth of its stack). */
int sti_shard_lane_slots(sti_shard_range shards, int lanes, int lane);
int sti_shard_slots(sti_shard_range shards, int lanes); /* of all lanes */

#endif
