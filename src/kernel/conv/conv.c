/* Which way a convolution goes, and the geometry that the ways share. */
#include "kernel/conv/conv.h"

#include <string.h>

#include "kernel/conv/conv_depthwise.h"
#include "kernel/conv/conv_squares.h"
#include "kernel/conv/conv_winograd.h"

enum { PRODUCT_COLS = 128, PRODUCT_WEIGHTS = 32 << 10 };
enum { WINOGRAD_TILES = 16 }; /* fewer do not pay; part of the numerics */

int64_t sti_conv_out_length(int64_t length, int64_t window, int64_t stride, int64_t pad)
{
    const int64_t room = length + 2 * pad - window;
    return room < 0 ? 0 : room / stride + 1;
}

double sti_conv_flop(const sti_conv_shape *s)
{
    return 2.0 * (double)(s->n * s->oh * s->ow) * (double)(s->kh * s->kw) *
           (double)(s->ci / s->groups) * (double)s->co;
}

static bool conv_is_plain(const sti_conv_shape *s)
{
    return s->kh == 1 && s->kw == 1 && s->stride == 1 && s->pad == 0 && s->groups == 1;
}

bool sti_conv_is_depthwise(const sti_conv_shape *s)
{
    return s->groups > 1 && s->groups == s->ci && s->groups == s->co;
}

bool sti_conv_winograd_fits(const sti_conv_shape *s)
{
    const int64_t tiles = sti_conv_ceil_div(s->oh, 2) * sti_conv_ceil_div(s->ow, 2);
    return s->kh == 3 && s->kw == 3 && s->stride == 1 && s->pad <= 2 &&
           s->groups == 1 && s->ci % STI_PANEL == 0 && s->co % STI_PANEL == 0 &&
           s->ci > 0 && s->ci <= STI_GEMM_CHUNK && s->co > 0 &&
           s->co <= STI_GEMM_CHUNK && tiles >= WINOGRAD_TILES;
}

static bool by_winograd(const sti_conv_shape *s)
{
    return s->winograd && sti_conv_winograd_fits(s);
}

/* Packed weights in either direction. */
static int64_t pack_floats(const sti_conv_shape *s)
{
    const int64_t cig = s->ci / s->groups, cog = s->co / s->groups;
    const int64_t in = sti_conv_round_up(cig, STI_PANEL);
    const int64_t out = sti_conv_round_up(cog, STI_PANEL);
    return s->kh * s->kw * s->groups * sti_conv_max(cig * out, cog * in);
}

enum { FEW_PIXELS = 1024, MANY_WEIGHTS = 256 << 10, PLAIN_WEIGHTS = 512 << 10 };

/* So many weights for so few pixels that to pack them all first would be felt, or to
 * walk all of them for a few rows. */
static bool packing_is_felt(const sti_conv_shape *s)
{
    const int64_t weights = pack_floats(s);
    return s->groups == 1 &&
           ((s->n * s->oh * s->ow <= FEW_PIXELS && weights > MANY_WEIGHTS) ||
            (conv_is_plain(s) && weights >= PLAIN_WEIGHTS));
}

typedef enum conv_way {
    WAY_WINOGRAD,
    WAY_PLAIN,
    WAY_ROWS,
    WAY_DEPTHWISE,
    WAY_PLACE,
    WAY_GATHER
} conv_way;

/* Chunks of k that end with a tap, and few enough to be joined one after the other. */
static bool chunks_are_simple(int64_t taps, int64_t channels)
{
    const int64_t k = taps * channels;
    return k <= STI_GEMM_CHUNK ||
           (k <= 3 * STI_GEMM_CHUNK && STI_GEMM_CHUNK % channels == 0);
}

/* Of forward and backward data; `width` is that of a row of results, `channels` those
 * that are summed over. */
