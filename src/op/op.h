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
stint_value sti_op_negate(stint_graph *g, stint_value x); /* -x */
/* Element i of x to place begin + i step of an axis of `length`, zeros elsewhere. */
stint_value sti_op_pad_axis(stint_graph *g, stint_value x, int axis, int64_t begin,
                            int64_t step, int64_t length);

/* Convolution of x by w [kh, kw, c / groups, co] with an optional fused epilogue: in[2]
 * bias [co] or STI_NO_INPUT; outputs y and, when relu, the sign bits (optional). */
typedef struct sti_conv2d_attr {
    int64_t stride, pad, groups;
    int32_t has_bias, relu;
    int64_t winograd; /* 1: by minimal filtering where the shape fits
                         (kernel/conv/conv.h) */
} sti_conv2d_attr;
/* x [.., c] f32 and a list [n] i32 of channels: x of these alone. */
extern const sti_op sti_op_take_channels;
extern const sti_op sti_op_transpose; /* stint_transpose */

/* Its gradients: grad_x of (dy, w), grad_w of (x, dy); `height` and `width` are those
 * of the result. Output 1 of grad_w (optional) is [co], the sums of dy^2. */
typedef struct sti_conv2d_grad_attr {
    int64_t stride, pad, groups, height, width;
    int64_t winograd; /* as the convolution's */
} sti_conv2d_grad_attr;
extern const sti_op sti_op_conv2d, sti_op_conv2d_grad_x, sti_op_conv2d_grad_w;
/* The first two with in[1] a parameter that is held in bytes (graph/graph.h). */
extern const sti_op sti_op_conv2d_bytes, sti_op_conv2d_grad_x_bytes;
/* A convolution whose weights never change (pass/once): conv2d_keep makes of w what
 * conv2d_kept (x, it, bias) and conv2d_grad_x_kept (dy, it) read, [floats] f32; sizes
 * are the convolution's, as kernel/conv/conv_shape.h has them. */
typedef struct sti_conv_kept_attr {
    int64_t n, h, w, ci, co, kh, kw, stride, pad, groups;
    int32_t winograd, data; /* data: for the gradient by the image */
    int32_t has_bias, relu; /* conv2d_kept's epilogue */
} sti_conv_kept_attr;
extern const sti_op sti_op_conv2d_keep, sti_op_conv2d_kept, sti_op_conv2d_grad_x_kept;
/* What a node conv2d or conv2d_grad_x keeps; false: nothing, or it is another node.
 */
bool sti_op_conv_kept(const stint_graph *graph, const sti_node *node,
                      sti_conv_kept_attr *attr_out);
/* A convolution and, piece by piece as its results are finished, batch normalisation by
 * running statistics behind it, where no gradient needs either (pass/norm_behind): bits
 * are those of the two. in: x, weights (kept: as conv2d_keep makes them), bias or
 * STI_NO_INPUT, scale, shift, residual or STI_NO_INPUT, mean, variance. out: y. */
typedef struct sti_conv_norm_attr {
    sti_conv_kept_attr conv; /* without a ReLU, and not `data` */
    float epsilon;
    int32_t kept, has_residual, relu;
} sti_conv_norm_attr;
extern const sti_op sti_op_conv2d_norm;
/* What a node conv2d_norm keeps, as sti_op_conv_kept. */
bool sti_op_conv_norm_kept(const sti_node *node, sti_conv_kept_attr *attr_out);
/* The attributes of a node conv2d with such a thing behind it, but for those of the
 * normalisation; false: it is another node, or one that has no pieces or a ReLU. */
bool sti_op_conv_takes_norm(const stint_graph *graph, const sti_node *node,
                            sti_conv_norm_attr *attr_out);
/* Whether minimal filtering takes a conv2d node. */
bool sti_op_conv2d_fits_winograd(const stint_graph *graph, const sti_node *node);
stint_value sti_op_conv(stint_graph *g, stint_value x, stint_value w, stint_value bias,
                        const sti_conv2d_attr *attr);

/* Matrix product with the same epilogue (bias over the last axis), or, where sine is
 * not 0, sin(sine (A B + bias)), which pass/chain makes once gradients are. loops: how
 * its loops run (kernel/loop/loop_gemm.h), on one thread and on several; "" for the way
 * without a string. It never changes bits. */
enum { STI_MATMUL_LOOPS = 64 };
typedef struct sti_matmul_attr {
    int32_t trans_a, trans_b, has_bias, relu;
    float sine;
    char loops[2][STI_MATMUL_LOOPS];
} sti_matmul_attr;
extern const sti_op sti_op_matmul;
/* The same with in[1] a parameter that is held in bytes (graph/graph.h): x as it lies,
 * no loop strings. */
