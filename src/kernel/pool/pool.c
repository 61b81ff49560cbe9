/* Pooling: windows, packed indices, pieces of work, dispatch. */
#include "kernel/pool/pool.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/lane/dispatch.h"
#include "kernel/pool/pool_cell.h"

static const sti_pool_kernels *kernels_now(void)
{
    return STI_KERNELS_NOW(sti_pool_kernels);
}

int sti_pool_index_bits(int64_t size)
{
    return size <= 2 ? 2 : size <= 4 ? 4 : 8;
}

int64_t sti_pool_row_bytes(const sti_pool_shape *s)
{
    return (s->ow * s->c * sti_pool_index_bits(s->size) + 7) / 8;
}

/* ---- packed indices ---- */

/* Elements [at, at + n) of a row that began as zeros. */
static void pack(uint8_t *row, int bits, int64_t at, int64_t n, const int32_t *index)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t bit = (at + i) * bits;
        row[bit / 8] = (uint8_t)(row[bit / 8] | (unsigned)index[i] << bit % 8);
    }
}

static void unpack(const uint8_t *row, int bits, int64_t at, int64_t n, int32_t *index)
{
    const unsigned mask = (1u << bits) - 1u;
    for (int64_t i = 0; i < n; i++) {
        const int64_t bit = (at + i) * bits;
        index[i] = (int32_t)((unsigned)row[bit / 8] >> bit % 8 & mask);
    }
}

/* ---- cells ---- */

/* A cell: its window, and where its arrays are. */
typedef struct cell {
    sti_pool_window window;
    int64_t out; /* first element within the output row */
} cell;

typedef struct pool_job pool_job;
typedef void cell_fn(const pool_job *job, const cell *at, int64_t image, int64_t row);

struct pool_job {
    const sti_pool_shape *shape;
    const sti_pool_kernels *kernels;
    cell_fn *fn;
    const float *pixels, *pooled; /* inputs, of either side */
    float *pixels_out, *pooled_out;
    const uint8_t *index;
    uint8_t *index_out;
    float factor;
    int bits;
    int64_t row_bytes, row_out, image_in; /* index bytes, elements, elements */
};

static pool_job make_job(const sti_pool_shape *s, cell_fn *fn)
{
    return (pool_job){.shape = s,
                      .kernels = kernels_now(),
                      .fn = fn,
                      .factor = 1.0f / (float)(s->size * s->size),
                      .bits = sti_pool_index_bits(s->size),
                      .row_bytes = sti_pool_row_bytes(s),
                      .row_out = s->ow * s->c,
                      .image_in = s->h * s->w * s->c};
}

/* Part of [0, size) that lies inside, for a window beginning at `begin`. */
static void clip(int64_t begin, int64_t size, int64_t length, int64_t *low,
                 int64_t *high)
{
    *low = begin < 0 ? -begin : 0;
    *high = begin + size > length ? length - begin : size;
}

/* All cells of an output row, in ascending order. */
static void each_cell(const pool_job *job, int64_t image, int64_t row)
{
    const sti_pool_shape *s = job->shape;
    const int64_t y = row % s->oh * s->stride - s->pad;
    cell at = {
        .window = {.size = s->size, .row_stride = s->w * s->c, .pixel_stride = s->c}};
    sti_pool_window *p = &at.window;
    clip(y, s->size, s->h, &p->i0, &p->i1);
    for (int64_t ox = 0; ox < s->ow; ox++) {
        const int64_t x = ox * s->stride - s->pad;
        clip(x, s->size, s->w, &p->j0, &p->j1);
        for (int64_t c = 0; c < s->c; c += STI_POOL_BLOCK) {
            p->first = (y * s->w + x) * s->c + c;
            p->n = s->c - c < STI_POOL_BLOCK ? s->c - c : STI_POOL_BLOCK;
            at.out = ox * s->c + c;
            job->fn(job, &at, image, row);
        }
    }
}

