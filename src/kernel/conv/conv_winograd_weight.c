/* The weight gradient: with V the transformed inputs and D the transformed gradients of
 * the outputs, element e of the transformed filters has the gradient V_e' D_e, summed
 * over tiles; transformed back at the end. A piece owns some input channels and a
 * subtree of the chunks of tiles. */
#include "kernel/conv/conv_winograd.h"

#include <string.h>

#include "kernel/conv/conv_chunks.h"

enum {
    ELEMENTS = STI_WINOGRAD_ELEMENTS,
    SLICE = 64,       /* input channels a piece, where there are more; */
    LEAST_SLICE = 32, /* so many where that leaves less than */
    LEAST_PIECES = 4,
    TILE_FLOATS = 96 << 10, /* transformed operands of a block of tiles */
    LEAST_TILES = 64,
    CHUNK_TILES = 4096, /* part of the numerics */
    GAP = 16
};

typedef struct job {
    const sti_gemm_kernels *products;
    const sti_winograd_kernels *transforms;
    const sti_conv_shape *shape;
    int64_t tiles_y, tiles_x, rows; /* of all images */
    int64_t chunk_rows;
    sti_conv_chunks tree;
    int64_t slice, slices, block_rows;
    int64_t x_element, dy_element, grad_element;
    size_t grad_floats, worker_floats, result_floats, zero_floats;
    const float *x, *dy;
    float *dw, *results, *workers, *zeros;
} job;

/* Slices, and subtrees of the chunks: few, as each leaves a whole gradient behind. */
static void cut_pieces(job *j, int64_t slice)
{
    j->slice = sti_conv_min(j->shape->ci, slice);
    j->slices = sti_conv_ceil_div(j->shape->ci, slice);
    j->chunk_rows = sti_conv_max(1, CHUNK_TILES / j->tiles_x);
    j->tree = sti_conv_chunks_cut(sti_conv_ceil_div(j->rows, j->chunk_rows),
                                  sti_conv_max(1, STI_CONV_MAX_TREES / j->slices));
}

static job make(const sti_conv_shape *s)
{
    job j = {.products = sti_gemm_kernels_now(),
             .transforms = STI_KERNELS_NOW(sti_winograd_kernels),
             .shape = s,
             .tiles_y = sti_conv_ceil_div(s->oh, 2),
             .tiles_x = sti_conv_ceil_div(s->ow, 2)};
    j.rows = s->n * j.tiles_y;
    cut_pieces(&j, SLICE);
    if (j.slices * j.tree.trees < LEAST_PIECES)
        cut_pieces(&j, LEAST_SLICE);
    const int64_t tiles =
        sti_conv_max(LEAST_TILES, TILE_FLOATS / (ELEMENTS * (j.slice + s->co)));
    j.block_rows = sti_conv_max(1, sti_conv_min(tiles / j.tiles_x, j.rows));
    j.x_element = j.block_rows * j.tiles_x * j.slice + GAP;
    j.dy_element = j.block_rows * j.tiles_x * s->co + GAP;
    j.grad_element = j.slice * s->co + GAP;
    j.grad_floats = (size_t)(ELEMENTS * j.grad_element);
    j.worker_floats = (size_t)(ELEMENTS * (j.x_element + j.dy_element)) +
                      j.tree.levels * j.grad_floats;
    j.result_floats =
        j.tree.trees > 1 ? (size_t)(j.tree.trees * j.slices) * j.grad_floats : 0;
    j.zero_floats = (size_t)sti_conv_max(s->ci, s->co);
    return j;
}

size_t sti_conv_winograd_weight_bytes(const sti_conv_shape *s, int threads)
{
    const job j = make(s);
    return 128 + (j.zero_floats + j.result_floats + (size_t)threads * j.worker_floats) *
                     sizeof(float);
}

static int64_t slice_channels(const job *j, int64_t slice)
{
    return sti_conv_min(j->slice, j->shape->ci - slice * j->slice);
}

/* A slice of the channels of one row of tiles. */
static void input_row(const job *j, int64_t row, int64_t slice, float *tiles)
{
    const sti_conv_shape *s = j->shape;
    sti_winograd_row r = {.tiles = tiles,
                          .tile = slice_channels(j, slice),
                          .element = j->x_element,
                          .count = j->tiles_x,
                          .first = -s->pad,
                          .pixels = s->w,
                          .channels = slice_channels(j, slice)};
    const float *image = j->x + row / j->tiles_y * s->h * s->w * s->ci;
    sti_conv_winograd_lines(image, s->h, s->w, s->ci, row % j->tiles_y * 2 - s->pad, 4,
                            j->zeros, &r);
    for (int i = 0; i < 4; i++)
        r.line[i] += slice * j->slice;
    j->transforms->input(&r);
}

static void output_grad_row(const job *j, int64_t row, float *tiles)
{
    const sti_conv_shape *s = j->shape;
    sti_winograd_row r = {.tiles = tiles,
                          .tile = s->co,
                          .element = j->dy_element,
                          .count = j->tiles_x,
                          .pixels = s->ow,
                          .channels = s->co};
    const float *image = j->dy + row / j->tiles_y * s->oh * s->ow * s->co;
    sti_conv_winograd_lines(image, s->oh, s->ow, s->co, row % j->tiles_y * 2, 2,
                            j->zeros, &r);
    j->transforms->output_grad(&r);
}

