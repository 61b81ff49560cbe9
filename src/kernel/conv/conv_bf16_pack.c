/* Operands of the products of conv_bf16_product.h: zero-padded rows of images, and
 * weights rounded to bfloat16 in panels of pairs of k. */
#include "kernel/conv/conv_bf16_product.h"

#include <string.h>

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
static bool copy_row(const sti_conv_bf16_product *product, const sti_bf16 *row,
                     int64_t w, int64_t c, int64_t x0, int64_t cols, sti_bf16 *dst)
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
    if (product->turned)
        finite = product->tiles->turn(n, even > c ? pixel : row, pixel);
    else if (even == c)
        memcpy(pixel, row, (size_t)n * sizeof *dst);
    clear(dst + to * even, (cols - to) * even);
    return finite;
}

bool sti_conv_bf16_copy_window(const sti_conv_bf16_product *product,
                               const sti_bf16 *image, int64_t h, int64_t w, int64_t c,
                               const sti_conv_window *win, sti_bf16_pair *lines)
{
    const int64_t line = 2 * win->cols * sti_conv_ceil_div(c, 2);
    sti_bf16 *dst = (sti_bf16 *)(void *)lines;
    bool finite = product->turned;
    for (int64_t r = 0; r < win->rows; r++, dst += line) {
        const int64_t y = win->y0 + r;
        if (y < 0 || y >= h) {
            memset(dst, 0, (size_t)line * sizeof *dst);
            continue;
        }
        finite &= copy_row(product, image + y * w * c, w, c, win->x0, win->cols, dst);
    }
    memset(dst, 0, STI_BF16_PAIRS * sizeof *lines); /* tiles read beyond the last */
    return finite;
}

void sti_conv_bf16_pad_panels(const sti_conv_bf16_product *w, uint32_t *panels)
{
    const int64_t run = sti_bf16_blocks(w->run_k) * STI_BF16_PAIRS;
    for (int64_t j = 0; j < w->channels; j += STI_BF16_COLS)
        for (int64_t i = 0; i < w->runs; i++) {
            uint32_t *dst = panels + j / STI_BF16_COLS * sti_conv_bf16_panel_pairs(w) +
                            (i * run + w->run_k) * STI_BF16_COLS;
            memset(dst, 0, (size_t)((run - w->run_k) * STI_BF16_COLS) * sizeof *dst);
        }
}

enum { STRIP = 4 * STI_BF16_COLS }; /* columns packed at a time */

/* Row k of `count` rows of src, rounded; zeros beyond. */
static void round_row(const sti_conv_bf16_product *w, int64_t k, int64_t count,
                      int64_t cols, const float *src, int64_t ld, sti_bf16 *out)
{
    if (k < count)
        w->loops->from_f32(cols, src + k * ld, out);
    else
        memset(out, 0, STRIP * sizeof *out);
}

bool sti_conv_bf16_pack(const sti_conv_bf16_product *w, int64_t run, int64_t pair,
                        int64_t count, const float *src, int64_t ld, uint32_t *panels)
{
    const int64_t first = run * sti_bf16_blocks(w->run_k) * STI_BF16_PAIRS + pair;
    const int64_t end = sti_conv_round_up(count, w->turned ? 4 : 2);
    bool finite = w->turned;
    for (int64_t j = 0; j < w->channels; j += STRIP) {
        const int64_t cols = sti_conv_min(w->channels - j, STRIP);
        sti_bf16 rows[2 * STRIP] = {0}; /* lower, upper */
        uint32_t *dst = panels + j / STI_BF16_COLS * sti_conv_bf16_panel_pairs(w) +
                        first * STI_BF16_COLS;
        for (int64_t c = 0; c < end; c += 2, dst += STI_BF16_COLS) {
            round_row(w, sti_bf16_turned(w->turned, c), count, cols, src + j, ld, rows);
            round_row(w, sti_bf16_turned(w->turned, c + 1), count, cols, src + j, ld,
                      rows + STRIP);
            finite = finite && w->tiles->finite(2 * STRIP, rows);
            w->loops->interleave_rows(sti_conv_ceil_div(cols, STI_BF16_COLS),
                                      STI_BF16_COLS, rows, STRIP, STI_BF16_COLS, dst,
                                      sti_conv_bf16_panel_pairs(w));
        }
    }
    return finite;
}

bool sti_conv_bf16_pack_transposed(const sti_conv_bf16_product *w, int64_t run,
                                   int64_t pair, int64_t count, const float *src,
                                   int64_t ld, uint32_t *panels)
{
    enum { BLOCK = 2 * STI_BF16_PAIRS };
    bool finite = w->turned;
    const int64_t first = run * sti_bf16_blocks(w->run_k) * STI_BF16_PAIRS + pair;
    for (int64_t j = 0; j < w->channels; j += STI_BF16_COLS) {
        const int64_t cols = sti_conv_min(w->channels - j, STI_BF16_COLS);
        uint32_t *dst = panels + j / STI_BF16_COLS * sti_conv_bf16_panel_pairs(w) +
                        first * STI_BF16_COLS;
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
