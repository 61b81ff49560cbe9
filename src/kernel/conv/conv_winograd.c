/* Forward and backward data. Backward data is forward over dy, with filters turned
 * round and transposed. A piece is some rows of tiles: transformed into scratch, 16
 * products with the packed filters, transformed back. */
#include "kernel/conv/conv_winograd.h"

#include <string.h>

enum {
    ELEMENTS = STI_WINOGRAD_ELEMENTS,
    TILE_FLOATS = 32 << 10, /* transformed inputs and outputs of a piece */
    LEAST_TILES = 64,       /* but so many, for the filters that pass by, */
    FAR_FLOATS = 512 << 10, /* fetched ahead where they come from far away: so large */
    PACK_ROWS = 16,         /* channels of filters a piece of packing */
    GAP = 16                /* so that elements do not share a set of the cache */
};

typedef sti_conv_winograd_plan winograd_plan;

typedef struct job {
    const winograd_plan *plan;
    const sti_gemm_kernels *products;
    const sti_winograd_kernels *transforms;
    const float *in, *weights;
    float *out, *zeros, *filters;
    const float *packed; /* filters that are read: those, or kept ones */
    char *workers;
    const sti_epilogue *epilogue;
    const sti_conv_behind *behind;
} job;

/* How many panels of 16 columns go together from a column of `co` on. */
static int panel_width(const sti_gemm_kernels *kernels, int64_t co, int64_t column,
                       int64_t *cols)
{
    const int nv = sti_gemm_many_panels(kernels, co - column);
    *cols = sti_conv_min(co - column, (int64_t)nv * STI_PANEL);
    return nv;
}

static int panel_at(const job *j, int64_t column, int64_t *cols)
{
    return panel_width(j->products, j->plan->co, column, cols);
}

/* What is read and written; backward data reads dy and writes dx. */
static winograd_plan plan_images(const sti_conv_shape *s, bool backward)
{
    return backward ? (winograd_plan){.images = s->n,
                                      .h = s->oh,
                                      .w = s->ow,
                                      .c = s->co,
                                      .pad = 2 - s->pad,
                                      .oh = s->h,
                                      .ow = s->w,
                                      .co = s->ci}
                    : (winograd_plan){.images = s->n,
                                      .h = s->h,
                                      .w = s->w,
                                      .c = s->ci,
                                      .pad = s->pad,
                                      .oh = s->oh,
                                      .ow = s->ow,
                                      .co = s->co};
}

static void plan_blocks(winograd_plan *p)
{
    p->tiles_y = sti_conv_ceil_div(p->oh, 2);
    p->tiles_x = sti_conv_ceil_div(p->ow, 2);
    p->far = ELEMENTS * p->c * p->co > FAR_FLOATS;
    const int64_t tiles =
        sti_conv_max(LEAST_TILES, TILE_FLOATS / (ELEMENTS * (p->c + p->co)));
    p->block_rows =
        sti_conv_max(1, sti_conv_min(tiles / p->tiles_x, p->images * p->tiles_y));
    const int64_t most = p->block_rows * p->tiles_x;
    p->in_element = most * p->c + GAP;
    p->out_element = most * p->co + GAP;
    p->filter_element = p->c * p->co + GAP;
}

void sti_conv_plan_winograd(sti_conv_plan *plan)
{
    const bool backward = plan->direction == STI_CONV_BACKWARD_DATA;
    winograd_plan *p = &plan->winograd;
    *p = plan_images(&plan->shape, backward);
    plan_blocks(p);
    int64_t cols = 0;
    panel_width(sti_gemm_kernels_now(), p->co, 0, &cols); /* the widest */
    /* Packing backward takes a panel at a time. */
    const bool packs = !plan->kept;
    const int64_t packed = backward && packs ? ELEMENTS * (cols * p->c + GAP) : 0;
    p->worker_bytes = sti_conv_part_bytes(
        sti_conv_max(ELEMENTS * (p->in_element + p->out_element), packed),
        sizeof(float));
    p->filters_at = sti_conv_plan_add(
        plan,
        packs ? sti_conv_part_bytes(ELEMENTS * p->filter_element, sizeof(float)) : 0);
    p->workers_at = sti_conv_plan_add_workers(plan, p->worker_bytes);
    p->zeros_at = sti_conv_plan_add(plan, (size_t)p->c * sizeof(float));
}

static float *worker_floats(const job *j, int worker)
{
    return (float *)(void *)(j->workers + (size_t)worker * j->plan->worker_bytes);
}

/* Some channels of input, all panels. */
static void forward_pack(void *arg, int64_t piece, int worker)
{
    const job *j = arg;
    const int64_t end = sti_conv_min(j->plan->c, (piece + 1) * PACK_ROWS);
    (void)worker;
    for (int64_t n = 0, cols; n < j->plan->co; n += cols) {
        const int64_t width = (int64_t)panel_at(j, n, &cols) * STI_PANEL;
        for (int64_t c = piece * PACK_ROWS; c < end; c++)
            j->transforms->filter(
                j->weights + c * j->plan->co + n, j->plan->c * j->plan->co, cols,
                j->filters + n * j->plan->c + c * width, j->plan->filter_element);
    }
}

