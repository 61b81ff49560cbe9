/* The codec's sums for what is usual of channels, as the compiler makes vectors of
 * them; for the files of instruction sets. */
#ifndef STI_CODEC_CODEC_SUMS_H
#define STI_CODEC_CODEC_SUMS_H

#include "codec/codec_priv.h"

static void add_residuals(stint_codec_predictor predictor, int64_t left, int64_t up,
                          const int32_t *restrict w, int64_t n, int64_t *restrict sum)
{
    const int32_t *l = w - left, *u = w - up, *both = u - left;
#define ADD_SIZES(guess)                     \
    for (int64_t c = 0; c < n; c++) {        \
        const int32_t r = w[c] - (guess);    \
        sum[c] += (int64_t)(r < 0 ? -r : r); \
    }
    if (predictor == STINT_CODEC_LEFT) {
        ADD_SIZES(l[c])
    } else if (predictor == STINT_CODEC_PLANE) {
        ADD_SIZES(l[c] + u[c] - both[c])
    } else if (predictor == STINT_CODEC_MEAN) {
        ADD_SIZES((l[c] + u[c]) >> 1)
    } else {
        ADD_SIZES(0)
    }
#undef ADD_SIZES
}

#endif
