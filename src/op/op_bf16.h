/* The operators that pass/precision puts in the place of their float32 namesakes:
 * activations and their gradients in bfloat16, weights, statistics and all that leaves
 * the graph in float32. Attributes, inputs and outputs are those of the namesake,
 * unless said otherwise. They have no gradient rules: the pass comes after the
 * gradient. */
#ifndef STI_OP_OP_BF16_H
#define STI_OP_OP_BF16_H

#include "op/op.h"

/* x f32 <-> bf16. */
typedef struct sti_cast_attr {
    int32_t dtype; /* stint_dtype of the result */
} sti_cast_attr;
extern const sti_op sti_op_cast;
stint_value sti_op_add_cast(stint_graph *g, stint_value x, stint_dtype dtype);

/* One group. conv2d_bf16_grad_w has no second output. */
extern const sti_op sti_op_conv2d_bf16, sti_op_conv2d_bf16_grad_x,
    sti_op_conv2d_bf16_grad_w;

/* a and b bf16, [m, k] and [k, n] or several of them; y bf16, or f32 with y_f32. */
typedef struct sti_matmul_bf16_attr {
    sti_matmul_attr matmul;
    int32_t y_f32;
} sti_matmul_bf16_attr;
extern const sti_op sti_op_matmul_bf16;

/* x and table bf16; loss, dx and dtable f32. */
extern const sti_op sti_op_linear_cross_entropy, sti_op_linear_cross_entropy_bf16;

extern const sti_op sti_op_batch_norm_bf16, sti_op_batch_norm_bf16_grad;

/* Is it this operator or its namesake? */
static inline bool sti_op_is_conv2d(const sti_op *op)
{
    return op == &sti_op_conv2d || op == &sti_op_conv2d_bf16;
}

static inline bool sti_op_is_conv2d_grad_w(const sti_op *op)
{
    return op == &sti_op_conv2d_grad_w || op == &sti_op_conv2d_bf16_grad_w;
}

static inline bool sti_op_is_matmul(const sti_op *op)
{
    return op == &sti_op_matmul || op == &sti_op_matmul_bf16;
}

static inline bool sti_op_is_batch_norm(const sti_op *op)
{
    return op == &sti_op_batch_norm || op == &sti_op_batch_norm_bf16;
}

static inline bool sti_op_is_batch_norm_grad(const sti_op *op)
{
    return op == &sti_op_batch_norm_grad || op == &sti_op_batch_norm_bf16_grad;
}

/* add: of one shape. */
extern const sti_op sti_op_add_bf16, sti_op_relu_bf16, sti_op_relu_bf16_grad;

/* y f32 [n, c] of x bf16 [n, h, w, c]; dx bf16 of dy f32. */
typedef struct sti_unpool_bf16_attr {
    int64_t height, width;
} sti_unpool_bf16_attr;
extern const sti_op sti_op_global_avg_pool_bf16, sti_op_global_avg_unpool_bf16;
extern const sti_op sti_op_global_avg_pool, sti_op_global_avg_unpool; /* namesakes */

#endif
