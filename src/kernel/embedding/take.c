#include "kernel/embedding/take.h"

#include <string.h>

typedef struct take_job {
    const sti_take_shape *s;
    const int32_t *index;
    const uint32_t *x;
    uint32_t *y;
    int64_t rows; /* of y, that one piece makes */
} take_job;

static int64_t place(const sti_take_shape *s, int32_t index)
{
    const int64_t at = index < 0 ? index + s->length : index;
    return at < 0 || at >= s->length ? -1 : at;
}

static void take_piece(void *arg, int64_t piece, int worker)
{
    const take_job *j = arg;
    const sti_take_shape *s = j->s;
    const int64_t all = s->outer * s->count;
    (void)worker;
    for (int64_t row = piece * j->rows; row < (piece + 1) * j->rows && row < all;
         row++) {
        const int64_t at = place(s, j->index[row % s->count]);
        uint32_t *y = j->y + row * s->inner;
        if (at >= 0)
            memcpy(y, j->x + (row / s->count * s->length + at) * s->inner,
                   (size_t)s->inner * sizeof *y);
        else
            for (int64_t k = 0; k < s->inner; k++)
                y[k] = 0x7fc00000u;
    }
}

void sti_take_32(const sti_team *team, const sti_take_shape *shape,
                 const int32_t *index, const void *x, void *y)
{
    take_job job = {shape, index, x, y,
                    shape->inner < 4096 ? 4096 / shape->inner + 1 : 1};
    const int64_t all = shape->outer * shape->count;
    sti_team_run(team, (all + job.rows - 1) / job.rows, take_piece, &job);
}

typedef struct grad_job {
    const sti_take_shape *s;
    const int32_t *index;
    const float *dy;
    float *dx;
} grad_job;

static void grad_piece(void *arg, int64_t piece, int worker)
{
    const grad_job *j = arg;
    const sti_take_shape *s = j->s;
    float *dx = j->dx + piece * s->length * s->inner;
    (void)worker;
    memset(dx, 0, (size_t)(s->length * s->inner) * sizeof *dx);
    for (int64_t i = 0; i < s->count; i++) {
        const int64_t at = place(s, j->index[i]);
        const float *dy = j->dy + (piece * s->count + i) * s->inner;
        for (int64_t k = 0; at >= 0 && k < s->inner; k++)
            dx[at * s->inner + k] += dy[k];
    }
}

void sti_take_grad_f32(const sti_team *team, const sti_take_shape *shape,
                       const int32_t *index, const float *dy, float *dx)
{
    grad_job job = {shape, index, dy, dx};
    sti_team_run(team, shape->outer, grad_piece, &job);
}