/* A piece is an output row: what is written is disjoint. */
static void row_piece(void *arg, int64_t row, int worker)
{
    (void)worker;
    const pool_job *job = arg;
    if (job->index_out)
        memset(job->index_out + row * job->row_bytes, 0, (size_t)job->row_bytes);
    each_cell(job, row / job->shape->oh, row);
}

/* A piece is an image: windows may overlap, and add up in ascending order. */
static void image_piece(void *arg, int64_t image, int worker)
{
    (void)worker;
    const pool_job *job = arg;
    memset(job->pixels_out + image * job->image_in, 0,
           (size_t)job->image_in * sizeof(float));
    for (int64_t oy = 0; oy < job->shape->oh; oy++)
        each_cell(job, image, image * job->shape->oh + oy);
}

/* ---- max ---- */

static void max_cell(const pool_job *job, const cell *at, int64_t image, int64_t row)
{
    int32_t index[STI_POOL_BLOCK];
    job->kernels->max(&at->window, job->pixels + image * job->image_in,
                      job->pooled_out + row * job->row_out + at->out, index);
    if (job->index_out)
        pack(job->index_out + row * job->row_bytes, job->bits, at->out, at->window.n,
             index);
}

static inline float larger(float best, float v)
{
    return (v > best) | ((v != v) & (best == best)) ? v : best;
}

/* A row of windows of 2 x 2 that touch and lie inside. */
static void halve_row(const float *x, int64_t w, int64_t n, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = larger(larger(larger(x[2 * i], x[2 * i + 1]), x[w + 2 * i]),
                      x[w + 2 * i + 1]);
}

/* A row of one channel, without the index: what a cell costs beside would be most of
 * it. The first of equal ones and a NaN win as they do there. */
static void plane_piece(void *arg, int64_t row, int worker)
{
    const pool_job *job = arg;
    const sti_pool_shape *s = job->shape;
    const float *x = job->pixels + row / s->oh * s->h * s->w;
    float *y = job->pooled_out + row * s->ow;
    const int64_t top = row % s->oh * s->stride - s->pad;
    const int64_t i0 = top < 0 ? 0 : top;
    const int64_t i1 = top + s->size < s->h ? top + s->size : s->h;
    (void)worker;
    if (s->size == 2 && s->stride == 2 && s->pad == 0) {
        halve_row(x + top * s->w, s->w, s->ow, y);
        return;
    }
    for (int64_t ox = 0; ox < s->ow; ox++) {
        const int64_t left = ox * s->stride - s->pad;
        const int64_t j0 = left < 0 ? 0 : left;
        const int64_t j1 = left + s->size < s->w ? left + s->size : s->w;
        float best = x[i0 * s->w + j0];
        for (int64_t i = i0; i < i1; i++)
            for (int64_t j = j0; j < j1; j++)
                best = larger(best, x[i * s->w + j]);
        y[ox] = best;
    }
}

void sti_max_pool_f32(const sti_team *team, const sti_pool_shape *shape, const float *x,
                      float *y_out, uint8_t *index_out)
{
    pool_job job = make_job(shape, max_cell);
    job.pixels = x;
    job.pooled_out = y_out;
    job.index_out = index_out;
    const bool plane = shape->c == 1 && !index_out;
    sti_team_run(team, shape->n * shape->oh, plane ? plane_piece : row_piece, &job);
}

static void unpool_cell(const pool_job *job, const cell *at, int64_t image, int64_t row)
{
    int32_t index[STI_POOL_BLOCK];
    unpack(job->index + row * job->row_bytes, job->bits, at->out, at->window.n, index);
    job->kernels->unpool(&at->window, job->pooled + row * job->row_out + at->out, index,
                         job->pixels_out + image * job->image_in);
}

void sti_max_unpool_f32(const sti_team *team, const sti_pool_shape *shape,
                        const float *dy, const uint8_t *index, float *dx_out)
{
    pool_job job = make_job(shape, unpool_cell);
    job.pooled = dy;
    job.index = index;
    job.pixels_out = dx_out;
    sti_team_run(team, shape->n, image_piece, &job);
}

