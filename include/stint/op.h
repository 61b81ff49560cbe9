/* Builders: each appends one or a few nodes and returns a value (-1 once the graph has
 * failed; see stint/graph.h). Images are channels-last [n, h, w, c]. In descriptions
 * zero means "the usual": stride 1, groups 1. All tensors f32 unless said. */
#ifndef STINT_OP_H
#define STINT_OP_H

#include "stint/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/** 2-D convolution with parameters "weight" [size, size, c / groups, filters] and, if
 * bias, "bias" [filters]. x [n, h, w, c] -> [n, oh, ow, filters], oh = (h + 2 pad -
 * size) / stride + 1. */
typedef struct stint_conv2d_desc {
    int64_t filters, size, stride, pad, groups; /* groups == c: depthwise */
    bool bias;
    stint_init init; /* of the weight; zero means HE_NORMAL on fan_in (not ZERO) */
} stint_conv2d_desc;
STINT_API stint_value stint_conv2d(stint_graph *g, stint_value x,
                                   const stint_conv2d_desc *desc);

/** x [n, k] -> [n, units]; parameters "weight" [k, units], "bias" [units] unless
 * no_bias. */
typedef struct stint_dense_desc {
    int64_t units;
    bool no_bias;
    stint_init init; /* zero-value means FAN_IN_UNIFORM */
} stint_dense_desc;
STINT_API stint_value stint_dense(stint_graph *g, stint_value x,
                                  const stint_dense_desc *desc);

/** Batch normalisation over all but the last axis (Ioffe and Szegedy 2015); parameters
 *  "scale", "shift", states "mean", "variance". TRAIN: statistics of this shard (biased
 *  variance to normalise, unbiased into the running one). EVAL: running statistics. */
typedef struct stint_batch_norm_desc {
    float momentum; /* 0: 0.1 */
    float epsilon;  /* 0: 1e-5 */
} stint_batch_norm_desc;
STINT_API stint_value stint_batch_norm(stint_graph *g, stint_value x,
                                       const stint_batch_norm_desc *desc);

/** Element by element, x of any shape -> the same shape. relu: max(x, 0), NaN stays;
 * leaky_relu: slope x below 0; sigmoid 1 / (1 + e^-x); silu x sigmoid(x); gelu: the
 * tanh form of Hendrycks and Gimpel 2016; softplus log(1 + e^x). exp, log, tanh,
 * sigmoid, sin and cos err by less than an ulp, with the same bits on every machine
 * (docs/trust.md); log and sqrt below 0 give NaN. */
STINT_API stint_value stint_relu(stint_graph *g, stint_value x);
STINT_API stint_value stint_leaky_relu(stint_graph *g, stint_value x, float slope);
STINT_API stint_value stint_sigmoid(stint_graph *g, stint_value x);
STINT_API stint_value stint_tanh(stint_graph *g, stint_value x);
STINT_API stint_value stint_silu(stint_graph *g, stint_value x);
STINT_API stint_value stint_gelu(stint_graph *g, stint_value x);
STINT_API stint_value stint_softplus(stint_graph *g, stint_value x);
STINT_API stint_value stint_exp(stint_graph *g, stint_value x);
STINT_API stint_value stint_log(stint_graph *g, stint_value x);
STINT_API stint_value stint_sin(stint_graph *g, stint_value x);
STINT_API stint_value stint_cos(stint_graph *g, stint_value x);
STINT_API stint_value stint_sqrt(stint_graph *g, stint_value x);
STINT_API stint_value stint_square(stint_graph *g, stint_value x);
STINT_API stint_value stint_reciprocal(stint_graph *g, stint_value x);
STINT_API stint_value stint_scale(stint_graph *g, stint_value x, float factor);
STINT_API stint_value stint_add_scalar(stint_graph *g, stint_value x, float addend);

/** Over the last axis: scale * (x - mean) / sqrt(variance + epsilon) + shift (Ba et al.
 * 2016), and scale * x / sqrt(mean x^2 + epsilon) (Zhang and Sennrich 2019); parameters
 * "scale" and, for the first, "shift". epsilon 0: 1e-5. */
