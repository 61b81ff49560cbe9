/* Sums of squares in plain C: the definition that the fast ones must equal bit for bit.
 */
#include <math.h>

#include "kernel/conv/conv_squares.h"

static void squares_chunk(const float *dy, int64_t pixels, int64_t channels,
                          float *sums_out)
{
    for (int64_t i = 0; i < STI_CONV_SQUARE_CHAINS; i++)
        for (int64_t c = 0; c < channels; c++) {
            float acc = 0.0F;
            for (int64_t p = i; p < pixels; p += STI_CONV_SQUARE_CHAINS)
                acc = fmaf(dy[p * channels + c], dy[p * channels + c], acc);
            sums_out[i * channels + c] = acc;
        }
}

const sti_conv_squares_kernels sti_conv_squares_kernels_ref = {squares_chunk};
