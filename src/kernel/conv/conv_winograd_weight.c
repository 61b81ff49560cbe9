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

typedef sti_conv_winograd_weight_plan weight_plan;

typedef struct job {
    const sti_conv_shape *shape;
    const weight_plan *plan;
    const sti_gemm_kernels *products;
    const sti_winograd_kernels *transforms;
    const float *x, *dy;
    float *dw, *results, *zeros;
    char *workers;
} job;

/* Slices, and subtrees of the chunks: few, as each leaves a whole gradient behind. */
static void cut_pieces(weight_plan *p, int64_t channels, int64_t slice)
{
    p->slice = sti_conv_min(channels, slice);
    p->slices = sti_conv_ceil_div(channels, slice);
    p->chunk_rows = sti_conv_max(1, CHUNK_TILES / p->tiles_x);
    p->tree = sti_conv_chunks_cut(sti_conv_ceil_div(p->rows, p->chunk_rows),
                                  sti_conv_max(1, STI_CONV_MAX_TREES / p->slices));
}

static void cut_blocks(weight_plan *p, int64_t co)
{
    const int64_t tiles =
        sti_conv_max(LEAST_TILES, TILE_FLOATS / (ELEMENTS * (p->slice + co)));
    p->block_rows = sti_conv_max(1, sti_conv_min(tiles / p->tiles_x, p->rows));
    p->x_element = p->block_rows * p->tiles_x * p->slice + GAP;
    p->dy_element = p->block_rows * p->tiles_x * co + GAP;
    p->grad_element = p->slice * co + GAP;
    p->grad_floats = (size_t)(ELEMENTS * p->grad_element);
}

void sti_conv_plan_winograd_weight(sti_conv_plan *plan)
{
    const sti_conv_shape *s = &plan->shape;
    weight_plan *p = &plan->winograd_weight;
    p->tiles_y = sti_conv_ceil_div(s->oh, 2);
    p->tiles_x = sti_conv_ceil_div(s->ow, 2);
    p->rows = s->n * p->tiles_y;
    cut_pieces(p, s->ci, SLICE);
    if (p->slices * p->tree.trees < LEAST_PIECES)
        cut_pieces(p, s->ci, LEAST_SLICE);
    cut_blocks(p, s->co);
    p->worker_bytes =
        sti_conv_part_bytes(ELEMENTS * (p->x_element + p->dy_element) +
                                (int64_t)(p->tree.levels * p->grad_floats),
                            sizeof(float));
    p->workers_at = sti_conv_plan_add_workers(plan, p->worker_bytes);
    if (p->tree.trees > 1)
        p->results_at = sti_conv_plan_add(plan, (size_t)(p->tree.trees * p->slices) *
                                                    p->grad_floats * sizeof(float));
    p->zeros_at =
        sti_conv_plan_add(plan, (size_t)sti_conv_max(s->ci, s->co) * sizeof(float));
}

static int64_t slice_channels(const job *j, int64_t slice)
{
    return sti_conv_min(j->plan->slice, j->shape->ci - slice * j->plan->slice);
}

/* A slice of the channels of one row of tiles. */
static void input_row(const job *j, int64_t row, int64_t slice, float *tiles)
{
    const sti_conv_shape *s = j->shape;
    sti_winograd_row r = {.tiles = tiles,
                          .tile = slice_channels(j, slice),
                          .element = j->plan->x_element,
                          .count = j->plan->tiles_x,
                          .first = -s->pad,
                          .pixels = s->w,
                          .channels = slice_channels(j, slice)};
    const float *image = j->x + row / j->plan->tiles_y * s->h * s->w * s->ci;
    sti_conv_winograd_lines(image, s->h, s->w, s->ci,
                            row % j->plan->tiles_y * 2 - s->pad, 4, j->zeros, &r);
    for (int i = 0; i < 4; i++)
        r.line[i] += slice * j->plan->slice;
    j->transforms->input(&r);
}

static void output_grad_row(const job *j, int64_t row, float *tiles)
{
    const sti_conv_shape *s = j->shape;
    sti_winograd_row r = {.tiles = tiles,
                          .tile = s->co,
                          .element = j->plan->dy_element,
                          .count = j->plan->tiles_x,
                          .pixels = s->ow,
                          .channels = s->co};
    const float *image = j->dy + row / j->plan->tiles_y * s->oh * s->ow * s->co;
    sti_conv_winograd_lines(image, s->oh, s->ow, s->co, row % j->plan->tiles_y * 2, 2,
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
    float *dy = x + ELEMENTS * j->plan->x_element;
    const int64_t first = chunk * j->plan->chunk_rows,
                  channels = slice_channels(j, slice);
    const int64_t end = sti_conv_min(first + j->plan->chunk_rows, j->plan->rows);
    for (int64_t row = first, rows; row < end; row += rows) {
        rows = sti_conv_min(j->plan->block_rows, end - row);
        for (int64_t r = 0; r < rows; r++) {
            input_row(j, row + r, slice, x + r * j->plan->tiles_x * channels);
            output_grad_row(j, row + r, dy + r * j->plan->tiles_x * j->shape->co);
        }
        for (int64_t e = 0; e < ELEMENTS; e++)
            product(j, x + e * j->plan->x_element, dy + e * j->plan->dy_element,
                    rows * j->plan->tiles_x, channels, row > first,
                    grad + e * j->plan->grad_element);
    }
}

static void put_slice(const job *j, int64_t slice, const float *grad)
{
    const sti_conv_shape *s = j->shape;
    for (int64_t c = 0; c < slice_channels(j, slice); c++)
        j->transforms->filter_grad(grad + c * s->co, j->plan->grad_element, s->co,
                                   j->dw + (slice * j->plan->slice + c) * s->co,
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
    char *operands = j->workers + (size_t)worker * j->plan->worker_bytes;
    slice_work w = {j, piece % j->plan->slices, (float *)(void *)operands};
    float *stack = w.operands + ELEMENTS * (j->plan->x_element + j->plan->dy_element);
    const size_t size = j->plan->grad_floats;
    sti_conv_chunks_sum(&j->plan->tree, piece / j->plan->slices, size, stack,
                        slice_chunk, &w);
    if (j->plan->tree.trees == 1)
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
    for (int64_t t = 0; t < j->plan->tree.trees; t++)
        side[t] =
            j->results + (size_t)(t * j->plan->slices + slice) * j->plan->grad_floats;
    sti_conv_chunks_join(&j->plan->tree, side, j->plan->grad_floats);
    put_slice(j, slice, side[0]);
}

void sti_conv_winograd_weight(const sti_team *team, const sti_conv_plan *plan,
                              const float *x, const float *dy, float *dw_out,
                              void *scratch)
{
    const sti_conv_shape *s = &plan->shape;
    const weight_plan *p = &plan->winograd_weight;
    job j = {.shape = s,
             .plan = p,
             .products = sti_gemm_kernels_now(),
             .transforms = STI_KERNELS_NOW(sti_winograd_kernels),
             .x = x,
             .dy = dy,
             .dw = dw_out,
             .results = sti_conv_part(scratch, p->results_at),
             .zeros = sti_conv_part(scratch, p->zeros_at),
             .workers = sti_conv_part(scratch, p->workers_at)};
    memset(j.zeros, 0, (size_t)sti_conv_max(s->ci, s->co) * sizeof *j.zeros);
    sti_team_run(team, p->tree.trees * p->slices, run_piece, &j);
    if (p->tree.trees > 1)
        sti_team_run(team, p->slices, join_slice, &j);
}
