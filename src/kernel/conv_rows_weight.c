/* The rows way of the weight gradient. dW [taps, ci] x [co] = sum over output pixels of
 * the window of x times dy: for one row of taps the window (kw, ci) is contiguous in a
 * padded row of x, so a register tile takes up to 28 of its values as broadcasts
 * against one vector of dy and stays in registers over all pixels of a block of rows,
 * which may span images. Chunks of 4096 pixels give partial sums; a piece adds up a
 * whole subtree of them (a power of two of chunks), and the few results of pieces are
 * joined at the end. */
#include <string.h>

#include "kernel/conv_depthwise.h"
#include "kernel/conv_priv.h"
#include "kernel/conv_squares.h"

enum { MAX_TREES = 8, BLOCK_FLOATS = 8 << 10, MAX_LINES = 128, FEW_CHUNKS = 4 };

typedef struct weight_job {
    const sti_conv_shape *shape;
    const sti_gemm_kernels *kernels;
    bool depthwise;
    const float *x, *dy;
    float *dw, *results, *workers, *squares;
    int64_t chunks, tree_chunks, trees;
    int64_t parts;     /* pieces a subtree: 1, or one a row of taps */
    int64_t part_taps; /* rows of taps a piece */
    int64_t line_cols; /* pixels of a padded row of x */
    int64_t in_group, out_group;
    int64_t dy_group, dy_cols; /* floats of dy a group and a pixel */
    int64_t block_rows;
    bool copy_dy;
    size_t grad_floats, part_floats, x_floats, dy_floats, worker_floats;
} weight_job;

static weight_job weight_make(const sti_conv_shape *s)
{
    weight_job j = {.shape = s};
    const int64_t pixels = s->n * s->oh * s->ow;
    j.in_group = s->ci / s->groups;
    j.out_group = s->co / s->groups;
    j.chunks = sti_conv_max(1, sti_conv_ceil_div(pixels, STI_GEMM_CHUNK));
    for (j.tree_chunks = 1; sti_conv_ceil_div(j.chunks, j.tree_chunks) > MAX_TREES;)
        j.tree_chunks *= 2;
    j.trees = sti_conv_ceil_div(j.chunks, j.tree_chunks);
    j.parts = j.trees < FEW_CHUNKS ? s->kh : 1;
    j.part_taps = s->kh / j.parts;
    j.line_cols = (s->ow - 1) * s->stride + s->kw;
    j.depthwise = sti_conv_is_depthwise(s);
    j.copy_dy = !j.depthwise && j.out_group % STI_PANEL != 0;
    j.dy_group = j.depthwise ? 1 : sti_conv_round_up(j.out_group, STI_PANEL);
    j.dy_cols = j.dy_group * s->groups;
    /* Rows that fit the first-level cache together with their dy. */
    const int64_t x_line = j.line_cols * s->ci;
    const bool shared = j.part_taps > s->stride;
    const int64_t halo = shared ? (j.part_taps - s->stride) * x_line : 0;
    const int64_t line =
        (shared ? s->stride : j.part_taps) * x_line + s->ow * j.dy_cols;
    j.block_rows =
        sti_conv_min(sti_conv_max((BLOCK_FLOATS - halo) / line, 1), MAX_LINES);
    j.grad_floats = (size_t)(s->kh * s->kw * j.in_group * s->co);
    j.part_floats = j.grad_floats / (size_t)j.parts;
    j.x_floats = (size_t)sti_conv_round_up(
        j.block_rows * j.part_taps * j.line_cols * s->ci, STI_PANEL);
    j.dy_floats = j.copy_dy ? (size_t)(j.block_rows * s->ow * j.dy_cols) : 0;
    size_t levels = 0;
    for (int64_t c = j.tree_chunks; c > 1; c /= 2)
        levels++;
    j.worker_floats = j.x_floats + j.dy_floats +
                      (size_t)sti_conv_round_up((int64_t)(levels * j.part_floats), 16);
    return j;
}

size_t sti_conv_rows_weight_bytes(const sti_conv_shape *s, int threads)
{
    const weight_job j = weight_make(s);
    const size_t shared = (size_t)(j.trees - 1) * j.grad_floats;
    return 128 + (shared + (size_t)threads * j.worker_floats) * sizeof(float);
}

/* Output pixels [pixel, pixel + rows * cols): whole rows, or part of one row. */
typedef struct pixel_block {
    int64_t pixel, rows, cols;
} pixel_block;

