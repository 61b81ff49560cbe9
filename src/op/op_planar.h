/* Planar images and sparse convolutions on them (kernel/planar/planar.h), for
 * pass/compact. A planar tensor is [groups * channels, h, w, lanes]: to operators that
 * go image by image and channel by channel, such as pooling, its channels are images
 * and its lanes channels. Inference only: none has a gradient. */
#ifndef STI_OP_OP_PLANAR_H
#define STI_OP_OP_PLANAR_H

#include "kernel/planar/planar.h"
#include "op/op.h"

/* Channels-last [n, h, w, c] to planar with sti_planar_lanes(n). */
extern const sti_op sti_op_planar_from;
stint_value sti_op_add_planar_from(stint_graph *g, stint_value x);

/* Back, of n images. */
typedef struct sti_planar_to_attr {
    int64_t n;
} sti_planar_to_attr;
extern const sti_op sti_op_planar_to;
stint_value sti_op_add_planar_to(stint_graph *g, stint_value planar, int64_t n);

/* Sparse convolution. in: x planar; packed weights, a U8 constant; scale, shift
 * [filters] and a residual of y's shape, each or STI_NO_INPUT. */
typedef struct sti_planar_conv_attr {
    int64_t n, channels, filters, kh, kw, stride, pad;
    sti_planar_zeros zeros; /* of the weights */
    int64_t relu;
    int64_t pool; /* as in sti_planar_shape; without a residual of that shape */
} sti_planar_conv_attr;
extern const sti_op sti_op_planar_conv;
/* Its shape on images of h x w. */
sti_planar_shape sti_op_planar_shape(const sti_planar_conv_attr *attr, int64_t h,
                                     int64_t w);
stint_value sti_op_add_planar_conv(stint_graph *g, const sti_planar_conv_attr *attr,
                                   const stint_value in[5]);

#endif
