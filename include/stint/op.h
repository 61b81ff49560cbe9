/* Builders: each appends one or a few operators to a graph and returns the result.
 *
 * Images are channels-last, [n, h, w, c]. All tensors are f32 unless said otherwise. In
 * descriptions zero means "the usual", for example stride 1 and one group.
 *
 * Errors: a builder returns -1 once the graph has failed, and whenever it is given -1.
 * A shape, a type or a number that does not fit makes the graph fail with
 * STINT_E_INPUT, an allocation with STINT_E_MEMORY; the text names the operator, its
 * scope and the shapes, and stint_graph_check() gives it. Graph and descriptions must
 * not be NULL; descriptions are copied. A graph serves one thread at a time.
 *
 * Parameters that a builder makes get their names behind the open scopes
 * (stint_scope_begin), so each layer wants a scope of its own:
 *
 *   stint_scope_begin(g, "conv1");
 *   x = stint_conv2d(g, x, &(stint_conv2d_desc){.filters = 16, .size = 3, .pad = 1});
 *   stint_scope_end(g);
 *   x = stint_relu(g, x);
 *
 * Every operator has a gradient unless its comment says otherwise, and that gradient
 * has one, too. Costs: a builder copies no tensor and computes nothing. It infers
 * shapes and appends to the graph; what a step will take in time and memory is known
 * once the graph is planned.
 *
 * A result is a pure function of its operands: the order of every sum follows from the
 * shapes, never from the number of threads or the instruction set. */
#ifndef STINT_OP_H
#define STINT_OP_H

#include "stint/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layers with parameters ---- */

/** A two-dimensional convolution.
 *
 * filters and size have no usual value: they must be at least 1. */
typedef struct stint_conv2d_desc {
    /* filters: channels of the result, a multiple of groups. size: height and width of
     * the window. stride: pixels between windows; 0: 1. pad: rows and columns of zeros
     * on each side. groups: groups of channels that meet filters of their own; 0: 1,
     * c: depthwise. */
    int64_t filters, size, stride, pad, groups;
    /* Add a parameter "bias" [filters], which starts at zero and does not decay. */
    bool bias;
    /* Start of the weight. The zero value means HE_NORMAL on fan_in, not zeros. */
    stint_init init;
} stint_conv2d_desc;

/** x [n, h, w, c] -> [n, oh, ow, filters], oh = (h + 2 pad - size) / stride + 1,
 * rounded down. Parameter "weight" [size, size, c / groups, filters]. STINT_E_INPUT
 * also where a window does not fit into the image. */
STINT_API stint_value stint_conv2d(stint_graph *g, stint_value x,
                                   const stint_conv2d_desc *desc);

/** A dense (fully connected) layer.
 *
 * Its usual start is that of PyTorch's linear layers. */
typedef struct stint_dense_desc {
    /* Columns of the result, at least 1. */
    int64_t units;
    /* Leave out the parameter "bias". */
    bool no_bias;
    /* Start of the weight. The zero value means FAN_IN_UNIFORM, for the bias too; with
     * any other the bias starts at zero. */
    stint_init init;
} stint_dense_desc;

/** x [n, k] -> x weight + bias, [n, units]. Parameters "weight" [k, units] and "bias"
 * [units], which does not decay. Take stint_flatten first for images. */
STINT_API stint_value stint_dense(stint_graph *g, stint_value x,
                                  const stint_dense_desc *desc);

/** Constants of a batch normalisation. All zero is the usual choice. */
typedef struct stint_batch_norm_desc {
    /* Share of the new statistics in the running ones; 0: 0.1. */
    float momentum;
    /* Added to the variance; 0: 1e-5. */
    float epsilon;
} stint_batch_norm_desc;

/** Batch normalisation over all axes but the last (Ioffe and Szegedy 2015).
 *
 * x [..., c] of at least two axes -> the same shape. Parameters "scale" and "shift"
 * [c], states "mean" and "variance" [c]. A graph for STINT_TRAIN takes the statistics
 * of its batch (biased variance to normalise, unbiased into the running one), one for
 * STINT_EVAL the running statistics. */
