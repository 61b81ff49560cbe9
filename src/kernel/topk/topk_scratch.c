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
                           sti_topk_scratch *scratch)
{
    const int64_t segments = sti_topk_pool_segments(p);
    /* One piece fills its segments one after the other. */
    const int64_t most = p->pieces == 1 ? p->n + segments * STI_TOPK_LOOK : INT64_MAX;
    const int64_t elements = sti_topk_min(segments * STI_TOPK_SEGMENT, most);
    const bool pack = p->method == STINT_TOPK_PACK;
    scratch->histogram =
        sti_topk_take(layout, p->pieces * STI_TOPK_BINS, sizeof(uint32_t));
    scratch->above = sti_topk_take(layout, p->pieces + 1, sizeof(int64_t));
    scratch->inside = sti_topk_take(layout, p->pieces + 1, sizeof(int64_t));
    scratch->offset = sti_topk_take(layout, p->pieces + 1, sizeof(int64_t));
    scratch->sample = sti_topk_take(layout, p->sample, sizeof(uint32_t));
    scratch->pool = sti_topk_take(layout, pack ? p->n : elements, sizeof(uint64_t));
    scratch->runs = sti_topk_take(layout, segments, sizeof(sti_topk_run));
    scratch->ordered = sti_topk_take(layout, segments, sizeof(sti_topk_run));
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
                           sti_topk_scratch *scratch)
{
    const bool two_best = p->method == STINT_TOPK_DELEGATE2;
    const int64_t list = two_best ? 2 * p->blocks : p->blocks;
    sti_topk_costs costs;
    sti_topk_costs_builtin(&costs);
    /* The list is short, so the built-in costs choose well enough; delegates of
     * delegates are never worth it. */
    const stint_topk_method method =
        list <= STI_TOPK_NARROW_MOST ? STINT_TOPK_NARROW : STINT_TOPK_THRESHOLD;
    scratch->delegates = sti_topk_take(layout, list, sizeof(uint32_t));
    scratch->position =
        sti_topk_take(layout, two_best ? p->blocks : 0, sizeof(uint16_t));
    scratch->chosen = sti_topk_take(layout, p->k + 1, sizeof(uint64_t));
    const int64_t segments = sti_topk_catch_segments(p);
    const int64_t back = p->back * sti_topk_back_elements(p);
    /* What was caught is not needed any more when blocks are gone back to. */
    scratch->pool =
        sti_topk_take(layout, sti_topk_max(back, segments * STI_TOPK_CATCH_SEGMENT),
                      sizeof(uint64_t));
    scratch->runs =
        sti_topk_take(layout, sti_topk_max(p->back, segments), sizeof(sti_topk_run));
    scratch->ordered = sti_topk_take(layout, segments, sizeof(sti_topk_run));
    const int64_t pieces = segments > 0 ? p->pieces + 1 : 0;
    scratch->offset = sti_topk_take(layout, pieces, sizeof(int64_t));
    scratch->caught = sti_topk_take(layout, pieces, sizeof *scratch->caught);
    scratch->inner_plan =
        sti_topk_plan_make(STI_TOPK_KEYS, list, p->k, method, 0, &costs);
    scratch->inner = sti_topk_scratch_take(layout, &scratch->inner_plan);
}

int64_t sti_topk_key_room(const sti_topk_plan *p)
{
    return p->n + STI_TOPK_SHARES * STI_TOPK_SLACK;
}

static void take_narrowing(sti_topk_layout *layout, const sti_topk_plan *p,
                           sti_topk_scratch *scratch)
{
    scratch->above = sti_topk_take(layout, 3 * (p->pieces + 1), sizeof(int64_t));
    scratch->inside = scratch->above ? scratch->above + p->pieces + 1 : NULL;
    scratch->offset = scratch->above ? scratch->above + 2 * (p->pieces + 1) : NULL;
    scratch->sample = sti_topk_take(layout, p->sample, sizeof(uint32_t));
    scratch->keys = sti_topk_take(layout, 2 * sti_topk_key_room(p), sizeof(uint32_t));
}

static void take_all(sti_topk_layout *layout, const sti_topk_plan *p,
                     sti_topk_scratch *scratch)
{
    memset(scratch, 0, sizeof *scratch);
    if (p->method == STINT_TOPK_DELEGATE || p->method == STINT_TOPK_DELEGATE2)
        take_delegates(layout, p, scratch);
    else if (p->method == STINT_TOPK_NARROW)
        take_narrowing(layout, p, scratch);
    else
        take_selection(layout, p, scratch);
    if (p->method == STINT_TOPK_NARROW)
        return;
    /* Keys of all candidates while they are few, survivors of a digit when many. */
    const int64_t few = 4096 + sti_topk_min(p->k / 2, 1 << 16);
    const int64_t caught = sti_topk_catches(p) ? p->pool / 2 : 0;
    const int64_t spare = sti_topk_min(p->n, sti_topk_max(caught, p->k / 4 + few));
    scratch->cutter.spare_count = spare;
    scratch->cutter.spare = sti_topk_take(layout, spare, sizeof(uint64_t));
    /* Counters for each piece of the walk back too. */
    scratch->cutter.counts =
        sti_topk_take(layout, (p->back + 1) * STI_TOPK_BINS, sizeof(uint32_t));
}

sti_topk_scratch *sti_topk_scratch_take(sti_topk_layout *layout, const sti_topk_plan *p)
{
    sti_topk_scratch counted; /* where the layout only counts */
    sti_topk_scratch *scratch = sti_topk_take(layout, 1, sizeof *scratch);
    take_all(layout, p, scratch ? scratch : &counted);
    return scratch;
}
