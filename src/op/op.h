/* Operators without parameters of their own, for gradient rules and passes; the
 * builders of stint/op.h are made of these. One file an operator family; rows are
 * listed in sti_ops[]. */
#ifndef STI_OP_OP_H
#define STI_OP_OP_H

#include "graph/graph.h"
#include "stint/op.h"

/* Every operator there is, NULL-ended (op_table.c). */
extern const sti_op *const sti_ops[];
const sti_op *sti_op_find(const char *name);

/* A tensor of one value. */
stint_value sti_op_fill(stint_graph *g, const stint_shape *shape, float value);
stint_value sti_op_copy(stint_graph *g, stint_value x);

/* Convolution of x by w [kh, kw, c / groups, co] with an optional fused epilogue: in[2]
 * bias [co] or STI_NO_INPUT; outputs y and, when relu, the sign bits (optional). */
typedef struct sti_conv2d_attr {
    int64_t stride, pad, groups;
    int32_t has_bias, relu;
} sti_conv2d_attr;
/* Its gradients: grad_x of (dy, w), grad_w of (x, dy); `height` and `width` are those of
 * the result. Output 1 of grad_w (optional) is [co], the sums of dy^2. */
typedef struct sti_conv2d_grad_attr {
    int64_t stride, pad, groups, height, width;
} sti_conv2d_grad_attr;
extern const sti_op sti_op_conv2d, sti_op_conv2d_grad_x, sti_op_conv2d_grad_w;
stint_value sti_op_conv(stint_graph *g, stint_value x, stint_value w, stint_value bias,
                        const sti_conv2d_attr *attr);

/* Matrix product with the same epilogue (bias over the last axis). */
typedef struct sti_matmul_attr {
    int32_t trans_a, trans_b, has_bias, relu;
} sti_matmul_attr;
extern const sti_op sti_op_matmul;

/* Batch normalisation with optional fused residual add and ReLU:
 *   y = relu(scale * (x - mean) / sqrt(var + epsilon) + shift + residual)
 * in: x, scale, shift, residual or STI_NO_INPUT, and in EVAL running mean and variance.
 * out: y, mean, inverse deviation, unbiased variance, sign bits (optional). */
typedef struct sti_batch_norm_attr {
    float epsilon;
    int32_t eval, has_residual, relu;
} sti_batch_norm_attr;
extern const sti_op sti_op_batch_norm, sti_op_batch_norm_grad;

/* The second half of batch_norm from mean and inverse deviation that are given, with
 * its very bits: what exact recomputation puts in a node's place. The attributes are
 * batch_norm's, of which epsilon and eval are not read.
 * in: x, scale, shift, residual or STI_NO_INPUT, mean, inverse deviation.
 * out: y, sign bits (optional). */
extern const sti_op sti_op_batch_norm_apply;

/* ReLU: out y, sign bits (optional). relu_grad: dy where the bit is set. */
extern const sti_op sti_op_relu, sti_op_relu_grad;
extern const sti_op sti_op_bias, sti_op_add;

#endif
