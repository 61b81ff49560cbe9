#include "train/average.h"

#include <string.h>

#include "train/prune.h"

enum { PIECE = 1 << 14 }; /* numbers that a thread takes at once */

/* ---- one tensor ---- */

typedef struct mover {
    float rest; /* 1 - d */
    int64_t count;
    const float *x;
    float *average;
} mover;

static void move_piece(void *user, int64_t piece, int worker)
{
    const mover *m = user;
    const int64_t from = piece * PIECE;
    const int64_t to = from + PIECE < m->count ? from + PIECE : m->count;
    (void)worker;
    for (int64_t i = from; i < to; i++)
        m->average[i] += m->rest * (m->x[i] - m->average[i]);
}

typedef struct averaging {
    sti_step_engine *engine;
    int block; /* of engine->average */
    float rest;
} averaging;

static stint_status average_tensor(void *user, const sti_value_row *row,
                                   const sti_allocation *allocation)
{
    const averaging *a = user;
    const sti_step_engine *e = a->engine;
    if (row->in_bytes) /* frozen: it is its own mean, from the start */
        return STINT_OK;
    const char *from = a->block == 0 ? e->params : e->states;
    char *to = (char *)e->average[a->block] + allocation->offset;
    mover m = {.rest = a->rest,
               .count = stint_shape_count(&row->shape),
               .x = (const float *)(const void *)(from + allocation->offset),
               .average = (float *)(void *)to};
    sti_team_run(&e->team, (m.count + PIECE - 1) / PIECE, move_piece, &m);
    if (sti_prune_masks(e, row))
        sti_prune_zero(e, row, allocation, m.average);
    return STINT_OK;
}

/* ---- a run ---- */

void sti_average_start(sti_step_engine *engine)
{
    if (!engine->desc.averaged)
        return;
    memcpy(engine->average[0], engine->params, engine->sizes.params);
    memcpy(engine->average[1], engine->states, engine->sizes.states);
}

void sti_average_add(sti_step_engine *engine, double average, int64_t n)
{
    const double early = (double)(1 + n) / (double)(10 + n);
    averaging a = {.engine = engine,
                   .rest = (float)(1 - (early < average ? early : average))};
    if (!engine->desc.averaged)
        return;
    sti_network_each(engine->desc.train, STI_ROLE_PARAM, average_tensor, &a);
    a.block = 1;
    sti_network_each(engine->desc.train, STI_ROLE_STATE, average_tensor, &a);
}

static void swap(void *one, void *other, size_t bytes)
{
    char kept[4096], *a = one, *b = other;
    for (size_t at = 0; at < bytes; at += sizeof kept) {
        const size_t n = bytes - at < sizeof kept ? bytes - at : sizeof kept;
        memcpy(kept, a + at, n);
        memcpy(a + at, b + at, n);
        memcpy(b + at, kept, n);
    }
}

void sti_average_swap(sti_step_engine *engine)
{
    if (!engine->desc.averaged)
        return;
    swap(engine->params, engine->average[0], engine->sizes.params);
    swap(engine->states, engine->average[1], engine->sizes.states);
}
