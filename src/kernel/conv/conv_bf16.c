/* Forward and backward-data passes on bfloat16.
 *
 * Both are one walk: results of an image row are tiles of pixels by channels, and the
 * taps of one row of the window lie side by side in zero-padded image rows, which are
 * copied to scratch (or read in place where nothing needs padding). Backward data is
 * the same walk over dy for each phase of the stride, with the taps in reverse.
 *
 * Kernels that may leave out zeros do so with taps that meet padding: rows of results
 * at the top and bottom are tiles of fewer runs, and the columns at the sides are tiles
 * of their own, which go down the image. */
#include "kernel/conv/conv_bf16.h"

#include <string.h>

#include "kernel/conv/conv_bf16_priv.h"

enum { LINE_PAIRS = 16 << 10 }; /* padded rows a piece: 64 KiB */

/* ---- the walk ---- */

/* What turns rows of input pixels into rows of output pixels; lengths of the input in
 * pairs, of the output in elements. */
typedef struct row_walk {
    const sti_bf16_tile_kernels *tiles;
    const sti_bf16_kernels *loops;
    bool turned;            /* panels and input rows */
    bool in_place;          /* input rows are read where they lie */
    bool finite;            /* weights */
    const int64_t *run;     /* [runs]: rows of taps */
    int64_t runs, run_k;    /* pairs of a run */
    int64_t taps, step;     /* of a run; input pixels from one result to the next */
    const uint32_t *panels; /* [column panel][runs][run_k, whole blocks][16] */
    int64_t channels;       /* out */
    int64_t a_row, a_line, c_row, c_line;
    const float *bias;
    bool relu;
} row_walk;

/* Fours of k must not cross from one pixel, of so many pairs, to the next. */
static void walk_set_kernels(row_walk *w, int64_t pairs)
{
    w->tiles = sti_bf16_tiles_now();
    w->loops = sti_bf16_kernels_now();
    w->turned = w->tiles->turn && pairs % 2 == 0;
}

/* n zeros; a line of them where that is enough, which is written faster. Whatever they
 * cover beyond is written later. */
static void clear(sti_bf16 *dst, int64_t n)
{
    enum { LINE = 2 * STI_BF16_PAIRS };
    if (n > LINE)
        memset(dst, 0, (size_t)n * sizeof *dst);
    else if (n > 0)
        memset(dst, 0, LINE * sizeof *dst);
}

/* Pixels of one row; columns [x0, x0 + cols) of a row of w pixels. Whether all are
 * finite, if turned. */
static bool copy_row(const row_walk *walk, const sti_bf16 *row, int64_t w, int64_t c,
                     int64_t x0, int64_t cols, sti_bf16 *dst)
{
    const int64_t even = sti_conv_round_up(c, 2);
    const int64_t from = sti_conv_min(sti_conv_max(0, -x0), cols);
    const int64_t to = sti_conv_max(from, sti_conv_min(cols, w - x0));
    const int64_t n = (to - from) * even;
    bool finite = true;
    sti_bf16 *pixel = dst + from * even;
    clear(dst, from * even);
    row += (x0 + from) * c;
    for (int64_t i = 0; i < to - from && even > c; i++) {
        for (int64_t j = 0; j < c; j++)
            pixel[i * even + j] = row[i * c + j];
        pixel[i * even + c] = 0;
    }
    if (walk->turned)
        finite = walk->tiles->turn(n, even > c ? pixel : row, pixel);
    else if (even == c)
        memcpy(pixel, row, (size_t)n * sizeof *dst);
    clear(dst + to * even, (cols - to) * even);
    return finite;
}

/* A window of an image [h][w][c] to dst [rows][cols][c / 2, rounded up] pairs, as tiles
 * want them; what is outside is zero. Whether the zeros that tiles find after a run of
 * taps, whatever they meet, may be left out. */
