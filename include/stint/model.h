/* Network families: each a readable function that builds a graph from images or from
 * tokens. */
#ifndef STINT_MODEL_H
#define STINT_MODEL_H

#include <stdbool.h>

#include "stint/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stint_stem {
    STINT_STEM_AUTO,  /* small below 96 pixels */
    STINT_STEM_SMALL, /* 3x3 stride 1, for 28 to 64 pixels */
    STINT_STEM_LARGE  /* 7x7 stride 2 and pooling (or as published), for 224 pixels */
} stint_stem;

/** Zero means "as published" (dropout: -1 does). */
typedef struct stint_model_desc {
    int64_t classes; /* required */
    stint_stem stem;
    int64_t width; /* channels of the first stage (resnet, vgg), hidden units (mlp) */
    int64_t depth; /* hidden layers (mlp) */
    float dropout; /* before the classifier; 0: none, -1: as published */
} stint_model_desc;

/** Append the network `name` ("resnet20") to graph, reading images [n, h, w, c] f32;
 * returns the logits [n, classes], or -1 with the graph failed: an unknown name (the
 * nearest is offered) or images too small for the network's pooling (sizes stated). */
STINT_API stint_value stint_model_build(stint_graph *graph, const char *name,
                                        const stint_model_desc *desc,
                                        stint_value images);

/** Where the logits of a transformer come from. */
typedef enum stint_text_head {
    STINT_TEXT_HEAD_AUTO, /* gpt: tied, llama: own */
    STINT_TEXT_HEAD_TIED, /* the table of embeddings serves twice */
    STINT_TEXT_HEAD_OWN   /* a table of their own, "lm_head.weight" */
} stint_text_head;

/** Transformers for text. Zero means as the smallest GPT-2: vocabulary 50257, depth 12,
 * width 768, heads of 64. */
typedef struct stint_text_model_desc {
    int64_t vocabulary, depth, width, heads;
    int64_t kv_heads;  /* heads of keys and values; 0: all (gpt), a fourth (llama) */
    float dropout;     /* of embeddings and branches */
    int64_t hidden;    /* units between the two products of a feed-forward; 0: 4 widths,
                          with a gate 8/3 of it in multiples of 64 */
    float epsilon;     /* of the norms; 0: 1e-5 */
    float rotary_base; /* llama; 0: 10000 */
    stint_text_head head;
} stint_text_model_desc;

/** Append "gpt" (GPT-2: layer-norm, learned positions, tied output; "gpt2-124m" is the
 * same) or "llama" (RMS-norm, rotary positions, gated feed-forward, shared keys) to
 * graph. Weight decay is for the matrices of linear layers (the output of llama too);
 * biases, norms and embeddings are marked as not to decay. tokens,
 * labels [batch, context] i32: what is read and what comes next. Returns the mean loss,
 * in nats a token, or -1 with the graph failed. */
STINT_API stint_value stint_text_model_build(stint_graph *graph, const char *name,
                                             const stint_text_model_desc *desc,
                                             stint_value tokens, stint_value labels);

/** Put the sizes that `name` stands for ("gpt", "llama", "gpt2-124m") where desc and
 * context (tokens a sequence) are zero. STINT_E_INPUT: unknown name, or sizes that do
 * not go together. */
STINT_API stint_status stint_text_model_resolve(const char *name,
                                                stint_text_model_desc *desc,
                                                int64_t *context);

/** The table of networks for images, and that of those for text, ended by a NULL
 * name. */
typedef struct stint_model_info {
    const char *name, *help;
} stint_model_info;
STINT_API const stint_model_info *stint_model_list(void);
STINT_API const stint_model_info *stint_text_model_list(void);
STINT_API bool stint_model_is_text(const char *name);
/** Pixels a side of the photographs that this network was published for; 0: it was for
 * small images, or is unknown. */
STINT_API int64_t stint_model_usual_size(const char *name);

#ifdef __cplusplus
}
#endif

#endif
