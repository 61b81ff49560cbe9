/* Row normalisation: pieces of rows, the tree over row chunks. */
#include "kernel/norm/row_norm.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/lane/dispatch.h"
#include "kernel/norm/row_norm_row.h"

enum {
    CHUNK_ROWS = 64, /* part of the numerics */
    JOIN_COLUMNS = 256
};

typedef struct norm_job {
    const sti_row_norm *args;
    const sti_row_norm_kernels *kernels;
    const float *dy, *x, *mean, *inv;
    float *y, *mean_out, *inv_out, *dx;
    float *partial; /* [chunks][columns] */
    int64_t chunks, columns;
} norm_job;

static int64_t rows_until(const norm_job *job, int64_t piece)
{
    const int64_t end = (piece + 1) * CHUNK_ROWS;
    return end < job->args->rows ? end : job->args->rows;
}

static void forward_piece(void *arg, int64_t piece, int worker)
{
    const norm_job *job = arg;
    const sti_row_norm *a = job->args;
    (void)worker;
    for (int64_t r = piece * CHUNK_ROWS; r < rows_until(job, piece); r++) {
        const float *x = job->x + r * a->n;
        const float mean = a->shift ? job->kernels->sum(a->n, x) / (float)a->n : 0.0f;
        const float variance = job->kernels->squares(a->n, x, mean) / (float)a->n;
        const float inv = 1.0f / sqrtf(variance + a->epsilon);
        job->kernels->apply(a->n, x, mean, inv, a->scale, a->shift, job->y + r * a->n);
        if (job->mean_out)
            job->mean_out[r] = mean;
        job->inv_out[r] = inv;
    }
}

static int64_t chunks_of(const sti_row_norm *args)
{
    assert(args->n >= 1);
    return (args->rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
}

void sti_row_norm_f32(const sti_team *team, const sti_row_norm *args, const float *x,
                      float *y, float *mean, float *inv)
{
    norm_job job = {.args = args,
                    .kernels = STI_KERNELS_NOW(sti_row_norm_kernels),
                    .x = x,
                    .y = y,
                    .mean_out = mean,
                    .inv_out = inv};
    sti_team_run(team, chunks_of(args), forward_piece, &job);
}

static void backward_piece(void *arg, int64_t piece, int worker)
{
    const norm_job *job = arg;
    const sti_row_norm *a = job->args;
    float *dscale = job->partial + piece * job->columns;
    float *dshift = job->mean ? dscale + a->n : NULL;
    (void)worker;
    memset(dscale, 0, (size_t)job->columns * sizeof *dscale);
    for (int64_t r = piece * CHUNK_ROWS; r < rows_until(job, piece); r++) {
        const float *dy = job->dy + r * a->n, *x = job->x + r * a->n;
        const float mean = job->mean ? job->mean[r] : 0.0f, inv = job->inv[r];
        float sum[2];
        job->kernels->moments(a->n, dy, x, a->scale, mean, inv, sum);
        job->kernels->grad(a->n, dy, x, a->scale, mean, inv,
                           job->mean ? sum[0] / (float)a->n : 0.0f,
                           sum[1] / (float)a->n, dscale, dshift, job->dx + r * a->n);
    }
}

/* Columns of a piece, through all chunks. */
static void join_piece(void *arg, int64_t piece, int worker)
{
    const norm_job *job = arg;
    const int64_t first = piece * JOIN_COLUMNS, left = job->columns - first;
    const int64_t n = left < JOIN_COLUMNS ? left : JOIN_COLUMNS;
    (void)worker;
    for (int64_t step = 1; step < job->chunks; step *= 2)
        for (int64_t i = 0; i + step < job->chunks; i += 2 * step)
            job->kernels->add(n, job->partial + (i + step) * job->columns + first,
                              job->partial + i * job->columns + first);
}

size_t sti_row_norm_scratch_bytes(const sti_row_norm *args)
{
    return (size_t)(chunks_of(args) * 2 * args->n) * sizeof(float);
}

void sti_row_norm_grad_f32(const sti_team *team, const sti_row_norm *args,
                           const float *dy, const float *x, const float *mean,
                           const float *inv, const sti_row_norm_grads *grads,
                           void *scratch)
{
    norm_job job = {.args = args,
                    .kernels = STI_KERNELS_NOW(sti_row_norm_kernels),
                    .dy = dy,
                    .x = x,
                    .mean = mean,
                    .inv = inv,
                    .dx = grads->dx,
                    .partial = scratch,
                    .chunks = chunks_of(args),
                    .columns = mean ? 2 * args->n : args->n};
    const size_t row_bytes = (size_t)args->n * sizeof(float);
    if (job.chunks == 0) {
        memset(grads->dscale, 0, row_bytes);
        if (grads->dshift)
            memset(grads->dshift, 0, row_bytes);
        return;
    }
    sti_team_run(team, job.chunks, backward_piece, &job);
    sti_team_run(team, (job.columns + JOIN_COLUMNS - 1) / JOIN_COLUMNS, join_piece,
                 &job);
    memcpy(grads->dscale, job.partial, row_bytes);
    if (grads->dshift)
        memcpy(grads->dshift, job.partial + args->n, row_bytes);
}
