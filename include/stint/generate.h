/* Text from a trained transformer: the next token, again and again.
 *
 * Open a model (of Stint, or a folder in Hugging Face's layout), create a generator,
 * give it a prompt, draw tokens:
 *
 *   stint_text_model *model = NULL;
 *   stint_generator *g = NULL;
 *   int32_t token;
 *   stint_status st = stint_text_model_open("runs/bard", &model);
 *   if (st == STINT_OK)
 *       st = stint_generator_create(model, &(stint_generator_desc){.seed = 1}, &g);
 *   if (st == STINT_OK)
 *       st = stint_generator_prompt(g, prompt, prompt_count);
 *   while (st == STINT_OK && wanted-- > 0)
 *       st = stint_generator_next(g, &token);
 *   stint_generator_destroy(g);
 *   stint_text_model_close(model);
 *
 * Weights are packed once, so that a token streams through them from end to end; keys
 * and values of the tokens that were read are kept. A token then costs one pass over
 * the weights. Logits have the bits of the training graph's forward pass, whatever the
 * number of threads. */
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

/** Weights, keys and values of one stream of text; opaque. It serves one thread at a
 * time. */
typedef struct stint_generator stint_generator;

/** How to draw. All zero: the likeliest token each time, on one thread. */
typedef struct stint_generator_desc {
    /* Threads that work on a token; 0: one. Never changes a token. */
    int threads;
    /* Tokens that are seen at once, prompt and answer together; 0, or more than the
     * context: the context. See stint_generator_next for what happens beyond it. */
    int64_t tokens;
    /* Logits are divided by it, up to 1e6; 0: always the likeliest token, the lowest
     * identity on ties. */
    double temperature;
    /* Draw from the k likeliest tokens; 0: from all. */
    int64_t top_k;
    /* Among these, draw from the likeliest that together have this probability, up to
     * 1; 0: 1, from all. */
    double top_p;
    /* Key of the random numbers. */
    uint64_t seed;
    /* Peak resident memory of the whole process, at most, in bytes; 0: no bound. */
    size_t memory_bytes;
    /* How matrices are kept: 0 as the model's recipe says (model.weights), which is
     * float32 unless it was asked for; 32 float32; 16 bits a weight, which is bfloat16;
     * 8 or 4, in blocks of 32 that share a scale (as GGUF's Q8_0 and Q4_0). Products
     * read them as they lie, so that a token streams about 2, 1.125 or 0.625 bytes a
     * weight in place of 4. */
    int weight_bits;
} stint_generator_desc;

/** Resident memory of the process at its highest once a generator is made: what is in
 * use now and what the generator will take, in bytes. STINT_E_USAGE as below. */
STINT_API stint_status stint_generator_peak_bytes(const stint_text_model *model,
                                                  const stint_generator_desc *desc,
                                                  size_t *bytes_out);

/** Make a generator and load the weights; the caller destroys it.
 *
 * The model may be closed afterwards. STINT_E_USAGE: a setting out of range;
 * STINT_E_BUDGET, before anything is loaded, with the size that will do; STINT_E_INPUT
 * or STINT_E_IO: the weights cannot be read; STINT_E_MEMORY. */
STINT_API stint_status stint_generator_create(const stint_text_model *model,
                                              const stint_generator_desc *desc,
                                              stint_generator **generator_out);

/** Free a generator. NULL is fine. */
STINT_API void stint_generator_destroy(stint_generator *generator);

/** Begin anew with tokens [count], which are read at once.
 *
 * STINT_E_INPUT: none at all, an identity outside the vocabulary, or more than the
 * generator sees at once; the old text then stays. STINT_E_INTERRUPTED or _TERMINATED
 * after stint_stop(). */
STINT_API stint_status stint_generator_prompt(stint_generator *generator,
                                              const int32_t *tokens, int64_t count);

/** Draw the next token, which becomes part of the text.
 *
 * Token number i since the prompt is a pure function of the model, the prompt, the
 * settings, the seed and i. When as many tokens are there as are seen at once, the
 * model goes on from the newest half of them, read again. Allocates nothing.
 * STINT_E_USAGE: before the first prompt; STINT_E_FAILED: the logits are no numbers;
 * STINT_E_INTERRUPTED or _TERMINATED after stint_stop(). */
STINT_API stint_status stint_generator_next(stint_generator *generator,
                                            int32_t *token_out);

/** What the next token will be drawn from: logits [vocabulary], which hold until the
 * next call with this generator. Reads the newest token first if need be. Only after a
 * prompt that was accepted. */
STINT_API const float *stint_generator_logits(stint_generator *generator);

/** Bytes of weights that a token streams through the processor. */
STINT_API size_t stint_generator_token_bytes(const stint_generator *generator);

#ifdef __cplusplus
}
#endif

#endif
