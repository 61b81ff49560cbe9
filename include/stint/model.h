/* Network families: each a readable function that builds a graph from images or from
 * tokens.
 *
 *   stint_value logits = stint_model_build(
 *       graph, "resnet20", &(stint_model_desc){.classes = 10, .dropout = -1}, images);
 *
 * `stint info RECIPE --graph text` prints what was built. Names of parameters are their
 * scopes joined by dots ("layer1.0.conv1.weight"); weights of convolutions are
 * [h, w, c, filters], those of dense layers [in, out].
 *
 * Nothing here trains: stint/train.h runs a recipe, which names a network. Calls that
 * take a graph follow the rules of stint/op.h: -1 once it has failed. */
#ifndef STINT_MODEL_H
#define STINT_MODEL_H

#include <stdbool.h>

#include "stint/graph.h"
#include "stint/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- images ---- */

/** The first layers of a network for images. Small images lose too much to a stem that
 * was published for 224 pixels. */
typedef enum stint_stem {
    /* Small where the shorter side has less than 96 pixels, else large. */
    STINT_STEM_AUTO,
    /* 3 x 3 of stride 1, for 28 to 64 pixels. */
    STINT_STEM_SMALL,
    /* 7 x 7 of stride 2 and pooling (or as published), for 224 pixels. */
    STINT_STEM_LARGE
} stint_stem;

/** What follows the dense layers of an mlp. */
typedef enum stint_activation {
    /* max(x, 0). */
    STINT_ACTIVATION_RELU,
    /* Batch normalisation, then -1 or 1: layers have no bias of their own then. */
    STINT_ACTIVATION_SIGN
} stint_activation;

/** Sizes of a network for images. Zero means "as published", but for dropout, where 0
 * is none. Sizes that a network does not have are not looked at. */
typedef struct stint_model_desc {
    /* Required: 2 or more. */
    int64_t classes;
    /* First layers; zero chooses by the size of the images. */
    stint_stem stem;
    /* Channels of the first stage (resnet, vgg) or hidden units (mlp). */
    int64_t width;
    /* Layers or blocks that a family repeats: hidden layers (mlp). The other networks
     * do not look at it. */
    int64_t depth;
    /* Rate before the classifier, where the network has a dropout. 0: none, below 0: as
     * published. */
    float dropout;
    /* What follows hidden layers (mlp). */
    stint_activation activation;
    /* Not 0 (mlp): pixels, normalised, are rounded to the nearest of 2^input_bits
     * numbers from -2 to 2 at even distances, 1 to 8. */
    int input_bits;
} stint_model_desc;

/** Append the network `name` ("resnet20") to graph.
 *
 * images [n, h, w, c] f32. Returns the logits [n, classes]. -1, with the graph failed
 * by STINT_E_INPUT: an unknown name (the nearest is offered), sizes out of range, or
 * images too small for the network's pooling (the text says how large they must be). */
STINT_API stint_value stint_model_build(stint_graph *graph, const char *name,
                                        const stint_model_desc *desc,
                                        stint_value images);

/* ---- text ---- */

/** Where the logits of a transformer come from: which table the last columns are
 * multiplied with. */
typedef enum stint_text_head {
    /* gpt: tied, llama: own. */
    STINT_TEXT_HEAD_AUTO,
    /* The table of embeddings serves as the output, too. */
    STINT_TEXT_HEAD_TIED,
    /* A table of their own, "lm_head.weight". */
    STINT_TEXT_HEAD_OWN
} stint_text_head;

/** Sizes of a transformer for text. Zero means as the smallest GPT-2: vocabulary 50257,
 * depth 12, width 768, heads of 64 columns. */
typedef struct stint_text_model_desc {
    /* Tokens known; blocks; columns; heads of queries. */
    int64_t vocabulary, depth, width, heads;
    /* Heads of keys and values. 0: all heads (gpt), a fourth of them (llama). */
    int64_t kv_heads;
    /* Rate for embeddings and branches; 0: none. */
    float dropout;
    /* Units between the two products of a feed-forward. 0: four times the width; with a
     * gate (llama) 8/3 of the width in multiples of 64. */
    int64_t hidden;
    /* Added to variances by the normalisations. 0: 1e-5. */
    float epsilon;
    /* Base of rotary positions (llama). 0: 10000. */
    float rotary_base;
    /* The output's table; zero: as the family has it. */
    stint_text_head head;
    /* Columns of a head. 0: width / heads. */
    int64_t head_size;
    /* Biases (llama; a gpt has all of them): of queries, keys and values; of what ends
     * the attention; of the feed-forward. */
    bool qkv_bias, proj_bias, mlp_bias;
    /* Queries and keys are normalised, a head at a time, before they turn (llama). */
    bool qk_norm;
    /* Tokens that a token sees, itself the last of them (llama); 0: all before it.
     * Blocks before number window_from see all. */
    int64_t window, window_from;
    /* How waves of rotary positions are stretched (llama). */
    stint_rotary_scaling rotary_scaling;
} stint_text_model_desc;

/** Append a transformer with its loss to graph. Unlike stint_model_build it returns the
 * loss, not the logits, so that a large vocabulary needs no tensor of all logits.
 *
 * name: "gpt" (Radford et al. 2019: layer-norm, learned positions, tied output;
 * "gpt2-124m" is the same) or "llama" (Touvron et al. 2023: RMS-norm, rotary positions,
 * gated feed-forward, shared keys). tokens and labels [batch, context] i32: what is
 * read and what comes next. Returns the mean loss, in nats a token; -1 with the graph
 * failed. Weight decay is for the matrices of linear layers (the output of llama too);
 * biases, normalisations and embeddings are marked as not to decay. */
STINT_API stint_value stint_text_model_build(stint_graph *graph, const char *name,
                                             const stint_text_model_desc *desc,
                                             stint_value tokens, stint_value labels);

/** Put the sizes that `name` stands for ("gpt", "llama", "gpt2-124m") where desc and
 * *context (tokens a sequence) are zero; both are read and written.
 *
 * STINT_E_INPUT: an unknown name, or sizes that do not go together: heads must divide
 * the width, and kv_heads the heads. */
STINT_API stint_status stint_text_model_resolve(const char *name,
                                                stint_text_model_desc *desc,
                                                int64_t *context);

/* ---- lists ----
 *
 * The tables that `model.name` of a recipe is looked up in. Their order is that of
 * `stint help models`. */

/** A row of a list of networks: the name that recipes and stint_model_build take, and a
 * few words on it. */
typedef struct stint_model_info {
    const char *name, *help;
} stint_model_info;

/** The networks for images; the last row has a NULL name. A constant of the library,
 * never freed. `stint help models` prints it. */
STINT_API const stint_model_info *stint_model_list(void);

/** The networks for text; the last row has a NULL name. A constant of the library,
 * never freed. */
STINT_API const stint_model_info *stint_text_model_list(void);

/** Is this the name of a network for text? False also for an unknown name. Never fails;
 * any number of threads may ask. */
STINT_API bool stint_model_is_text(const char *name);
/** Pixels a side of the photographs that this network was published for; 0: it was for
 * small images, or is unknown. */
STINT_API int64_t stint_model_usual_size(const char *name);

#ifdef __cplusplus
}
#endif

#endif