STINT_API stint_value stint_batch_norm(stint_graph *g, stint_value x,
                                       const stint_batch_norm_desc *desc);

/** Layer normalisation over the last axis (Ba et al. 2016): scale * (x - mean) /
 * sqrt(variance + epsilon) + shift. Parameters "scale" and "shift" of the last axis'
 * length. epsilon 0: 1e-5. */
STINT_API stint_value stint_layer_norm(stint_graph *g, stint_value x, float epsilon);

/** Root-mean-square normalisation over the last axis (Zhang and Sennrich 2019):
 * scale * x / sqrt(mean x^2 + epsilon). Parameter "scale". epsilon 0: 1e-5. */
STINT_API stint_value stint_rms_norm(stint_graph *g, stint_value x, float epsilon);

/** A table of vectors, one a token: the first layer of a text model. */
typedef struct stint_embedding_desc {
    /* Rows of the table, and columns of each. */
    int64_t vocabulary, width;
    /* Deviation of the normal start; 0: 0.02. */
    float deviation;
} stint_embedding_desc;

/** tokens [...] i32 -> [..., width]: rows of the parameter "weight" [vocabulary,
 * width], which does not decay. Its gradient is summed in the order of the positions.
 * Tokens must be 0 to vocabulary - 1 when the graph runs. */
STINT_API stint_value stint_embedding(stint_graph *g, stint_value tokens,
                                      const stint_embedding_desc *desc);

/** The same from a value that is there, table [vocabulary, width]: for tied weights. */
STINT_API stint_value stint_lookup(stint_graph *g, stint_value tokens,
                                   stint_value table);

/* ---- element by element ----
 *
 * x of any shape -> the same shape. exp, log, tanh, sigmoid, sin and cos err by less
 * than one unit in the last place, with the same bits on every machine (docs/trust.md).
 * log and sqrt below 0 give NaN. */

/** max(x, 0); NaN stays. A step keeps one bit an element of it. */
STINT_API stint_value stint_relu(stint_graph *g, stint_value x);
/** min(max(x, 0), 6); NaN stays. A step keeps one bit an element of it. */
STINT_API stint_value stint_relu6(stint_graph *g, stint_value x);
/** x above 0, slope x below. */
STINT_API stint_value stint_leaky_relu(stint_graph *g, stint_value x, float slope);
/** 1 / (1 + e^-x). */
STINT_API stint_value stint_sigmoid(stint_graph *g, stint_value x);
/** Hyperbolic tangent. */
STINT_API stint_value stint_tanh(stint_graph *g, stint_value x);
/** x sigmoid(x). */
STINT_API stint_value stint_silu(stint_graph *g, stint_value x);
/** Gaussian error linear unit, the tanh form (Hendrycks and Gimpel 2016). */
STINT_API stint_value stint_gelu(stint_graph *g, stint_value x);
/** log(1 + e^x). */
STINT_API stint_value stint_softplus(stint_graph *g, stint_value x);
/** -1 where x is below 0, else 1; NaN stays. Its gradient is that of x where |x| <= 1,
 * else 0: straight-through (Bengio et al. 2013; Hubara et al. 2016). */
STINT_API stint_value stint_sign(stint_graph *g, stint_value x);
/** e^x. */
STINT_API stint_value stint_exp(stint_graph *g, stint_value x);
/** Natural logarithm. */
STINT_API stint_value stint_log(stint_graph *g, stint_value x);
/** Sine of x in radians. */
STINT_API stint_value stint_sin(stint_graph *g, stint_value x);
/** Cosine of x in radians. */
STINT_API stint_value stint_cos(stint_graph *g, stint_value x);
/** Square root. */
STINT_API stint_value stint_sqrt(stint_graph *g, stint_value x);
/** x x. */
STINT_API stint_value stint_square(stint_graph *g, stint_value x);
/** 1 / x. */
STINT_API stint_value stint_reciprocal(stint_graph *g, stint_value x);
/** factor x. */
STINT_API stint_value stint_scale(stint_graph *g, stint_value x, float factor);
/** x + addend. */
STINT_API stint_value stint_add_scalar(stint_graph *g, stint_value x, float addend);