static bool copy_window(const row_walk *walk, const sti_bf16 *image, int64_t h,
                        int64_t w, int64_t c, const sti_conv_window *win,
                        sti_bf16_pair *lines)
{
    const int64_t line = 2 * win->cols * sti_conv_ceil_div(c, 2);
    sti_bf16 *dst = (sti_bf16 *)(void *)lines;
    bool finite = walk->turned;
    for (int64_t r = 0; r < win->rows; r++, dst += line) {
        const int64_t y = win->y0 + r;
        if (y < 0 || y >= h) {
            memset(dst, 0, (size_t)line * sizeof *dst);
            continue;
        }
        finite &= copy_row(walk, image + y * w * c, w, c, win->x0, win->cols, dst);
    }
    memset(dst, 0, STI_BF16_PAIRS * sizeof *lines); /* tiles read beyond the last */
    return finite;
}

static int64_t panel_pairs(const row_walk *w)
{
    return w->runs * sti_bf16_blocks(w->run_k) * STI_BF16_PAIRS * STI_BF16_COLS;
}

/* What results are made from. */
typedef struct walk_input {
    const sti_bf16_pair *at; /* where the first result meets the first tap */
    int64_t y, x, h, w;      /* its place in an image, and that one's size */
    bool leave_out;          /* products with zeros may be */
    uint8_t *live;           /* scratch: a byte for each block of a run */
} walk_input;

/* Results to be tiled along `pixels`: `rows` rows of them or, with lengths in turn,
 * columns. */
typedef struct walk_area {
    const sti_bf16_pair *in;
    sti_bf16 *out;
    int64_t rows, pixels;
    int64_t a_row, a_line, c_row, c_line;
    int64_t run, runs; /* those that count */
    const uint8_t *live;
} walk_area;

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

/* What the next piece reads and writes. */
typedef struct walk_soon {
    sti_bf16_soon range[STI_BF16_SOON];
    int64_t bytes; /* for each tile and block of k */
} walk_soon;

/* Rows y0 .. y1 - 1 of one of `rows` rows that are `line` elements. */
static sti_bf16_soon rows_soon(const sti_bf16 *image, int64_t y0, int64_t y1,
                               int64_t rows, int64_t line)
{
    y0 = sti_conv_max(y0, 0);
    y1 = sti_conv_max(sti_conv_min(y1, rows), y0);
    return (sti_bf16_soon){(const char *)(image + y0 * line),
                           (const char *)(image + y1 * line)};
}

/* Shared out among `count` tiles and blocks. */
static void share_soon(walk_soon *soon, int64_t count)
{
    int64_t bytes = 0;
    for (int i = 0; i < STI_BF16_SOON; i++)
        bytes += soon->range[i].end - soon->range[i].at;
    count -= count / 8; /* some are left out */
    soon->bytes = sti_conv_ceil_div(bytes, sti_conv_max(count, 1));
}

/* Tiles first.. of one panel of columns, `count` of them. */
static void walk_group(const row_walk *w, const walk_area *area, const tile_grid *g,
                       walk_soon *soon, int64_t first, int count, int64_t j,
                       const float *bias)
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
        .b = w->panels + j / STI_BF16_COLS * panel_pairs(w) +
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

static void walk_tiles(const row_walk *w, const walk_area *area, walk_soon *soon,
                       int64_t j, const float *bias)
{
    if (area->rows <= 0 || area->pixels <= 0)
        return;
    const tile_grid g = grid_of(area->rows, area->pixels);
    w->tiles->begin(g.rows);
    for (int64_t i = 0; i < g.count; i += STI_BF16_TILES)
        walk_group(w, area, &g, soon, i, (int)sti_conv_min(g.count - i, STI_BF16_TILES),
                   j, bias);
    w->tiles->end();
}

/* Some taps [from, to) of one axis. */
typedef struct tap_range {
    int64_t from, to;
} tap_range;

/* Of `taps` taps, the first at `at`, those within a length. */
static tap_range taps_within(int64_t at, int64_t taps, int64_t length)
{
    tap_range r = {sti_conv_min(sti_conv_max(-at, 0), taps), 0};
    r.to = sti_conv_max(sti_conv_min(length - at, taps), r.from);
    return r;
}