/* One panel: its filters as they lie, transformed, then transposed; turned round, rows
 * and columns 0 and 3 of the transform change places. */
static void data_pack(void *arg, int64_t piece, int worker)
{
    static const int turned[4] = {3, 1, 2, 0};
    const job *j = arg;
    float *natural = worker_floats(j, worker);
    int64_t n = 0, cols = 0;
    for (int64_t i = 0; i <= piece; i++) {
        n += cols;
        panel_at(j, n, &cols);
    }
    const int64_t width = (int64_t)panel_at(j, n, &cols) * STI_PANEL;
    const int64_t element = cols * j->plan->c + GAP;
    for (int64_t c = 0; c < cols; c++)
        j->transforms->filter(j->weights + (n + c) * j->plan->c,
                              j->plan->c * j->plan->co, j->plan->c,
                              natural + c * j->plan->c, element);
    for (int e = 0; e < ELEMENTS; e++) {
        const int to = 4 * turned[e / 4] + turned[e % 4];
        j->products->pack_transposed(
            natural + e * element, j->plan->c, j->plan->c, cols, width,
            j->filters + to * j->plan->filter_element + n * j->plan->c);
    }
}

void sti_conv_winograd_lines(const float *image, int64_t h, int64_t w, int64_t c,
                             int64_t first_line, int lines, const float *zeros,
                             sti_winograd_row *row)
{
    for (int i = 0; i < lines; i++) {
        const int64_t y = first_line + i;
        const bool inside = y >= 0 && y < h;
        row->line[i] = inside ? image + y * w * c : zeros;
        row->line_channel[i] = inside ? c : 0;
    }
}

/* Row `row` of all tiles, in or out. */
static void input_row(const job *j, int64_t row, float *tiles)
{
    sti_winograd_row r = {.tiles = tiles,
                          .tile = j->plan->c,
                          .element = j->plan->in_element,
                          .count = j->plan->tiles_x,
                          .first = -j->plan->pad,
                          .pixels = j->plan->w,
                          .channels = j->plan->c};
    const float *image =
        j->in + row / j->plan->tiles_y * j->plan->h * j->plan->w * j->plan->c;
    sti_conv_winograd_lines(image, j->plan->h, j->plan->w, j->plan->c,
                            row % j->plan->tiles_y * 2 - j->plan->pad, 4, j->zeros, &r);
    j->transforms->input(&r);
}

static int64_t out_line(const job *j, int64_t row)
{
    return row / j->plan->tiles_y * j->plan->oh + row % j->plan->tiles_y * 2;
}

static void output_row(const job *j, int64_t row, float *tiles)
{
    float *out = j->out + out_line(j, row) * j->plan->ow * j->plan->co;
    const bool two = row % j->plan->tiles_y * 2 + 1 < j->plan->oh;
    const sti_winograd_row r = {
        .tiles = tiles,
        .tile = j->plan->co,
        .element = j->plan->out_element,
        .count = j->plan->tiles_x,
        .out = {out, two ? out + j->plan->ow * j->plan->co : NULL},
        .pixels = j->plan->ow,
        .channels = j->plan->co,
        .bias = j->epilogue ? j->epilogue->bias : NULL,
        .relu = j->epilogue && j->epilogue->relu};
    j->transforms->output(&r);
}

/* Tiles [rows][c] of one element times its filters. */
static void product(const job *j, const float *tiles, const float *filters,
                    int64_t rows, float *out)
{
    static const int64_t zero_run[1] = {0};
    if (j->products->b_in_registers && j->plan->c == STI_GEMM_REGISTER_B &&
        j->plan->co == STI_GEMM_REGISTER_B) {
        j->products->b_in_registers(tiles, filters, rows, out, j->plan->co);
        return;
    }
    for (int64_t n = 0, cols; n < j->plan->co; n += cols) {
        const int nv = panel_at(j, n, &cols);
        sti_gemm_tile t = {.b = filters + n * j->plan->c,
                           .a_row = j->plan->c,
                           .a_run = zero_run,
                           .runs = 1,
                           .run_k = j->plan->c,
                           .c_row = j->plan->co,
                           .cols = cols,
                           .nv = nv};
        const int most = j->products->max_rows[nv];
        t.next = n + cols < j->plan->co ? t.b + cols * j->plan->c
                                        : filters + j->plan->filter_element;
        t.next_row = t.next_cols = (int64_t)nv * STI_PANEL;
        t.next_rows = j->plan->far
                          ? sti_conv_ceil_div(j->plan->c, sti_conv_ceil_div(rows, most))
                          : 0;
        for (int64_t r = 0; r < rows; r += t.lines * t.rows) {
            t.rows = sti_gemm_next_rows(rows - r, j->products->max_rows[nv]);
            t.lines = sti_gemm_equal_tiles(rows - r, j->products->max_rows[nv]);
            t.a_line = t.rows * j->plan->c;
            t.c_line = t.rows * j->plan->co;
            t.a = tiles + r * j->plan->c;
            t.c = out + r * j->plan->co + n;
            j->products->nn(&t);
            t.next += t.lines * t.next_rows * t.next_row;
        }
    }
}