static void gather_cell(const pool_job *job, const cell *at, int64_t image, int64_t row)
{
    int32_t index[STI_POOL_BLOCK];
    unpack(job->index + row * job->row_bytes, job->bits, at->out, at->window.n, index);
    job->kernels->gather(&at->window, job->pixels + image * job->image_in, index,
                         job->pooled_out + row * job->row_out + at->out);
}

void sti_pool_gather_f32(const sti_team *team, const sti_pool_shape *shape,
                         const float *x, const uint8_t *index, float *y_out)
{
    pool_job job = make_job(shape, gather_cell);
    job.pixels = x;
    job.index = index;
    job.pooled_out = y_out;
    sti_team_run(team, shape->n * shape->oh, row_piece, &job);
}

/* ---- average ---- */

static void average_cell(const pool_job *job, const cell *at, int64_t image,
                         int64_t row)
{
    job->kernels->average(&at->window, job->factor, job->pixels + image * job->image_in,
                          job->pooled_out + row * job->row_out + at->out);
}

void sti_avg_pool_f32(const sti_team *team, const sti_pool_shape *shape, const float *x,
                      float *y_out)
{
    pool_job job = make_job(shape, average_cell);
    job.pixels = x;
    job.pooled_out = y_out;
    sti_team_run(team, shape->n * shape->oh, row_piece, &job);
}

static void average_unpool_cell(const pool_job *job, const cell *at, int64_t image,
                                int64_t row)
{
    job->kernels->average_unpool(&at->window, job->factor,
                                 job->pooled + row * job->row_out + at->out,
                                 job->pixels_out + image * job->image_in);
}

void sti_avg_unpool_f32(const sti_team *team, const sti_pool_shape *shape,
                        const float *dy, float *dx_out)
{
    pool_job job = make_job(shape, average_unpool_cell);
    job.pooled = dy;
    job.pixels_out = dx_out;
    sti_team_run(team, shape->n, image_piece, &job);
}

/* ---- whole images ---- */

typedef struct global_job {
    int64_t area, c;
    float factor;
    const sti_pool_kernels *kernels;
    const float *in;
    float *out;
} global_job;

static void global_piece(void *arg, int64_t image, int worker)
{
    (void)worker;
    const global_job *job = arg;
    const float *x = job->in + image * job->area * job->c;
    float *y = job->out + image * job->c;
    for (int64_t c = 0; c < job->c; c += STI_POOL_BLOCK)
        job->kernels->global(job->area, job->c,
                             job->c - c < STI_POOL_BLOCK ? job->c - c : STI_POOL_BLOCK,
                             job->factor, x + c, y + c);
}

void sti_global_pool_f32(const sti_team *team, int64_t n, int64_t area, int64_t c,
                         const float *x, float *y_out)
{
    assert(area >= 1);
    global_job job = {area, c, 1.0f / (float)area, kernels_now(), x, y_out};
    sti_team_run(team, n, global_piece, &job);
}

static void global_unpool_piece(void *arg, int64_t image, int worker)
{
    (void)worker;
    const global_job *job = arg;
    const float *dy = job->in + image * job->c;
    float *dx = job->out + image * job->area * job->c;
    for (int64_t j = 0; j < job->c; j++)
        dx[j] = dy[j] * job->factor;
    for (int64_t r = 1; r < job->area; r++)
        memcpy(dx + r * job->c, dx, (size_t)job->c * sizeof *dx);
}

void sti_global_unpool_f32(const sti_team *team, int64_t n, int64_t area, int64_t c,
                           const float *dy, float *dx_out)
{
    assert(area >= 1);
    global_job job = {area, c, 1.0f / (float)area, kernels_now(), dy, dx_out};
    sti_team_run(team, n, global_unpool_piece, &job);
}
