/* What a transformer's graph (model_gpt.c) and its step-by-step form (decoder.c) agree
 * on. */
#ifndef STI_MODEL_TEXT_MODEL_H
#define STI_MODEL_TEXT_MODEL_H

#include <stdbool.h>

#include "stint/model.h"

/* Put defaults in place of zeros and check. STINT_E_INPUT: no such model, or sizes that
 * do not go together. */
stint_status sti_text_model_resolve(const char *name, stint_text_model_desc *desc,
                                    bool *llama_out);

/* What comes before the loss: the last normalised activations x [batch * context,
 * width], and the table [vocabulary, width] that they meet, in the graph. */
typedef struct sti_text_trunk {
    stint_value x, table; /* -1: the graph has failed */
} sti_text_trunk;
/* tokens [batch, context] i32. */
sti_text_trunk sti_text_model_trunk(stint_graph *graph, const char *name,
                                    const stint_text_model_desc *desc,
                                    stint_value tokens);

/* "gpt" or "llama" of any name that is known. */
const char *sti_text_model_family(const char *name);

#endif
