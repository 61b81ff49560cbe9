/* Tiles along rows of results. Kernels that may leave out zeros do so with taps that
 * meet padding: rows of results at the top and bottom are tiles of fewer runs, and the
 * columns at the sides are tiles of their own, which go down the image. */
#include "kernel/conv/conv_bf16_product.h"

#include <string.h>

void sti_conv_bf16_product_init(sti_conv_bf16_product *w, int64_t pairs)
{
    w->tiles = sti_bf16_tiles_now();
    w->loops = sti_bf16_kernels_now();
    w->turned = w->tiles->turn && pairs % 2 == 0;
}

sti_bf16_soon sti_conv_bf16_prefetch_rows(const sti_bf16 *image, int64_t y0, int64_t y1,
                                          int64_t rows, int64_t line)
{
    y0 = sti_conv_max(y0, 0);
    y1 = sti_conv_max(sti_conv_min(y1, rows), y0);
    return (sti_bf16_soon){(const char *)(image + y0 * line),
                           (const char *)(image + y1 * line)};
}

void sti_conv_bf16_prefetch_share(sti_conv_bf16_prefetch *soon, int64_t count)
{
    int64_t bytes = 0;
    for (int i = 0; i < STI_BF16_SOON; i++)
        bytes += soon->range[i].end - soon->range[i].at;
    count -= count / 8; /* some are left out */
    soon->bytes = sti_conv_ceil_div(bytes, sti_conv_max(count, 1));
}

/* Results to be tiled along `pixels`: `rows` rows of them or, with lengths in turn,
 * columns. */
typedef struct result_area {
    const sti_bf16_pair *in;
    sti_bf16 *out;
    int64_t rows, pixels;
    int64_t a_row, a_line, c_row, c_line;
    int64_t run, runs; /* those that count */
    const uint8_t *live;
} result_area;

/* The tiles of an area: equal ones, the last laid over the one before where they do
 * not divide a row (the same sums twice). */
typedef struct tile_grid {
    int64_t across, count, pixels;
    int rows; /* pixels a tile */
} tile_grid;

static tile_grid grid_of(int64_t rows, int64_t pixels)
{
    tile_grid g = {.across = sti_conv_ceil_div(pixels, STI_BF16_ROWS),
                   .pixels = pixels};
    g.rows = (int)sti_conv_ceil_div(pixels, g.across);
    g.count = rows * g.across;
    return g;
}

static int64_t grid_pixel(const tile_grid *g, int64_t tile)
{
    return sti_conv_min(tile % g->across * g->rows, g->pixels - g->rows);
}

/* Tiles first.. of one panel of columns, `count` of them. */
static void area_tiles(const sti_conv_bf16_product *w, const result_area *area,
                       const tile_grid *g, sti_conv_bf16_prefetch *soon, int64_t first,
                       int count, int64_t j, const float *bias)
{
    const int64_t blocks = sti_bf16_blocks(w->run_k);
    float sums[STI_BF16_TILES][STI_BF16_ROWS * STI_BF16_COLS]
        __attribute__((aligned(64)));
    sti_bf16_tile t = {
        .count = count,
        .rows = g->rows,
        .runs = area->runs,
        .blocks = blocks,
        .a = area->in,
        .b = w->panels + j / STI_BF16_COLS * sti_conv_bf16_panel_pairs(w) +
             area->run * blocks * STI_BF16_PAIRS * STI_BF16_COLS,
        .a_row = area->a_row,
        .a_block = STI_BF16_PAIRS,
        .b_row = STI_BF16_COLS,
        .a_run = w->run + area->run,
        .a_turned = w->turned,
        .b_turned = w->turned,
        .b_odd = STI_BF16_COLS,
        .live = area->live,
        .soon = soon->range,
        .soon_bytes = soon->bytes,
        .c = sums[0],
        .c_row = STI_BF16_COLS,
    };
    sti_bf16_finish finish = {.bias = bias,
                              .relu = w->relu,
                              .cols = sti_conv_min(w->channels - j, STI_BF16_COLS),
                              .y = area->out + j,
                              .y_row = area->c_row};
    for (int i = 0; i < count; i++) {
        const int64_t row = (first + i) / g->across, pixel = grid_pixel(g, first + i);
        t.a_tile[i] = row * area->a_line + pixel * area->a_row;
        t.c_tile[i] = (int64_t)i * STI_BF16_ROWS * STI_BF16_COLS;
        finish.y_tile[i] = row * area->c_line + pixel * area->c_row;
    }
    t.finish = w->tiles->finishes ? &finish : NULL;
    w->tiles->share_b(&t);
    for (int i = 0; i < count && !t.finish; i++)
        w->loops->finish(g->rows, finish.cols, sums[i], bias, w->relu,
                         finish.y + finish.y_tile[i], area->c_row);
}

