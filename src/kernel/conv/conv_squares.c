/* Chunks of squares and how they join. */
#include "kernel/conv/conv_squares.h"

#include <string.h>

#include "kernel/conv/conv_priv.h"
#include "kernel/lane/dispatch.h"

static int64_t chunk_count(const sti_conv_shape *s)
{
    const int64_t pixels = s->n * s->oh * s->ow;
    return sti_conv_max(1, sti_conv_ceil_div(pixels, STI_GEMM_CHUNK));
}

size_t sti_conv_squares_bytes(const sti_conv_shape *s)
{
    return (size_t)(chunk_count(s) * STI_CONV_SQUARE_CHAINS * s->co) * sizeof(float);
}

void sti_conv_squares_chunk(const sti_conv_shape *s, const float *dy, int64_t chunk,
                            float *sums)
{
    const int64_t from = chunk * STI_GEMM_CHUNK;
    const int64_t left = s->n * s->oh * s->ow - from;
    STI_KERNELS_NOW(sti_conv_squares_kernels)
        ->chunk(dy + from * s->co, sti_conv_min(left, STI_GEMM_CHUNK), s->co,
                sums + chunk * STI_CONV_SQUARE_CHAINS * s->co);
}

typedef struct squares_job {
    const sti_conv_shape *shape;
    const float *dy;
    float *sums, *out;
} squares_job;

static void chunk_piece(void *arg, int64_t piece, int worker)
{
    const squares_job *j = arg;
    (void)worker;
    sti_conv_squares_chunk(j->shape, j->dy, piece, j->sums);
}

void sti_conv_squares_chunks(const sti_team *team, const sti_conv_shape *s,
                             const float *dy, float *sums)
{
    squares_job j = {.shape = s, .dy = dy, .sums = sums};
    sti_team_run(team, chunk_count(s), chunk_piece, &j);
}

static void join_squares(void *arg, int64_t piece, int worker)
{
    const squares_job *j = arg;
    const int64_t chunks = chunk_count(j->shape), co = j->shape->co;
    const int64_t floats = STI_CONV_SQUARE_CHAINS * co;
    (void)piece, (void)worker;
    for (int64_t step = 1; step < chunks; step *= 2)
        for (int64_t t = 0; t + step < chunks; t += 2 * step)
            for (int64_t i = 0; i < floats; i++)
                j->sums[t * floats + i] += j->sums[(t + step) * floats + i];
    for (int64_t i = 0; i < co; i++)
        j->out[i] = (j->sums[i] + j->sums[co + i]) +
                    (j->sums[2 * co + i] + j->sums[3 * co + i]);
}

void sti_conv_squares_join(const sti_team *team, const sti_conv_shape *s, float *sums,
                           float *squares_out)
{
    squares_job j = {.shape = s, .sums = sums, .out = squares_out};
    sti_team_run(team, 1, join_squares, &j); /* a piece: denormals as elsewhere */
}
