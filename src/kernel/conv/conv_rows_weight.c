/* The weight gradient. dW [taps, ci] x [co] = sum over output pixels of the window of x
 * times dy: for one row of taps the window (kw, ci) is contiguous in a padded row of x,
 * so a register tile takes some of its values as broadcasts against vectors of dy and
 * stays in registers over all pixels of a block of rows, which may span images.
 *
 * A piece owns a slice of the gradient (some input times some output channels) that
 * stays in the second-level cache while x and dy pass by; where slices are few, it also
 * owns a subtree of the chunks of 4096 pixels that make partial sums (gemm.h), and the
 * few results of pieces are joined at the end. Rows of x outside the image are left out
 * where they would only add zeros. */
#include <string.h>

#include "kernel/conv/conv_chunks.h"
#include "kernel/conv/conv_priv.h"
#include "kernel/conv/conv_squares.h"
#include "kernel/conv/conv_tile.h"

enum {
    MAX_LINES = 128,
    FEW_PIECES = 4,
    SLICE_FLOATS = 72 << 10, /* of the gradient: with x and dy, half of a cache */
    SLICE_COLS = 256,
    BLOCK_PIXELS = 192 /* times 32 columns: half of a first-level cache */
};

typedef sti_conv_rows_weight_plan weight_plan;

typedef struct weight_job {
    const weight_plan *plan;
    const sti_gemm_kernels *kernels;
    sti_conv_grad_tile_fn *tile; /* or NULL */
    const float *x, *dy;
    float *dw, *results, *squares;
    char *workers;
} weight_job;

static bool is_pointwise(const sti_conv_shape *s)
{
    return s->kh == 1 && s->kw == 1 && s->pad == 0;
}

static bool is_plain(const sti_conv_shape *s)
{
    return is_pointwise(s) && s->stride == 1;
}

/* Floats between the pixels of a copy: not a power of two, where nothing wants them
 * dense, so that a column of them spreads over the sets of a cache. */
static int64_t copy_pixel(const sti_conv_shape *s, int64_t channels)
{
    const bool spread = is_pointwise(s) && channels % 64 == 0;
    return spread ? channels + STI_PANEL : channels;
}

/* Equal slices of at most `most`, whole vectors where there are several. */
static int64_t slice_of(int64_t count, int64_t most)
{
    const int64_t slices = sti_conv_ceil_div(count, sti_conv_max(most, 1));
    return slices <= 1 ? sti_conv_max(count, 1)
                       : sti_conv_round_up(sti_conv_ceil_div(count, slices), STI_PANEL);
}

static void make_slices(weight_plan *p)
{
    const sti_conv_shape *s = &p->shape;
    const int64_t taps = s->kh * s->kw;
    const int64_t most_out = taps > 1 ? SLICE_COLS / 2 : SLICE_COLS;
    p->slice_out = slice_of(p->out_group, most_out);
    p->slices_out = sti_conv_ceil_div(p->out_group, p->slice_out);
    p->slice_in = slice_of(
        p->in_group, sti_conv_max(SLICE_FLOATS / (taps * p->slice_out), STI_PANEL));
    p->slices_in = sti_conv_ceil_div(p->in_group, p->slice_in);
}

static int64_t slice_count(const weight_plan *p)
{
    return p->shape.groups * p->slices_in * p->slices_out;
}

static void make_trees(weight_plan *p)
{
    const sti_conv_shape *s = &p->shape;
    const int64_t pixels = s->n * s->oh * s->ow, slices = slice_count(p);
    p->tree = sti_conv_chunks_cut(sti_conv_ceil_div(pixels, STI_GEMM_CHUNK),
                                  slices >= FEW_PIECES ? 1 : STI_CONV_MAX_TREES);
    p->parts = p->tree.trees * slices < FEW_PIECES ? s->kh : 1;
    p->part_taps = s->kh / p->parts;
}