static void area_panel(const sti_conv_bf16_product *w, const result_area *area,
                       sti_conv_bf16_prefetch *soon, int64_t j, const float *bias)
{
    if (area->rows <= 0 || area->pixels <= 0)
        return;
    const tile_grid g = grid_of(area->rows, area->pixels);
    w->tiles->begin(g.rows);
    for (int64_t i = 0; i < g.count; i += STI_BF16_TILES)
        area_tiles(w, area, &g, soon, i, (int)sti_conv_min(g.count - i, STI_BF16_TILES),
                   j, bias);
    w->tiles->end();
}

/* Some taps [from, to) of one axis. */
typedef struct tap_range {
    int64_t from, to;
} tap_range;

/* Those of `taps` taps, the first at `at`, that lie within a length. */
static tap_range taps_within(int64_t at, int64_t taps, int64_t length)
{
    tap_range r = {sti_conv_min(sti_conv_max(-at, 0), taps), 0};
    r.to = sti_conv_max(sti_conv_min(length - at, taps), r.from);
    return r;
}

/* Those of `count` results, `step` apart, the first meeting taps from `at` on,
 * whose taps all lie within a length. */
static tap_range inner_of(int64_t at, int64_t step, int64_t count, int64_t taps,
                          int64_t length)
{
    tap_range r = {0, count};
    while (r.from < count && at + r.from * step < 0)
        r.from++;
    while (r.to > r.from && at + (r.to - 1) * step + taps > length)
        r.to--;
    return r;
}

/* About the time of tiles along so many pixels: the least ones wait for their sums. */
static int64_t tiled_pixels(int64_t pixels)
{
    enum { LEAST = 5 };
    const tile_grid g = grid_of(1, sti_conv_max(pixels, 1));
    return g.across * sti_conv_max(g.rows, LEAST);
}

/* Whether columns at the sides had better be tiles of their own. */
static bool sides_pay(const sti_conv_bf16_product *w, const sti_conv_bf16_input *in,
                      int64_t rows, int64_t pixels, tap_range inner)
{
    const int64_t inside = inner.to - inner.from;
    int64_t gain = (tiled_pixels(pixels) - tiled_pixels(inside)) * rows * w->taps;
    for (int64_t i = 0; i < pixels && inside > 0; i++)
        if (i < inner.from || i >= inner.to) {
            const tap_range t = taps_within(in->x + i * w->step, w->taps, in->w);
            gain -= tiled_pixels(rows) * (t.to - t.from);
        }
    return inside > 0 && gain > 0;
}

/* Columns of an area of whole rows. */
static result_area columns_of(const sti_conv_bf16_product *w,
                              const sti_conv_bf16_input *in, const result_area *rows,
                              int64_t from, int64_t to, tap_range taps)
{
    result_area a = *rows;
    const int64_t fours = w->run_k / w->taps / 2; /* of a tap */
    for (int64_t i = 0; i < sti_bf16_blocks(w->run_k); i++)
        in->live[i] = sti_bf16_live(i, taps.from * fours, taps.to * fours);
    a.live = in->live;
    a.in += from * a.a_row;
    a.out += from * a.c_row;
    a.pixels = to - from;
    return a;
}