static pixel_block next_block(const weight_job *j, int64_t pixel, int64_t end)
{
    const int64_t ow = j->shape->ow, column = pixel % ow, left = end - pixel;
    if (column != 0 || left < ow)
        return (pixel_block){pixel, 1, sti_conv_min(ow - column, left)};
    return (pixel_block){pixel, sti_conv_min(left / ow, j->block_rows), ow};
}

/* Copy the rows of x that the block's windows need, once each; line[r] is where the
 * window of result row r begins. */
static void copy_x_rows(const weight_job *j, const pixel_block *b, int64_t tap,
                        float *dst, int64_t *line)
{
    const sti_conv_shape *s = j->shape;
    const int64_t floats = j->line_cols * s->ci, x0 = b->pixel % s->ow;
    int64_t row = b->pixel / s->ow, used = 0;
    for (int64_t r = 0, rows; r < b->rows; r += rows, row += rows) {
        const int64_t y = row % s->oh, image = row / s->oh;
        const float *from = j->x + image * s->h * s->w * s->ci;
        /* Rows of one image share their lines when taps overlap. */
        const bool shared = j->part_taps > s->stride;
        rows = shared ? sti_conv_min(b->rows - r, s->oh - y) : 1;
        const int64_t lines = (rows - 1) * s->stride + j->part_taps;
        sti_conv_copy_window(from, s->h, s->w, s->ci, y * s->stride + tap - s->pad,
                             -s->pad, lines, j->line_cols, dst + used * floats);
        for (int64_t i = 0; i < rows; i++)
            line[r + i] = (used + i * s->stride) * floats + x0 * s->stride * s->ci;
        used += lines;
    }
}

static void copy_dy_pixels(const weight_job *j, const pixel_block *b, float *dst)
{
    const float *src = j->dy + b->pixel * j->shape->co;
    for (int64_t p = 0; p < b->rows * b->cols * j->shape->groups; p++) {
        memcpy(dst, src, (size_t)j->out_group * sizeof *dst);
        memset(dst + j->out_group, 0,
               (size_t)(j->dy_group - j->out_group) * sizeof *dst);
        src += j->out_group;
        dst += j->dy_group;
    }
}

/* A window of `window` contiguous values of x against all columns of a group. */
static void window_tiles(const weight_job *j, sti_gemm_tile t, int64_t window)
{
    const float *a = t.a, *b = t.b;
    float *c = t.c;
    for (int64_t n = 0; n < j->out_group; n += t.cols) {
        t.nv = sti_gemm_panels(j->kernels, STI_BLOCK_ROWS, j->out_group - n);
        t.cols = sti_conv_min(j->out_group - n, t.nv * STI_PANEL);
        t.b = b + n;
        const int most = j->kernels->max_rows[t.nv];
        for (int64_t r = 0; r < window; r += t.lines * t.rows) {
            t.rows = sti_gemm_next_rows(window - r, most);
            t.lines = sti_gemm_equal_tiles(window - r, most);
            t.a_line = t.rows;
            t.c_line = t.rows * j->shape->co;
            t.a = a + r;
            t.c = c + r * j->shape->co + n;
            j->kernels->tn(&t);
        }
    }
}

static void block_tiles(const weight_job *j, const pixel_block *b, const float *x,
                        const int64_t *line, const float *dy, bool load, float *sums)
{
    const sti_conv_shape *s = j->shape;
    sti_gemm_tile t = {
        .a_step = s->stride * s->ci,
        .b_step = j->dy_cols,
        .a_run = line,
        .runs = b->rows,
        .run_k = b->cols,
        .c_row = s->co,
        .load = load,
    };
    const bool whole = s->groups == 1; /* a row of taps is one window */
    const int64_t window = whole ? s->kw * s->ci : j->in_group;
    for (int64_t tap = 0; tap < j->part_taps * (whole ? 1 : s->kw); tap++)
        for (int64_t group = 0; group < s->groups; group++) {
            const int64_t i = whole ? tap : tap / s->kw, k = whole ? 0 : tap % s->kw;
            t.a = x + (i * j->line_cols + k) * s->ci + group * j->in_group;
            t.b = dy + group * j->dy_group;
            t.c = sums + tap * window * s->co + group * j->out_group;
            window_tiles(j, t, window);
        }
}

static void block_depthwise(const weight_job *j, const pixel_block *b, const float *x,
                            const int64_t *line, const float *dy, bool load,
                            float *sums)
{
    const sti_conv_shape *s = j->shape;
    sti_depthwise_grad g = {
        .a_step = s->stride * s->ci,
        .a_run = line,
        .dy = dy,
        .runs = b->rows,
        .run_k = b->cols,
        .taps = s->kw,
        .channels = s->ci,
        .load = load,
    };
    for (int64_t i = 0; i < j->part_taps; i++) {
        g.a = x + i * j->line_cols * s->ci;
        g.c = sums + i * s->kw * s->ci;
        sti_depthwise_kernels_now()->grad(&g);
    }
}