static void make_blocks(weight_plan *p, const sti_gemm_kernels *kernels)
{
    const sti_conv_shape *s = &p->shape;
    const int64_t ow = sti_conv_max(s->ow, 1), oh = sti_conv_max(s->oh, 1);
    p->line_cols = (s->ow - 1) * s->stride + s->kw;
    p->block_rows = sti_conv_min(sti_conv_max(BLOCK_PIXELS / ow, 1), MAX_LINES);
    p->block_pixels = sti_conv_max(BLOCK_PIXELS, is_plain(s) ? 1 : ow);
    p->x_in_place = is_plain(s) && p->slice_in == s->ci && s->ci % 128 != 0;
    p->width = p->slice_out > STI_PANEL && kernels->max_rows[2] > 0 ? 2 * STI_PANEL
                                                                    : STI_PANEL;
    /* Panels side by side in dy; a copy only pays where a slice leaves columns out. */
    p->dy_in_place = s->co == p->slice_out && s->co % p->width == 0;
    const int64_t lines = sti_conv_min(p->block_rows * p->part_taps,
                                       p->block_rows * s->stride +
                                           (p->block_rows / oh + 2) * p->part_taps);
    const int64_t pixels = is_plain(s)       ? p->block_pixels
                           : is_pointwise(s) ? p->block_rows * ow
                                             : lines * p->line_cols;
    p->x_floats = p->x_in_place ? 0
                                : sti_conv_round_up(pixels * copy_pixel(s, p->slice_in),
                                                    STI_PANEL);
    p->dy_floats = p->dy_in_place ? 0
                                  : p->block_rows * sti_conv_min(ow, p->block_pixels) *
                                        sti_conv_round_up(p->slice_out, p->width);
}

static sti_conv_shape flattened(sti_conv_shape s)
{
    if (is_plain(&s)) {
        s.w = s.ow = s.n * s.h * s.w;
        s.n = s.h = s.oh = 1;
    }
    return s;
}

void sti_conv_plan_rows_weight(sti_conv_plan *plan)
{
    weight_plan *p = &plan->rows_weight;
    p->shape = flattened(plan->shape);
    const sti_conv_shape *s = &p->shape;
    p->in_group = s->ci / s->groups;
    p->out_group = s->co / s->groups;
    make_slices(p);
    make_trees(p);
    make_blocks(p, sti_gemm_kernels_now());
    p->grad_floats = (size_t)(s->kh * s->kw * p->in_group * s->co);
    p->slice_floats = (size_t)sti_conv_round_up(
        p->part_taps * s->kw * p->slice_in * p->slice_out, STI_PANEL);
    p->worker_bytes = sti_conv_part_bytes(
        p->x_floats + p->dy_floats + (int64_t)(p->tree.levels * p->slice_floats),
        sizeof(float));
    p->workers_at = sti_conv_plan_add_workers(plan, p->worker_bytes);
    p->results_at = sti_conv_plan_add(plan, (size_t)(p->tree.trees - 1) *
                                                p->grad_floats * sizeof(float));
}

/* What a piece owns: rows of taps, input and output channels (of the whole tensors). */
typedef struct weight_slice {
    int64_t tap, group, in0, in, out0, out;
} weight_slice;

static weight_slice slice_at(const weight_job *j, int64_t index)
{
    weight_slice w = {.tap = index % j->plan->parts * j->plan->part_taps};
    index /= j->plan->parts;
    const int64_t in = index % j->plan->slices_in * j->plan->slice_in;
    const int64_t out =
        index / j->plan->slices_in % j->plan->slices_out * j->plan->slice_out;
    w.group = index / j->plan->slices_in / j->plan->slices_out;
    w.in0 = w.group * j->plan->in_group + in;
    w.in = sti_conv_min(j->plan->slice_in, j->plan->in_group - in);
    w.out0 = w.group * j->plan->out_group + out;
    w.out = sti_conv_min(j->plan->slice_out, j->plan->out_group - out);
    return w;
}

/* Output pixels [pixel, pixel + rows * cols): whole rows, or part of one row. */
typedef struct pixel_block {
    int64_t pixel, rows, cols;
    const float *x;          /* as the tiles read it: */
    int64_t a_pixel;         /* floats a pixel */
    int64_t line[MAX_LINES]; /* where the window of a row begins, tap row 0 */
    int64_t top[MAX_LINES];  /* line of the image at tap row 0 */
    const float *dy;         /* panels of `width` columns, b_panel apart */
    int64_t b_step, b_panel;
    sti_conv_stream prefetch[2]; /* x and dy of the next block */
    int64_t prefetch_steps[2];   /* lines still to fetch */
} pixel_block;

