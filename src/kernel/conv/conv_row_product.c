/* Tiles along rows. The wide tile takes its panel of B from the second-level cache, all
 * of k in one go; the others in blocks of k that stay in the first. */
#include "kernel/conv/conv_row_product.h"

enum { TILE_FLOATS = 28 * STI_PANEL }; /* the largest of gemm_tile.h */

void sti_conv_row_product_init(sti_conv_row_product *w)
{
    w->kernels = sti_gemm_kernels_now();
    w->tile = sti_conv_tile_now();
}

void sti_conv_row_product_set_runs(sti_conv_row_product *w, int64_t runs, int64_t run_k,
                                   int64_t narrow_taps)
{
    w->narrow_taps = narrow_taps;
    w->runs = w->end_run = runs;
    w->first_run = 0;
    w->run_k = run_k;
    w->panel_group =
        runs * run_k * narrow_taps * sti_conv_round_up(w->out_group, STI_PANEL);
}

/* One panel of columns of a group. */
typedef struct column_panel {
    const float *b, *in;
    float *out;
    const float *bias;
    int64_t cols;
    int nv;
    int64_t chunk, first_end; /* runs of a chunk of k; where the first one ends */
    sti_conv_prefetch *prefetch;
} column_panel;

enum { LINE_BYTES = 64, LINES_A_TILE = 24 };

/* Runs of one chunk of k. */
static int64_t runs_a_chunk(const sti_conv_row_product *w)
{
    return sti_conv_max(1, STI_GEMM_CHUNK / sti_conv_max(w->run_k * w->narrow_taps, 1));
}

static void wide_chunks(const sti_conv_row_product *w, const column_panel *p,
                        sti_conv_tile *t)
{
    int64_t i = w->first_run, next = p->first_end;
    do {
        t->a_run = w->run + i;
        t->runs = next - i;
        t->b = p->b + i * w->run_k * STI_CONV_TILE_COLS;
        t->sum = i > w->first_run;
        t->bias = next == w->end_run ? p->bias : NULL;
        t->relu = next == w->end_run && w->relu;
        t->prefetch = p->prefetch->at;
        t->prefetch_line = p->prefetch->at < p->prefetch->end ? LINE_BYTES : 0;
        w->tile(t);
        p->prefetch->at +=
            sti_conv_max(0, t->runs * (t->run_k / 2) - t->rows) * 2 * t->prefetch_line;
        i = next;
        next = sti_conv_min(i + p->chunk, w->end_run);
    } while (i < w->end_run);
}

/* Pixel x of a line, going through lines and images. */
typedef struct row_cursor {
    int64_t x, line; /* of the image */
    const float *a;
    float *c;
} row_cursor;

static row_cursor cursor_first(const column_panel *p)
{
    return (row_cursor){0, 0, p->in, p->out};
}

static void cursor_line(const sti_conv_row_product *w, row_cursor *at)
{
    at->a += w->a_line - at->x * w->a_row;
    at->c += w->c_line - at->x * w->c_row;
    at->x = 0;
    if (++at->line < w->lines_an_image)
        return;
    at->a += w->a_image - at->line * w->a_line;
    at->c += w->c_image - at->line * w->c_line;
    at->line = 0;
}

static void cursor_step(const sti_conv_row_product *w, row_cursor *at, int64_t step,
                        int64_t pixels)
{
    at->x += step;
    at->a += step * w->a_row;
    at->c += step * w->c_row;
    if (at->x >= pixels)
        cursor_line(w, at);
}

/* A part of the next tile. */
static void take_part(const sti_conv_row_product *w, sti_conv_tile *t, int part,
                      row_cursor *at, int64_t step, int64_t pixels)
{
    t->a[part] = at->a;
    t->c[part] = at->c;
    cursor_step(w, at, step, pixels);
}

/* Lines one by one, or two by two where both fit a tile. */
static void wide_lines(const sti_conv_row_product *w, const column_panel *p,
                       sti_conv_tile *t, int64_t lines, int64_t pixels)
{
    const bool pairs = 2 * pixels <= STI_CONV_TILE_ROWS;
    row_cursor at = cursor_first(p);
    for (int64_t line = 0, step; line < lines; line += step) {
        step = pairs && line + 1 < lines ? 2 : 1;
        if (step == 2) {
            t->rows = (int)(2 * pixels);
            take_part(w, t, 0, &at, pixels, pixels);
            take_part(w, t, 1, &at, pixels, pixels);
            wide_chunks(w, p, t);
            continue;
        }
        for (int64_t r = 0; r < pixels; r += t->rows) {
            t->rows = sti_gemm_next_rows(pixels - r, STI_CONV_TILE_ROWS);
            const int64_t half = (t->rows + 1) / 2;
            t->a[1] = at.a + half * w->a_row;
            t->c[1] = at.c + half * w->c_row;
            take_part(w, t, 0, &at, t->rows, pixels);
            wide_chunks(w, p, t);
        }
    }
}

