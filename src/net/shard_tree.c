#include "net/shard_tree.h"

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

sti_shard_range sti_shard_part(sti_shard_range whole, int parts, int i)
{
    int64_t first = whole.count * i / parts, end = whole.count * (i + 1) / parts;
    return (sti_shard_range){whole.first + first, end - first};
}

static void add_nothing(void *user, int into, int from)
{
    (void)user;
    (void)into;
    (void)from;
}

int sti_shard_lane_slots(sti_shard_range shards, int lanes, int lane)
{
    sti_shard_range own = sti_shard_part(shards, lanes, lane);
    sti_shard_stack stack = {.depth = 0};
    int max_depth = 1; /* an idle lane may still evaluate */
    for (int64_t s = own.first; s < own.first + own.count; s++) {
        if (stack.depth + 1 > max_depth)
            max_depth = stack.depth + 1;
        sti_shard_push(&stack, s, 1, stack.depth, add_nothing, 0);
    }
    return max_depth;
}

int sti_shard_slots(sti_shard_range shards, int lanes)
{
    int slots = 0;
    for (int lane = 0; lane < lanes; lane++)
        slots += sti_shard_lane_slots(shards, lanes, lane);
    return slots;
}
