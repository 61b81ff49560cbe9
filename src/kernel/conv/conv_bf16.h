/* 2-D convolution and its two gradients on bfloat16 images, channels last, one group.
 *
 *     x [n, h, w, ci] bf16   weights [kh, kw, ci, co] f32   y [n, oh, ow, co] bf16
 *
 * Weights are rounded to bfloat16 while they are packed; the gradient of the weights is
 * float32. Sums are those of gemm_bf16.h with these k, and where it says "padded to 32"
 * the zeros are operands of weights (or of dy) that meet whatever input lies there:
 *
 *   forward          a row of taps is k = j * ci' + c over taps j and input channels,
 *                    ci' = ci padded with a zero to an even number, padded to 32; rows
 *                    of taps follow each other
 *   backward data    for input pixel (y, x) only the taps with (y + pad - i) and
 *                    (x + pad - j) divisible by the stride count, in the order of the
 *                    output pixels that they meet: descending (i, j); a row of them is
 *                    k = tap * co' + output channel, as above
 *   backward weight  k runs along output rows that are widened to L, the least length
 *                    with stride * L >= (ow - 1) * stride + kw, dy being zero beyond
 * ow. Where L > ow and not below ow rounded up to a multiple of four, it is rounded up
 * to one too. Whole images follow each other with (kh - 1) / stride rows of such zeros
 * between them, as many as make a group; large images are cut into groups of rows. k
 * starts anew at each group; sums of the groups of a chunk go on where the last ended,
 * and chunks join along the tree of gemm.h. sti_conv_bf16_weight_length gives L,
 * _groups the others.
 *
 * Padding is zeros that take part in the sum. Bits do not depend on threads or the
 * instruction set. */
#ifndef STI_KERNEL_CONV_BF16_H
#define STI_KERNEL_CONV_BF16_H

#include "kernel/conv/conv.h"
#include "kernel/lane/bf16.h"

/* The calls take plans of sti_conv_plan_bf16, whose scratch is: the packed weights
 * (half of their float32 bytes, padded to 32 k and 16 columns) and, a thread, padded
 * rows of an image (about 64 KiB); the weight gradient takes up to eight partial
 * gradients (8 MiB at most) and, a thread, one or more of 64 by 64 channels (of a 1x1
 * window 128 by 128) and about 300 KiB instead. */

/* y = conv(x, w). The epilogue's bias is [co]; its mask covers the flat y. */
void sti_conv_bf16_forward(const sti_team *team, const sti_conv_plan *plan,
                           const sti_bf16 *x, const float *w,
                           const sti_epilogue *epilogue, sti_bf16 *y_out,
                           void *scratch);

/* dx [n, h, w, ci] = gradient of the input; every element is written. */
void sti_conv_bf16_data(const sti_team *team, const sti_conv_plan *plan,
                        const sti_bf16 *dy, const float *w, sti_bf16 *dx_out,
                        void *scratch);

/* dw [kh, kw, ci, co] = gradient of the weights, f32; every element is written. */
void sti_conv_bf16_weight(const sti_team *team, const sti_conv_plan *plan,
                          const sti_bf16 *x, const sti_bf16 *dy, float *dw_out,
                          void *scratch);

/* How the sum of the weight gradient is cut, which tests hold it to. */
sti_conv_bf16_groups sti_conv_bf16_weight_groups(const sti_conv_shape *shape);
int64_t sti_conv_bf16_weight_length(const sti_conv_shape *shape);

#endif
