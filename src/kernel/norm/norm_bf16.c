/* Batch normalisation on bfloat16: cutting into chunks, joining, and the loops for
 * widths that the instruction sets' tables do not take. */
#include "kernel/norm/norm_bf16.h"

#include <assert.h>

#include "kernel/lane/bf16_kernels.h"
#include "kernel/norm/norm_join.h"

/* Part of the numerics: they decide the order of sums. */
enum {
    CHUNK_ELEMENTS = 8192,
    CHUNK_MIN_ROWS = 64,
    LANES = 16,
    COLS = 256 /* columns of a block: bounds what is held on the stack */
};

static sti_norm_sums cut_of(int64_t rows, int64_t c)
{
    assert(rows >= 1 && c >= 1);
    sti_norm_sums u = {.rows = rows, .c = c};
    u.rows_a_chunk = CHUNK_ELEMENTS / c / LANES * LANES;
    if (u.rows_a_chunk < CHUNK_MIN_ROWS)
        u.rows_a_chunk = CHUNK_MIN_ROWS;
    u.chunks = (rows + u.rows_a_chunk - 1) / u.rows_a_chunk;
    return u;
}

/* Partial sums, then 3 [c] of parameters in float32. */
size_t sti_norm_bf16_scratch_bytes(int64_t rows, int64_t c)
{
    return sti_norm_sums_bytes(cut_of(rows, c).chunks, c) +
           (size_t)(3 * c) * sizeof(float);
}

/* ---- any width ---- */

static void join_rows(float acc[4][COLS], int64_t n, float *out)
{
    for (int64_t j = 0; j < n; j++)
        out[j] = (acc[0][j] + acc[1][j]) + (acc[2][j] + acc[3][j]);
}

static void any_moments(const sti_norm_bf16_block *b, float *s, float *q)
{
    float acc[4][COLS] = {{0}}, square[4][COLS] = {{0}};
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t j = 0; j < b->cols; j++) {
            const float x0 = sti_bf16_to_f32(b->x[j]);
            const float d = sti_bf16_to_f32(b->x[r * b->ld + j]) - x0;
            acc[r % 4][j] += d;
            square[r % 4][j] += d * d;
        }
    join_rows(acc, b->cols, s);
    join_rows(square, b->cols, q);
}

static void any_forward(const sti_norm_bf16_block *b)
{
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t j = 0; j < b->cols; j++) {
            const int64_t at = r * b->ld + j;
            float y =
                (sti_bf16_to_f32(b->x[at]) - b->mean[j]) * b->gain[j] + b->shift[j];
            if (b->residual)
                y += sti_bf16_to_f32(b->residual[at]);
            b->y[at] = sti_bf16_from_f32(b->relu && y <= 0.0f ? 0.0f : y);
        }
}

/* bits of whole rows: `first` is the flat index of the block. */
static float z_at(const sti_norm_bf16_block *b, int64_t first, int64_t at)
{
    const int64_t i = first + at;
    return !b->bits || (b->bits[i / 8] >> i % 8 & 1) ? sti_bf16_to_f32(b->dy[at])
                                                     : 0.0f;
}

static void any_grad_sums(const sti_norm_bf16_block *b, int64_t first, float *s,
                          float *q)
{
    float acc[4][COLS] = {{0}}, cross[4][COLS] = {{0}};
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t j = 0; j < b->cols; j++) {
            const int64_t at = r * b->ld + j;
            const float z = z_at(b, first, at);
            acc[r % 4][j] += z;
            cross[r % 4][j] += z * (sti_bf16_to_f32(b->x[at]) - b->mean[j]);
        }
    join_rows(acc, b->cols, s);
    join_rows(cross, b->cols, q);
}