extern const sti_op sti_op_matmul_bytes;
/* One product's sizes; false for a batch of them, which takes no string. */
struct sti_gemm_shape;
bool sti_op_matmul_shape(const stint_graph *graph, const sti_node *node,
                         struct sti_gemm_shape *shape_out);

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

/* ---- tensors held packed (see pass/pack.c) ---- */

/* A row of the graph's input "bounds" [packs, STI_BOUND_FIELDS] f32, which the host
 * fills before each run. A negative bound is a share of the largest magnitude;
 * 0 is a moderate one. */
enum {
    STI_BOUND_WANTED,  /* error bound */
    STI_BOUND_LIMIT,   /* the coarsest bound allowed when the block is too small */
    STI_BOUND_DITHER,  /* not 0: with dither */
    STI_BOUND_COLLECT, /* not 0: find gains and range, too */
    STI_BOUND_FIELDS
};

/* What packing did, f32 [STI_PACK_STATS]: summed over shards like any metric. */
enum {
    STI_PACK_OVERFLOW,  /* 1: it did not fit even at the limit; the run is void */
    STI_PACK_BYTES,     /* of the block, or with overflow those it wants */
    STI_PACK_BOUND,     /* used */
    STI_PACK_ERROR,     /* largest error that occurred, as a share of the bound */
    STI_PACK_NONZERO,   /* share of the values */
    STI_PACK_EXACT,     /* share of values stored bit for bit */
    STI_PACK_RANGE,     /* largest magnitude; with COLLECT */
    STI_PACK_COARSENED, /* 1: the bound wanted did not fit */
    STI_PACK_STATS
};

typedef struct sti_pack_attr {
    int64_t capacity; /* bytes of the block */
    int32_t row;      /* of bounds; also tells the dithers of tensors apart */
    int16_t norm;     /* what is packed is (x - mean) inverse, see kernel/fold/fold.h */
    int16_t sum;      /* with norm: unpacking also makes a sum with a residual */
} sti_pack_attr;

/* in: x f32 or bf16; bounds; mean and inverse deviation with norm; sign bits or
 * STI_NO_INPUT (without norm they promise zeros where they are 0). out: block, U8
 * [capacity]; what packing did. */
extern const sti_op sti_op_pack;
stint_value sti_op_add_pack(stint_graph *g, const sti_pack_attr *attr, stint_value x,
                            stint_value bounds, stint_value mean, stint_value inverse,
                            stint_value bits);

/* in: block; mean, inverse, scale and shift with norm; bits as packing had them; with
 * norm a residual or STI_NO_INPUT.
 * out: x, and with norm y = scale (x - mean) inverse + shift + residual where the bit
 * is set, 0 elsewhere; both optional, and rounded where x was in bfloat16, of which
 * there are no residuals. Its attributes begin with those of its pack. */
extern const sti_op sti_op_unpack;
stint_value sti_op_add_unpack(stint_graph *g, const sti_node *pack, stint_value scale,
                              stint_value shift, stint_value residual);

/* How far an unpacked operand disturbs the gradient that a node makes, f32
 * [STI_GAIN_FIELDS]. Zeros in runs that do not collect. of: conv2d_grad_w, a weight
 * gradient's matmul, or batch_norm_grad, whose gradient of scale is meant; operand:
 * which input of it was unpacked; pack: the node that packed it. */
enum {
    STI_GAIN_GAIN,   /* of kernel/fold/error_gain.h */
    STI_GAIN_SQUARE, /* mean squared error predicted, gain bound^2 */
    /* Batch-norm alone: squared error of the gradient of its input over the square of
     * that gradient, divided by bound^2. */
    STI_GAIN_REACH,
    STI_GAIN_FIELDS
};
extern const sti_op sti_op_error_gain;
stint_value sti_op_add_error_gain(stint_graph *g, const sti_node *of, int operand,
                                  const sti_node *pack, stint_value factor);

/* Heads of an attention node. */
typedef struct sti_attention_heads {
    int64_t heads, kv_heads;
    bool causal;
} sti_attention_heads;
sti_attention_heads sti_op_attention_heads(const sti_node *node);

/* What a rotary node turns: heads of `size` columns from the front, by base. */
typedef struct sti_rotary_heads {
    int64_t heads, size;
    double base;
} sti_rotary_heads;
sti_rotary_heads sti_op_rotary_heads(const sti_node *node);

/* Layer-norm (x, scale, shift -> y, mean, inverse deviation) and RMS-norm (x, scale ->
 * y, inverse deviation) over the last axis. */
typedef struct sti_row_norm_attr {
    float epsilon;
} sti_row_norm_attr;
extern const sti_op sti_op_layer_norm, sti_op_rms_norm;

/* ReLU: out y, sign bits (optional). relu_grad: dy where the bit is set. */
extern const sti_op sti_op_relu, sti_op_relu6, sti_op_leaky_relu, sti_op_relu_grad;
extern const sti_op sti_op_bias, sti_op_add;

#endif
