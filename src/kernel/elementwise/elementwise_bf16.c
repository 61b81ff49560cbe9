/* Flat loops over bfloat16 arrays, in pieces. */
#include "kernel/elementwise/elementwise_bf16.h"

#include <assert.h>

#include "kernel/lane/bf16_kernels.h"

enum { PIECE = 1 << 15 }; /* elements, a multiple of 8 for the bits */

typedef struct flat_job {
    const sti_bf16_kernels *loops;
    int64_t n;
    const void *a, *b;
    void *y;
    const uint8_t *bits;
    uint8_t *bits_out;
} flat_job;

static int64_t piece_count(const flat_job *job, int64_t at)
{
    return job->n - at < PIECE ? job->n - at : PIECE;
}

static void run_flat(const sti_team *team, sti_piece_fn *fn, flat_job *job)
{
    job->loops = sti_bf16_kernels_now();
    sti_team_run(team, (job->n + PIECE - 1) / PIECE, fn, job);
}

static void widen_piece(void *arg, int64_t piece, int worker)
{
    const flat_job *j = arg;
    const int64_t at = piece * PIECE;
    (void)worker;
    j->loops->to_f32(piece_count(j, at), (const sti_bf16 *)j->a + at,
                     (float *)j->y + at);
}

void sti_bf16_widen(const sti_team *team, int64_t n, const sti_bf16 *x, float *y_out)
{
    run_flat(team, widen_piece, &(flat_job){.n = n, .a = x, .y = y_out});
}

static void round_piece(void *arg, int64_t piece, int worker)
{
    const flat_job *j = arg;
    const int64_t at = piece * PIECE;
    (void)worker;
    j->loops->from_f32(piece_count(j, at), (const float *)j->a + at,
                       (sti_bf16 *)j->y + at);
}

void sti_bf16_round(const sti_team *team, int64_t n, const float *x, sti_bf16 *y_out)
{
    run_flat(team, round_piece, &(flat_job){.n = n, .a = x, .y = y_out});
}

static void add_piece(void *arg, int64_t piece, int worker)
{
    const flat_job *j = arg;
    const int64_t at = piece * PIECE;
    (void)worker;
    j->loops->add(piece_count(j, at), (const sti_bf16 *)j->a + at,
                  (const sti_bf16 *)j->b + at, (sti_bf16 *)j->y + at);
}

void sti_bf16_add(const sti_team *team, int64_t n, const sti_bf16 *a, const sti_bf16 *b,
                  sti_bf16 *y_out)
{
    run_flat(team, add_piece, &(flat_job){.n = n, .a = a, .b = b, .y = y_out});
}

static void relu_piece(void *arg, int64_t piece, int worker)
{
    const flat_job *j = arg;
    const int64_t at = piece * PIECE;
    (void)worker;
    j->loops->relu(piece_count(j, at), (const sti_bf16 *)j->a + at,
                   (sti_bf16 *)j->y + at, j->bits_out ? j->bits_out + at / 8 : NULL);
}

void sti_bf16_relu(const sti_team *team, int64_t n, const sti_bf16 *x, sti_bf16 *y_out,
                   uint8_t *bits_out)
{
    run_flat(team, relu_piece,
             &(flat_job){.n = n, .a = x, .y = y_out, .bits_out = bits_out});
}

static void relu_grad_piece(void *arg, int64_t piece, int worker)
{
    const flat_job *j = arg;
    const int64_t at = piece * PIECE;
    (void)worker;
    j->loops->relu_grad(piece_count(j, at), (const sti_bf16 *)j->a + at,
                        j->bits + at / 8, (sti_bf16 *)j->y + at);
}

void sti_bf16_relu_grad(const sti_team *team, int64_t n, const sti_bf16 *dy,
                        const uint8_t *bits, sti_bf16 *dx_out)
{
    run_flat(team, relu_grad_piece,
             &(flat_job){.n = n, .a = dy, .y = dx_out, .bits = bits});
}

/* ---- whole images ---- */

typedef struct image_job {
    int64_t area, c;
    const sti_bf16 *x;
    const float *dy;
    float *y;
    sti_bf16 *dx;
} image_job;

static void pool_image(void *arg, int64_t image, int worker)
{
    const image_job *j = arg;
    const sti_bf16 *x = j->x + image * j->area * j->c;
    float *y = j->y + image * j->c;
    (void)worker;
    for (int64_t i = 0; i < j->c; i++)
        y[i] = 0.0f;
    for (int64_t r = 0; r < j->area; r++)
        for (int64_t i = 0; i < j->c; i++)
            y[i] += sti_bf16_to_f32(x[r * j->c + i]);
    for (int64_t i = 0; i < j->c; i++)
        y[i] *= 1.0f / (float)j->area;
}

void sti_bf16_global_pool(const sti_team *team, int64_t n, int64_t area, int64_t c,
                          const sti_bf16 *x, float *y_out)
{
    assert(area >= 1);
    image_job job = {.area = area, .c = c, .x = x, .y = y_out};
    sti_team_run(team, n, pool_image, &job);
}

static void unpool_image(void *arg, int64_t image, int worker)
{
    const image_job *j = arg;
    sti_bf16 *dx = j->dx + image * j->area * j->c;
    (void)worker;
    for (int64_t i = 0; i < j->c; i++)
        dx[i] = sti_bf16_from_f32(j->dy[image * j->c + i] * (1.0f / (float)j->area));
    for (int64_t r = 1; r < j->area; r++)
        memcpy(dx + r * j->c, dx, (size_t)j->c * sizeof *dx);
}

void sti_bf16_global_unpool(const sti_team *team, int64_t n, int64_t area, int64_t c,
                            const float *dy, sti_bf16 *dx_out)
{
    assert(area >= 1);
    image_job job = {.area = area, .c = c, .dy = dy, .dx = dx_out};
    sti_team_run(team, n, unpool_image, &job);
}
