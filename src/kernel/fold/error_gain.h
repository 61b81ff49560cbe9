/* How much a bounded error in an operand disturbs a gradient.
 *
 * A weight's gradient is dW = sum dY X over images and pixels. Where X comes back from
 * the codec as X + E, with E = 0 where X = 0 and else uniform within +-bound and
 * independent, the error of dW has mean 0 and, averaged over all weights, the square
 *
 *     gain bound^2,   gain = 1/3 mean over k, c, r, s of sum dY_k^2 [X_c != 0] f_c^2
 *
 * (f: by how much X's error in channel c is a multiple of the bound; NULL: 1). The mean
 * over k and c separates: with D = sum over k of dY^2 at a pixel and M = sum over c of
 * f_c^2 [X_c != 0] it is a convolution of D with M, which is exact for any padding,
 * stride, sparsity or unevenness of dY at the price of reading both once. Sums are in
 * float64 in an order that depends on the shape alone. */
#ifndef STI_KERNEL_ERROR_GAIN_H
#define STI_KERNEL_ERROR_GAIN_H

#include "kernel/conv/conv.h"
#include "kernel/lane/bf16.h"

/* An array in float32, or in bfloat16: the other pointer is NULL. */
typedef struct sti_gain_values {
    const float *f32;
    const sti_bf16 *bf16;
} sti_gain_values;

size_t sti_error_gain_scratch_bytes(const sti_conv_shape *shape, int threads);

/* Gain for the weights of a convolution; a dense layer is one with windows of 1 x 1.
 * f [ci]. */
double sti_error_gain_conv(const sti_team *team, const sti_conv_shape *shape,
                           sti_gain_values x, sti_gain_values dy, const float *f,
                           void *scratch);

/* Gain for batch-norm's scale, whose gradient is the sum of dy (x - mean) inv where the
 * bit is set, for an error in (x - mean) inv: 1/3 mean over c of sum dy^2 there. dy
 * [rows, c]. */
size_t sti_error_gain_norm_scratch_bytes(int64_t rows, int64_t c);
double sti_error_gain_norm(const sti_team *team, int64_t rows, int64_t c,
                           sti_gain_values dy, const uint8_t *bits, void *scratch);

#endif