static void chunk_sums(const weight_job *j, int64_t tap, int64_t chunk, float *scratch,
                       float *sums)
{
    const sti_conv_shape *s = j->shape;
    const int64_t total = s->n * s->oh * s->ow;
    const int64_t end = sti_conv_min(total, (chunk + 1) * STI_GEMM_CHUNK);
    int64_t line[MAX_LINES];
    bool load = false;
    if (total == 0)
        memset(sums, 0, j->part_floats * sizeof *sums);
    for (int64_t pixel = chunk * STI_GEMM_CHUNK; pixel < end;) {
        const pixel_block b = next_block(j, pixel, end);
        const float *dy = j->dy + pixel * s->co;
        copy_x_rows(j, &b, tap, scratch, line);
        if (j->copy_dy) {
            copy_dy_pixels(j, &b, scratch + j->x_floats);
            dy = scratch + j->x_floats;
        }
        if (j->depthwise)
            block_depthwise(j, &b, scratch, line, dy, load, sums);
        else
            block_tiles(j, &b, scratch, line, dy, load, sums);
        load = true;
        pixel += b.rows * b.cols;
    }
}

static void add_floats(float *left, const float *right, size_t count)
{
    for (size_t i = 0; i < count; i++)
        left[i] += right[i];
}

/* Level 0 of the stack of partial sums is the result itself, the others are scratch. */
static float *stack_level(const weight_job *j, float *result, float *stack, int top)
{
    return top == 0 ? result : stack + (size_t)(top - 1) * j->part_floats;
}

static void weight_piece(void *arg, int64_t piece, int worker)
{
    const weight_job *j = arg;
    const int64_t tree = piece / j->parts, part = piece % j->parts;
    float *scratch = j->workers + (size_t)worker * j->worker_floats;
    float *stack = scratch + j->x_floats + j->dy_floats;
    float *result =
        (tree == 0 ? j->dw : j->results + (size_t)(tree - 1) * j->grad_floats) +
        (size_t)part * j->part_floats;
    const int64_t first = tree * j->tree_chunks;
    const int64_t last = sti_conv_min(first + j->tree_chunks, j->chunks);
    int top = 0;
    for (int64_t chunk = first; chunk < last; chunk++, top++) {
        chunk_sums(j, part, chunk, scratch, stack_level(j, result, stack, top));
        if (j->squares && part == 0)
            sti_conv_squares_chunk(j->shape, j->dy, chunk, j->squares);
        for (int64_t count = chunk - first + 1; count % 2 == 0; count /= 2, top--)
            add_floats(stack_level(j, result, stack, top - 1),
                       stack_level(j, result, stack, top), j->part_floats);
    }
    for (; top > 1; top--)
        add_floats(stack_level(j, result, stack, top - 2),
                   stack_level(j, result, stack, top - 1), j->part_floats);
}

enum { JOIN_FLOATS = 4096 };

/* The top of the tree: results of subtrees, in place, pairs first. */
static void join_piece(void *arg, int64_t piece, int worker)
{
    const weight_job *j = arg;
    const size_t at = (size_t)piece * JOIN_FLOATS;
    const size_t left = j->grad_floats - at;
    const size_t count = left < JOIN_FLOATS ? left : JOIN_FLOATS;
    float *side[MAX_TREES];
    (void)worker;
    for (int64_t t = 0; t < j->trees; t++)
        side[t] = (t == 0 ? j->dw : j->results + (size_t)(t - 1) * j->grad_floats) + at;
    for (int64_t step = 1; step < j->trees; step *= 2)
        for (int64_t t = 0; t + step < j->trees; t += 2 * step)
            add_floats(side[t], side[t + step], count);
}

void sti_conv_rows_weight(const sti_team *team, const sti_conv_shape *s, const float *x,
                          const float *dy, float *dw_out, float *squares, void *scratch)
{
    weight_job j = weight_make(s);
    j.squares = squares;
    j.kernels = sti_gemm_kernels_now();
    j.x = x;
    j.dy = dy;
    j.dw = dw_out;
    j.workers = sti_block_align(scratch);
    j.results = j.workers + (size_t)team->threads * j.worker_floats;
    sti_team_run(team, j.trees * j.parts, weight_piece, &j);
    if (j.trees > 1)
        sti_team_run(team, sti_conv_ceil_div((int64_t)j.grad_floats, JOIN_FLOATS),
                     join_piece, &j);
}