/** |x|. Its gradient at 0 is 0. */
STINT_API stint_value stint_abs(stint_graph *g, stint_value x);
/** The largest whole number that is not above x. No gradient flows. */
STINT_API stint_value stint_floor(stint_graph *g, stint_value x);
/** The smallest whole number that is not below x. No gradient flows. */
STINT_API stint_value stint_ceil(stint_graph *g, stint_value x);
/** The nearest whole number, of two the even one. No gradient flows. */
STINT_API stint_value stint_round(stint_graph *g, stint_value x);
/** The error function, within 2.5e-7. */
STINT_API stint_value stint_erf(stint_graph *g, stint_value x);

/* Two operands are broadcast by the usual rule: axes are aligned at the last one and
 * must be equal or 1; an axis of 1 is repeated. The result has the larger of each. */

/** a + b. */
STINT_API stint_value stint_add(stint_graph *g, stint_value a, stint_value b);
/** a - b. */
STINT_API stint_value stint_sub(stint_graph *g, stint_value a, stint_value b);
/** a b, element by element. */
STINT_API stint_value stint_mul(stint_graph *g, stint_value a, stint_value b);
/** a / b. */
STINT_API stint_value stint_div(stint_graph *g, stint_value a, stint_value b);
/** The larger of a and b; NaN where either is. On ties the gradient is a's. */
STINT_API stint_value stint_maximum(stint_graph *g, stint_value a, stint_value b);
/** The smaller of a and b; NaN where either is. On ties the gradient is a's. */
STINT_API stint_value stint_minimum(stint_graph *g, stint_value a, stint_value b);
/** a to the power b, as C's pow. */
STINT_API stint_value stint_power(stint_graph *g, stint_value a, stint_value b);
/** 1 where a == b, else 0. No gradient flows through this and the next two. */
STINT_API stint_value stint_equal(stint_graph *g, stint_value a, stint_value b);
/** 1 where a < b, else 0. */
STINT_API stint_value stint_less(stint_graph *g, stint_value a, stint_value b);
/** 1 where a <= b, else 0. */
STINT_API stint_value stint_less_equal(stint_graph *g, stint_value a, stint_value b);
/** a where condition is not 0, else b; all three are broadcast. a and b are of one
 * type, f32 or i32, and a number that is not chosen, NaN too, leaves no trace. */
STINT_API stint_value stint_select(stint_graph *g, stint_value condition, stint_value a,
                                   stint_value b);
/** x [..., c] + bias [c]. */
STINT_API stint_value stint_bias(stint_graph *g, stint_value x, stint_value bias);

/* ---- products and attention ---- */

/** Matrix products: a [..., m, k] b [..., k, n] -> [..., m, n]. Leading axes are equal.
 * trans_a: a is stored as [..., k, m]; trans_b: b as [..., n, k]. */
STINT_API stint_value stint_matmul(stint_graph *g, stint_value a, stint_value b,
                                   bool trans_a, bool trans_b);

/** Heads of an attention. */
typedef struct stint_attention_desc {
    /* heads: of queries, a multiple of kv_heads. kv_heads: of keys and values, each
     * shared by heads / kv_heads queries; 0: as many as heads. */
    int64_t heads, kv_heads;
    /* Every position sees every other. Default: itself and earlier ones (causal). */
    bool all;
    /* Keys that a position sees, itself the last of them (Beltagy et al. 2020); 0: all
     * earlier ones. Not with `all`. */
    int64_t window;
} stint_attention_desc;

/** Attention (Vaswani et al. 2017; shared keys and values: Ainslie et al. 2023).
 *
 * qkv [batch, length, (heads + 2 kv_heads) size]: each row has the queries of all
 * heads, then keys, then values -> [batch, length, heads size]. Computed in tiles,
 * forward and backward: no matrix of all scores is made, two numbers a query and head
 * are kept. Second derivatives do make such matrices, [batch, heads, length, length].
 */
