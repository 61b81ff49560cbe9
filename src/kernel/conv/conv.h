/* 2-D convolution and its two gradients in float32, channels last, on register tiles.
 *
 *     x [n, h, w, ci]   weights [kh, kw, ci / groups, co]   y [n, oh, ow, co]
 *     oh = (h + 2 pad - kh) / stride + 1, ow likewise; the caller fills both in. With
 *     oh or ow or n 0 there is no y, and gradients are zeros; all others but pad are
 *     at least 1.
 *
 * Group g reads the g-th ci / groups input channels and writes the g-th co / groups
 * output channels. Padding is zeros that take part in the sum, except that forward and
 * backward data may leave out taps that meet nothing else, and the weight gradient the
 * rows of dy that a row of taps finds outside (by shape alone), and depthwise
 * convolutions every tap that lies outside: that shows only where a weight, or dy, is
 * infinite or NaN, or in the sign of a zero that an underflow left.
 *
 * Each direction is bit-equal to sti_gemm_f32 on the matrix that it stands for (chains
 * in chunks of 4096 k joined by the tree described there), on every instruction set and
 * number of threads. With cig = ci / groups, cog = co / groups:
 *
 *   forward          k = (i * kw + j) * cig + c over taps (i, j) and input channels
 *   backward data    for input pixel (y, x) only the taps with (y + pad - i) and
 *                    (x + pad - j) divisible by the stride count, numbered in ascending
 *                    (i, j); k = tap * cog + output channel; outputs outside are zeros
 *   backward weight  k = (image * oh + output row) * ow + output column
 *
 * Where sti_conv_forward_is_narrow or sti_conv_data_is_narrow says so (16 or fewer
 * channels out of the sum, 3 columns of taps, stride 1), columns of taps go innermost
 * instead: k = (i * cig + c) * 3 + j, and likewise with cog: one load of x then serves
 * three outputs, without which such layers would wait for loads.
 *
 * With `winograd` set and a shape that fits, all three directions take 4
 * multiplications for 9 and other sums (conv_winograd.h). An output's error then
 * follows that of the 4 x 4 tile that it is part of: up to about 3 times as large; and
 * one infinite or NaN input spoils all outputs of its tiles.
 *
 * No im2col of a whole tensor is made: rows are read in place or copied to zero-padded
 * scratch, where a tap is only an address offset; few pixels and very large weights go
 * through blocks of copied pixels (conv_per_pixel.c, gemm_block.h).
 *
 * A call takes the plan (conv_plan.h) of its direction, made for a team of at least as
 * many threads, and scratch of plan->scratch_bytes at any address. */
#ifndef STI_KERNEL_CONV_H
#define STI_KERNEL_CONV_H

#include "kernel/conv/conv_plan.h"

/* What is done to outputs once they are finished, while they are in a cache: rows
 * [first, first + rows) of the flat y [n oh ow, co], each of them in one call, from any
 * thread of the team. */
typedef struct sti_conv_behind {
    void (*run)(const void *user, int64_t first, int64_t rows);
    const void *user;
} sti_conv_behind;
/* Whether the algorithm of a forward plan finishes its outputs piece by piece, so that
 * such a thing gains. */
bool sti_conv_has_pieces(const sti_conv_plan *plan);

/* y = conv(x, w) of a plan that has pieces; no mask. */
void sti_conv_forward_and_f32(const sti_team *team, const sti_conv_plan *plan,
                              const float *x, const float *w,
                              const sti_epilogue *epilogue,
                              const sti_conv_behind *behind, float *y_out,
                              void *scratch);
/* y = conv(x, w). The epilogue's bias is [co]; its mask covers the flat y. */
void sti_conv_forward_f32(const sti_team *team, const sti_conv_plan *plan,
                          const float *x, const float *w, const sti_epilogue *epilogue,
                          float *y_out, void *scratch);

/* dx [n, h, w, ci] = gradient of the input; every element is written. */
void sti_conv_backward_data_f32(const sti_team *team, const sti_conv_plan *plan,
                                const float *dy, const float *w, float *dx_out,
                                void *scratch);

/* dw [kh, kw, ci / groups, co] = gradient of the weights; every element is written.
 * squares_out, if not NULL: [co] sums of dy^2 over images and pixels, taken while dy is
 * hot, in the order of conv_squares.h. */
void sti_conv_backward_weight_f32(const sti_team *team, const sti_conv_plan *plan,
                                  const float *x, const float *dy, float *dw_out,
                                  float *squares_out, void *scratch);

#endif