/* grad [channels][co] += x [tiles][channels]' dy [tiles][co]. */
static void product(const job *j, const float *x, const float *dy, int64_t tiles,
                    int64_t channels, bool load, float *grad)
{
    static const int64_t zero_run[1] = {0};
    const int64_t co = j->shape->co;
    for (int64_t n = 0; n < co;) {
        const int nv = sti_gemm_many_panels(j->products, co - n);
        sti_gemm_tile t = {.b = dy + n,
                           .a_run = zero_run,
                           .a_step = channels,
                           .b_step = co,
                           .runs = 1,
                           .run_k = tiles,
                           .c_row = co,
                           .cols = sti_conv_min(co - n, (int64_t)nv * STI_PANEL),
                           .nv = nv,
                           .load = load};
        t.b_part = t.cols < (int64_t)nv * STI_PANEL;
        for (int64_t r = 0; r < channels; r += t.lines * t.rows) {
            t.rows = sti_gemm_next_rows(channels - r, j->products->max_rows[nv]);
            t.lines = sti_gemm_equal_tiles(channels - r, j->products->max_rows[nv]);
            t.a_line = t.rows;
            t.c_line = t.rows * co;
            t.a = x + r;
            t.c = grad + r * co + n;
            j->products->tn(&t);
        }
        n += t.cols;
    }
}

static void chunk_sums(const job *j, int64_t chunk, int64_t slice, float *x,
                       float *grad)
{
    float *dy = x + ELEMENTS * j->x_element;
    const int64_t first = chunk * j->chunk_rows, channels = slice_channels(j, slice);
    const int64_t end = sti_conv_min(first + j->chunk_rows, j->rows);
    for (int64_t row = first, rows; row < end; row += rows) {
        rows = sti_conv_min(j->block_rows, end - row);
        for (int64_t r = 0; r < rows; r++) {
            input_row(j, row + r, slice, x + r * j->tiles_x * channels);
            output_grad_row(j, row + r, dy + r * j->tiles_x * j->shape->co);
        }
        for (int64_t e = 0; e < ELEMENTS; e++)
            product(j, x + e * j->x_element, dy + e * j->dy_element, rows * j->tiles_x,
                    channels, row > first, grad + e * j->grad_element);
    }
}

static void put_slice(const job *j, int64_t slice, const float *grad)
{
    const sti_conv_shape *s = j->shape;
    for (int64_t c = 0; c < slice_channels(j, slice); c++)
        j->transforms->filter_grad(grad + c * s->co, j->grad_element, s->co,
                                   j->dw + (slice * j->slice + c) * s->co,
                                   s->ci * s->co);
}

/* A piece at work. */
typedef struct slice_work {
    const job *j;
    int64_t slice;
    float *operands;
} slice_work;

static void slice_chunk(void *arg, int64_t chunk, float *sums)
{
    const slice_work *w = arg;
    chunk_sums(w->j, chunk, w->slice, w->operands, sums);
}

static void run_piece(void *arg, int64_t piece, int worker)
{
    const job *j = arg;
    slice_work w = {j, piece % j->slices,
                    j->workers + (size_t)worker * j->worker_floats};
    float *stack = w.operands + ELEMENTS * (j->x_element + j->dy_element);
    const size_t size = j->grad_floats;
    sti_conv_chunks_sum(&j->tree, piece / j->slices, size, stack, slice_chunk, &w);
    if (j->tree.trees == 1)
        put_slice(j, w.slice, stack);
    else
        memcpy(j->results + (size_t)piece * size, stack, size * sizeof *stack);
}

/* The top of the tree, in place. */
static void join_slice(void *arg, int64_t slice, int worker)
{
    const job *j = arg;
    float *side[STI_CONV_MAX_TREES];
    (void)worker;
    for (int64_t t = 0; t < j->tree.trees; t++)
        side[t] = j->results + (size_t)(t * j->slices + slice) * j->grad_floats;
    sti_conv_chunks_join(&j->tree, side, j->grad_floats);
    put_slice(j, slice, side[0]);
}

void sti_conv_winograd_weight(const sti_team *team, const sti_conv_shape *s,
                              const float *x, const float *dy, float *dw_out,
                              void *scratch)
{
    job j = make(s);
    j.x = x;
    j.dy = dy;
    j.dw = dw_out;
    j.workers = sti_block_align(scratch);
    j.results = j.workers + (size_t)team->threads * j.worker_floats;
    j.zeros = j.results + j.result_floats;
    memset(j.zeros, 0, j.zero_floats * sizeof *j.zeros);
    if (j.rows == 0)
        memset(dw_out, 0, (size_t)(9 * s->ci * s->co) * sizeof *dw_out);
    else
        sti_team_run(team, j.tree.trees * j.slices, run_piece, &j);
    if (j.tree.trees > 1)
        sti_team_run(team, j.slices, join_slice, &j);
}