/* Of `count` results, `step` apart, the first of which meets taps from `at` on: those
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
static bool sides_pay(const row_walk *w, const walk_input *in, int64_t rows,
                      int64_t pixels, tap_range inner)
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
static walk_area columns_of(const row_walk *w, const walk_input *in,
                            const walk_area *rows, int64_t from, int64_t to,
                            tap_range taps)
{
    walk_area a = *rows;
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
static walk_area turned_area(const walk_area *a)
{
    walk_area t = *a;
    t.rows = a->pixels;
    t.pixels = a->rows;
    t.a_row = a->a_line;
    t.a_line = a->a_row;
    t.c_row = a->c_line;
    t.c_line = a->c_row;
    return t;
}

/* Results that meet all runs, or some of them. */
static void walk_inner_rows(const row_walk *w, const walk_input *in,
                            const walk_area *rows, walk_soon *soon, int64_t j,
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
        const walk_area side = columns_of(w, in, rows, i, i + 1, t);
        const walk_area down = turned_area(&side);
        walk_tiles(w, &down, soon, j, bias);
    }
    const walk_area a = columns_of(w, in, rows, inner.from, inner.to, all);
    walk_tiles(w, &a, soon, j, bias);
}

/* One panel of columns. */
static void walk_panel(const row_walk *w, const walk_input *in, const walk_area *all,
                       walk_soon *soon, int64_t j, const float *bias)
{
    if (!in->leave_out || w->runs == 0) {
        walk_tiles(w, all, soon, j, bias);
        return;
    }
    const tap_range inner = inner_of(in->y, w->step, all->rows, w->runs, in->h);
    for (int64_t i = 0; i < all->rows; i++) {
        const tap_range t = taps_within(in->y + i * w->step, w->runs, in->h);
        walk_area rows = *all;
        rows.in += i * rows.a_line;
        rows.out += i * rows.c_line;
        rows.rows = 1;
        rows.run = t.from;
        rows.runs = t.to - t.from;
        if (i == inner.from && inner.to > inner.from) {
            rows.rows = inner.to - inner.from;
            walk_inner_rows(w, in, &rows, soon, j, bias);
            i = inner.to - 1;
            continue;
        }
        rows = columns_of(w, in, &rows, 0, rows.pixels, (tap_range){0, w->taps});
        walk_tiles(w, &rows, soon, j, bias);
    }
}

/* Tiles times blocks of k of those rows. */
static int64_t walk_blocks(const row_walk *w, int64_t rows, int64_t pixels)
{
    return grid_of(rows, pixels).count * sti_conv_ceil_div(w->channels, STI_BF16_COLS) *
           w->runs * sti_bf16_blocks(w->run_k);
}

static void walk_rows(const row_walk *w, const walk_input *in, walk_soon *soon,
                      sti_bf16 *out, int64_t rows, int64_t pixels)
{
    const walk_area all = {.in = in->at,
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
        walk_panel(w, in, &all, soon, j, bias);
    }
}

/* Zeros after the pairs of each run, up to whole blocks. */
static void pad_panels(const row_walk *w, uint32_t *panels)
{
    const int64_t run = sti_bf16_blocks(w->run_k) * STI_BF16_PAIRS;
    for (int64_t j = 0; j < w->channels; j += STI_BF16_COLS)
        for (int64_t i = 0; i < w->runs; i++) {
            uint32_t *dst = panels + j / STI_BF16_COLS * panel_pairs(w) +
                            (i * run + w->run_k) * STI_BF16_COLS;
            memset(dst, 0, (size_t)((run - w->run_k) * STI_BF16_COLS) * sizeof *dst);
        }
}

enum { STRIP = 4 * STI_BF16_COLS }; /* columns packed at a time */

/* Row k of `count` rows of src, rounded; zeros beyond. */
static void round_row(const row_walk *w, int64_t k, int64_t count, int64_t cols,
                      const float *src, int64_t ld, sti_bf16 *out)
{
    if (k < count)
        w->loops->from_f32(cols, src + k * ld, out);
    else
        memset(out, 0, STRIP * sizeof *out);
}

/* Panels, pairs from `pair` of a run on, of `count` rows (k) of src, ld apart. Whether
 * all are finite, if turned. */
