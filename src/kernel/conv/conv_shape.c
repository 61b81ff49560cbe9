/* The geometry that the algorithms of a convolution share: lengths, windows, the phases
 * of a stride, and what the shape alone decides of the numerics. */
#include <string.h>

#include "kernel/conv/conv_priv.h"

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

int64_t sti_conv_pack_floats(const sti_conv_shape *s)
{
    const int64_t cig = s->ci / s->groups, cog = s->co / s->groups;
    const int64_t in = sti_conv_round_up(cig, STI_PANEL);
    const int64_t out = sti_conv_round_up(cog, STI_PANEL);
    return s->kh * s->kw * s->groups * sti_conv_max(cig * out, cog * in);
}

/* Part of the numerics: not to be changed with the algorithms. */
static bool narrow(const sti_conv_shape *s, int64_t columns, int64_t width)
{
    const int64_t taps = s->kh * s->kw,
                  channels = sti_conv_max(s->ci, s->co) / s->groups;
    return s->kw == 3 && s->stride == 1 && columns <= STI_PANEL &&
           !sti_conv_is_depthwise(s) && taps <= STI_CONV_MAX_TAPS &&
           taps * channels <= STI_GEMM_CHUNK && width >= STI_CONV_NARROW_WIDTH &&
           sti_conv_pack_floats(s) <= STI_CONV_NARROW_FLOATS;
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