/* The same with tiles that go down. */
static result_area turned_area(const result_area *a)
{
    result_area t = *a;
    t.rows = a->pixels;
    t.pixels = a->rows;
    t.a_row = a->a_line;
    t.a_line = a->a_row;
    t.c_row = a->c_line;
    t.c_line = a->c_row;
    return t;
}

/* Results that meet all runs, or some of them. */
static void inner_rows(const sti_conv_bf16_product *w, const sti_conv_bf16_input *in,
                       const result_area *rows, sti_conv_bf16_prefetch *soon, int64_t j,
                       const float *bias)
{
    const tap_range all = {0, w->taps};
    tap_range inner = inner_of(in->x, w->step, rows->pixels, w->taps, in->w);
    if (!sides_pay(w, in, rows->rows, rows->pixels, inner))
        inner = (tap_range){0, rows->pixels};
    for (int64_t i = 0; i < rows->pixels; i++) {
        if (i == inner.from)
            i = inner.to;
        if (i == rows->pixels)
            break;
        const tap_range t = taps_within(in->x + i * w->step, w->taps, in->w);
        const result_area side = columns_of(w, in, rows, i, i + 1, t);
        const result_area down = turned_area(&side);
        area_panel(w, &down, soon, j, bias);
    }
    const result_area a = columns_of(w, in, rows, inner.from, inner.to, all);
    area_panel(w, &a, soon, j, bias);
}

/* One panel of columns. */
static void product_panel(const sti_conv_bf16_product *w, const sti_conv_bf16_input *in,
                          const result_area *all, sti_conv_bf16_prefetch *soon,
                          int64_t j, const float *bias)
{
    if (!in->leave_out || w->runs == 0) {
        area_panel(w, all, soon, j, bias);
        return;
    }
    const tap_range inner = inner_of(in->y, w->step, all->rows, w->runs, in->h);
    for (int64_t i = 0; i < all->rows; i++) {
        const tap_range t = taps_within(in->y + i * w->step, w->runs, in->h);
        result_area rows = *all;
        rows.in += i * rows.a_line;
        rows.out += i * rows.c_line;
        rows.rows = 1;
        rows.run = t.from;
        rows.runs = t.to - t.from;
        if (i == inner.from && inner.to > inner.from) {
            rows.rows = inner.to - inner.from;
            inner_rows(w, in, &rows, soon, j, bias);
            i = inner.to - 1;
            continue;
        }
        rows = columns_of(w, in, &rows, 0, rows.pixels, (tap_range){0, w->taps});
        area_panel(w, &rows, soon, j, bias);
    }
}

int64_t sti_conv_bf16_product_blocks(const sti_conv_bf16_product *w, int64_t rows,
                                     int64_t pixels)
{
    return grid_of(rows, pixels).count * sti_conv_ceil_div(w->channels, STI_BF16_COLS) *
           w->runs * sti_bf16_blocks(w->run_k);
}

void sti_conv_bf16_product_run(const sti_conv_bf16_product *w,
                               const sti_conv_bf16_input *in,
                               sti_conv_bf16_prefetch *soon, sti_bf16 *out,
                               int64_t rows, int64_t pixels)
{
    const result_area all = {.in = in->at,
                             .out = out,
                             .rows = rows,
                             .pixels = pixels,
                             .a_row = w->a_row,
                             .a_line = w->a_line,
                             .c_row = w->c_row,
                             .c_line = w->c_line,
                             .runs = w->runs};
    for (int64_t j = 0; j < w->channels; j += STI_BF16_COLS) {
        float bias[STI_BF16_COLS] = {0};
        if (w->bias)
            memcpy(bias, w->bias + j,
                   (size_t)sti_conv_min(w->channels - j, STI_BF16_COLS) * sizeof *bias);
        product_panel(w, in, &all, soon, j, bias);
    }
}