static bool pack_pairs(const row_walk *w, int64_t run, int64_t pair, int64_t count,
                       const float *src, int64_t ld, uint32_t *panels)
{
    const int64_t first = run * sti_bf16_blocks(w->run_k) * STI_BF16_PAIRS + pair;
    const int64_t end = sti_conv_round_up(count, w->turned ? 4 : 2);
    bool finite = w->turned;
    for (int64_t j = 0; j < w->channels; j += STRIP) {
        const int64_t cols = sti_conv_min(w->channels - j, STRIP);
        sti_bf16 rows[2 * STRIP] = {0}; /* lower, upper */
        uint32_t *dst =
            panels + j / STI_BF16_COLS * panel_pairs(w) + first * STI_BF16_COLS;
        for (int64_t c = 0; c < end; c += 2, dst += STI_BF16_COLS) {
            round_row(w, sti_bf16_turned(w->turned, c), count, cols, src + j, ld, rows);
            round_row(w, sti_bf16_turned(w->turned, c + 1), count, cols, src + j, ld,
                      rows + STRIP);
            finite = finite && w->tiles->finite(2 * STRIP, rows);
            w->loops->interleave_rows(sti_conv_ceil_div(cols, STI_BF16_COLS),
                                      STI_BF16_COLS, rows, STRIP, STI_BF16_COLS, dst,
                                      panel_pairs(w));
        }
    }
    return finite;
}

/* The same from src [channels][ld], k contiguous. */
static bool pack_pairs_transposed(const row_walk *w, int64_t run, int64_t pair,
                                  int64_t count, const float *src, int64_t ld,
                                  uint32_t *panels)
{
    enum { BLOCK = 2 * STI_BF16_PAIRS };
    bool finite = w->turned;
    const int64_t first = run * sti_bf16_blocks(w->run_k) * STI_BF16_PAIRS + pair;
    for (int64_t j = 0; j < w->channels; j += STI_BF16_COLS) {
        const int64_t cols = sti_conv_min(w->channels - j, STI_BF16_COLS);
        uint32_t *dst =
            panels + j / STI_BF16_COLS * panel_pairs(w) + first * STI_BF16_COLS;
        for (int64_t c = 0; c < count; c += BLOCK) {
            float rows[STI_BF16_COLS * STI_BF16_PAIRS] /* pairs */
                __attribute__((aligned(64))) = {0};
            sti_bf16 *k = (sti_bf16 *)(void *)rows; /* [16][32] */
            const int64_t n = sti_conv_min(BLOCK, count - c);
            const int64_t pairs = sti_conv_round_up(n, w->turned ? 4 : 2) / 2;
            for (int64_t i = 0; i < cols; i++)
                w->loops->from_f32(n, src + (j + i) * ld + c, k + i * BLOCK);
            if (w->turned)
                finite &= w->tiles->turn(cols * BLOCK, k, k);
            w->loops->transpose_f32(STI_BF16_COLS, pairs, rows, (float *)(void *)dst,
                                    STI_BF16_COLS);
            dst += pairs * STI_BF16_COLS;
        }
    }
    return finite;
}

static bool all_set(const uint8_t *flag, int64_t n)
{
    while (n > 0 && flag[n - 1])
        n--;
    return n == 0;
}

/* Rows of results a piece, as equal as can be, so that about LINE_PAIRS of input are
 * copied: step * rows + extra lines. */
static int64_t rows_a_piece(int64_t rows, int64_t step, int64_t extra, int64_t line)
{
    const int64_t lines = LINE_PAIRS / sti_conv_max(line, 1);
    const int64_t most = sti_conv_min(sti_conv_max((lines - extra) / step, 1), rows);
    return most > 0 ? sti_conv_ceil_div(rows, sti_conv_ceil_div(rows, most)) : 1;
}

/* ---- forward ---- */

