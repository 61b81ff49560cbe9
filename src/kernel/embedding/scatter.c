#include "kernel/embedding/scatter.h"

#include <string.h>

/* A piece writes so many numbers of each of its rows at most; and of so many numbers of
 * short rows, cut into BANDS at most, since each reads all indices. */
enum { PIECE = 1024, BAND_NUMBERS = 1 << 15, BANDS = 8 };

typedef struct scatter_job {
    sti_scatter_kind kind;
    int64_t rows, inner, count, bands;
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

/* Some columns of a band of rows, so that one element's updates stay in their order. */
static void scatter_piece(void *arg, int64_t piece, int worker)
{
    const scatter_job *j = arg;
    const int64_t first = piece / j->bands * PIECE, band = piece % j->bands;
    const int64_t n = j->inner - first < PIECE ? j->inner - first : PIECE;
    const int64_t begin = band * j->rows / j->bands,
                  end = (band + 1) * j->rows / j->bands;
    (void)worker;
    if (j->x != j->y && n == j->inner)
        memcpy(j->y + begin * n, j->x + begin * n,
               (size_t)((end - begin) * n) * sizeof *j->y);
    else
        for (int64_t r = begin; r < end && j->x != j->y; r++)
            memcpy(j->y + r * j->inner + first, j->x + r * j->inner + first,
                   (size_t)n * sizeof *j->y);
    for (int64_t i = 0; i < j->count; i++) {
        const int64_t at = j->index[i] < 0 ? j->index[i] + j->rows : j->index[i];
        if (at >= begin && at < end)
            write_row(j->kind, n, j->updates + i * j->inner + first,
                      j->y + at * j->inner + first);
    }
}

void sti_scatter_32(const sti_team *team, sti_scatter_kind kind, int64_t rows,
                    int64_t inner, int64_t count, const int32_t *index, const void *x,
                    const void *updates, void *y)
{
    const int64_t wanted = inner < PIECE ? rows * inner / BAND_NUMBERS : 1;
    const int64_t bands = wanted < 1 ? 1 : wanted > BANDS ? BANDS : wanted;
    scatter_job job = {kind, rows, inner, count, bands, index, x, updates, y};
    sti_team_run(team, (inner + PIECE - 1) / PIECE * bands, scatter_piece, &job);
}
