/* Batch normalisation: cutting into chunks, joining, and the dispatch of norm.h. */
#include "kernel/norm/norm.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernel/lane/dispatch.h"
#include "kernel/norm/norm_block.h"
#include "kernel/norm/norm_join.h"

/* Part of the numerics: they decide the order of sums. */
enum {
    CHUNK_ELEMENTS = 8192,
    CHUNK_MIN_ROWS = 128,
    BLOCK = 64,  /* columns of a block when rows are not joined */
    WIDE = 1024, /* most columns of joined rows */
    LANES = 16
};

typedef struct cut {
    int64_t rows, c;
    int64_t k;     /* rows taken as one */
    int64_t width; /* k c */
    int64_t rows_a_chunk, chunks;
    int64_t blocks; /* of columns; 1 when k > 1 */
    int shares;     /* of the team's threads */
} cut;

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

static cut cut_of(int64_t rows, int64_t c)
{
    assert(rows >= 1 && c >= 1);
    cut u = {.rows = rows, .c = c, .k = LANES / gcd(c, LANES)};
    if (u.k * c > WIDE)
        u.k = 1;
    u.width = u.k * c;
    u.rows_a_chunk = CHUNK_ELEMENTS / c / LANES * LANES;
    if (u.rows_a_chunk < CHUNK_MIN_ROWS)
        u.rows_a_chunk = CHUNK_MIN_ROWS;
    u.chunks = (rows + u.rows_a_chunk - 1) / u.rows_a_chunk;
    u.blocks = u.k > 1 ? 1 : (c + BLOCK - 1) / BLOCK;
    return u;
}

/* Pieces of sums, from the last to the first within each thread's share: what came
 * before has just written the end of x, and the next walk begins with what this one
 * read last. */
static int64_t sum_piece_at(const cut *u, int64_t piece)
{
    const int64_t pieces = u->chunks * u->blocks, shares = u->shares;
    const int64_t share = ((piece + 1) * shares - 1) / pieces;
    return share * pieces / shares + (share + 1) * pieces / shares - 1 - piece;
}

static int64_t chunk_rows(const cut *u, int64_t chunk)
{
    int64_t left = u->rows - chunk * u->rows_a_chunk;
    return left < u->rows_a_chunk ? left : u->rows_a_chunk;
}

static sti_norm_sums sums_of(const cut *u, double *partial)
{
    return (sti_norm_sums){u->rows, u->c, u->rows_a_chunk, u->chunks, partial};
}

/* Scratch: partial sums, then 3 [c] of parameters in float32. */
size_t sti_norm_scratch_bytes(int64_t rows, int64_t c)
{
    const cut u = cut_of(rows, c);
    return sti_norm_sums_bytes(u.chunks, c) + (size_t)(3 * c) * sizeof(float);
}

static const sti_norm_kernels *fast_kernels(void)
{
    return STI_KERNELS_NOW(sti_norm_kernels);
}

/* ---- a piece: one chunk, one block of columns ---- */

typedef struct piece_view {
    sti_norm_block main;  /* whole vectors, or any width when k == 1 */
    sti_norm_block after; /* rows that do not fill a joined row; rows == 0: none */
    const sti_norm_kernels *kernels; /* of main */
    int64_t rows;                    /* of the chunk */
    int64_t first, channels;         /* of the block */
} piece_view;

/* Array `p` moved on by `elements`; NULL stays. */
#define MOVE(p, elements) ((p) ? (p) + (elements) : NULL)

static sti_norm_block block_moved(const sti_norm_block *b, int64_t elements)
{
    sti_norm_block m = *b;
    m.x = MOVE(b->x, elements);
    m.dy = MOVE(b->dy, elements);
    m.residual = MOVE(b->residual, elements);
    m.y = MOVE(b->y, elements);
    m.dresidual = MOVE(b->dresidual, elements);
    m.bits = MOVE(b->bits, elements / 8);
    m.bits_out = MOVE(b->bits_out, elements / 8);
    return m;
}