static void any_backward(const sti_norm_bf16_block *b, int64_t first)
{
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t j = 0; j < b->cols; j++) {
            const int64_t at = r * b->ld + j;
            const float z = z_at(b, first, at);
            float d = z;
            if (b->y)
                d = ((z - b->shift[j]) -
                     (sti_bf16_to_f32(b->x[at]) - b->mean[j]) * b->slope[j]) *
                    b->gain[j];
            if (b->dresidual)
                b->dresidual[at] = sti_bf16_from_f32(z);
            if (b->y)
                b->y[at] = sti_bf16_from_f32(d);
        }
}

/* ---- a block: some columns of a chunk ---- */

typedef struct norm_job {
    sti_norm_sums u;
    sti_norm_bf16_block whole; /* arrays of the whole tensor and of all channels */
    const sti_bf16_kernels *loops;
    bool fast; /* c fills vectors */
} norm_job;

#define MOVE(p, elements) ((p) ? (p) + (elements) : NULL)

/* Columns col.. of a chunk; *first is the block's flat index. Bits of a slow block stay
 * those of the whole tensor. */
static sti_norm_bf16_block block_of(const norm_job *job, int64_t chunk, int64_t col,
                                    int64_t *first)
{
    const sti_norm_sums *u = &job->u;
    const sti_norm_bf16_block *w = &job->whole;
    const int64_t at = chunk * u->rows_a_chunk * u->c + col;
    sti_norm_bf16_block b = *w;
    b.rows = sti_norm_span_rows(u, chunk, 1);
    b.ld = u->c;
    b.cols = u->c - col < COLS ? u->c - col : COLS;
    b.x = MOVE(w->x, at);
    b.dy = MOVE(w->dy, at);
    b.residual = MOVE(w->residual, at);
    b.y = MOVE(w->y, at);
    b.dresidual = MOVE(w->dresidual, at);
    b.mean = MOVE(w->mean, col);
    b.gain = MOVE(w->gain, col);
    b.shift = MOVE(w->shift, col);
    b.slope = MOVE(w->slope, col);
    if (job->fast) {
        b.bits = MOVE(w->bits, at / 8);
        b.bits_out = MOVE(w->bits_out, at / 8);
    }
    *first = at;
    return b;
}

/* ---- statistics ---- */

static void statistics_piece(void *arg, int64_t chunk, int worker)
{
    const norm_job *job = arg;
    const sti_norm_sums *u = &job->u;
    double *mean = u->at + chunk * 2 * u->c, *square = mean + u->c;
    (void)worker;
    for (int64_t col = 0; col < u->c; col += COLS) {
        float s[COLS], q[COLS];
        int64_t first;
        const sti_norm_bf16_block b = block_of(job, chunk, col, &first);
        if (job->fast)
            job->loops->moments(&b, s, q);
        else
            any_moments(&b, s, q);
        for (int64_t j = 0; j < b.cols; j++) {
            const double n = (double)b.rows, e = (double)s[j];
            const double d = (double)q[j] - e * e / n;
            mean[col + j] = (double)sti_bf16_to_f32(b.x[j]) + e / n;
            square[col + j] = d < 0.0 ? 0.0 : d;
        }
    }
}

static norm_job job_make(int64_t rows, int64_t c, void *partial)
{
    norm_job job = {
        .u = cut_of(rows, c), .loops = sti_bf16_kernels_now(), .fast = c % LANES == 0};
    job.u.at = partial;
    return job;
}

void sti_norm_bf16_statistics(const sti_team *team, int64_t rows, int64_t c,
                              float epsilon, const sti_bf16 *x, float *mean_out,
                              float *inv_out, float *unbiased_out, void *scratch)
{
    norm_job job = job_make(rows, c, scratch);
    job.whole.x = x;
    sti_team_run(team, job.u.chunks, statistics_piece, &job);
    sti_norm_join_moments(&job.u, 0, c, epsilon, mean_out, inv_out, unbiased_out);
}

/* ---- forward ---- */

typedef struct forward_job {
    norm_job norm;
    const float *scale, *inv;
} forward_job;

