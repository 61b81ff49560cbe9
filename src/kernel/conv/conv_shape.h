/* The shape of a convolution, its cost, and what the shape alone decides of the order
 * of sums (conv.h). */
#ifndef STI_KERNEL_CONV_SHAPE_H
#define STI_KERNEL_CONV_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

/* oh and ow are sti_conv_out_length of h and w; the caller fills them in. */
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

#endif