STINT_API stint_value stint_attention(stint_graph *g, stint_value qkv,
                                      const stint_attention_desc *desc);

/** How waves of rotary positions are stretched, so that a model sees further than it
 * was trained for. */
typedef enum stint_rotary_kind {
    /* Not at all. */
    STINT_ROTARY_PLAIN,
    /* All by the factor (Chen et al. 2023). */
    STINT_ROTARY_LINEAR,
    /* Long ones alone, those between in part (Llama 3.1, Grattafiori et al. 2024). */
    STINT_ROTARY_LLAMA3,
    /* Long ones alone, by a ramp over the columns (YaRN, Peng et al. 2023). */
    STINT_ROTARY_YARN
} stint_rotary_kind;

/** The numbers of that. All zero: plain. */
typedef struct stint_rotary_scaling {
    stint_rotary_kind kind;
    /* Above 0. */
    float factor;
    /* Turns within the positions of training: waves that turn less than `low` times are
     * stretched, those that turn more than `high` times are not (low < high). */
    float low, high;
    /* YaRN: what cosines and sines are multiplied by. */
    float attention;
    /* Positions of training. */
    float original;
} stint_rotary_scaling;

/** Which columns rotary positions turn. */
typedef struct stint_rotary_desc {
    /* The first `heads` heads, of `size` columns each; size is even. */
    int64_t heads, size;
    /* Base of the wavelengths, above 1; 0: 10000. */
    float base;
    /* How they are stretched. */
    stint_rotary_scaling scaling;
} stint_rotary_desc;

/** Rotary positions (Su et al. 2021): x [batch, length, width] -> the same shape, the
 * columns beyond heads size as they are. */
STINT_API stint_value stint_rotary(stint_graph *g, stint_value x,
                                   const stint_rotary_desc *desc);

/* ---- pooling ---- */

/** Windows of a pooling. The usual, size 2 and the rest zero, halves even
 * sides. */
typedef struct stint_pool_desc {
    /* size: height and width, 1 to 16. stride: pixels between windows; 0: size. pad:
     * rows and columns on each side, below size. */
    int64_t size, stride, pad;
} stint_pool_desc;

/** Largest value of each window: x [n, h, w, c] -> [n, oh, ow, c], oh as in
 * stint_conv2d. Padding takes no part. A step keeps the position of the winner. */
STINT_API stint_value stint_max_pool(stint_graph *g, stint_value x,
                                     const stint_pool_desc *desc);

/** Mean of each window; padding counts as zeros, the divisor is size * size. */
STINT_API stint_value stint_avg_pool(stint_graph *g, stint_value x,
                                     const stint_pool_desc *desc);

/** Mean over all pixels: x [n, h, w, c] -> [n, c]. */
STINT_API stint_value stint_global_avg_pool(stint_graph *g, stint_value x);

/* ---- shapes ----
 *
 * These take f32 and i32 and keep the type. Axes are counted from 0, the outermost. */

/** The same elements in the same order under another shape; its element type is not
 * looked at. One dimension may be -1: it follows from the others. */
STINT_API stint_value stint_reshape(stint_graph *g, stint_value x,
                                    const stint_shape *shape);

/** x [n, ...] -> [n, rest]. */
STINT_API stint_value stint_flatten(stint_graph *g, stint_value x);

/** Axis i of the result is axis axes[i] of x; axes [rank of x], each once. */
STINT_API stint_value stint_transpose(stint_graph *g, stint_value x, const int *axes);

/** x [count] joined along `axis`; all other axes are equal. */
STINT_API stint_value stint_concat(stint_graph *g, const stint_value *x, int count,
                                   int axis);

/** Elements begin, begin + step, ... before `end` along an axis; 0 <= begin < end <=
 * length. step 0: 1. */
STINT_API stint_value stint_slice(stint_graph *g, stint_value x, int axis,
                                  int64_t begin, int64_t end, int64_t step);

