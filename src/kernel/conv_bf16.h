/* 2-D convolution and its two gradients on bfloat16 images, channels last, one group.
 *
 *     x [n, h, w, ci] bf16   weights [kh, kw, ci, co] f32   y [n, oh, ow, co] bf16
 *
 * Weights are rounded to bfloat16 while they are packed; the gradient of the weights is
 * float32. Sums are the chains of pairs of gemm_bf16.h, cut into chunks joined by its
 * tree:
 *
 *   forward          k = (i * kw + j) * ci' + c over taps (i, j) and input channels,
 *                    ci' = ci padded with a zero to an even number; a chunk is as many
 *                    whole rows of taps as make 4096 k, at least one
 *   backward data    for input pixel (y, x) only the taps with (y + pad - i) and
 *                    (x + pad - j) divisible by the stride count, in the order of the
 *                    output pixels that they meet: descending (i, j);
 *                    k = tap * co' + output channel; pixels outside are zeros; chunks
 *                    as above
 *   backward weight  pairs are neighbours (2 q, 2 q + 1) of an output row; a row of odd
 *                    length ends with a dy of zero, which meets the input pixel that a
 *                    longer row would meet; rows ascend over all images; a chunk is as
 *                    many whole output rows as make 4096 pixels, at least one
 *
 * Padding is zeros that take part in the sum. Bits do not depend on threads or the
 * instruction set. */
#ifndef STI_KERNEL_CONV_BF16_H
#define STI_KERNEL_CONV_BF16_H

#include "kernel/bf16.h"
#include "kernel/conv.h"

/* Scratch of one call: the packed weights (half of their float32 bytes, rounded up to
 * 16 columns) and, a thread, padded rows of an image (about 64 KiB); the weight
 * gradient takes up to eight partial gradients (8 MiB at most) and some a thread
 * instead. shape->groups must be 1. */
size_t sti_conv_bf16_forward_scratch_bytes(const sti_conv_shape *shape, int threads);
size_t sti_conv_bf16_data_scratch_bytes(const sti_conv_shape *shape, int threads);
size_t sti_conv_bf16_weight_scratch_bytes(const sti_conv_shape *shape, int threads);

/* y = conv(x, w). The epilogue's bias is [co]; its mask covers the flat y. */
void sti_conv_bf16_forward(const sti_team *team, const sti_conv_shape *shape,
                           const sti_bf16 *x, const float *w,
                           const sti_epilogue *epilogue, sti_bf16 *y_out,
                           void *scratch);

/* dx [n, h, w, ci] = gradient of the input; every element is written. */
void sti_conv_bf16_data(const sti_team *team, const sti_conv_shape *shape,
                        const sti_bf16 *dy, const float *w, sti_bf16 *dx_out,
                        void *scratch);

/* dw [kh, kw, ci, co] = gradient of the weights, f32; every element is written. */
void sti_conv_bf16_weight(const sti_team *team, const sti_conv_shape *shape,
                          const sti_bf16 *x, const sti_bf16 *dy, float *dw_out,
                          void *scratch);

#endif
