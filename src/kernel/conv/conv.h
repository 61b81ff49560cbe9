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
 * through blocks of copied pixels (conv_place.c, gemm_block.h). */
#ifndef STI_KERNEL_CONV_H
#define STI_KERNEL_CONV_H

#include "kernel/gemm/gemm.h"

typedef struct sti_conv_shape {
    int64_t n, h, w, ci, co, kh, kw, stride, pad, groups, oh, ow;
    bool winograd; /* by minimal filtering, where sti_conv_winograd_fits */
} sti_conv_shape;

/* Whether minimal filtering F(2 x 2, 3 x 3) takes the shape: 3 x 3 taps, stride 1, one
 * group, channels in multiples of 16, images of 16 tiles of 2 x 2
 * outputs and more. It does not look at n: one image has the bits that it has among
 * others. */
bool sti_conv_winograd_fits(const sti_conv_shape *shape);

/* Output length for an input length, or 0 if the window does not fit. */
int64_t sti_conv_out_length(int64_t length, int64_t window, int64_t stride,
                            int64_t pad);

/* Multiply-adds of one direction times two; the same for all three. */
double sti_conv_flop(const sti_conv_shape *shape);

/* Which order the sums take; a function of the shape alone. */
bool sti_conv_forward_is_narrow(const sti_conv_shape *shape);
bool sti_conv_data_is_narrow(const sti_conv_shape *shape);

/* Scratch of one call. Forward and data: the packed weights (at most 10 MiB; none where
 * more than 1 MiB of them meet 1024 results or fewer) plus, a thread, padded rows of
 * the image (about 256 KiB, 768 KiB where weights are larger than 1 MiB, more for very
 * wide rows), up to 3.7 MiB where rows are the same pixel of all images, or blocks as
 * in gemm.h (with stride in backward data 0.7 MiB more); nothing for depthwise ones.
 * Weight gradient: a thread, a slice of at most about 300 KiB for every doubling of the
 * chunks of 4096 pixels, and, where the gradient is smaller than four slices, up to
 * seven of them more. Of the 3x3 layers of ResNet-20 direct ones take 50 to 170 KiB
 * with one thread, filtered ones 150 to 770. */
size_t sti_conv_forward_scratch_bytes(const sti_conv_shape *shape, int threads);
size_t sti_conv_backward_data_scratch_bytes(const sti_conv_shape *shape, int threads);
size_t sti_conv_backward_weight_scratch_bytes(const sti_conv_shape *shape, int threads);

/* y = conv(x, w). The epilogue's bias is [co]; its mask covers the flat y. */
void sti_conv_forward_f32(const sti_team *team, const sti_conv_shape *shape,
                          const float *x, const float *w, const sti_epilogue *epilogue,
                          float *y_out, void *scratch);

/* dx [n, h, w, ci] = gradient of the input; every element is written. */
void sti_conv_backward_data_f32(const sti_team *team, const sti_conv_shape *shape,
                                const float *dy, const float *w, float *dx_out,
                                void *scratch);

/* dw [kh, kw, ci / groups, co] = gradient of the weights; every element is written.
 * squares_out, if not NULL: [co] sums of dy^2 over images and pixels, taken while dy is
 * hot, in the order of conv_squares.h. */
void sti_conv_backward_weight_f32(const sti_team *team, const sti_conv_shape *shape,
                                  const float *x, const float *dy, float *dw_out,
                                  float *squares_out, void *scratch);

#endif
