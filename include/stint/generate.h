/* Text from a trained transformer: the next token, again and again.
 *
 * Open a model (of Stint, or a folder in Hugging Face's layout), create a generator,
 * give it a prompt, draw tokens. Weights are packed for streaming once; keys and values
 * of what was read are kept, so that a token costs one pass over the weights. Logits
 * have the bits of the training graph's forward pass, whatever the threads. */
#ifndef STINT_GENERATE_H
#define STINT_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/model.h"
#include "stint/stop.h"
#include "stint/store.h"
#include "stint/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stint_generator stint_generator;

/** top_k 0: all tokens. top_p 0: 1, that is all. */
typedef struct stint_generator_desc {
    int threads;        /* 0: one */
    int64_t tokens;     /* prompt and answer together, at most; 0: the context. A larger
                           number slides, see stint_generator_next */
    double temperature; /* 0: always the likeliest token */
    int64_t top_k;      /* draw from the k likeliest, */
    double top_p;       /* and of these from the likeliest that make up this share */
    uint64_t seed;
    size_t memory_bytes; /* peak resident memory of the process, at most; 0: no bound */
} stint_generator_desc;

/** Resident memory of the process at its highest once a generator is made: what is in
 * use now and what the generator will take. */
STINT_API stint_status stint_generator_peak_bytes(const stint_text_model *model,
                                                  const stint_generator_desc *desc,
                                                  size_t *bytes_out);
/** Loads the weights; the model may be closed afterwards. STINT_E_USAGE: a setting out
 * of range; STINT_E_BUDGET before anything is loaded. A generator serves one thread at
 * a time. */
STINT_API stint_status stint_generator_create(const stint_text_model *model,
                                              const stint_generator_desc *desc,
                                              stint_generator **generator_out);
STINT_API void stint_generator_destroy(stint_generator *generator); /* NULL is fine */

/** Begin anew with these tokens. STINT_E_INPUT: none at all, an identity outside the
 * vocabulary, or more than the context; STINT_E_INTERRUPTED or _TERMINATED after
 * stint_stop(). */
STINT_API stint_status stint_generator_prompt(stint_generator *generator,
                                              const int32_t *tokens, int64_t count);
/** Draw the next token: that of number i is a function of the model, the prompt, the
 * settings, the seed and i. When the context is full the model goes on from the newest
 * half of it. Allocates nothing. STINT_E_FAILED: the logits are no numbers;
 * STINT_E_INTERRUPTED or _TERMINATED after stint_stop(). */
STINT_API stint_status stint_generator_next(stint_generator *generator,
                                            int32_t *token_out);
/** What the next token will be drawn from, [vocabulary]; valid until the next call.
 * After stint_generator_prompt or _next; reads the newest token first if need be. */
STINT_API const float *stint_generator_logits(stint_generator *generator);
/** Bytes of weights that a token streams through the processor. */
STINT_API size_t stint_generator_token_bytes(const stint_generator *generator);

#ifdef __cplusplus
}
#endif

#endif
