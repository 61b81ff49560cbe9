/* Graph in, graph out. Each pass is one file and, if it is of the standard pipeline,
 * one line of pass_list.h. */
#ifndef STI_PASS_PASS_H
#define STI_PASS_PASS_H

#include "graph/graph.h"
#include "kernel/normal/lfsr.h"

/* Append the gradients of sum over elements of `loss` (a scalar) for `count` values
 * `of`; gradients_out[i] is -1 where none flows. Applied to its own result it gives
 * higher orders; an operator on the way without a rule gives STINT_E_UNSUPPORTED and
 * names it ("conv2d_bf16 is not differentiable ..."). */
stint_status sti_pass_gradient(stint_graph *graph, stint_value loss,
                               const stint_value *of, int count,
                               stint_value *gradients_out);

/* Some channels of a weight; count 0: all. The list is borrowed: it must outlive the
 * graph and its copies, and be 64-byte aligned. */
typedef struct sti_train_share {
    const int32_t *channels; /* [count], ascending */
    int64_t count;
} sti_train_share;

/* Which parameters are trained, and how much of each; `trains` NULL: all of all. */
typedef struct sti_train_set {
    bool (*trains)(const void *user, const sti_value_row *param,
                   sti_train_share *share_out);
    const void *user;
} sti_train_set;

/* The axis of a weight that shares are counted on: input channels, of a depthwise
 * convolution (and of one of a single input channel) output channels; -1: it has none.
 */
int sti_share_axis(const stint_shape *weight);

/* Gradients of every param of the set (NULL: of all) as GRADIENT outputs; each output
 * has a value of its own, so a plan can place it in the shard's result block. What is
 * not in the set is frozen before gradients are made, so that nothing below the lowest
 * trained parameter runs backward. STINT_E_INPUT: the set is empty, or no gradient
 * reaches any of it; STINT_E_UNSUPPORTED: an operator above the lowest of them has no
 * gradient, or a share is asked of a parameter that has none (shares.c). */
stint_status sti_pass_train(stint_graph *graph, stint_value loss,
                            const sti_train_set *set);
/* The same, and the gradients of further values, as FETCH outputs "gradient.NAME": what
 * a caller that keeps rows of a table beside the graph updates them by. */
#define STI_GRADIENT_NAME "gradient."
stint_status sti_pass_train_also(stint_graph *graph, stint_value loss,
                                 const sti_train_set *set, const stint_value *also,
                                 int also_count);

/* What a pass did: one line for the log. */
typedef struct sti_pass_note {
    char text[160];
} sti_pass_note;

stint_status sti_pass_dead_code(stint_graph *graph, sti_pass_note *note);
stint_status sti_pass_common_subexpression(stint_graph *graph, sti_pass_note *note);
/* conv/matmul + bias + ReLU into the kernel's epilogue; batch-norm + add + ReLU into
 * one node. */
stint_status sti_pass_fuse(stint_graph *graph, sti_pass_note *note);
/* Longest runs of element-wise nodes into one node each (chain.c): x * sigmoid(x),
 * hard-swish as it is written out, an addition and its activation. Bits stay. After
 * gradients and series are made. */
stint_status sti_pass_chain(stint_graph *graph, sti_pass_note *note);
/* Minimal filtering (Winograd) for the convolutions whose shape it fits; runs before
 * the gradients are made. */
stint_status sti_pass_winograd(stint_graph *graph, sti_pass_note *note);
/* Loop strings that this host keeps for matrix products, or those of STINT_LOOPS. */
stint_status sti_pass_loops(stint_graph *graph, sti_pass_note *note);
/* What depends on constants alone is computed now and becomes constants (constant.c).
 * Of an EVAL graph; bits stay. Not of the standard pipeline: it must have passed before
 * a graph with views of constants is planned. */