static conv_way way_of(const sti_conv_shape *s, int64_t width, int64_t channels)
{
    const int64_t taps = s->kh * s->kw;
    const bool simple = chunks_are_simple(taps, channels / s->groups);
    const conv_way other = conv_is_plain(s)                   ? WAY_PLAIN
                           : simple && sti_conv_place_fits(s) ? WAY_PLACE
                                                              : WAY_GATHER;
    if (by_winograd(s))
        return WAY_WINOGRAD;
    if (taps > STI_CONV_MAX_TAPS)
        return other;
    if (sti_conv_is_depthwise(s))
        return WAY_DEPTHWISE;
    if (!simple || width < STI_CONV_MIN_WIDTH ||
        pack_floats(s) > STI_CONV_PACK_FLOATS || packing_is_felt(s))
        return other;
    return WAY_ROWS;
}

/* Part of the numerics: not to be changed with the ways. */
static bool narrow(const sti_conv_shape *s, int64_t columns, int64_t width)
{
    const int64_t taps = s->kh * s->kw,
                  channels = sti_conv_max(s->ci, s->co) / s->groups;
    return s->kw == 3 && s->stride == 1 && columns <= STI_PANEL &&
           !sti_conv_is_depthwise(s) && taps <= STI_CONV_MAX_TAPS &&
           taps * channels <= STI_GEMM_CHUNK && width >= STI_CONV_NARROW_WIDTH &&
           pack_floats(s) <= STI_CONV_NARROW_FLOATS;
}

bool sti_conv_forward_is_narrow(const sti_conv_shape *s)
{
    return narrow(s, s->co / s->groups, s->ow);
}

bool sti_conv_data_is_narrow(const sti_conv_shape *s)
{
    return narrow(s, s->ci / s->groups, s->w);
}

/* Pixels of one row; columns [x0, x0 + cols) of a row of w pixels. */
static void copy_row(const float *row, int64_t w, int64_t c, int64_t x0, int64_t cols,
                     float *dst)
{
    const int64_t from = sti_conv_min(sti_conv_max(0, -x0), cols);
    const int64_t to = sti_conv_max(from, sti_conv_min(cols, w - x0));
    memset(dst, 0, (size_t)(from * c) * sizeof *dst);
    if (to > from)
        memcpy(dst + from * c, row + (x0 + from) * c,
               (size_t)((to - from) * c) * sizeof *dst);
    memset(dst + to * c, 0, (size_t)((cols - to) * c) * sizeof *dst);
}

void sti_conv_copy_window(const float *image, int64_t h, int64_t w, int64_t c,
                          int64_t y0, int64_t x0, int64_t rows, int64_t cols,
                          float *dst)
{
    for (int64_t r = 0; r < rows; r++, dst += cols * c) {
        if (y0 + r < 0 || y0 + r >= h)
            memset(dst, 0, (size_t)(cols * c) * sizeof *dst);
        else
            copy_row(image + (y0 + r) * w * c, w, c, x0, cols, dst);
    }
}

/* One axis: pixels first, first + s, .. have (pixel + pad) % s == phase. */
static void phase_axis(int64_t length, int64_t window, int64_t stride, int64_t pad,
                       int64_t phase, int64_t *first, int64_t *count, int64_t *taps,
                       int64_t *out)
{
    *first = ((phase - pad) % stride + stride) % stride;
    *count = *first < length ? sti_conv_ceil_div(length - *first, stride) : 0;
    *taps = phase < window ? sti_conv_ceil_div(window - phase, stride) : 0;
    *out = (*first + pad - phase) / stride;
}

sti_conv_phase sti_conv_phase_of(const sti_conv_shape *s, int64_t phase)
{
    sti_conv_phase p = {.first_y = phase / s->stride, .first_x = phase % s->stride};
    phase_axis(s->h, s->kh, s->stride, s->pad, p.first_y, &p.y0, &p.rows, &p.taps_y,
               &p.out_y);
    phase_axis(s->w, s->kw, s->stride, s->pad, p.first_x, &p.x0, &p.cols, &p.taps_x,
               &p.out_x);
    return p;
}

