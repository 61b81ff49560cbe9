/* Which way a convolution goes. */
#include "kernel/conv/conv.h"

#include <string.h>

#include "kernel/conv/conv_depthwise.h"
#include "kernel/conv/conv_squares.h"
#include "kernel/conv/conv_winograd.h"

enum { PRODUCT_COLS = 128, PRODUCT_WEIGHTS = 32 << 10 };

static bool conv_is_plain(const sti_conv_shape *s)
{
    return s->kh == 1 && s->kw == 1 && s->stride == 1 && s->pad == 0 && s->groups == 1;
}

static bool by_winograd(const sti_conv_shape *s)
{
    return s->winograd && sti_conv_winograd_fits(s);
}

enum { FEW_PIXELS = 1024, MANY_WEIGHTS = 256 << 10, PLAIN_WEIGHTS = 512 << 10 };

/* So many weights for so few pixels that to pack them all first would be felt, or to
 * walk all of them for a few rows. */
static bool packing_is_felt(const sti_conv_shape *s)
{
    const int64_t weights = sti_conv_pack_floats(s);
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
        sti_conv_pack_floats(s) > STI_CONV_PACK_FLOATS || packing_is_felt(s))
        return other;
    return WAY_ROWS;
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