/* The parts of scratch, once rows and panels are known: `lines` rows of input. */
static void plan_scratch(sti_conv_plan *plan, int64_t lines, int64_t run_k)
{
    const sti_conv_shape *s = &plan->shape;
    sti_conv_bf16_plan *p = &plan->bf16;
    const int64_t pairs = lines * p->line_cols * p->pairs;
    /* (Tiles read a line of pairs beyond the last.) */
    p->live_at =
        sti_conv_part_bytes(sti_conv_round_up(pairs, STI_BF16_PAIRS) + STI_BF16_PAIRS,
                            sizeof(sti_bf16_pair));
    p->worker_bytes = p->live_at + sti_conv_part_bytes(sti_bf16_blocks(run_k), 1);
    p->run_at = sti_conv_plan_add(plan, (size_t)s->kh * sizeof(int64_t));
    p->panels_at = sti_conv_plan_add(plan, (size_t)p->panel_pairs * sizeof(uint32_t));
    p->workers_at = sti_conv_plan_add_workers(plan, p->worker_bytes);
    p->finite_at = sti_conv_plan_add(plan, (size_t)(s->kh * s->kw));
}

typedef struct forward_job {
    const sti_conv_shape *shape;
    const sti_conv_bf16_plan *plan;
    const sti_bf16 *x;
    const float *w;
    sti_bf16 *y;
    uint32_t *panels;
    char *workers;
    uint8_t *mask;  /* of the epilogue, or NULL */
    bool mask_here; /* pieces own whole bytes of it */
    row_walk walk;
    uint8_t *finite; /* [taps] */
} forward_job;

static row_walk forward_walk(const sti_conv_shape *s, const sti_conv_bf16_plan *p)
{
    return (row_walk){.runs = s->kh,
                      .run_k = s->kw * p->pairs,
                      .taps = s->kw,
                      .step = s->stride,
                      .channels = s->co,
                      .a_row = s->stride * p->pairs,
                      .a_line = s->stride * p->line_cols * p->pairs,
                      .c_row = s->co,
                      .c_line = s->ow * s->co};
}

void sti_conv_plan_bf16_forward(sti_conv_plan *plan)
{
    const sti_conv_shape *s = &plan->shape;
    sti_conv_bf16_plan *p = &plan->bf16;
    p->pairs = sti_conv_ceil_div(s->ci, 2);
    p->unpadded = s->pad == 0 && s->kw * s->ci % (2 * STI_BF16_PAIRS) == 0;
    p->line_cols = p->unpadded ? s->w : (s->ow - 1) * s->stride + s->kw;
    p->rows = s->oh;
    p->piece_rows =
        rows_a_piece(s->oh, s->stride, s->kh - s->stride, p->line_cols * p->pairs);
    p->pieces_an_image = sti_conv_ceil_div(s->oh, p->piece_rows);
    const row_walk w = forward_walk(s, p);
    p->panel_pairs = panel_pairs(&w) * sti_conv_ceil_div(s->co, STI_BF16_COLS);
    plan_scratch(plan, (p->piece_rows - 1) * s->stride + s->kh, w.run_k);
}

static void forward_pack(void *arg, int64_t tap, int worker)
{
    const forward_job *j = arg;
    const sti_conv_shape *s = j->shape;
    (void)worker;
    if (tap == 0)
        pad_panels(&j->walk, j->panels);
    j->finite[tap] = pack_pairs(&j->walk, tap / s->kw, tap % s->kw * j->plan->pairs,
                                s->ci, j->w + tap * s->ci * s->co, s->co, j->panels);
}

/* Output rows of a piece. */
typedef struct forward_rows {
    int64_t image, row, rows;
} forward_rows;

static forward_rows forward_rows_of(const forward_job *j, int64_t piece)
{
    const int64_t row = piece % j->plan->pieces_an_image * j->plan->piece_rows;
    return (forward_rows){piece / j->plan->pieces_an_image, row,
                          sti_conv_min(j->plan->piece_rows, j->shape->oh - row)};
}

static const sti_bf16 *forward_image(const forward_job *j, int64_t image)
{
    const sti_conv_shape *s = j->shape;
    return j->x + image * s->h * s->w * s->ci;
}

static sti_conv_window forward_window(const forward_job *j, const forward_rows *r)
{
    const sti_conv_shape *s = j->shape;
    return (sti_conv_window){.y0 = r->row * s->stride - s->pad,
                             .x0 = -s->pad,
                             .rows = (r->rows - 1) * s->stride + s->kh,
                             .cols = j->plan->line_cols};
}