stint_status sti_pass_constant(stint_graph *graph, sti_pass_note *note);
/* In a graph in its final order, what depends on frozen values alone (frozen
 * parameters, statistics that nothing updates, tensors of a reference model, constants)
 * is marked to be run once, and stands first; frozen weights of convolutions and of
 * dense layers' gradients are made ready there (once.c). Bits stay. For plan/, whose
 * copy of a graph it changes. */
stint_status sti_pass_once(stint_graph *graph, sti_pass_note *note);
/* Constant factors and addends of channels, those of batch normalisations among them,
 * into the weights and bias of the convolution or product before (affine.c). For an
 * EVAL graph whose weights are constants; run sti_pass_constant before it, fusion and
 * minimal filtering behind it. Results are those of other roundings. */
stint_status sti_pass_affine(stint_graph *graph, sti_pass_note *note);
/* Channels that are zero whatever the image, cut out of an EVAL graph whose weights are
 * constants, with what reads them (thin.c). Sums of convolutions are cut into other
 * pieces then, and which of them minimal filtering takes is open again: run
 * sti_pass_winograd behind it. */
stint_status sti_pass_thin(stint_graph *graph, sti_pass_note *note);
/* Which weights, "layer1.conv.weight", are to be run in the fast form. */
typedef struct sti_compact_choice {
    bool (*planar)(const void *user, const char *weight);
    const void *user;
} sti_compact_choice;
/* Convolutions whose weights are constants, many of them zero, into their fast form
 * (compact.c), for use alone. Results are those of other sums. Run sti_pass_constant
 * behind it. */
stint_status sti_pass_compact(stint_graph *graph, const sti_compact_choice *choice,
                              sti_pass_note *note);
/* Copies for what leaves the graph but cannot lie in a block of its own: a leaf, or
 * bytes that another output has already. */
stint_status sti_pass_own_outputs(stint_graph *graph, sti_pass_note *note);
/* Move nodes that free memory forward, so that, for one, a weight gradient runs before
 * the gradient of the layer's input needs room. Kept only if the peak falls. */
stint_status sti_pass_schedule(stint_graph *graph, sti_pass_note *note);
/* Results of cheap element-wise operators whose operand the backward half keeps are
 * made again there; bits stay. After the schedule, as recomputation is. */
stint_status sti_pass_again(stint_graph *graph, sti_pass_note *note);
/* Lay results over operands that die there. Passes that add, merge or move nodes undo
 * these marks first; run this one last. */
stint_status sti_pass_inplace(stint_graph *graph, sti_pass_note *note);

/* Activations and their gradients in bfloat16 (precision.c): after the gradient and
 * before the standard pipeline. */
stint_status sti_pass_precision(stint_graph *graph, sti_pass_note *note);
/* Bytes that the forward half makes and the backward half reads, each tensor once. */
stint_status sti_pass_saved_bytes(const stint_graph *graph, size_t *bytes_out);

/* Round the weights of this role (PARAM or FIXED) to so many bits wherever they are
 * read (op quantise); before the gradient and the standard pipeline. bits 0: nothing.
 */
stint_status sti_pass_quantise(stint_graph *graph, sti_role role, int bits);

/* Weights of dense layers and convolutions that are not in the set are held in bytes
 * (bytes.c): before the gradients, and in evaluation alike. STINT_E_UNSUPPORTED: there
 * are such weights, but none that can be. */
stint_status sti_pass_bytes(stint_graph *graph, const sti_train_set *set);

/* Batch normalisations with frozen statistics whose scale is not in the set, in the
 * convolutions before them, where those are not in it either (fold_norm.c): before
 * fusion and gradients, in training. Results are those of other roundings. bytes: but
 * not where sti_pass_bytes, which comes after it, will hold the weights. */
stint_status sti_pass_fold_norm(stint_graph *graph, const sti_train_set *set,
                                bool bytes);

/* ---- low-rank adapters (lora.c) ---- */

#define STI_LORA_A ".lora_a" /* behind the scope of a weight: [k, rank], */
#define STI_LORA_B ".lora_b" /* [rank, n] */

