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

typedef struct job {
    const sti_gemm_kernels *products;
    const sti_winograd_kernels *transforms;
    const sti_conv_shape *shape;
    bool backward;
    int64_t images, h, w, c, pad; /* what is read */
    int64_t oh, ow, co;           /* what is written */
    int64_t tiles_y, tiles_x, block_rows;
    int64_t in_element, out_element, filter_element;
    size_t zero_floats, filter_floats, worker_floats;
    const float *in, *weights;
    float *out, *zeros, *filters, *workers;
    bool far; /* filters do not stay in the second-level cache */
    const sti_epilogue *epilogue;
} job;

static int panel_at(const job *j, int64_t column, int64_t *cols)
{
    const int nv = sti_gemm_many_panels(j->products, j->co - column);
    *cols = sti_conv_min(j->co - column, (int64_t)nv * STI_PANEL);
    return nv;
}

static void job_cut(job *j)
{
    j->tiles_y = sti_conv_ceil_div(j->oh, 2);
    j->tiles_x = sti_conv_ceil_div(j->ow, 2);
    j->far = ELEMENTS * j->c * j->co > FAR_FLOATS;
    const int64_t tiles =
        sti_conv_max(LEAST_TILES, TILE_FLOATS / (ELEMENTS * (j->c + j->co)));
    j->block_rows =
        sti_conv_max(1, sti_conv_min(tiles / j->tiles_x, j->images * j->tiles_y));
    const int64_t most = j->block_rows * j->tiles_x;
    j->in_element = most * j->c + GAP;
    j->out_element = most * j->co + GAP;
    j->filter_element = j->c * j->co + GAP;
    j->filter_floats = (size_t)(ELEMENTS * j->filter_element);
    j->zero_floats = (size_t)j->c;
    int64_t cols = 0;
    panel_at(j, 0, &cols); /* the widest; packing backward takes a panel at a time */
    const int64_t turned = j->backward ? ELEMENTS * (cols * j->c + GAP) : 0;
    j->worker_floats =
        (size_t)sti_conv_max(ELEMENTS * (j->in_element + j->out_element), turned);
}

static job forward_make(const sti_conv_shape *s)
{
    job j = {.products = sti_gemm_kernels_now(),
             .transforms = STI_KERNELS_NOW(sti_winograd_kernels),
             .shape = s,
             .images = s->n,
             .h = s->h,
             .w = s->w,
             .c = s->ci,
             .pad = s->pad,
             .oh = s->oh,
             .ow = s->ow,
             .co = s->co};
    job_cut(&j);
    return j;
}

static job data_make(const sti_conv_shape *s)
{
    job j = {.products = sti_gemm_kernels_now(),
             .transforms = STI_KERNELS_NOW(sti_winograd_kernels),
             .shape = s,
             .backward = true,
             .images = s->n,
             .h = s->oh,
             .w = s->ow,
             .c = s->co,
             .pad = 2 - s->pad,
             .oh = s->h,
             .ow = s->w,
             .co = s->ci};
    job_cut(&j);
    return j;
}

static size_t job_bytes(const job *j, int threads)
{
    return 128 +
           (j->zero_floats + j->filter_floats + (size_t)threads * j->worker_floats) *
               sizeof(float);
}

size_t sti_conv_winograd_forward_bytes(const sti_conv_shape *s, int threads)
{
    const job j = forward_make(s);
    return job_bytes(&j, threads);
}

size_t sti_conv_winograd_data_bytes(const sti_conv_shape *s, int threads)
{
    const job j = data_make(s);
    return job_bytes(&j, threads);
}

/* Some channels of input, all panels. */
static void forward_pack(void *arg, int64_t piece, int worker)
{
    const job *j = arg;
    const int64_t end = sti_conv_min(j->c, (piece + 1) * PACK_ROWS);
    (void)worker;
    for (int64_t n = 0, cols; n < j->co; n += cols) {
        const int64_t width = (int64_t)panel_at(j, n, &cols) * STI_PANEL;
        for (int64_t c = piece * PACK_ROWS; c < end; c++)
            j->transforms->filter(j->weights + c * j->co + n, j->c * j->co, cols,
                                  j->filters + n * j->c + c * width, j->filter_element);
    }
}

/* One panel: its filters as they lie, transformed, then transposed; turned round, rows
 * and columns 0 and 3 of the transform change places. */
static void data_pack(void *arg, int64_t piece, int worker)
{
    static const int turned[4] = {3, 1, 2, 0};
    const job *j = arg;
    float *natural = j->workers + (size_t)worker * j->worker_floats;
    int64_t n = 0, cols = 0;
    for (int64_t i = 0; i <= piece; i++) {
        n += cols;
        panel_at(j, n, &cols);
    }
    const int64_t width = (int64_t)panel_at(j, n, &cols) * STI_PANEL;
    const int64_t element = cols * j->c + GAP;
    for (int64_t c = 0; c < cols; c++)
        j->transforms->filter(j->weights + (n + c) * j->c, j->c * j->co, j->c,
                              natural + c * j->c, element);
    for (int e = 0; e < ELEMENTS; e++) {
        const int to = 4 * turned[e / 4] + turned[e % 4];
        j->products->pack_transposed(natural + e * element, j->c, j->c, cols, width,
                                     j->filters + to * j->filter_element + n * j->c);
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
                          .tile = j->c,
                          .element = j->in_element,
                          .count = j->tiles_x,
                          .first = -j->pad,
                          .pixels = j->w,
                          .channels = j->c};
    const float *image = j->in + row / j->tiles_y * j->h * j->w * j->c;
    sti_conv_winograd_lines(image, j->h, j->w, j->c, row % j->tiles_y * 2 - j->pad, 4,
                            j->zeros, &r);
    j->transforms->input(&r);
}