static walk_soon forward_soon(const forward_job *j, int64_t piece)
{
    const sti_conv_shape *s = j->shape;
    walk_soon soon = {{{NULL, NULL}, {NULL, NULL}}, 0};
    if (piece >= s->n * j->plan->pieces_an_image)
        return soon;
    const forward_rows r = forward_rows_of(j, piece);
    const sti_conv_window win = forward_window(j, &r);
    soon.range[0] = rows_soon(forward_image(j, r.image), win.y0, win.y0 + win.rows,
                              s->h, s->w * s->ci);
    soon.range[1] = rows_soon(j->y + r.image * s->oh * j->walk.c_line, r.row,
                              r.row + r.rows, s->oh, j->walk.c_line);
    share_soon(&soon, walk_blocks(&j->walk, r.rows, s->ow));
    return soon;
}

static void forward_piece(void *arg, int64_t piece, int worker)
{
    const forward_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const forward_rows r = forward_rows_of(j, piece);
    const int64_t at = (r.image * s->oh + r.row) * j->walk.c_line;
    const sti_bf16 *x = forward_image(j, r.image);
    walk_soon soon = forward_soon(j, piece + 1);
    const sti_conv_window win = forward_window(j, &r);
    walk_input in = {.y = win.y0, .x = win.x0, .h = s->h, .w = s->w};
    if (j->walk.in_place) {
        in.at =
            (const sti_bf16_pair *)(const void *)(x + r.row * s->stride * s->w * s->ci);
    } else {
        char *own = j->workers + (size_t)worker * j->plan->worker_bytes;
        sti_bf16_pair *lines = (sti_bf16_pair *)(void *)own;
        in.leave_out =
            copy_window(&j->walk, x, s->h, s->w, s->ci, &win, lines) && j->walk.finite;
        in.at = lines;
        in.live = (uint8_t *)own + j->plan->live_at;
    }
    walk_rows(&j->walk, &in, &soon, j->y + at, r.rows, s->ow);
    if (j->mask_here)
        j->walk.loops->mask(r.rows * j->walk.c_line, j->y + at, j->mask + at / 8);
}

/* Where runs of taps begin, `line` apart. */
static const int64_t *set_runs(int64_t *run, int64_t count, int64_t line)
{
    for (int64_t i = 0; i < count; i++)
        run[i] = i * line;
    return run;
}

void sti_conv_bf16_forward(const sti_team *team, const sti_conv_plan *plan,
                           const sti_bf16 *x, const float *w,
                           const sti_epilogue *epilogue, sti_bf16 *y_out, void *scratch)
{
    const sti_conv_shape *s = &plan->shape;
    const sti_conv_bf16_plan *p = &plan->bf16;
    sti_conv_plan_check(plan, STI_CONV_FORWARD, team);
    if (plan->way == STI_CONV_EMPTY)
        return;
    forward_job j = {.shape = s,
                     .plan = p,
                     .x = x,
                     .w = w,
                     .y = y_out,
                     .panels = sti_conv_part(scratch, p->panels_at),
                     .workers = sti_conv_part(scratch, p->workers_at),
                     .walk = forward_walk(s, p),
                     .finite = sti_conv_part(scratch, p->finite_at)};
    const int64_t image = s->oh * j.walk.c_line;
    walk_set_kernels(&j.walk, p->pairs);
    j.walk.in_place = p->unpadded && !j.walk.turned;
    j.walk.run =
        set_runs(sti_conv_part(scratch, p->run_at), s->kh, p->line_cols * p->pairs);
    j.walk.panels = j.panels;
    if (epilogue) {
        j.walk.bias = epilogue->bias;
        j.walk.relu = epilogue->relu;
        j.mask = epilogue->relu_mask;
    }
    j.mask_here = j.mask && p->piece_rows * j.walk.c_line % 8 == 0 && image % 8 == 0;
    sti_team_run(team, s->kh * s->kw, forward_pack, &j);
    j.walk.finite = all_set(j.finite, s->kh * s->kw);
    sti_team_run(team, s->n * p->pieces_an_image, forward_piece, &j);
    if (j.mask && !j.mask_here)
        j.walk.loops->mask(s->n * image, y_out, j.mask);
}

/* ---- backward data ---- */