typedef struct sti_lora_desc {
    int64_t rank;   /* 0: no adapters */
    float scale;    /* alpha / rank */
    bool attention; /* only of weights with a part "attn" in their name */
} sti_lora_desc;

/* After "LoRA" (arXiv 2106.09685): a dense layer x W + b becomes x W + b + scale
 * (x A) B, with parameters A, random, and B, zero, whose names are the weight's without
 * ".weight" and with STI_LORA_A and STI_LORA_B. Before fusion and gradients.
 * STINT_E_UNSUPPORTED: no layer takes one. */
stint_status sti_pass_lora(stint_graph *graph, const sti_lora_desc *desc);
/* The adapters of a weight; false: it has none. */
bool sti_lora_find(const stint_graph *graph, const char *weight, stint_value *a_out,
                   stint_value *b_out);

/* ---- weights that are drawn (bayes.c, noise_again.c) ---- */

typedef enum sti_estimator { STI_ESTIMATOR_WEIGHT, STI_ESTIMATOR_LOCAL } sti_estimator;

/* What a Bayesian network is, of [bayes]. All zero: an ordinary network. */
typedef struct sti_bayes_desc {
    int64_t samples;    /* runs of a micro-batch in training; 0: not Bayesian */
    int generator;      /* sti_normal_generator */
    sti_lfsr_taps taps; /* of an LFSR; zeroed: its own */
    int estimator;      /* sti_estimator */
    int prior;          /* sti_prior_kind */
    float deviation, narrow, wide_share;
    float sigma; /* that every weight begins with */
} sti_bayes_desc;

/* Give every weight (PARAM) of a convolution or dense layer a spread, a parameter
 * NAME.rho, and let whatever reads the weight read noise(mu, rho); with the local
 * estimator the outputs of its layer are drawn instead. draw false: the spreads are
 * there, and mu is used as it is. Before the gradient and the standard pipeline, as
 * sti_pass_quantise. Nothing where desc->samples is 0. */
stint_status sti_pass_bayes(stint_graph *graph, const sti_bayes_desc *desc, bool draw);
/* The loss that is trained: `loss` plus the scalar input "kl_weight" times the
 * divergence of all weights that sti_pass_bayes gave spreads to. */
stint_status sti_pass_bayes_loss(stint_graph *graph, const sti_bayes_desc *desc,
                                 stint_value loss, stint_value *objective_out);
/* After the gradient: what still reads drawn weights in the backward half reads those
 * that noise_grad makes again, so that one layer's live at a time. Shift registers go
 * back from each layer's gradient to that of the layer before, and a metric
 * "lfsr_moved" counts the runs after which they are not where they began. */
stint_status sti_pass_noise_again(stint_graph *graph, sti_pass_note *note);
/* Results that several runs of the graph add up in their blocks, as sti_step.add says:
 * those that no node with STI_OP_ADDS makes leave through add_up. Before the standard
 * pipeline. */
stint_status sti_pass_adds(stint_graph *graph, sti_pass_note *note);

/* What becomes of a value of the forward half until the backward half reads it. */
typedef enum sti_form {
    STI_FORM_KEEP,
    STI_FORM_RECOMPUTE, /* dropped; made again once, before its first reader */
    STI_FORM_REPEAT,    /* dropped; made again before each reader */
    STI_FORM_PACK,      /* held compressed within a bound */
    STI_FORM_PACK_SUM,  /* likewise, as STI_PACK_SUM */
    STI_FORMS
} sti_form;

static inline bool sti_form_packs(sti_form form)
{
    return form == STI_FORM_PACK || form == STI_FORM_PACK_SUM;
}

/* Drop values and make them again in the backward half, to the same bits; the graph is
 * in order afterwards. form [form_values]: sti_form of each value that a node of the
 * forward half makes (that of a view is its operand's); later values are kept. A packed
 * value that somebody still reads as it was, a copy or a reader that no unpack serves,
 * is made again like a dropped one. Values that leave the graph always stay.
 * For a scheduled graph: it is the schedule's order into which copies are put.
 * STINT_E_UNSUPPORTED when repeats would multiply beyond a few copies a node; the graph
 * is then of no use. */
