/* The scratch of a row: one layout, which both counts and hands out. */
#include <string.h>

#include "base/memory.h"
#include "kernel/topk/topk_catch.h"

void *sti_topk_take(sti_topk_layout *layout, int64_t count, size_t each_bytes)
{
    size_t bytes, total;
    if (!sti_mul_bytes(count, each_bytes, &bytes) ||
        !sti_add_bytes(bytes, layout->used_bytes, &total) || total > SIZE_MAX - 128) {
        layout->overflow = true;
        return NULL;
    }
    void *block = layout->base ? layout->base + layout->used_bytes : NULL;
    layout->used_bytes = STI_ALIGN_UP(total, 64);
    return block;
}

static void take_selection(sti_topk_layout *layout, const sti_topk_plan *p,
                           sti_topk_room *room)
{
    const int64_t segments = sti_topk_pool_segments(p);
    /* One piece fills its segments one after the other. */
    const int64_t most = p->pieces == 1 ? p->n + segments * STI_TOPK_LOOK : INT64_MAX;
    const int64_t elements = sti_topk_min(segments * STI_TOPK_SEGMENT, most);
    const bool pack = p->method == STINT_TOPK_PACK;
    room->histogram =
        sti_topk_take(layout, p->pieces * STI_TOPK_BINS, sizeof(uint32_t));
    room->above = sti_topk_take(layout, p->pieces + 1, sizeof(int64_t));
    room->inside = sti_topk_take(layout, p->pieces + 1, sizeof(int64_t));
    room->offset = sti_topk_take(layout, p->pieces + 1, sizeof(int64_t));
    room->sample = sti_topk_take(layout, p->sample, sizeof(uint32_t));
    room->pool = sti_topk_take(layout, pack ? p->n : elements, sizeof(uint64_t));
    room->runs = sti_topk_take(layout, segments, sizeof(sti_topk_run));
    room->ordered = sti_topk_take(layout, segments, sizeof(sti_topk_run));
}

int64_t sti_topk_pass_blocks(const sti_topk_plan *p)
{
    /* Whole groups of 16 blocks. */
    return sti_topk_ceil(sti_topk_ceil(p->blocks, p->pieces), 16) * 16;
}

int64_t sti_topk_back_elements(const sti_topk_plan *p)
{
    const int64_t ids = sti_topk_ceil(p->k, p->back);
    return sti_topk_min(ids << p->exponent, 2 * p->k) + ((int64_t)1 << p->exponent);
}

static void take_delegates(sti_topk_layout *layout, const sti_topk_plan *p,
                           sti_topk_room *room)
{
    const bool beta = p->method == STINT_TOPK_BETA;
    const int64_t list = beta ? 2 * p->blocks : p->blocks;
    stint_topk_costs costs;
    stint_topk_costs_default(&costs);
    /* The list is short, so the built-in costs choose well enough; delegates of
     * delegates are never worth it. */
    const stint_topk_method method =
        list <= STI_TOPK_NARROW_MOST ? STINT_TOPK_NARROW : STINT_TOPK_THRESHOLD;
    room->delegates = sti_topk_take(layout, list, sizeof(uint32_t));
    room->position = sti_topk_take(layout, beta ? p->blocks : 0, sizeof(uint16_t));
    room->chosen = sti_topk_take(layout, p->k + 1, sizeof(uint64_t));
    const int64_t segments = sti_topk_catch_segments(p);
    const int64_t back = p->back * sti_topk_back_elements(p);
    /* What was caught is not needed any more when blocks are gone back to. */
    room->pool =
        sti_topk_take(layout, sti_topk_max(back, segments * STI_TOPK_CATCH_SEGMENT),
                      sizeof(uint64_t));
    room->runs =
        sti_topk_take(layout, sti_topk_max(p->back, segments), sizeof(sti_topk_run));
    room->ordered = sti_topk_take(layout, segments, sizeof(sti_topk_run));
    const int64_t pieces = segments > 0 ? p->pieces + 1 : 0;
    room->offset = sti_topk_take(layout, pieces, sizeof(int64_t));
    room->caught = sti_topk_take(layout, pieces, sizeof *room->caught);
    room->inner_plan = sti_topk_plan_make(STI_TOPK_KEYS, list, p->k, method, 0, &costs);
    room->inner = sti_topk_room_take(layout, &room->inner_plan);
}

int64_t sti_topk_key_room(const sti_topk_plan *p)
{
    return p->n + STI_TOPK_SHARES * STI_TOPK_SLACK;
}

static void take_narrowing(sti_topk_layout *layout, const sti_topk_plan *p,
                           sti_topk_room *room)
{
    room->above = sti_topk_take(layout, 3 * (p->pieces + 1), sizeof(int64_t));
    room->inside = room->above ? room->above + p->pieces + 1 : NULL;
    room->offset = room->above ? room->above + 2 * (p->pieces + 1) : NULL;
    room->sample = sti_topk_take(layout, p->sample, sizeof(uint32_t));
    room->keys = sti_topk_take(layout, 2 * sti_topk_key_room(p), sizeof(uint32_t));
}

static void take_all(sti_topk_layout *layout, const sti_topk_plan *p,
                     sti_topk_room *room)
{
    memset(room, 0, sizeof *room);
    if (p->method == STINT_TOPK_DELEGATE || p->method == STINT_TOPK_BETA)
        take_delegates(layout, p, room);
    else if (p->method == STINT_TOPK_NARROW)
        take_narrowing(layout, p, room);
    else
        take_selection(layout, p, room);
    if (p->method == STINT_TOPK_NARROW)
        return;
    /* Keys of all candidates while they are few, survivors of a digit when many. */
    const int64_t few = 4096 + sti_topk_min(p->k / 2, 1 << 16);
    const int64_t caught = sti_topk_catches(p) ? p->pool / 2 : 0;
    const int64_t spare = sti_topk_min(p->n, sti_topk_max(caught, p->k / 4 + few));
    room->cutter.spare_count = spare;
    room->cutter.spare = sti_topk_take(layout, spare, sizeof(uint64_t));
    /* Counters for each piece of the walk back too. */
    room->cutter.counts =
        sti_topk_take(layout, (p->back + 1) * STI_TOPK_BINS, sizeof(uint32_t));
}

sti_topk_room *sti_topk_room_take(sti_topk_layout *layout, const sti_topk_plan *p)
{
    sti_topk_room counted; /* where the layout only counts */
    sti_topk_room *room = sti_topk_take(layout, 1, sizeof *room);
    take_all(layout, p, room ? room : &counted);
    return room;
}