/* Lines of whole quads: three quads a tile, wherever they lie. */
static void wide_quads(const sti_conv_row_product *w, const column_panel *p,
                       sti_conv_tile *t, int64_t lines, int64_t pixels)
{
    const int64_t quads = lines * (pixels / STI_CONV_TILE_QUAD);
    row_cursor at = cursor_first(p);
    for (int64_t q = 0; q < quads; q += STI_CONV_TILE_PARTS) {
        const int count = (int)sti_conv_min(STI_CONV_TILE_PARTS, quads - q);
        for (int i = 0; i < count; i++)
            take_part(w, t, i, &at, STI_CONV_TILE_QUAD, pixels);
        t->rows = count * STI_CONV_TILE_QUAD;
        t->three = count == STI_CONV_TILE_PARTS;
        if (count == 1) {
            t->a[1] = t->a[0] + STI_CONV_TILE_QUAD / 2 * w->a_row;
            t->c[1] = t->c[0] + STI_CONV_TILE_QUAD / 2 * w->c_row;
        }
        wide_chunks(w, p, t);
    }
}

static void wide_panel(const sti_conv_row_product *w, const column_panel *p,
                       int64_t lines, int64_t pixels)
{
    sti_conv_tile t = {
        .a_row = w->a_row, .run_k = w->run_k, .c_row = w->c_row, .cols = p->cols};
    if (pixels % STI_CONV_TILE_QUAD == 0 && pixels % STI_CONV_TILE_ROWS != 0)
        wide_quads(w, p, &t, lines, pixels);
    else
        wide_lines(w, p, &t, lines, pixels);
}

/* C += sum of a later chunk, with the epilogue after the last. */
static void add_chunk(const sti_gemm_tile *t, float *c, int64_t c_row,
                      const float *bias, bool relu)
{
    for (int r = 0; r < t->rows; r++)
        for (int64_t j = 0; j < t->cols; j++) {
            float y = c[r * c_row + j] + t->c[r * t->c_row + j];
            y = bias ? y + bias[j] : y;
            c[r * c_row + j] = relu && 0.0F > y ? 0.0F : y;
        }
}

/* Where the next tile puts its results, and some of what is read later. */
static void fetch_lines(const sti_gemm_tile *t, sti_conv_prefetch *prefetch)
{
    for (int r = 0; r < t->rows; r++)
        for (int v = 0; v < t->nv; v++)
            __builtin_prefetch(t->c + (t->rows + r) * t->c_row + (int64_t)v * STI_PANEL,
                               1);
    for (int i = 0; i < LINES_A_TILE && prefetch->at < prefetch->end; i++) {
        __builtin_prefetch(prefetch->at);
        prefetch->at += LINE_BYTES;
    }
}

static void plain_tile(const sti_conv_row_product *w, sti_gemm_tile *t)
{
    if (w->narrow_taps > 1)
        w->kernels->taps(t);
    else
        w->kernels->nn(t);
}

/* Chunks after the first of one tile; t holds the last block of the first. */
static void later_chunks(const sti_conv_row_product *w, const column_panel *p,
                         sti_gemm_tile t)
{
    float sums[TILE_FLOATS];
    const int64_t chunk = p->chunk, c_row = t.c_row;
    float *c = t.c;
    t.c = sums;
    t.c_row = (int64_t)p->nv * STI_PANEL;
    t.load = false;
    for (int64_t i = p->first_end; i < w->end_run; i += chunk) {
        t.a_run = w->run + i;
        t.runs = sti_conv_min(chunk, w->end_run - i);
        t.b = p->b + i * w->run_k * p->nv * STI_PANEL;
        plain_tile(w, &t);
        const bool last = i + chunk >= w->end_run;
        add_chunk(&t, c, c_row, last ? p->bias : NULL, last && w->relu);
    }
}