/* `whole` has the arrays of the whole tensor and of all channels. */
static piece_view view_piece(const cut *u, const sti_norm_block *whole, int64_t chunk,
                             int64_t block)
{
    piece_view v = {.rows = chunk_rows(u, chunk), .first = block * BLOCK};
    v.channels = u->c - v.first;
    if (u->k == 1 && v.channels > BLOCK)
        v.channels = BLOCK;
    v.main = block_moved(whole, chunk * u->rows_a_chunk * u->c + v.first);
    v.main.rows = v.rows / u->k;
    v.main.ld = u->width;
    v.main.cols = v.channels * u->k;
    v.main.mean = MOVE(whole->mean, v.first);
    v.main.gain = MOVE(whole->gain, v.first);
    v.main.shift = MOVE(whole->shift, v.first);
    v.main.slope = MOVE(whole->slope, v.first);
    v.kernels = u->width % LANES == 0 ? fast_kernels() : &sti_norm_kernels_any;

    v.after = block_moved(&v.main, v.main.rows * u->width);
    v.after.rows = v.rows % u->k;
    v.after.ld = u->c;
    v.after.cols = u->c;
    return v;
}

/* The column after those of a block. */
static int64_t block_end(const cut *u, int64_t block)
{
    return u->c - block * BLOCK < BLOCK ? u->c : (block + 1) * BLOCK;
}

/* wide[i] = narrow[i % c], for joined rows. */
static const float *widen(const cut *u, const float *narrow, float wide[WIDE])
{
    if (u->k == 1 || !narrow)
        return narrow;
    for (int64_t i = 0; i < u->k; i++)
        memcpy(wide + i * u->c, narrow, (size_t)u->c * sizeof *wide);
    return wide;
}

/* Columns of joined rows down to channels, in ascending order; then the rows after. */
static void fold(const cut *u, const piece_view *v, float *wide, const float *after)
{
    if (u->k == 1)
        return;
    for (int64_t i = 1; i < u->k; i++)
        for (int64_t j = 0; j < u->c; j++)
            wide[j] += wide[i * u->c + j];
    if (v->after.rows)
        for (int64_t j = 0; j < u->c; j++)
            wide[j] += after[j];
}

/* ---- statistics ---- */

typedef struct statistics_job {
    cut u;
    sti_norm_block whole;
    double *partial;
    float epsilon;
    float *mean_out, *inv_out, *unbiased_out;
} statistics_job;

/* m, the chunk's mean by channel, rounded. */
static void chunk_mean(const cut *u, const piece_view *v, float *m)
{
    float after[STI_NORM_ANY];
    v->kernels->sum(&v->main, m);
    if (v->after.rows)
        sti_norm_kernels_any.sum(&v->after, after);
    fold(u, v, m, after);
    for (int64_t j = 0; j < v->channels; j++)
        m[j] /= (float)v->rows;
}

static void chunk_moments(const cut *u, const piece_view *v, float *s, float *q)
{
    float after_s[STI_NORM_ANY], after_q[STI_NORM_ANY];
    v->kernels->moments(&v->main, s, q);
    if (v->after.rows)
        sti_norm_kernels_any.moments(&v->after, after_s, after_q);
    fold(u, v, s, after_s);
    fold(u, v, q, after_q);
}

/* Elements from a piece's x to that of the piece before it, which comes next. */
static int64_t next_x(const cut *u, int64_t piece)
{
    if (piece % u->blocks)
        return -BLOCK;
    return (u->blocks - 1) * BLOCK - u->rows_a_chunk * u->c;
}

static void statistics_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    const statistics_job *job = arg;
    const cut *u = &job->u;
    const int64_t at = sum_piece_at(u, piece), chunk = at / u->blocks;
    float m[WIDE], wide[WIDE], s[WIDE], q[WIDE];
    piece_view v = view_piece(u, &job->whole, chunk, at % u->blocks);
    double *mean = job->partial + chunk * 2 * u->c + v.first, *square = mean + u->c;

    chunk_mean(u, &v, m);
    v.main.mean = widen(u, m, wide);
    v.main.next = next_x(u, at);
    v.after.mean = m;
    chunk_moments(u, &v, s, q);
    for (int64_t j = 0; j < v.channels; j++) {
        double e = (double)s[j], d = (double)q[j] - e * e / (double)v.rows;
        mean[j] = (double)m[j] + e / (double)v.rows;
        square[j] = d < 0.0 ? 0.0 : d;
    }
}