static int64_t out_line(const job *j, int64_t row)
{
    return row / j->tiles_y * j->oh + row % j->tiles_y * 2;
}

static void output_row(const job *j, int64_t row, float *tiles)
{
    float *out = j->out + out_line(j, row) * j->ow * j->co;
    const bool two = row % j->tiles_y * 2 + 1 < j->oh;
    const sti_winograd_row r = {.tiles = tiles,
                                .tile = j->co,
                                .element = j->out_element,
                                .count = j->tiles_x,
                                .out = {out, two ? out + j->ow * j->co : NULL},
                                .pixels = j->ow,
                                .channels = j->co,
                                .bias = j->epilogue ? j->epilogue->bias : NULL,
                                .relu = j->epilogue && j->epilogue->relu};
    j->transforms->output(&r);
}

/* Tiles [rows][c] of one element times its filters. */
static void product(const job *j, const float *tiles, const float *filters,
                    int64_t rows, float *out)
{
    static const int64_t zero_run[1] = {0};
    if (j->products->b_in_registers && j->c == STI_GEMM_REGISTER_B &&
        j->co == STI_GEMM_REGISTER_B) {
        j->products->b_in_registers(tiles, filters, rows, out, j->co);
        return;
    }
    for (int64_t n = 0, cols; n < j->co; n += cols) {
        const int nv = panel_at(j, n, &cols);
        sti_gemm_tile t = {.b = filters + n * j->c,
                           .a_row = j->c,
                           .a_run = zero_run,
                           .runs = 1,
                           .run_k = j->c,
                           .c_row = j->co,
                           .cols = cols,
                           .nv = nv};
        const int most = j->products->max_rows[nv];
        t.next = n + cols < j->co ? t.b + cols * j->c : filters + j->filter_element;
        t.next_row = t.next_cols = (int64_t)nv * STI_PANEL;
        t.next_rows =
            j->far ? sti_conv_ceil_div(j->c, sti_conv_ceil_div(rows, most)) : 0;
        for (int64_t r = 0; r < rows; r += t.lines * t.rows) {
            t.rows = sti_gemm_next_rows(rows - r, j->products->max_rows[nv]);
            t.lines = sti_gemm_equal_tiles(rows - r, j->products->max_rows[nv]);
            t.a_line = t.rows * j->c;
            t.c_line = t.rows * j->co;
            t.a = tiles + r * j->c;
            t.c = out + r * j->co + n;
            j->products->nn(&t);
            t.next += t.lines * t.next_rows * t.next_row;
        }
    }
}

static void piece_mask(const job *j, int64_t row, int64_t end)
{
    const int64_t all = j->images * j->tiles_y, line = j->ow * j->co;
    const int64_t from = out_line(j, row) * line;
    const int64_t to = end < all ? out_line(j, end) * line : j->images * j->oh * line;
    j->products->mask(j->out + from, to - from, j->epilogue->relu_mask + from / 8);
}

static void run_piece(void *arg, int64_t piece, int worker)
{
    const job *j = arg;
    float *in = j->workers + (size_t)worker * j->worker_floats;
    float *out = in + ELEMENTS * j->in_element;
    const int64_t row = piece * j->block_rows;
    const int64_t end = sti_conv_min(row + j->block_rows, j->images * j->tiles_y);
    for (int64_t r = row; r < end; r++)
        input_row(j, r, in + (r - row) * j->tiles_x * j->c);
    for (int64_t e = 0; e < ELEMENTS; e++)
        product(j, in + e * j->in_element, j->filters + e * j->filter_element,
                (end - row) * j->tiles_x, out + e * j->out_element);
    for (int64_t r = row; r < end; r++)
        output_row(j, r, out + (r - row) * j->tiles_x * j->co);
    if (j->epilogue && j->epilogue->relu_mask)
        piece_mask(j, row, end);
}

static void job_run(const sti_team *team, job *j, const float *in, const float *w,
                    float *out, void *scratch)
{
    j->in = in;
    j->weights = w;
    j->out = out;
    j->filters = sti_block_align(scratch);
    j->workers = j->filters + j->filter_floats;
    j->zeros = j->workers + (size_t)team->threads * j->worker_floats;
    memset(j->zeros, 0, j->zero_floats * sizeof *j->zeros);
    if (j->backward) {
        int64_t panels = 0;
        for (int64_t n = 0, cols; n < j->co; n += cols, panels++)
            panel_at(j, n, &cols);
        sti_team_run(team, panels, data_pack, j);
    } else {
        sti_team_run(team, sti_conv_ceil_div(j->c, PACK_ROWS), forward_pack, j);
    }
    sti_team_run(team, sti_conv_ceil_div(j->images * j->tiles_y, j->block_rows),
                 run_piece, j);
}

void sti_conv_winograd_forward(const sti_team *team, const sti_conv_shape *s,
                               const float *x, const float *w,
                               const sti_epilogue *epilogue, float *y_out,
                               void *scratch)
{
    job j = forward_make(s);
    j.epilogue = epilogue;
    job_run(team, &j, x, w, y_out, scratch);
}

void sti_conv_winograd_data(const sti_team *team, const sti_conv_shape *s,
                            const float *dy, const float *w, float *dx_out,
                            void *scratch)
{
    job j = data_make(s);
    job_run(team, &j, dy, w, dx_out, scratch);
}