static void next_block(const weight_job *j, int64_t pixel, int64_t end, pixel_block *b)
{
    const int64_t ow = j->plan->shape.ow, column = pixel % ow, left = end - pixel;
    b->pixel = pixel;
    b->rows = 1;
    b->cols = sti_conv_min(sti_conv_min(ow - column, left), j->plan->block_pixels);
    if (column == 0 && left >= ow && b->cols == ow)
        b->rows = sti_conv_min(left / ow, j->plan->block_rows);
}

/* Some channels of the pixels from `from` on, which may lie beyond the tensor. */
static sti_conv_stream channel_stream(const float *from, int64_t channels, int64_t all)
{
    const int64_t bytes = channels * (int64_t)sizeof(float);
    const int64_t lines = channels == all ? 1 << 30 : (bytes + 63) / 64;
    return (sti_conv_stream){.at = (const char *)from,
                             .left = lines,
                             .lines = lines,
                             .skip = all * (int64_t)sizeof(float) - (lines - 1) * 64};
}

static void set_prefetch(const weight_job *j, const weight_slice *w, pixel_block *b)
{
    const sti_conv_shape *s = &j->plan->shape;
    const int64_t next = b->pixel + b->rows * b->cols, row = next / s->ow;
    const int64_t line = sti_conv_min(s->h, row % s->oh * s->stride - s->pad +
                                                sti_conv_max(0, s->kh - s->stride));
    const int64_t x = is_plain(s) ? next : (row / s->oh * s->h + line) * s->w;
    const int64_t pixels = b->rows * b->cols * s->stride * s->stride;
    const bool more = row < s->n * s->oh && line >= 0;
    b->prefetch[0] = channel_stream(j->x + x * s->ci + w->in0, w->in, s->ci);
    b->prefetch[1] = channel_stream(j->dy + next * s->co + w->out0, w->out, s->co);
    b->prefetch_steps[0] = more ? sti_conv_ceil_div(pixels * w->in, 16) : 0;
    b->prefetch_steps[1] = more ? sti_conv_ceil_div(b->rows * b->cols * w->out, 16) : 0;
}

/* A window of lines of some channels of an image. */
static void copy_channels(const weight_job *j, const weight_slice *w,
                          const float *image, int64_t y0, int64_t rows, float *dst)
{
    const sti_conv_shape *s = &j->plan->shape;
    if (w->in == s->ci) {
        sti_conv_copy_window(image, s->h, s->w, s->ci, y0, -s->pad, rows,
                             j->plan->line_cols, dst);
        return;
    }
    for (int64_t y = y0; y < y0 + rows; y++)
        for (int64_t i = 0; i < j->plan->line_cols; i++, dst += w->in) {
            const int64_t x = i - s->pad;
            if (y >= 0 && y < s->h && x >= 0 && x < s->w)
                memcpy(dst, image + (y * s->w + x) * s->ci + w->in0,
                       (size_t)w->in * sizeof *dst);
            else
                memset(dst, 0, (size_t)w->in * sizeof *dst);
        }
}

/* The rows of x that the block's windows need, once each. */
static void take_x(const weight_job *j, const weight_slice *w, float *dst,
                   pixel_block *b)
{
    const sti_conv_shape *s = &j->plan->shape;
    const int64_t floats = j->plan->line_cols * w->in, x0 = b->pixel % s->ow;
    int64_t row = b->pixel / s->ow, used = 0;
    b->x = dst;
    b->a_pixel = w->in;
    for (int64_t r = 0, rows; r < b->rows; r += rows, row += rows) {
        const int64_t y = row % s->oh, image = row / s->oh;
        /* Rows of one image share their lines when taps overlap. */
        const bool shared = j->plan->part_taps > s->stride;
        const int64_t top = y * s->stride + w->tap - s->pad;
        rows = shared ? sti_conv_min(b->rows - r, s->oh - y) : 1;
        const int64_t lines = (rows - 1) * s->stride + j->plan->part_taps;
        copy_channels(j, w, j->x + image * s->h * s->w * s->ci, top, lines,
                      dst + used * floats);
        for (int64_t i = 0; i < rows; i++) {
            b->line[r + i] = (used + i * s->stride) * floats + x0 * s->stride * w->in;
            b->top[r + i] = top + i * s->stride;
        }
        used += lines;
    }
}