sti_conv_window sti_conv_dy_window(const sti_conv_shape *s, int64_t q0, int64_t q1)
{
    sti_conv_phase p = sti_conv_phase_of(s, 0);
    int64_t y_low = p.out_y, y_high = p.out_y, x_low = p.out_x, x_high = p.out_x;
    for (int64_t i = 0; i < s->stride; i++) { /* the diagonal meets every axis phase */
        p = sti_conv_phase_of(s, i * s->stride + i);
        y_low = sti_conv_min(y_low, p.out_y - p.taps_y + 1);
        y_high = sti_conv_max(y_high, p.out_y);
        x_low = sti_conv_min(x_low, p.out_x - p.taps_x + 1);
        x_high = sti_conv_max(x_high, p.out_x + p.cols - 1);
    }
    return (sti_conv_window){.y0 = q0 + y_low,
                             .x0 = x_low,
                             .rows = q1 - q0 + y_high - y_low,
                             .cols = x_high - x_low + 1};
}

/* The plain way: pixels are rows of a matrix. */

static sti_gemm_shape plain_forward(const sti_conv_shape *s)
{
    return (sti_gemm_shape){.m = s->n * s->h * s->w,
                            .n = s->co,
                            .k = s->ci,
                            .lda = s->ci,
                            .ldb = s->co,
                            .ldc = s->co};
}

static sti_gemm_shape plain_data(const sti_conv_shape *s)
{
    return (sti_gemm_shape){.m = s->n * s->h * s->w,
                            .n = s->ci,
                            .k = s->co,
                            .lda = s->co,
                            .ldb = s->co,
                            .ldc = s->ci,
                            .trans_b = true};
}

/* Many weights make more of the pixels that are copied; where there are several chunks,
 * x and dy come from memory, which the rows way fetches ahead. */
static bool weight_is_product(const sti_conv_shape *s)
{
    return s->kh == 1 && s->kw == 1 && s->pad == 0 && s->groups == 1 &&
           s->ci * s->co >= PRODUCT_WEIGHTS &&
           (s->n * s->oh * s->ow <= STI_GEMM_CHUNK || s->co >= PRODUCT_COLS);
}

size_t sti_conv_forward_scratch_bytes(const sti_conv_shape *s, int threads)
{
    const sti_gemm_shape plain = plain_forward(s);
    if (sti_conv_is_empty(s))
        return 0;
    switch (way_of(s, s->ow, s->ci)) {
    case WAY_WINOGRAD:
        return sti_conv_winograd_forward_bytes(s, threads);
    case WAY_PLAIN:
        return sti_gemm_scratch_bytes(&plain, threads);
    case WAY_ROWS:
        return sti_conv_rows_forward_bytes(s, threads);
    case WAY_DEPTHWISE:
        return 0;
    case WAY_PLACE:
        return sti_conv_place_forward_bytes(s, threads);
    case WAY_GATHER:
        break;
    }
    return sti_conv_gather_forward_bytes(s, threads);
}

size_t sti_conv_backward_data_scratch_bytes(const sti_conv_shape *s, int threads)
{
    const sti_gemm_shape plain = plain_data(s);
    if (sti_conv_is_empty(s))
        return 0;
    switch (way_of(s, s->w / s->stride, s->co)) {
    case WAY_WINOGRAD:
        return sti_conv_winograd_data_bytes(s, threads);
    case WAY_PLAIN:
        return sti_gemm_scratch_bytes(&plain, threads);
    case WAY_ROWS:
        return sti_conv_rows_data_bytes(s, threads);
    case WAY_DEPTHWISE:
        return 0;
    case WAY_PLACE:
        return sti_conv_place_data_bytes(s, threads);
    case WAY_GATHER:
        break;
    }
    return sti_conv_gather_data_bytes(s, threads);
}

size_t sti_conv_backward_weight_scratch_bytes(const sti_conv_shape *s, int threads)
{
    if (sti_conv_is_empty(s))
        return 0;
    const size_t squares = sti_conv_squares_bytes(s);
    if (by_winograd(s))
        return squares + sti_conv_winograd_weight_bytes(s, threads);
    if (weight_is_product(s))
        return squares + sti_conv_product_weight_bytes(s, threads);
    return squares + (sti_conv_is_depthwise(s)
                          ? sti_conv_depthwise_weight_bytes(s, threads)
                          : sti_conv_rows_weight_bytes(s, threads));
}