/* Runs [i0, i0 + count) of the first chunk, down all rows. */
static void plain_block(const sti_conv_row_product *w, const column_panel *p,
                        int64_t i0, int64_t count, int64_t lines, int64_t pixels)
{
    const int64_t end = p->first_end;
    const bool finish = i0 + count >= end, last = finish && end == w->end_run;
    const int most =
        w->narrow_taps > 1 ? w->kernels->max_rows_taps : w->kernels->max_rows[p->nv];
    sti_gemm_tile t = {
        .b = p->b + i0 * w->run_k * w->narrow_taps * p->nv * STI_PANEL,
        .a_row = w->a_row,
        .a_run = w->run + i0,
        .runs = count,
        .run_k = w->run_k,
        .c_row = w->c_row,
        .cols = p->cols,
        .nv = p->nv,
        .lines = 1,
        .load = i0 > w->first_run,
        .relu = last && w->relu,
        .bias = last ? p->bias : NULL,
    };
    row_cursor at = cursor_first(p);
    for (int64_t line = 0; line < lines; line++)
        for (int64_t r = 0; r < pixels; r += t.rows) {
            t.rows = sti_gemm_next_rows(pixels - r, most);
            t.a = at.a;
            t.c = at.c;
            cursor_step(w, &at, t.rows, pixels);
            fetch_lines(&t, p->prefetch);
            plain_tile(w, &t);
            if (finish && !last)
                later_chunks(w, p, t);
        }
}

static void plain_lines(const sti_conv_row_product *w, const column_panel *p,
                        int64_t lines, int64_t pixels)
{
    const int64_t k = sti_conv_max(w->run_k * w->narrow_taps, 1);
    const int64_t block = sti_conv_max(1, STI_CONV_RUN_K / k);
    const int64_t end = p->first_end;
    int64_t i = w->first_run;
    do {
        plain_block(w, p, i, sti_conv_min(block, end - i), lines, pixels);
        i += block;
    } while (i < end);
}

/* Panel of columns from j; returns how many panels of 16. */
static int panel_at(const sti_conv_row_product *w, int64_t j, int64_t *cols)
{
    const int nv = sti_gemm_panels(w->kernels, STI_BLOCK_ROWS, w->out_group - j);
    *cols = sti_conv_min(w->out_group - j, (int64_t)nv * STI_PANEL);
    return nv;
}

void sti_conv_row_product_run(const sti_conv_row_product *w, const float *in,
                              float *out, int64_t lines, int64_t pixels,
                              sti_conv_prefetch *prefetch)
{
    const int64_t k = w->runs * w->run_k * w->narrow_taps, chunk = runs_a_chunk(w);
    const int64_t first_end =
        sti_conv_min((w->first_run / chunk + 1) * chunk, w->end_run);
    for (int64_t group = 0; group < w->groups; group++)
        for (int64_t j = 0, cols; j < w->out_group; j += cols) {
            const int nv = panel_at(w, j, &cols);
            const int64_t first = group * w->out_group + j;
            const column_panel p = {.b = w->panels + group * w->panel_group + k * j,
                                    .in = in + group * w->in_group,
                                    .out = out + first,
                                    .bias = w->bias ? w->bias + first : NULL,
                                    .cols = cols,
                                    .nv = nv,
                                    .chunk = chunk,
                                    .first_end = first_end,
                                    .prefetch = prefetch};
            if (w->tile && nv * STI_PANEL == STI_CONV_TILE_COLS)
                wide_panel(w, &p, lines, pixels);
            else
                plain_lines(w, &p, lines, pixels);
        }
}

/* Narrow order: channel c of tap (i, j) is row (i * count + c) * 3 + j of the only
 * panel. */
static void pack_narrow(const sti_conv_row_product *w, int64_t group, int64_t first_k,
                        int64_t count, const float *src, int64_t ld, bool transposed,
                        float *panels)
{
    const int64_t tap = first_k / count, i = tap / w->narrow_taps,
                  j = tap % w->narrow_taps;
    float *dst =
        panels + group * w->panel_group + (i * count * w->narrow_taps + j) * STI_PANEL;
    for (int64_t c = 0; c < count; c++, dst += w->narrow_taps * STI_PANEL) {
        if (transposed)
            w->kernels->pack_transposed(src + c, ld, 1, w->out_group, STI_PANEL, dst);
        else
            w->kernels->pack(src + c * ld, ld, 1, w->out_group, STI_PANEL, dst);
    }
}

void sti_conv_row_product_pack(const sti_conv_row_product *w, int64_t group,
                               int64_t first_k, int64_t count, const float *src,
                               int64_t ld, bool transposed, float *panels)
{
    const int64_t k = w->runs * w->run_k;
    if (w->narrow_taps > 1) {
        pack_narrow(w, group, first_k, count, src, ld, transposed, panels);
        return;
    }
    for (int64_t j = 0, cols; j < w->out_group; j += cols) {
        const int64_t width = (int64_t)panel_at(w, j, &cols) * STI_PANEL;
        float *dst = panels + group * w->panel_group + k * j + first_k * width;
        if (transposed)
            w->kernels->pack_transposed(src + j * ld, ld, count, cols, width, dst);
        else
            w->kernels->pack(src + j, ld, count, cols, width, dst);
    }
}