/* The tree over chunks for a block of channels, and what comes out of it. */
static void statistics_join(void *arg, int64_t piece, int worker)
{
    (void)worker;
    const statistics_job *job = arg;
    const sti_norm_sums sums = sums_of(&job->u, job->partial);
    sti_norm_join_moments(&sums, piece * BLOCK, block_end(&job->u, piece), job->epsilon,
                          job->mean_out, job->inv_out, job->unbiased_out);
}

void sti_norm_statistics_f32(const sti_team *team, int64_t rows, int64_t c,
                             float epsilon, const float *x, float *mean_out,
                             float *inv_out, float *unbiased_out, void *scratch)
{
    statistics_job job = {
        .u = cut_of(rows, c),
        .whole = {.x = x},
        .partial = scratch,
        .epsilon = epsilon,
        .mean_out = mean_out,
        .inv_out = inv_out,
        .unbiased_out = unbiased_out,
    };
    job.u.shares = team->threads;
    sti_team_run(team, job.u.chunks * job.u.blocks, statistics_piece, &job);
    sti_team_run(team, (c + BLOCK - 1) / BLOCK, statistics_join, &job);
}

void sti_norm_inverse_f32(int64_t c, float epsilon, const float *variance,
                          float *inv_out)
{
    for (int64_t j = 0; j < c; j++)
        inv_out[j] = (float)(1.0 / sqrt((double)variance[j] + (double)epsilon));
}

/* Is y so large that nothing of it is left in the second cache when it is read next?
 * Then it is written past the caches, which spares reading its old lines. Below about
 * twice that cache the writes come out slower than that saves; and never where y
 * overwrites what has just been read. */
static bool is_streamed(const cut *u, const float *y, const float *a, const float *b)
{
    enum { KEPT_BYTES = 4 << 20 };
    return (uintptr_t)y % 64 == 0 && u->width % LANES == 0 && y != a && y != b &&
           (size_t)(u->rows * u->c) * sizeof *y > KEPT_BYTES;
}

/* ---- forward ---- */

typedef struct forward_job {
    cut u;
    sti_norm_block whole;
    const float *scale, *inv;
} forward_job;

/* gain[j] = scale[first + j] inv[first + j] */
static void gain_of(const float *scale, const float *inv, int64_t first, int64_t n,
                    float *gain)
{
    for (int64_t j = 0; j < n; j++)
        gain[j] = scale[first + j] * inv[first + j];
}

static void forward_block(const forward_job *job, int64_t chunk, int64_t block)
{
    const cut *u = &job->u;
    float gain[WIDE], wide_gain[WIDE], wide_mean[WIDE], wide_shift[WIDE];
    piece_view v = view_piece(u, &job->whole, chunk, block);

    gain_of(job->scale, job->inv, v.first, v.channels, gain);
    v.main.gain = widen(u, gain, wide_gain);
    v.main.mean = widen(u, v.main.mean, wide_mean);
    v.main.shift = widen(u, v.main.shift, wide_shift);
    v.kernels->forward(&v.main);
    if (v.after.rows) {
        v.after.gain = gain;
        sti_norm_kernels_any.forward(&v.after);
        if (v.after.bits_out)
            sti_norm_bits(v.after.rows * u->c, v.after.y, v.after.bits_out);
    }
}

static void forward_piece(void *arg, int64_t chunk, int worker)
{
    (void)worker;
    const forward_job *job = arg;
    const cut *u = &job->u;
    for (int64_t block = 0; block < u->blocks; block++)
        forward_block(job, chunk, block);
    if (u->width % LANES && job->whole.bits_out) {
        const int64_t at = chunk * u->rows_a_chunk * u->c;
        sti_norm_bits(chunk_rows(u, chunk) * u->c, job->whole.y + at,
                      job->whole.bits_out + at / 8);
    }
}

