#include "train/shard_tree.h"

void sti_shard_push(sti_shard_stack *stack, int64_t first, int64_t size, int slot,
                    sti_shard_add_fn *add, void *user)
{
    int top = stack->depth++;
    stack->first[top] = first;
    stack->size[top] = size;
    stack->slot[top] = slot;
    while (top > 0 && stack->size[top - 1] == stack->size[top] &&
           stack->first[top - 1] % (2 * stack->size[top]) == 0) {
        add(user, stack->slot[top - 1], stack->slot[top]);
        stack->size[top - 1] *= 2;
        stack->depth = top--;
    }
}

int sti_shard_finish(sti_shard_stack *stack, sti_shard_add_fn *add, void *user)
{
    for (int top = stack->depth - 1; top > 0; top--)
        add(user, stack->slot[top - 1], stack->slot[top]);
    stack->depth = 0;
    return stack->slot[0];
}

int64_t sti_shard_first(int64_t shards, int lanes, int lane)
{
    return shards * lane / lanes;
}

static void add_nothing(void *user, int into, int from)
{
    (void)user;
    (void)into;
    (void)from;
}

int sti_shard_lane_slots(int64_t shards, int lanes, int lane)
{
    sti_shard_stack stack = {.depth = 0};
    int most = 0;
    int64_t end = sti_shard_first(shards, lanes, lane + 1);
    for (int64_t s = sti_shard_first(shards, lanes, lane); s < end; s++) {
        if (stack.depth + 1 > most)
            most = stack.depth + 1;
        sti_shard_push(&stack, s, 1, stack.depth, add_nothing, 0);
    }
    return most;
}

int sti_shard_slots(int64_t shards, int lanes)
{
    int slots = 0;
    for (int lane = 0; lane < lanes; lane++)
        slots += sti_shard_lane_slots(shards, lanes, lane);
    return slots;
}