static void forward_piece(void *arg, int64_t chunk, int worker)
{
    const forward_job *job = arg;
    const norm_job *n = &job->norm;
    (void)worker;
    for (int64_t col = 0; col < n->u.c; col += COLS) {
        float gain[COLS];
        int64_t first;
        sti_norm_bf16_block b = block_of(n, chunk, col, &first);
        for (int64_t j = 0; j < b.cols; j++)
            gain[j] = job->scale[col + j] * job->inv[col + j];
        b.gain = gain;
        if (n->fast)
            n->loops->forward(&b);
        else
            any_forward(&b);
    }
    if (n->fast || !n->whole.bits_out)
        return;
    const int64_t at = chunk * n->u.rows_a_chunk * n->u.c;
    n->loops->relu(sti_norm_span_rows(&n->u, chunk, 1) * n->u.c, n->whole.y + at,
                   n->whole.y + at, n->whole.bits_out + at / 8);
}

void sti_norm_bf16_forward(const sti_team *team, const sti_norm_bf16_forward_args *args)
{
    forward_job job = {.norm = job_make(args->rows, args->c, NULL),
                       .scale = args->scale,
                       .inv = args->inv};
    job.norm.whole = (sti_norm_bf16_block){.relu = args->relu,
                                           .x = args->x,
                                           .residual = args->residual,
                                           .mean = args->mean,
                                           .shift = args->shift,
                                           .y = args->y,
                                           .bits_out = args->relu ? args->bits : NULL};
    sti_team_run(team, job.norm.u.chunks, forward_piece, &job);
}

/* ---- backward ---- */

static void grad_sums_piece(void *arg, int64_t chunk, int worker)
{
    const norm_job *job = arg;
    const sti_norm_sums *u = &job->u;
    double *sum = u->at + chunk * 2 * u->c, *cross = sum + u->c;
    (void)worker;
    for (int64_t col = 0; col < u->c; col += COLS) {
        float s[COLS], q[COLS];
        int64_t first;
        const sti_norm_bf16_block b = block_of(job, chunk, col, &first);
        if (job->fast)
            job->loops->grad_sums(&b, s, q);
        else
            any_grad_sums(&b, first, s, q);
        for (int64_t j = 0; j < b.cols; j++) {
            sum[col + j] = (double)s[j];
            cross[col + j] = (double)q[j];
        }
    }
}

static void backward_piece(void *arg, int64_t chunk, int worker)
{
    const norm_job *job = arg;
    (void)worker;
    for (int64_t col = 0; col < job->u.c; col += COLS) {
        int64_t first;
        const sti_norm_bf16_block b = block_of(job, chunk, col, &first);
        if (job->fast)
            job->loops->backward(&b);
        else
            any_backward(&b, first);
    }
}

void sti_norm_bf16_backward(const sti_team *team,
                            const sti_norm_bf16_backward_args *args, void *scratch)
{
    const int64_t c = args->c;
    norm_job job = job_make(args->rows, c, scratch);
    float *gain =
        (float *)(void *)((char *)scratch + sti_norm_sums_bytes(job.u.chunks, c));
    const sti_norm_slopes slopes = {.scale = args->scale,
                                    .inv = args->inv,
                                    .gain = gain,
                                    .mean_z = gain + c,
                                    .slope = gain + 2 * c,
                                    .dscale = args->dscale,
                                    .dshift = args->dshift};
    job.whole = (sti_norm_bf16_block){.dy = args->dy,
                                      .x = args->x,
                                      .bits = args->bits,
                                      .mean = args->mean,
                                      .gain = slopes.gain,
                                      .shift = slopes.mean_z,
                                      .slope = slopes.slope,
                                      .y = args->dx,
                                      .dresidual = args->dresidual};
    if (args->dx || args->dscale || args->dshift) {
        sti_team_run(team, job.u.chunks, grad_sums_piece, &job);
        sti_norm_join_slopes(&job.u, 0, c, &slopes);
    }
    if (args->dx || args->dresidual)
        sti_team_run(team, job.u.chunks, backward_piece, &job);
}