typedef struct data_job {
    const sti_conv_shape *shape;
    const sti_conv_bf16_plan *plan;
    const sti_bf16 *dy;
    const float *w;
    sti_bf16 *dx;
    uint32_t *panels;
    char *workers;
    row_walk walk;   /* what all phases share */
    uint8_t *finite; /* [taps] */
} data_job;

/* Pairs of the panels of one phase. */
static int64_t phase_pairs(const sti_conv_shape *s, const sti_conv_bf16_plan *plan,
                           const sti_conv_phase *p)
{
    return p->taps_y * sti_bf16_blocks(p->taps_x * plan->pairs) * STI_BF16_PAIRS *
           sti_conv_round_up(s->ci, STI_BF16_COLS);
}

void sti_conv_plan_bf16_data(sti_conv_plan *plan)
{
    const sti_conv_shape *s = &plan->shape;
    sti_conv_bf16_plan *p = &plan->bf16;
    const sti_conv_window none = sti_conv_dy_window(s, 0, 0);
    p->pairs = sti_conv_ceil_div(s->co, 2);
    p->line_cols = none.cols;
    p->rows = sti_conv_ceil_div(s->h, s->stride);
    p->piece_rows = rows_a_piece(p->rows, 1, none.rows, p->line_cols * p->pairs);
    p->pieces_an_image = sti_conv_ceil_div(p->rows, p->piece_rows);
    for (int64_t i = 0; i < s->stride * s->stride; i++) {
        const sti_conv_phase phase = sti_conv_phase_of(s, i);
        p->panel_pairs += phase_pairs(s, p, &phase);
    }
    plan_scratch(plan, sti_conv_dy_window(s, 0, p->piece_rows).rows, s->kw * p->pairs);
}

static row_walk data_walk(const sti_conv_shape *s, const sti_conv_bf16_plan *p)
{
    return (row_walk){.step = 1,
                      .channels = s->ci,
                      .a_row = p->pairs,
                      .a_line = p->line_cols * p->pairs,
                      .c_row = s->stride * s->ci,
                      .c_line = s->stride * s->w * s->ci};
}

/* The walk of one phase and its panels. */
static row_walk phase_walk(const data_job *j, int64_t phase, const sti_conv_phase *p)
{
    row_walk w = j->walk;
    int64_t before = 0;
    for (int64_t i = 0; i < phase; i++) {
        const sti_conv_phase q = sti_conv_phase_of(j->shape, i);
        before += phase_pairs(j->shape, j->plan, &q);
    }
    w.runs = p->taps_x > 0 ? p->taps_y : 0;
    w.run_k = p->taps_x * j->plan->pairs;
    w.taps = p->taps_x;
    w.panels = j->panels + before;
    return w;
}

static void data_pack(void *arg, int64_t tap, int worker)
{
    const data_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t y = tap / s->kw, x = tap % s->kw;
    const int64_t phase = y % s->stride * s->stride + x % s->stride;
    const sti_conv_phase p = sti_conv_phase_of(s, phase);
    const row_walk w = phase_walk(j, phase, &p);
    const int64_t t = p.taps_y - 1 - y / s->stride, u = p.taps_x - 1 - x / s->stride;
    (void)worker;
    uint32_t *panels = j->panels + (w.panels - j->panels);
    if (y < s->stride && x < s->stride) /* once a phase */
        pad_panels(&w, panels);
    j->finite[tap] = pack_pairs_transposed(&w, t, u * j->plan->pairs, s->co,
                                           j->w + tap * s->ci * s->co, s->co, panels);
}

/* Rows [q0, q1) of a piece, of each phase. */
typedef struct data_rows {
    int64_t image, q0, q1;
} data_rows;

static data_rows data_rows_of(const data_job *j, int64_t piece)
{
    const int64_t q0 = piece % j->plan->pieces_an_image * j->plan->piece_rows;
    return (data_rows){piece / j->plan->pieces_an_image, q0,
                       sti_conv_min(q0 + j->plan->piece_rows, j->plan->rows)};
}

static const sti_bf16 *data_image(const data_job *j, int64_t image)
{
    const sti_conv_shape *s = j->shape;
    return j->dy + image * s->oh * s->ow * s->co;
}