void sti_norm_forward_f32(const sti_team *team, const sti_norm_forward *args)
{
    forward_job job = {
        .u = cut_of(args->rows, args->c),
        .whole = {.relu = args->relu,
                  .x = args->x,
                  .residual = args->residual,
                  .mean = args->mean,
                  .shift = args->shift,
                  .y = args->y,
                  .bits_out = args->relu ? args->bits : NULL},
        .scale = args->scale,
        .inv = args->inv,
    };
    job.whole.stream = is_streamed(&job.u, args->y, args->x, args->residual);
    sti_team_run(team, job.u.chunks, forward_piece, &job);
}

/* ---- backward ---- */

typedef struct backward_job {
    cut u;
    sti_norm_block whole;
    double *partial;
    sti_norm_slopes slopes;
} backward_job;

static void grad_sums_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    const backward_job *job = arg;
    const cut *u = &job->u;
    const int64_t at = sum_piece_at(u, piece), chunk = at / u->blocks;
    float s[WIDE], q[WIDE], wide[WIDE], after_s[STI_NORM_ANY], after_q[STI_NORM_ANY];
    piece_view v = view_piece(u, &job->whole, chunk, at % u->blocks);
    double *sum = job->partial + chunk * 2 * u->c + v.first, *cross = sum + u->c;

    v.main.mean = widen(u, v.main.mean, wide);
    v.kernels->grad_sums(&v.main, s, q);
    if (v.after.rows)
        sti_norm_kernels_any.grad_sums(&v.after, after_s, after_q);
    fold(u, &v, s, after_s);
    fold(u, &v, q, after_q);
    for (int64_t j = 0; j < v.channels; j++) {
        sum[j] = (double)s[j];
        cross[j] = (double)q[j];
    }
}

static void grad_sums_join(void *arg, int64_t piece, int worker)
{
    (void)worker;
    const backward_job *job = arg;
    const sti_norm_sums sums = sums_of(&job->u, job->partial);
    sti_norm_join_slopes(&sums, piece * BLOCK, block_end(&job->u, piece), &job->slopes);
}

static void backward_piece(void *arg, int64_t chunk, int worker)
{
    (void)worker;
    const backward_job *job = arg;
    const cut *u = &job->u;
    float wide[4][WIDE];
    for (int64_t block = 0; block < u->blocks; block++) {
        piece_view v = view_piece(u, &job->whole, chunk, block);
        v.main.mean = widen(u, v.main.mean, wide[0]);
        v.main.gain = widen(u, v.main.gain, wide[1]);
        v.main.shift = widen(u, v.main.shift, wide[2]);
        v.main.slope = widen(u, v.main.slope, wide[3]);
        v.kernels->backward(&v.main);
        if (v.after.rows)
            sti_norm_kernels_any.backward(&v.after);
    }
}

void sti_norm_backward_f32(const sti_team *team, const sti_norm_backward *args,
                           void *scratch)
{
    backward_job job = {.u = cut_of(args->rows, args->c), .partial = scratch};
    const int64_t c = args->c;
    float *gain =
        (float *)(void *)((char *)scratch + sti_norm_sums_bytes(job.u.chunks, c));
    job.slopes = (sti_norm_slopes){.scale = args->scale,
                                   .inv = args->inv,
                                   .gain = gain,
                                   .mean_z = gain + c,
                                   .slope = gain + 2 * c,
                                   .dscale = args->dscale,
                                   .dshift = args->dshift};
    job.whole = (sti_norm_block){.dy = args->dy,
                                 .x = args->x,
                                 .bits = args->bits,
                                 .mean = args->mean,
                                 .gain = job.slopes.gain,
                                 .shift = job.slopes.mean_z,
                                 .slope = job.slopes.slope,
                                 .y = args->dx,
                                 .dresidual = args->dresidual};
    if (args->dx || args->dscale || args->dshift) {
        job.u.shares = team->threads;
        sti_team_run(team, job.u.chunks * job.u.blocks, grad_sums_piece, &job);
        sti_team_run(team, (c + BLOCK - 1) / BLOCK, grad_sums_join, &job);
    }
    job.whole.stream = is_streamed(&job.u, args->dx, args->dy, args->x);
    job.whole.stream_dresidual =
        is_streamed(&job.u, args->dresidual, args->dy, args->x);
    if (args->dx || args->dresidual)
        sti_team_run(team, job.u.chunks, backward_piece, &job);
}