/** Elements index [...] i32 along an axis: the axis is replaced by those of the index.
 * Negative indices count from the end; one beyond the axis gives NaN. Gradients are
 * summed in the order of the positions. */
STINT_API stint_value stint_take(stint_graph *g, stint_value x, stint_value index,
                                 int axis);

/** The k largest elements of each row of the last axis (or the smallest), in order, of
 * equal ones the first, NaN as the largest: x [..., n] -> [..., k], and their places
 * *index_out [..., k] i32. No gradient flows. */
STINT_API stint_value stint_top(stint_graph *g, stint_value x, int64_t k, bool smallest,
                                stint_value *index_out);

/** x i32 as f32: exact up to 2^24. No gradient flows. */
STINT_API stint_value stint_to_f32(stint_graph *g, stint_value x);
/** x f32 as i32, cut towards 0; beyond its range the nearest, NaN 0. No gradient. */
STINT_API stint_value stint_to_i32(stint_graph *g, stint_value x);

/** x repeated to `shape`, by the rule of two operands above; its element type is not
 * looked at. */
STINT_API stint_value stint_broadcast(stint_graph *g, stint_value x,
                                      const stint_shape *shape);

/* ---- reductions ----
 *
 * Over the axes in a bit set: bit i is axis i. With keep these axes stay, of size 1;
 * without they go. The order of a sum is a fixed tree. */

/** Sum. */
STINT_API stint_value stint_sum(stint_graph *g, stint_value x, unsigned axes,
                                bool keep);

/** Arithmetic mean. */
STINT_API stint_value stint_mean(stint_graph *g, stint_value x, unsigned axes,
                                 bool keep);

/** Largest element. Elements that tie for it share the gradient equally. */
STINT_API stint_value stint_max(stint_graph *g, stint_value x, unsigned axes,
                                bool keep);

/** Sum of the squares of all elements of x, a scalar; summed in double precision by a
 * fixed order. */
STINT_API stint_value stint_squares(stint_graph *g, stint_value x);

/* ---- reinforcement learning ----
 *
 * Sequences of steps lie side by side: [steps, sequences], oldest step first. */

/** Logarithm of the softmax over the last axis, x of any shape but a scalar; finite
 * where the softmax itself has become 0. */
STINT_API stint_value stint_log_softmax(stint_graph *g, stint_value x);

/** Element index[i] of row i: x [n, c], index [n] i32 -> [n]. An index outside of 0 to
 * c - 1 gives 0. */
STINT_API stint_value stint_pick(stint_graph *g, stint_value x, stint_value index);

/** Stacks of byte frames, by index, as scaled f32: frames [f, height, width] u8, index
 * [n, stack] i32 -> [n, height, width, stack], each byte times `scale`. An index of -1
 * is a frame of zeros. A frame that lies in many stacks is in memory once. No gradient:
 * bytes have none. */
STINT_API stint_value stint_frames(stint_graph *g, stint_value frames,
                                   stint_value index, float scale);

/** What was lived through: each [steps, sequences], but value [steps + 1, sequences].
 *
 * Results of the two calls below are constants: no gradient passes through them. */
typedef struct stint_returns_in {
    /* reward: of a step. discount: what the value behind it counts, 0 where it ended
     * its episode. weight: 1, or 0 for a step that is none (a reset): nothing is
     * learned from it and nothing passes through it. value: estimates before each
     * step, and behind the last. */
    stint_value reward, discount, weight, value;
} stint_returns_in;

/** Constants of V-trace. */
typedef struct stint_vtrace_desc {
    /* Caps on the ratio of probabilities, in a step's own error and in what passes
     * through it; 0: 1. */
    float rho, c;
    /* Share that passes on from a step to the one before, 0 to 1 (as it stands). */
    float lambda;
} stint_vtrace_desc;