static walk_soon data_soon(const data_job *j, int64_t piece)
{
    const sti_conv_shape *s = j->shape;
    walk_soon soon = {{{NULL, NULL}, {NULL, NULL}}, 0};
    int64_t blocks = 0;
    if (piece >= s->n * j->plan->pieces_an_image)
        return soon;
    const data_rows r = data_rows_of(j, piece);
    const sti_conv_window win = sti_conv_dy_window(s, r.q0, r.q1);
    const int64_t line = s->w * s->ci;
    soon.range[0] = rows_soon(data_image(j, r.image), win.y0, win.y0 + win.rows, s->oh,
                              s->ow * s->co);
    soon.range[1] = rows_soon(j->dx + r.image * s->h * line, r.q0 * s->stride,
                              r.q1 * s->stride, s->h, line);
    for (int64_t phase = 0; phase < s->stride * s->stride; phase++) {
        const sti_conv_phase p = sti_conv_phase_of(s, phase);
        const row_walk w = phase_walk(j, phase, &p);
        if (p.cols > 0)
            blocks += walk_blocks(&w, r.q1 - r.q0, p.cols);
    }
    share_soon(&soon, blocks);
    return soon;
}

static void data_piece(void *arg, int64_t piece, int worker)
{
    const data_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const data_rows r = data_rows_of(j, piece);
    const sti_conv_window win = sti_conv_dy_window(s, r.q0, r.q1);
    char *own = j->workers + (size_t)worker * j->plan->worker_bytes;
    sti_bf16_pair *lines = (sti_bf16_pair *)(void *)own;
    walk_soon soon = data_soon(j, piece + 1);
    walk_input in = {.h = s->oh, .w = s->ow, .live = (uint8_t *)own + j->plan->live_at};
    in.leave_out = copy_window(&j->walk, data_image(j, r.image), s->oh, s->ow, s->co,
                               &win, lines) &&
                   j->walk.finite;
    for (int64_t phase = 0; phase < s->stride * s->stride; phase++) {
        const sti_conv_phase p = sti_conv_phase_of(s, phase);
        const int64_t rows = sti_conv_min(r.q1, p.rows) - r.q0;
        if (rows <= 0 || p.cols == 0)
            continue;
        const row_walk w = phase_walk(j, phase, &p);
        in.y = p.out_y - (p.taps_y - 1) + r.q0;
        in.x = p.out_x - (p.taps_x - 1);
        in.at = lines;
        if (w.runs)
            in.at += ((in.y - win.y0) * win.cols + in.x - win.x0) * j->plan->pairs;
        walk_rows(&w, &in, &soon,
                  j->dx + ((r.image * s->h + p.y0 + s->stride * r.q0) * s->w + p.x0) *
                              s->ci,
                  rows, p.cols);
    }
}

void sti_conv_bf16_data(const sti_team *team, const sti_conv_plan *plan,
                        const sti_bf16 *dy, const float *w, sti_bf16 *dx_out,
                        void *scratch)
{
    const sti_conv_shape *s = &plan->shape;
    const sti_conv_bf16_plan *p = &plan->bf16;
    sti_conv_plan_check(plan, STI_CONV_BACKWARD_DATA, team);
    if (plan->way == STI_CONV_EMPTY) {
        memset(dx_out, 0, (size_t)(s->n * s->h * s->w * s->ci) * sizeof *dx_out);
        return;
    }
    data_job j = {.shape = s,
                  .plan = p,
                  .dy = dy,
                  .w = w,
                  .dx = dx_out,
                  .panels = sti_conv_part(scratch, p->panels_at),
                  .workers = sti_conv_part(scratch, p->workers_at),
                  .walk = data_walk(s, p),
                  .finite = sti_conv_part(scratch, p->finite_at)};
    walk_set_kernels(&j.walk, p->pairs);
    j.walk.run = set_runs(sti_conv_part(scratch, p->run_at), s->kh, j.walk.a_line);
    sti_team_run(team, s->kh * s->kw, data_pack, &j);
    j.walk.finite = all_set(j.finite, s->kh * s->kw);
    sti_team_run(team, s->n * p->pieces_an_image, data_piece, &j);
}
