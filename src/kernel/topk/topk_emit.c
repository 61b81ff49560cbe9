/* Winners to where they are wanted: from lists of packed elements, or in a second pass
 * over the row, which is known to hold them. */
#include <string.h>

#include "kernel/topk/topk_key.h"

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

/* ---- from the row ---- */

typedef struct row_emission {
    const sti_topk_job *job;
    uint32_t key; /* winners: key >= this up to element `last`, > this behind it */
    int64_t last;
} row_emission;

static int64_t emit_range(const row_emission *e, int64_t begin, int64_t end,
                          uint32_t lo, int64_t at)
{
    const sti_topk_job *job = e->job;
    const sti_topk_sink *sink = job->sink;
    int64_t none = 0;
    if (begin >= end)
        return 0;
    if (sink->packed)
        return job->ops->collect(job->view, begin, end, lo, UINT32_MAX,
                                 sink->packed + at, &none);
    const size_t bytes = sti_topk_element_bytes(job->view->form);
    return job->ops->emit(job->view, begin, end, lo, sink->base, sink->index + at,
                          sink->values ? sink->values + (size_t)at * bytes : NULL);
}

static void emit_piece(void *arg, int64_t piece, int worker)
{
    const row_emission *e = arg;
    const sti_topk_plan *p = e->job->plan;
    const int64_t begin = sti_topk_piece_begin(p, piece),
                  end = sti_topk_piece_begin(p, piece + 1);
    const int64_t turn = sti_topk_min(end, sti_topk_max(begin, e->last + 1));
    const int64_t *offset = e->job->scratch->offset;
    int64_t at = offset[piece];
    (void)worker;
    if (at < offset[piece + 1]) /* else the row is not read again for nothing */
        at += emit_range(e, begin, turn, e->key, at);
    if (at < offset[piece + 1])
        emit_range(e, turn, end, e->key + 1, at);
}

int64_t sti_topk_find_tie(const sti_topk_job *job, uint32_t key, int64_t rank)
{
    int64_t piece = 0, none = 0;
    while (rank > job->scratch->inside[piece])
        rank -= job->scratch->inside[piece++];
    int64_t at = sti_topk_piece_begin(job->plan, piece);
    const int64_t end = sti_topk_piece_begin(job->plan, piece + 1);
    for (; at < end; at += STI_TOPK_LOOK) {
        const int64_t stop = sti_topk_min(at + STI_TOPK_LOOK, end);
        const int64_t here = job->ops->count(job->view, at, stop, key, key, &none);
        if (rank <= here)
            break;
        rank -= here;
    }
    for (;; at++)
        if (sti_topk_key_at(job->view, at) == key && --rank == 0)
            return at;
}

void sti_topk_emit_pieces(const sti_topk_job *job, uint32_t key, int64_t last)
{
    row_emission e = {job, key, last};
    sti_team_run(job->team, job->plan->pieces, emit_piece, &e);
}

void sti_topk_emit_row(const sti_topk_job *job, uint32_t key, int64_t ties)
{
    row_emission e = {job, key, STI_TOPK_TO_END};
    job->scratch->inside[0] = INT64_MAX;
    job->scratch->offset[0] = 0;
    job->scratch->offset[1] = job->plan->k;
    if (ties > 0)
        e.last = sti_topk_find_tie(job, key, ties);
    emit_piece(&e, 0, 0);
}