stint_status sti_pass_recompute(stint_graph *graph, const uint8_t *form,
                                int32_t form_values, sti_pass_note *note);

/* ---- saved activations held packed (pack.c, pack_candidates.c) ----
 *
 * After COMET (arXiv 2111.09562): a tensor that the backward half reads is packed under
 * an error bound after its last forward reader and unpacked just before the first
 * backward one, so that the raw bytes die with the forward half. */
typedef enum sti_pack_form {
    STI_PACK_VALUE, /* the tensor itself: the input of a convolution or dense layer */
    STI_PACK_NORM, /* the input of a batch-norm, normalised; coarser where the ReLU lets
                      no gradient pass. Also gives the ReLU's result when the
                      batch-norm adds no residual: one block for two tensors. */
    STI_PACK_SUM   /* the same of a batch-norm that adds a residual: gives the sum, from
                      the block and the residual, which is made again from its own block,
                      or kept or made again as other values are */
} sti_pack_form;

typedef struct sti_pack_candidate {
    stint_value value, also; /* tensors that one block stands for; also: -1, none */
    stint_value sum; /* what it can be made to stand for, with STI_PACK_SUM; or -1 */
    stint_value residual; /* of that sum */
    sti_pack_form form;
    int64_t count;           /* elements of value */
    size_t plain_bytes;      /* of value and also, which the packed form frees */
    size_t expected_bytes;   /* of the block at the usual bound; no reserve */
    double pack_s, unpack_s; /* seconds of one thread, estimated */
} sti_pack_candidate;

/* Find what can be packed in a TRAIN graph with its gradients, before or after the
 * standard pipeline. Handles
 * stay valid through the passes and are the same in every graph built of the same
 * network. candidates_out [values of the graph]. None in a graph that holds tensors
 * packed already. */
stint_status sti_pack_candidates(const stint_graph *graph,
                                 sti_pack_candidate *candidates_out, int *count_out);

/* Capacity for a block of so many bytes, with a reserve: sizes vary from batch to
 * batch. A multiple of 64. */
int64_t sti_pack_capacity(size_t bytes);

typedef struct sti_pack_choice {
    stint_value value; /* of a candidate */
    sti_pack_form form;
    int64_t capacity; /* bytes of the block: expected ones times a reserve */
} sti_pack_choice;

/* Insert pack and unpack nodes for the choices; run the standard pipeline afterwards.
 * check: also compute the weight gradients from the raw tensors, which then stay alive,
 * to measure the error (a diagnostic). The nodes talk to the host through
 *   input  "bounds" [count, STI_BOUND_FIELDS], filled before each run, row = choice
 *   metric "pack.<row>.stats" [STI_PACK_STATS], and one a trained tensor that reads it:
 *   metric "pack.<row>.gain", target: the tensor; squared gradient error = gain bound^2
 *   metric "pack.<row>.error", target likewise: measured, with check only */
stint_status sti_pass_pack(stint_graph *graph, const sti_pack_choice *choices,
                           int count, bool check, sti_pass_note *note);

typedef struct sti_pass {
    const char *name, *help;
    stint_status (*run)(stint_graph *graph, sti_pass_note *note);
} sti_pass;
/* In the order of the standard pipeline; a NULL name ends it. */
extern const sti_pass sti_passes[];

/* The standard pipeline: every row of sti_passes in order, verified after each; one
 * debug log line a pass. Exact: results keep their bits against the unrewritten graph,
 * except that EVAL graphs may fold batch-norm as each pass documents. */
stint_status sti_pass_standard(stint_graph *graph);

/* For a forward graph before its gradients are appended: common subexpressions and
 * fusion, so that the gradient rules meet the fused nodes. */
stint_status sti_pass_prepare(stint_graph *graph);

#endif