/* One tap: pixels as they stand, or a copy of some channels of those that count. */
static void take_pixels(const weight_job *j, const weight_slice *w, float *dst,
                        pixel_block *b)
{
    const sti_conv_shape *s = &j->plan->shape;
    const int64_t row = b->pixel / s->ow, x0 = b->pixel % s->ow * s->stride;
    b->x = j->plan->x_in_place ? j->x + b->pixel * s->ci : dst;
    b->a_pixel = j->plan->x_in_place ? s->ci : copy_pixel(&j->plan->shape, w->in);
    for (int64_t r = 0; r < b->rows; r++) {
        const int64_t y = (row + r) / s->oh * s->h + (row + r) % s->oh * s->stride;
        const float *from = j->x + (y * s->w + x0) * s->ci + w->in0;
        b->line[r] = r * b->cols * b->a_pixel;
        b->top[r] = 0;
        for (int64_t p = 0; p < b->cols && !j->plan->x_in_place; p++, dst += b->a_pixel)
            memcpy(dst, from + p * s->stride * s->ci, (size_t)w->in * sizeof *dst);
    }
}

static void take_dy(const weight_job *j, const weight_slice *w, float *dst,
                    pixel_block *b)
{
    const int64_t co = j->plan->shape.co, pixels = b->rows * b->cols;
    const float *from = j->dy + b->pixel * co + w->out0;
    b->dy = j->plan->dy_in_place ? from : dst;
    b->b_step = j->plan->dy_in_place ? co : j->plan->width;
    b->b_panel = j->plan->dy_in_place ? j->plan->width : pixels * j->plan->width;
    if (!j->plan->dy_in_place)
        j->kernels->pack(from, co, pixels, w->out, j->plan->width, dst);
}

/* Rows of the block for which this row of taps is inside the image. */
static int64_t inside_rows(const weight_job *j, const pixel_block *b, int64_t tap,
                           int64_t *a_run, int64_t *b_run)
{
    int64_t runs = 0;
    for (int64_t r = 0; r < b->rows; r++) {
        if (b->top[r] + tap < 0 || b->top[r] + tap >= j->plan->shape.h)
            continue;
        a_run[runs] = b->line[r];
        b_run[runs++] = r * b->cols * b->b_step;
    }
    return runs;
}

static void window_tile(const weight_job *j, pixel_block *b, const sti_gemm_tile *t)
{
    sti_conv_stream none = {(const char *)t->c, 1, 1, 0};
    if (!j->tile || t->nv != 2) {
        j->kernels->tn(t);
        return;
    }
    const int which = b->prefetch_steps[0] > 0 ? 0 : 1;
    const bool more = b->prefetch_steps[which] > 0;
    j->tile(t, more ? &b->prefetch[which] : &none);
    b->prefetch_steps[which] -= t->lines * t->runs * t->run_k;
}

/* A window of contiguous values of x against all columns of the slice. */
static void window_tiles(const weight_job *j, const weight_slice *w, pixel_block *b,
                         sti_gemm_tile t, int64_t window)
{
    const float *a = t.a;
    float *c = t.c;
    t.nv = (int)(j->plan->width / STI_PANEL);
    const int most = j->kernels->max_rows[t.nv];
    for (int64_t n = 0; n < w->out; n += j->plan->width) {
        t.cols = sti_conv_min(w->out - n, j->plan->width);
        t.b = b->dy + n / j->plan->width * b->b_panel;
        for (int64_t r = 0; r < window; r += t.lines * t.rows) {
            t.rows = sti_gemm_next_rows(window - r, most);
            t.lines = sti_gemm_equal_tiles(window - r, most);
            t.a_line = t.rows;
            t.c_line = t.rows * t.c_row;
            t.a = a + r;
            t.c = c + r * t.c_row + n;
            window_tile(j, b, &t);
        }
    }
}

static void block_tiles(const weight_job *j, const weight_slice *w, pixel_block *b,
                        bool load, float *sums)
{
    const sti_conv_shape *s = &j->plan->shape;
    int64_t a_run[MAX_LINES], b_run[MAX_LINES];
    const int64_t window = s->kw * w->in;
    for (int64_t tap = 0; tap < j->plan->part_taps; tap++) {
        const sti_gemm_tile t = {
            .a = b->x + tap * j->plan->line_cols * w->in,
            .a_step = is_pointwise(s) ? b->a_pixel : s->stride * b->a_pixel,
            .b_step = b->b_step,
            .runs = inside_rows(j, b, tap, a_run, b_run),
            .a_run = a_run,
            .b_run = b_run,
            .run_k = b->cols,
            .c = sums + tap * window * w->out,
            .c_row = w->out,
            .load = load,
        };
        window_tiles(j, w, b, t, window);
    }
}