void sti_conv_forward_f32(const sti_team *team, const sti_conv_shape *s, const float *x,
                          const float *w, const sti_epilogue *epilogue, float *y_out,
                          void *scratch)
{
    const sti_gemm_shape plain = plain_forward(s);
    if (sti_conv_is_empty(s))
        return;
    switch (way_of(s, s->ow, s->ci)) {
    case WAY_WINOGRAD:
        sti_conv_winograd_forward(team, s, x, w, epilogue, y_out, scratch);
        return;
    case WAY_PLAIN:
        sti_gemm_f32(team, &plain, x, w, epilogue, y_out, scratch);
        return;
    case WAY_ROWS:
        sti_conv_rows_forward(team, s, x, w, epilogue, y_out, scratch);
        return;
    case WAY_DEPTHWISE:
        sti_conv_depthwise_forward(team, s, x, w, epilogue, y_out);
        return;
    case WAY_PLACE:
        sti_conv_place_forward(team, s, x, w, epilogue, y_out, scratch);
        return;
    case WAY_GATHER:
        break;
    }
    sti_conv_gather_forward(team, s, x, w, epilogue, y_out, scratch);
}

void sti_conv_backward_data_f32(const sti_team *team, const sti_conv_shape *s,
                                const float *dy, const float *w, float *dx_out,
                                void *scratch)
{
    const sti_gemm_shape plain = plain_data(s);
    if (sti_conv_is_empty(s)) {
        memset(dx_out, 0, (size_t)(s->n * s->h * s->w * s->ci) * sizeof *dx_out);
        return;
    }
    switch (way_of(s, s->w / s->stride, s->co)) {
    case WAY_WINOGRAD:
        sti_conv_winograd_data(team, s, dy, w, dx_out, scratch);
        return;
    case WAY_PLAIN:
        sti_gemm_f32(team, &plain, dy, w, NULL, dx_out, scratch);
        return;
    case WAY_ROWS:
        sti_conv_rows_data(team, s, dy, w, dx_out, scratch);
        return;
    case WAY_DEPTHWISE:
        sti_conv_depthwise_data(team, s, dy, w, dx_out);
        return;
    case WAY_PLACE:
        sti_conv_place_data(team, s, dy, w, dx_out, scratch);
        return;
    case WAY_GATHER:
        break;
    }
    sti_conv_gather_data(team, s, dy, w, dx_out, scratch);
}

void sti_conv_backward_weight_f32(const sti_team *team, const sti_conv_shape *s,
                                  const float *x, const float *dy, float *dw_out,
                                  float *squares_out, void *scratch)
{
    if (sti_conv_is_empty(s)) {
        const int64_t weights = s->kh * s->kw * (s->ci / s->groups) * s->co;
        memset(dw_out, 0, (size_t)weights * sizeof *dw_out);
        if (squares_out)
            memset(squares_out, 0, (size_t)s->co * sizeof *squares_out);
        return;
    }
    float *sums = squares_out ? scratch : NULL;
    void *rest = (char *)scratch + sti_conv_squares_bytes(s);
    if (by_winograd(s)) {
        sti_conv_winograd_weight(team, s, x, dy, dw_out, rest);
        if (sums)
            sti_conv_squares_chunks(team, s, dy, sums);
    } else if (weight_is_product(s)) {
        sti_conv_product_weight(team, s, x, dy, dw_out, rest);
        if (sums)
            sti_conv_squares_chunks(team, s, dy, sums);
    } else if (sti_conv_is_depthwise(s)) {
        sti_conv_depthwise_weight(team, s, x, dy, dw_out, sums, rest);
    } else {
        sti_conv_rows_weight(team, s, x, dy, dw_out, sums, rest);
    }
    if (sums)
        sti_conv_squares_join(team, s, sums, squares_out);
}
