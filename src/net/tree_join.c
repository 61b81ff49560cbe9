#include "net/tree_join.h"

#include <string.h>

static void add_nothing(void *user, int into, int from)
{
    (void)user, (void)into, (void)from;
}

/* The blocks that a rank has once it has run its shards. */
static void blocks_of(int64_t shards, int size, int rank, sti_shard_stack *stack)
{
    const sti_shard_range part =
        sti_shard_part((sti_shard_range){0, shards}, size, rank);
    *stack = (sti_shard_stack){.depth = 0};
    for (int64_t i = 0; i < part.count; i++)
        sti_shard_push(stack, part.first + i, 1, stack->depth, add_nothing, NULL);
}

static stint_status send_blocks(sti_comm *comm, const double *blocks, int64_t stride,
                                size_t n_bytes, int count)
{
    stint_status st = STINT_OK;
    for (int i = 0; i < count && st == STINT_OK; i++) {
        sti_comm_request request = {.state = STI_COMM_IDLE};
        sti_comm_send(comm, 0, STI_TAG_JOIN, blocks + i * stride, n_bytes, &request);
        st = sti_comm_wait_all(comm, &request, 1);
    }
    return st;
}

/* Another rank's blocks on top of the stack, joined as they come. */
static stint_status take_blocks(sti_comm *comm, int rank, int64_t shards,
                                double *blocks, int64_t stride, size_t n_bytes,
                                sti_shard_stack *stack, sti_shard_add_fn *add,
                                void *user)
{
    sti_shard_stack theirs;
    stint_status st = STINT_OK;
    blocks_of(shards, sti_comm_size(comm), rank, &theirs);
    for (int i = 0; i < theirs.depth && st == STINT_OK; i++) {
        const int slot = stack->depth;
        sti_comm_request request = {.state = STI_COMM_IDLE};
        sti_comm_receive(comm, rank, STI_TAG_JOIN, blocks + slot * stride, n_bytes,
                         &request);
        st = sti_comm_wait_all(comm, &request, 1);
        if (st == STINT_OK)
            sti_shard_push(stack, theirs.first[i], theirs.size[i], slot, add, user);
    }
    return st;
}

stint_status sti_tree_join_f64(sti_comm *comm, int64_t shards, int64_t count,
                               double *blocks, int64_t stride, sti_shard_stack *stack,
                               sti_shard_add_fn *add, void *user)
{
    const size_t n_bytes = sizeof *blocks * (size_t)count;
    stint_status st = STINT_OK;
    sti_comm_set_context(comm, "sum of products", 0);
    if (sti_comm_rank(comm) > 0) {
        st = send_blocks(comm, blocks, stride, n_bytes, stack->depth);
    } else {
        for (int r = 1; r < sti_comm_size(comm) && st == STINT_OK; r++)
            st =
                take_blocks(comm, r, shards, blocks, stride, n_bytes, stack, add, user);
        if (st == STINT_OK)
            (void)sti_shard_finish(stack, add, user);
    }
    return st == STINT_OK ? sti_comm_broadcast(comm, 0, blocks, n_bytes) : st;
}