STINT_API stint_value stint_layer_norm(stint_graph *g, stint_value x, float epsilon);
STINT_API stint_value stint_rms_norm(stint_graph *g, stint_value x, float epsilon);

/** tokens [...] i32 -> [..., width]: rows of the parameter "weight" [vocabulary,
 * width], normal with the deviation given (0: 0.02). Its gradient is summed in the
 * order of the positions. */
typedef struct stint_embedding_desc {
    int64_t vocabulary, width;
    float deviation;
} stint_embedding_desc;
STINT_API stint_value stint_embedding(stint_graph *g, stint_value tokens,
                                      const stint_embedding_desc *desc);
/** The same from a table that is there, for tied weights. table [vocabulary, width]. */
STINT_API stint_value stint_lookup(stint_graph *g, stint_value tokens,
                                   stint_value table);

/** Attention over packed rows qkv [batch, length, (heads + 2 kv_heads) size]: queries
 * of all heads, keys, values (Vaswani et al. 2017; shared keys and values: Ainslie et
 * al. 2023) -> [batch, length, heads size]. Computed in tiles, forward and backward: no
 * matrix of all scores is made, two numbers a query and head are kept. kv_heads 0: as
 * many as heads. */
typedef struct stint_attention_desc {
    int64_t heads, kv_heads;
    bool all; /* every position sees every other; default: itself and earlier ones */
} stint_attention_desc;
STINT_API stint_value stint_attention(stint_graph *g, stint_value qkv,
                                      const stint_attention_desc *desc);
/** Rotary positions (Su et al. 2021) for the first `heads` heads of `size` columns of x
 * [batch, length, width]; the rest passes. base 0: 10000. */
typedef struct stint_rotary_desc {
    int64_t heads, size;
    float base;
} stint_rotary_desc;
STINT_API stint_value stint_rotary(stint_graph *g, stint_value x,
                                   const stint_rotary_desc *desc);

/** Element-wise with broadcasting by the usual rule (axes aligned at the last; 1
 * repeats). */
STINT_API stint_value stint_add(stint_graph *g, stint_value a, stint_value b);
STINT_API stint_value stint_sub(stint_graph *g, stint_value a, stint_value b);
STINT_API stint_value stint_mul(stint_graph *g, stint_value a, stint_value b);
STINT_API stint_value stint_div(stint_graph *g, stint_value a, stint_value b);
/** x [..., c] + bias [c]. */
STINT_API stint_value stint_bias(stint_graph *g, stint_value x, stint_value bias);

/** a [..., m, k] b [..., k, n]; trans_*: that operand is stored transposed. Leading
 * axes equal. */
STINT_API stint_value stint_matmul(stint_graph *g, stint_value a, stint_value b,
                                   bool trans_a, bool trans_b);

/** Windows of size x size over x [n, h, w, c] -> [n, oh, ow, c], oh as in stint_conv2d.
 * Padding takes no part in a maximum and counts as zeros in an average, which divides
 * by size * size. */
typedef struct stint_pool_desc {
    int64_t size, stride, pad; /* stride 0: size */
} stint_pool_desc;
STINT_API stint_value stint_max_pool(stint_graph *g, stint_value x,
                                     const stint_pool_desc *desc);
STINT_API stint_value stint_avg_pool(stint_graph *g, stint_value x,
                                     const stint_pool_desc *desc);
/** x [n, h, w, c] -> [n, c]. */
STINT_API stint_value stint_global_avg_pool(stint_graph *g, stint_value x);

/** The same elements under another shape; one dimension may be -1. */
STINT_API stint_value stint_reshape(stint_graph *g, stint_value x,
                                    const stint_shape *shape);
/** x [n, ...] -> [n, rest]. */
STINT_API stint_value stint_flatten(stint_graph *g, stint_value x);
/** Axis i of the result is axis axes[i] of x; axes [rank of x]. */
STINT_API stint_value stint_transpose(stint_graph *g, stint_value x, const int *axes);
/** x [count]: values that agree but for `axis`. */
STINT_API stint_value stint_concat(stint_graph *g, const stint_value *x, int count,
                                   int axis);
