#include "kernel/embedding/scatter.h"

#include <string.h>

enum { PIECE = 1024 }; /* numbers of a row that one piece writes */

typedef struct scatter_job {
    sti_scatter_kind kind;
    int64_t rows, inner, count;
    const int32_t *index;
    const float *x, *updates;
    float *y;
} scatter_job;

static void write_row(sti_scatter_kind kind, int64_t n, const float *from, float *to)
{
    switch (kind) {
    case STI_SCATTER_ADD:
        for (int64_t k = 0; k < n; k++)
            to[k] += from[k];
        break;
    case STI_SCATTER_MULTIPLY:
        for (int64_t k = 0; k < n; k++)
            to[k] *= from[k];
        break;
    case STI_SCATTER_MAX:
        for (int64_t k = 0; k < n; k++)
            to[k] = from[k] > to[k] ? from[k] : to[k];
        break;
    case STI_SCATTER_MIN:
        for (int64_t k = 0; k < n; k++)
            to[k] = from[k] < to[k] ? from[k] : to[k];
        break;
    case STI_SCATTER_SET:
    case STI_SCATTER_KINDS:
    default:
        memcpy(to, from, (size_t)n * sizeof *to);
    }
}

/* Some columns of all rows, so that one element's updates stay in their order. */
static void scatter_piece(void *arg, int64_t piece, int worker)
{
    const scatter_job *j = arg;
    const int64_t first = piece * PIECE;
    const int64_t n = j->inner - first < PIECE ? j->inner - first : PIECE;
    (void)worker;
    for (int64_t r = 0; r < j->rows && j->x != j->y; r++)
        memcpy(j->y + r * j->inner + first, j->x + r * j->inner + first,
               (size_t)n * sizeof *j->y);
    for (int64_t i = 0; i < j->count; i++) {
        const int64_t at = j->index[i] < 0 ? j->index[i] + j->rows : j->index[i];
        if (at >= 0 && at < j->rows)
            write_row(j->kind, n, j->updates + i * j->inner + first,
                      j->y + at * j->inner + first);
    }
}

void sti_scatter_32(const sti_team *team, sti_scatter_kind kind, int64_t rows,
                    int64_t inner, int64_t count, const int32_t *index, const void *x,
                    const void *updates, void *y)
{
    scatter_job job = {kind, rows, inner, count, index, x, updates, y};
    sti_team_run(team, (inner + PIECE - 1) / PIECE, scatter_piece, &job);
}