static void chunk_sums(const weight_job *j, const weight_slice *w, int64_t chunk,
                       float *scratch, float *sums)
{
    const sti_conv_shape *s = &j->plan->shape;
    const int64_t total = s->n * s->oh * s->ow;
    const int64_t end = sti_conv_min(total, (chunk + 1) * STI_GEMM_CHUNK);
    pixel_block b;
    bool load = false;
    if (total == 0)
        memset(sums, 0, j->plan->slice_floats * sizeof *sums);
    for (int64_t pixel = chunk * STI_GEMM_CHUNK; pixel < end;
         pixel += b.rows * b.cols, load = true) {
        next_block(j, pixel, end, &b);
        if (is_pointwise(s))
            take_pixels(j, w, scratch, &b);
        else
            take_x(j, w, scratch, &b);
        take_dy(j, w, scratch + j->plan->x_floats, &b);
        set_prefetch(j, w, &b);
        block_tiles(j, w, &b, load, sums);
    }
}

/* The slice into its place in the gradient. */
static void put_slice(const weight_job *j, const weight_slice *w, const float *sums,
                      float *grad)
{
    const sti_conv_shape *s = &j->plan->shape;
    const int64_t in0 = w->in0 - w->group * j->plan->in_group;
    for (int64_t tap = 0; tap < j->plan->part_taps * s->kw; tap++)
        for (int64_t c = 0; c < w->in; c++, sums += w->out)
            memcpy(grad +
                       ((w->tap * s->kw + tap) * j->plan->in_group + in0 + c) * s->co +
                       w->out0,
                   sums, (size_t)w->out * sizeof *grad);
}

/* A piece at work. */
typedef struct slice_work {
    const weight_job *j;
    weight_slice slice;
    float *scratch;
    bool squares; /* takes those of dy, too */
} slice_work;

static void slice_chunk(void *arg, int64_t chunk, float *sums)
{
    const slice_work *w = arg;
    chunk_sums(w->j, &w->slice, chunk, w->scratch, sums);
    if (w->squares)
        sti_conv_squares_chunk(&w->j->plan->shape, w->j->dy, chunk, w->j->squares);
}

static float *worker_floats(const weight_job *j, int worker)
{
    return (float *)(void *)(j->workers + (size_t)worker * j->plan->worker_bytes);
}

static void weight_piece(void *arg, int64_t piece, int worker)
{
    const weight_job *j = arg;
    const int64_t owned = j->plan->parts * slice_count(j->plan);
    const int64_t tree = piece / owned;
    slice_work w = {.j = j,
                    .slice = slice_at(j, piece % owned),
                    .scratch = worker_floats(j, worker),
                    .squares = j->squares && piece % owned == 0};
    float *stack = w.scratch + j->plan->x_floats + j->plan->dy_floats;
    sti_conv_chunks_sum(&j->plan->tree, tree, j->plan->slice_floats, stack, slice_chunk,
                        &w);
    put_slice(j, &w.slice, stack,
              tree == 0 ? j->dw
                        : j->results + (size_t)(tree - 1) * j->plan->grad_floats);
}

void sti_conv_rows_weight(const sti_team *team, const sti_conv_plan *plan,
                          const float *x, const float *dy, float *dw_out,
                          float *squares, void *scratch)
{
    const weight_plan *p = &plan->rows_weight;
    weight_job j = {.plan = p,
                    .kernels = sti_gemm_kernels_now(),
                    .tile = sti_conv_grad_tile_now(),
                    .x = x,
                    .dy = dy,
                    .dw = dw_out,
                    .results = sti_conv_part(scratch, p->results_at),
                    .squares = squares,
                    .workers = sti_conv_part(scratch, p->workers_at)};
    sti_team_run(team, p->tree.trees * p->parts * slice_count(p), weight_piece, &j);
    sti_conv_chunks_join_all(team, &p->tree, dw_out, j.results, p->grad_floats);
}
