/* One row: its scratch, the emission of winners, and the methods that need no guess. */
#include "kernel/topk/topk_key.h"

#include <string.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "kernel/topk/topk_catch.h"

const sti_topk_ops *sti_topk_ops_now(sti_topk_form form)
{
#if defined(__x86_64__)
    switch (sti_isa_now()) {
    case STI_ISA_AVX512:
        return sti_topk_avx512[form];
    case STI_ISA_AVX2:
        return sti_topk_avx2[form];
    case STI_ISA_REF:
    case STI_ISA_COUNT:
        break;
    }
#endif
    return sti_topk_ref[form];
}

/* ---- scratch ---- */

void *sti_topk_take(sti_topk_space *space, int64_t count, size_t each_bytes)
{
    size_t bytes, total;
    if (!sti_mul_bytes(count, each_bytes, &bytes) ||
        !sti_add_bytes(bytes, space->used_bytes, &total) || total > SIZE_MAX - 128) {
        space->overflow = true;
        return NULL;
    }
    void *block = space->base ? space->base + space->used_bytes : NULL;
    space->used_bytes = STI_ALIGN_UP(total, 64);
    return block;
}

static void take_selection(sti_topk_space *space, const sti_topk_plan *p,
                           sti_topk_room *room)
{
    const int64_t segments = sti_topk_pool_segments(p);
    /* One piece fills its segments one after the other. */
    const int64_t most = p->pieces == 1 ? p->n + segments * STI_TOPK_LOOK : INT64_MAX;
    const int64_t elements = sti_topk_min(segments * STI_TOPK_SEGMENT, most);
    const bool pack = p->method == STINT_TOPK_PACK;
    room->histogram = sti_topk_take(space, p->pieces * STI_TOPK_BINS, sizeof(uint32_t));
    room->above = sti_topk_take(space, p->pieces + 1, sizeof(int64_t));
    room->inside = sti_topk_take(space, p->pieces + 1, sizeof(int64_t));
    room->offset = sti_topk_take(space, p->pieces + 1, sizeof(int64_t));
    room->sample = sti_topk_take(space, p->sample, sizeof(uint32_t));
    room->pool = sti_topk_take(space, pack ? p->n : elements, sizeof(uint64_t));
    room->runs = sti_topk_take(space, segments, sizeof(sti_topk_run));
    room->ordered = sti_topk_take(space, segments, sizeof(sti_topk_run));
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

static void take_delegates(sti_topk_space *space, const sti_topk_plan *p,
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
    room->delegates = sti_topk_take(space, list, sizeof(uint32_t));
    room->position = sti_topk_take(space, beta ? p->blocks : 0, sizeof(uint16_t));
    room->chosen = sti_topk_take(space, p->k + 1, sizeof(uint64_t));
    const int64_t segments = sti_topk_catch_segments(p);
    const int64_t back = p->back * sti_topk_back_elements(p);
    /* What was caught is not needed any more when blocks are gone back to. */
    room->pool = sti_topk_take(
        space, sti_topk_max(back, segments * STI_TOPK_CATCH_SEGMENT), sizeof(uint64_t));
    room->runs =
        sti_topk_take(space, sti_topk_max(p->back, segments), sizeof(sti_topk_run));
    room->ordered = sti_topk_take(space, segments, sizeof(sti_topk_run));
    const int64_t pieces = segments > 0 ? p->pieces + 1 : 0;
    room->offset = sti_topk_take(space, pieces, sizeof(int64_t));
    room->caught = sti_topk_take(space, pieces, sizeof *room->caught);
    room->inner_plan = sti_topk_plan_make(STI_TOPK_KEYS, list, p->k, method, 0, &costs);
    room->inner = sti_topk_room_take(space, &room->inner_plan);
}

int64_t sti_topk_key_room(const sti_topk_plan *p)
{
    return p->n + STI_TOPK_SHARES * STI_TOPK_SLACK;
}

static void take_narrowing(sti_topk_space *space, const sti_topk_plan *p,
                           sti_topk_room *room)
{
    room->above = sti_topk_take(space, 3 * (p->pieces + 1), sizeof(int64_t));
    room->inside = room->above ? room->above + p->pieces + 1 : NULL;
    room->offset = room->above ? room->above + 2 * (p->pieces + 1) : NULL;
    room->sample = sti_topk_take(space, p->sample, sizeof(uint32_t));
    room->keys = sti_topk_take(space, 2 * sti_topk_key_room(p), sizeof(uint32_t));
}

static void take_all(sti_topk_space *space, const sti_topk_plan *p, sti_topk_room *room)
{
    memset(room, 0, sizeof *room);
    if (p->method == STINT_TOPK_DELEGATE || p->method == STINT_TOPK_BETA)
        take_delegates(space, p, room);
    else if (p->method == STINT_TOPK_NARROW)
        take_narrowing(space, p, room);
    else
        take_selection(space, p, room);
    if (p->method == STINT_TOPK_NARROW)
        return;
    /* Keys of all candidates while they are few, survivors of a digit when many. */
    const int64_t few = 4096 + sti_topk_min(p->k / 2, 1 << 16);
    const int64_t caught = sti_topk_catches(p) ? p->pool / 2 : 0;
    const int64_t spare = sti_topk_min(p->n, sti_topk_max(caught, p->k / 4 + few));
    room->cutter.spare_count = spare;
    room->cutter.spare = sti_topk_take(space, spare, sizeof(uint64_t));
    /* Counters for each piece of the walk back too. */
    room->cutter.counts =
        sti_topk_take(space, (p->back + 1) * STI_TOPK_BINS, sizeof(uint32_t));
}

sti_topk_room *sti_topk_room_take(sti_topk_space *space, const sti_topk_plan *p)
{
    sti_topk_room counted; /* where the space only counts */
    sti_topk_room *room = sti_topk_take(space, 1, sizeof *room);
    take_all(space, p, room ? room : &counted);
    return room;
}

/* ---- emission ---- */

void sti_topk_put_values(const sti_topk_view *v, int64_t base, const int64_t *index,
                         int64_t count, unsigned char *values)
{
    const size_t bytes = sti_topk_element_bytes(v->form);
    if (v->form == STI_TOPK_SUM || bytes < 4) {
        for (int64_t j = 0; j < count; j++) {
            const uint32_t raw = sti_topk_bits_at(v, index[j] - base);
            memcpy(values + (size_t)j * bytes, &raw, bytes);
        }
        return;
    }
    for (int64_t j = 0; j < count; j++) {
        if (j + 16 < count)
            __builtin_prefetch(v->x + 4 * (index[j + 16] - base));
        memcpy(values + 4 * j, v->x + 4 * (index[j] - base), 4);
    }
}

typedef struct decode_work {
    const sti_topk_view *view;
    const sti_topk_sink *sink;
    const uint64_t *packed;
    int64_t count;
} decode_work;

enum { DECODE_PIECE = 1 << 14, EMIT_ALONE = 1 << 14, EMIT_SHARES = 8 };

static void decode_piece(void *arg, int64_t piece, int worker)
{
    const decode_work *w = arg;
    const sti_topk_sink *sink = w->sink;
    const int64_t begin = piece * DECODE_PIECE;
    const int64_t end = sti_topk_min(w->count, begin + DECODE_PIECE);
    const bool told = w->packed && sink->values && sti_topk_key_tells(w->view);
    (void)worker;
    if (w->packed)
        for (int64_t i = begin; i < end; i++)
            sink->index[i] = sink->base + sti_topk_packed_index(w->packed[i]);
    for (int64_t i = begin; told && i < end; i++) {
        const uint32_t bits = sti_topk_packed_bits(w->view, w->packed[i]);
        memcpy(sink->values + 4 * i, &bits, sizeof bits);
    }
    if (sink->values && !told)
        sti_topk_put_values(w->view, sink->base, sink->index + begin, end - begin,
                            sink->values +
                                (size_t)begin * sti_topk_element_bytes(w->view->form));
}

void sti_topk_decode(const sti_team *team, const sti_topk_view *view,
                     const uint64_t *packed, int64_t count, const sti_topk_sink *sink)
{
    decode_work w = {view, sink, packed, count};
    sti_team_run(team, sti_topk_ceil(count, DECODE_PIECE), decode_piece, &w);
}

typedef struct runs_emission {
    const sti_topk_job *job;
    sti_topk_run *runs;
    int64_t count, each; /* runs, in a share of them */
    uint64_t cut;
    bool told; /* values come from keys */
} runs_emission;

static void count_runs(void *arg, int64_t share, int worker)
{
    const runs_emission *e = arg;
    const int64_t end = sti_topk_min((share + 1) * e->each, e->count);
    (void)worker;
    for (int64_t r = share * e->each; r < end; r++) {
        sti_topk_run *run = &e->runs[r];
        int64_t winners = 0;
        for (int64_t i = 0; i < run->count; i++)
            winners += run->at[i] >= e->cut;
        run->winners = winners;
    }
}

/* Winners of a run to the places from `at` on, none at `end` or behind it; the place
 * after the last one. Every element is written where the next winner belongs, and stays
 * if it is one: no branch to guess. */
static int64_t emit_run(const runs_emission *e, const sti_topk_run *run, int64_t at,
                        int64_t end)
{
    const sti_topk_sink sink = *e->job->sink; /* which no store can change */
    const sti_topk_view view = *e->job->view;
    for (int64_t i = 0; i < run->count && at < end; i++) {
        const uint64_t one = run->at[i];
        if (sink.packed) {
            sink.packed[at] = one;
        } else {
            sink.index[at] = sink.base + sti_topk_packed_index(one);
            if (e->told) {
                const uint32_t bits = sti_topk_packed_bits(&view, one);
                memcpy(sink.values + 4 * at, &bits, sizeof bits);
            }
        }
        at += one >= e->cut;
    }
    return at;
}

static void emit_share(void *arg, int64_t share, int worker)
{
    const runs_emission *e = arg;
    const int64_t end = sti_topk_min((share + 1) * e->each, e->count);
    (void)worker;
    for (int64_t r = share * e->each; r < end; r++) {
        const sti_topk_run *run = &e->runs[r];
        emit_run(e, run, run->first, run->first + run->winners);
    }
}

void sti_topk_emit_runs(const sti_topk_job *job, sti_topk_run *runs, int64_t run_count,
                        uint64_t cut)
{
    const sti_topk_sink *sink = job->sink;
    runs_emission e = {.job = job,
                       .runs = runs,
                       .count = run_count,
                       .each = sti_topk_ceil(run_count, EMIT_SHARES),
                       .cut = cut};
    const int64_t shares = sti_topk_ceil(run_count, e.each), k = job->plan->k;
    int64_t at = 0;
    e.told = !sink->packed && sink->values && sti_topk_key_tells(job->view);
    if (k < EMIT_ALONE) { /* before threads would have agreed on who does what */
        for (int64_t r = 0; r < run_count; r++)
            at = emit_run(&e, &runs[r], at, k);
    } else {
        sti_team_take(job->team, shares, count_runs, &e);
        for (int64_t r = 0; r < run_count; r++) {
            runs[r].first = at;
            at += runs[r].winners;
        }
        sti_team_take(job->team, shares, emit_share, &e);
    }
    if (!sink->packed && sink->values && !e.told)
        sti_topk_decode(job->team, job->view, NULL, k, sink);
}

/* ---- methods ---- */

static void by_pack(const sti_topk_job *job)
{
    sti_topk_room *room = job->room;
    int64_t none = 0;
    const int64_t n = job->view->n;
    sti_topk_run all = {.at = room->pool};
    all.count = job->ops->collect(job->view, 0, n, 0, UINT32_MAX, room->pool, &none);
    const uint64_t cut = sti_topk_cut(&room->cutter, &all, 1, job->plan->k);
    sti_topk_emit_runs(job, &all, 1, cut);
}

void sti_topk_row(const sti_topk_job *job)
{
    switch (job->plan->method) {
    case STINT_TOPK_PACK:
        by_pack(job);
        return;
    case STINT_TOPK_DELEGATE:
    case STINT_TOPK_BETA:
        sti_topk_by_delegates(job);
        return;
    case STINT_TOPK_NARROW:
        sti_topk_by_narrowing(job);
        return;
    case STINT_TOPK_THRESHOLD:
        if (sti_topk_by_threshold(job))
            return;
        break;
    case STINT_TOPK_AUTO:
    case STINT_TOPK_RADIX:
    case STINT_TOPK_METHODS:
        break;
    }
    sti_topk_by_radix(job);
}