/* What is done to the outputs of rows [row, end) of tiles, which are finished. */
static void piece_end(const job *j, int64_t row, int64_t end)
{
    const int64_t all = j->plan->images * j->plan->tiles_y, co = j->plan->co;
    const int64_t first = out_line(j, row) * j->plan->ow;
    const int64_t pixels =
        (end < all ? out_line(j, end) : j->plan->images * j->plan->oh) * j->plan->ow -
        first;
    if (j->epilogue && j->epilogue->relu_mask)
        j->products->mask(j->out + first * co, pixels * co,
                          j->epilogue->relu_mask + first * co / 8);
    if (j->behind)
        j->behind->run(j->behind->user, first, pixels);
}

static void run_piece(void *arg, int64_t piece, int worker)
{
    const job *j = arg;
    float *in = worker_floats(j, worker);
    float *out = in + ELEMENTS * j->plan->in_element;
    const int64_t row = piece * j->plan->block_rows;
    const int64_t end =
        sti_conv_min(row + j->plan->block_rows, j->plan->images * j->plan->tiles_y);
    for (int64_t r = row; r < end; r++)
        input_row(j, r, in + (r - row) * j->plan->tiles_x * j->plan->c);
    for (int64_t e = 0; e < ELEMENTS; e++)
        product(j, in + e * j->plan->in_element,
                j->packed + e * j->plan->filter_element, (end - row) * j->plan->tiles_x,
                out + e * j->plan->out_element);
    for (int64_t r = row; r < end; r++)
        output_row(j, r, out + (r - row) * j->plan->tiles_x * j->plan->co);
    piece_end(j, row, end);
}

static job job_make(const sti_conv_plan *plan, const float *in, const float *weights,
                    float *out, void *scratch)
{
    const winograd_plan *p = &plan->winograd;
    float *filters = sti_conv_part(scratch, p->filters_at);
    return (job){.plan = p,
                 .products = sti_gemm_kernels_now(),
                 .transforms = STI_KERNELS_NOW(sti_winograd_kernels),
                 .in = in,
                 .weights = weights,
                 .out = out,
                 .zeros = sti_conv_part(scratch, p->zeros_at),
                 .filters = filters,
                 .packed = filters,
                 .workers = sti_conv_part(scratch, p->workers_at)};
}

/* Once filters are packed. */
static void job_run(const sti_team *team, job *j)
{
    const winograd_plan *p = j->plan;
    memset(j->zeros, 0, (size_t)p->c * sizeof *j->zeros);
    sti_team_run(team, sti_conv_ceil_div(p->images * p->tiles_y, p->block_rows),
                 run_piece, j);
}

static void pack(const sti_team *team, job *j, sti_conv_direction direction)
{
    int64_t panels = 0;
    if (direction == STI_CONV_FORWARD) {
        sti_team_run(team, sti_conv_ceil_div(j->plan->c, PACK_ROWS), forward_pack, j);
        return;
    }
    for (int64_t n = 0, cols; n < j->plan->co; n += cols, panels++)
        panel_at(j, n, &cols);
    sti_team_run(team, panels, data_pack, j);
}

void sti_conv_winograd_forward(const sti_team *team, const sti_conv_plan *plan,
                               const float *x, const float *w,
                               const sti_epilogue *epilogue,
                               const sti_conv_behind *behind, float *y_out,
                               void *scratch)
{
    job j = job_make(plan, x, w, y_out, scratch);
    j.epilogue = epilogue;
    j.behind = behind;
    if (plan->kept)
        j.packed = w;
    else
        pack(team, &j, STI_CONV_FORWARD);
    job_run(team, &j);
}

void sti_conv_winograd_data(const sti_team *team, const sti_conv_plan *plan,
                            const float *dy, const float *w, float *dx_out,
                            void *scratch)
{
    job j = job_make(plan, dy, w, dx_out, scratch);
    if (plan->kept)
        j.packed = w;
    else
        pack(team, &j, STI_CONV_BACKWARD_DATA);
    job_run(team, &j);
}

int64_t sti_conv_winograd_kept_floats(const sti_conv_plan *plan)
{
    return ELEMENTS * plan->winograd.filter_element;
}

void sti_conv_winograd_keep(const sti_team *team, const sti_conv_plan *plan,
                            const float *w, float *kept_out, void *scratch)
{
    job j = job_make(plan, NULL, w, NULL, scratch);
    j.filters = kept_out;
    pack(team, &j, plan->direction);
}
