/* A transformer of model_gpt.c a token at a time: its weights packed for streaming
 * (kernel/gemm/panels.h), keys and values of what was read kept. Logits are those of
 * the graph's forward pass to the bit, however many tokens come at a time and on
 * however many threads. With matrices in blocks they are those of the rounded weights,
 * and sums have an order of their own, the same for any number of tokens and threads.
 *
 * One block of memory holds everything, sized beforehand; running allocates nothing.
 * A decoder serves one thread at a time. */
#ifndef STI_MODEL_DECODER_H
#define STI_MODEL_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"
#include "stint/model.h"

typedef struct sti_decoder_desc {
    const char *name; /* "gpt", "llama"; must outlive the decoder */
    stint_text_model_desc model;
    int64_t context;  /* tokens that the model was made for: rows of gpt's "wpe" */
    int64_t capacity; /* of the cache: tokens, 1 .. context */
    int threads;      /* at most */
    /* For sti_decoder_step: blocks of 64 tokens in the place of a cache of
     * `capacity`, and how many pieces may want logits at a time; 0: 1. */
    int64_t pages;
    int wanted;
    int weight_bits; /* 0: matrices in float32; 16 (bfloat16), 8, 4: in blocks
                        (panels_packed.h) */
} sti_decoder_desc;

enum { STI_DECODER_ROWS = 64 }; /* tokens of a step, at most */

/* Tokens of one text that are read in a step. */
typedef struct sti_decoder_piece {
    const int32_t *tokens;   /* [count]: 0 .. vocabulary - 1 */
    int64_t count, position; /* those before position have been read */
    /* [blocks of 64 tokens up to the last one]: which page of the cache each is in, a
     * page of no other text; NULL: block i is page i. */
    const int32_t *page;
    bool wants_logits; /* of what follows its last token */
} sti_decoder_piece;

typedef struct sti_decoder_sizes {
    size_t weights_bytes; /* of the packed weights */
    size_t cache_bytes;   /* keys and values */
    size_t work_bytes;    /* activations, logits, scratch; the loader's buffer */
    size_t total_bytes;
} sti_decoder_sizes;

/* Where weights come from. Tensors have the names of the graph's parameters. A matrix
 * of k rows and n columns is read in whole rows, or in whole columns where its file has
 * it transposed (tables of embeddings always: [n, k] with a row a token). */
typedef struct sti_weight_source {
    void *user;
    /* Is the matrix stored by columns? The tables are not asked about. */
    bool (*by_columns)(void *user, const char *name);
    /* `count` runs of `each` floats from run `first` of `runs` into out. A vector is
     * one run. STINT_E_INPUT names a tensor that is missing or of another shape. */
    stint_status (*read)(void *user, const char *name, int64_t runs, int64_t each,
                         int64_t first, int64_t count, float *out);
} sti_weight_source;

typedef struct sti_decoder sti_decoder;

/* STINT_E_INPUT: sizes that do not go together, or overflow. */
stint_status sti_decoder_measure(const sti_decoder_desc *desc,
                                 sti_decoder_sizes *sizes_out);
/* Names and sizes of all tensors in the order of the graph, through source->read with
 * out NULL and count 0: does the source have them? */
stint_status sti_decoder_check(const sti_decoder_desc *desc,
                               const sti_weight_source *source);
stint_status sti_decoder_create(const sti_decoder_desc *desc,
                                const sti_weight_source *source,
                                sti_decoder **decoder_out);
void sti_decoder_destroy(sti_decoder *decoder); /* NULL is fine */

/* Read `count` tokens (0 .. vocabulary - 1) that stand at position .. position + count
 * <= capacity; those before have been read. logits_out (may be NULL) is [vocabulary],
 * of what follows the last one; it lives until the next call. */
void sti_decoder_run(sti_decoder *decoder, const int32_t *tokens, int64_t count,
                     int64_t position, const float **logits_out);

/* Read pieces [count] of different texts in one pass over the weights, 1 to
 * STI_DECODER_ROWS tokens together, at positions within the context. logits_out (may be
 * NULL) is [pieces that want logits, vocabulary], at most desc.wanted, in their order;
 * it lives until the next call. threads: 1 .. those of the desc. A text's logits have
 * the bits that sti_decoder_run gives it alone. */
void sti_decoder_step(sti_decoder *decoder, const sti_decoder_piece *pieces, int count,
                      int threads, const float **logits_out);

/* Numbers in all tensors. */
int64_t sti_decoder_parameters(const sti_decoder_desc *desc);
/* Bytes of weights that one token streams through the processor. */
size_t sti_decoder_token_bytes(const sti_decoder_desc *desc);

#endif