/** V-trace (Espeholt et al. 2018) -> targets of the values, and *advantage_out, both
 * [steps, sequences].
 *
 * log_ratio [steps, sequences]: log of the action's probability now over that when it
 * was taken. With rho_t = min(rho, ratio), c_t = lambda min(c, ratio), d = discount:
 *     v_t = V_t + sum_k (prod_{i<k} d_i c_i) rho_k (r_k + d_k V_{k+1} - V_k)
 *     advantage_t = rho_t (r_t + d_t v_{t+1} - V_t) */
STINT_API stint_value stint_vtrace(stint_graph *g, const stint_returns_in *in,
                                   stint_value log_ratio, const stint_vtrace_desc *desc,
                                   stint_value *advantage_out);

/** Generalised advantage estimation (Schulman et al. 2016) -> targets (advantage +
 * value), and *advantage_out, both [steps, sequences]. lambda 0 to 1; 1: returns of all
 * the steps. */
STINT_API stint_value stint_gae(stint_graph *g, const stint_returns_in *in,
                                float lambda, stint_value *advantage_out);

/* ---- regularisation and losses ---- */

/** Inverted dropout: zeroes a share `rate` of the elements, at least 0 and below 1, and
 * divides the others by 1 - rate. The mask is a pure function of seed, step, shard,
 * layer and element. x itself with rate 0 and in a graph for STINT_EVAL. */
STINT_API stint_value stint_dropout(stint_graph *g, stint_value x, float rate);

/** Softmax over the last axis: e^x_i / sum_j e^x_j, for x of any shape but a scalar.
 * For a loss take stint_softmax_cross_entropy, which takes logits. */
STINT_API stint_value stint_softmax(stint_graph *g, stint_value x);

/** Cross-entropy of softmax(logits) against labels -> scalar, in nats.
 *
 * logits [n, classes], labels [n] i32. Sum over rows, divided by n, of -sum_j q_j log
 * softmax(x)_j with q = (1 - smoothing) onehot + smoothing / classes, smoothing from 0
 * to 1. Rows with label -1 add nothing, but the divisor is n all the same (they are the
 * padding of a last batch of an evaluation). */
STINT_API stint_value stint_softmax_cross_entropy(stint_graph *g, stint_value logits,
                                                  stint_value labels, float smoothing);

/** The same with a weight a class -> scalar: sum over rows of class_weights[label]
 * times the row's loss, divided by n.
 *
 * class_weights [classes] f32, which gets no gradient. With smoothing the whole loss of
 * a row has the weight of its label. */
STINT_API stint_value stint_weighted_cross_entropy(stint_graph *g, stint_value logits,
                                                   stint_value labels,
                                                   stint_value class_weights,
                                                   float smoothing);

/** What each row counts by its class -> [n, 1]: class_weights[label], 0 for label -1.
 *
 * labels [n] i32, class_weights [classes] f32. No gradient flows to either. */
STINT_API stint_value stint_class_weight(stint_graph *g, stint_value labels,
                                         stint_value class_weights);

/** Cross-entropy with a weight a row -> scalar: sum over rows of weights[i] times the
 * row's loss, divided by n.
 *
 * weights [n, 1] f32, which gets no gradient; the rest as in
 * stint_softmax_cross_entropy. */
STINT_API stint_value stint_row_weighted_cross_entropy(stint_graph *g,
                                                       stint_value logits,
                                                       stint_value labels,
                                                       stint_value weights,
                                                       float smoothing);

/** The same loss of logits x table^T -> scalar, for large vocabularies.
 *
 * x [n, width], table [classes, width], labels [n] i32. Logits exist for a block of
 * rows at a time, at most 128 MiB of them; for second derivatives all at once. */
STINT_API stint_value stint_linear_cross_entropy(stint_graph *g, stint_value x,
                                                 stint_value table, stint_value labels,
                                                 float smoothing);

/** x [..., channels] rounded to 2^(bits - 1) - 1 levels on either side of 0, with a
 * scale for each channel: what a weight held in so many bits is. bits 2 to 8. The
 * gradient passes as it is (straight-through). */
STINT_API stint_value stint_quantise(stint_graph *g, stint_value x, int bits);