/** Elements begin, begin + step, ... before `end` along an axis. */
STINT_API stint_value stint_slice(stint_graph *g, stint_value x, int axis,
                                  int64_t begin, int64_t end, int64_t step);
/** Repeat x to `shape`, by the rule above. */
STINT_API stint_value stint_broadcast(stint_graph *g, stint_value x,
                                      const stint_shape *shape);
/** Reductions over the axes in the bit set (bit i: axis i); with keep they stay, of
 * size 1. */
STINT_API stint_value stint_sum(stint_graph *g, stint_value x, unsigned axes,
                                bool keep);
STINT_API stint_value stint_mean(stint_graph *g, stint_value x, unsigned axes,
                                 bool keep);
STINT_API stint_value stint_max(stint_graph *g, stint_value x, unsigned axes,
                                bool keep);

/** Inverted dropout; the mask is a pure function of (seed, step, shard, layer,
 * element). */
STINT_API stint_value stint_dropout(stint_graph *g, stint_value x, float rate);
/** Over the last axis. */
STINT_API stint_value stint_softmax(stint_graph *g, stint_value x);
/** Sum over rows, divided by n, of -sum_j q_j log softmax(x)_j, q = (1 - smoothing)
 * onehot + smoothing / classes. logits [n, classes], labels [n] i32; rows with label -1
 * add nothing; the divisor is n, counting them too (they are the padding of a last
 * evaluation batch). -> scalar. */
STINT_API stint_value stint_softmax_cross_entropy(stint_graph *g, stint_value logits,
                                                  stint_value labels, float smoothing);
/** The same loss of logits x table^T, which exist for a block of rows at a time, 128
 * MiB of them at most: for large vocabularies. x [n, width], table [classes, width],
 * labels [n] i32 -> scalar. Differentiable once. */
STINT_API stint_value stint_linear_cross_entropy(stint_graph *g, stint_value x,
                                                 stint_value table, stint_value labels,
                                                 float smoothing);
/** x [..., channels] rounded to (2^(bits - 1) - 1) levels on either side of 0, a scale
 * a channel: what a weight held in so many bits is. bits 2..8. Its gradient is passed
 * on as it is. */
STINT_API stint_value stint_quantise(stint_graph *g, stint_value x, int bits);
/** Logit pairing: mean over rows of weight ||x - reference||^2 / classes, where a row
 * weighs base + right if the reference's largest logit (lowest index on ties) is at the
 * label, base if not, and 0 with label -1. x, reference [n, classes], labels [n] i32 ->
 * scalar. base 0 and right 0: 1 a row. With right > 0, focal distillation (Yan et al.
 * 2021, arXiv 2011.09161). */
typedef struct stint_pairing_desc {
    float base, right;
} stint_pairing_desc;
STINT_API stint_value stint_logit_pairing(stint_graph *g, stint_value x,
                                          stint_value reference, stint_value labels,
                                          const stint_pairing_desc *desc);
/** Mean over rows of -T^2 sum_j softmax(reference / T)_j log softmax(x / T)_j (Hinton
 * et al. 2015); rows with label -1 add nothing. T: temperature > 0. No gradient flows
 * to the reference. -> scalar. */
STINT_API stint_value stint_soft_cross_entropy(stint_graph *g, stint_value x,
                                               stint_value reference,
                                               stint_value labels, float temperature);
/** Mean over all elements of (x - target)^2. -> scalar. */
STINT_API stint_value stint_mean_squared_error(stint_graph *g, stint_value x,
                                               stint_value target);
/** How many rows have their largest logit (lowest index on ties) at the label.
 * -> scalar f32. */
STINT_API stint_value stint_count_correct(stint_graph *g, stint_value logits,
                                          stint_value labels);

#ifdef __cplusplus
}
#endif

#endif