/** Weights of the rows of a logit pairing; both 0: each row weighs 1. */
typedef struct stint_pairing_desc {
    /* base: every row's. right: added where the reference's largest logit (the lowest
     * index on ties) is at the label. */
    float base, right;
} stint_pairing_desc;

/** Logit pairing -> scalar: mean over rows of weight ||x - reference||^2 / classes.
 *
 * x and reference [n, classes], labels [n] i32; a row with label -1 weighs 0. With
 * right > 0 it is focal distillation (Yan et al. 2021, arXiv 2011.09161). */
STINT_API stint_value stint_logit_pairing(stint_graph *g, stint_value x,
                                          stint_value reference, stint_value labels,
                                          const stint_pairing_desc *desc);

/** Distillation by soft labels (Hinton et al. 2015) -> scalar: mean over rows of
 * -T^2 sum_j softmax(reference / T)_j log softmax(x / T)_j, T = temperature > 0.
 *
 * x and reference [n, classes], labels [n] i32; rows with label -1 add nothing. A
 * gradient for the reference is refused (STINT_E_UNSUPPORTED). */
STINT_API stint_value stint_soft_cross_entropy(stint_graph *g, stint_value x,
                                               stint_value reference,
                                               stint_value labels, float temperature);

/** What the parts of a linear distillation are. */
typedef struct stint_distillation_desc {
    float hard, pairing, soft; /* what each counts, 0 or more; 0: it is left out */
    float temperature;         /* of soft, above 0 */
    int32_t top; /* of soft: the reference's so many likeliest alone, and what equals
                    the last of them; 0: all. At most 256 */
    stint_pairing_desc focus; /* of pairing */
} stint_distillation_desc;

/** Losses of x table^T against labels and against the logits against_x against_table^T
 * of a reference -> scalar: hard * cross-entropy + pairing * logit pairing + soft *
 * soft cross-entropy, as stint_softmax_cross_entropy, stint_logit_pairing and
 * stint_soft_cross_entropy have them, for large vocabularies.
 *
 * x [n, width], table [classes, width], labels [n] i32, against_x [n, other width],
 * against_table [classes, other width]; weights [3] f32, which the three parts are
 * multiplied by besides, or -1. Logits of either exist for a block of rows at a time,
 * at most 64 MiB of them (or 64 rows); for second derivatives all at once. Gradients
 * flow to x and table alone. STINT_E_INPUT: shapes or numbers that are not so. */
STINT_API stint_value stint_linear_distillation(stint_graph *g, stint_value x,
                                                stint_value table, stint_value labels,
                                                stint_value against_x,
                                                stint_value against_table,
                                                stint_value weights,
                                                const stint_distillation_desc *desc);

/** Mean over all elements of (x - target)^2 -> scalar. Both have one shape. */
STINT_API stint_value stint_mean_squared_error(stint_graph *g, stint_value x,
                                               stint_value target);

/** Mean over all elements of -y log p - (1 - y) log(1 - p), p = sigmoid(logit) ->
 * scalar. logits and labels have one shape, f32; labels are from 0 to 1. Taken as
 * y softplus(-x) + (1 - y) softplus(x), so that no logit is too large for it. Labels
 * get no gradient where they are an input. */
STINT_API stint_value stint_binary_cross_entropy(stint_graph *g, stint_value logits,
                                                 stint_value labels);

/** Dot products of all pairs of vectors of a sample, the interaction of features of
 * DLRM (Naumov et al. 2019).
 *
 * x [n, vectors, width], 2 vectors or more -> [n, vectors (vectors - 1) / 2]: pairs
 * (i, j) with i < j, in that order. */
STINT_API stint_value stint_interaction(stint_graph *g, stint_value x);

/** Number of rows whose largest logit (the lowest index on ties) is at the label ->
 * scalar f32. logits [n, classes], labels [n] i32. Not differentiable. */
STINT_API stint_value stint_count_correct(stint_graph *g, stint_value logits,
                                          stint_value labels);

#ifdef __cplusplus
}
#endif

#endif
