/* config.json of a folder in Hugging Face's layout, as a model of ours. */
#ifndef STI_STORE_HF_CONFIG_H
#define STI_STORE_HF_CONFIG_H

#include "base/text.h"
#include "stint/model.h"

typedef struct sti_hf_config {
    const char *name;            /* "gpt", "llama": a literal */
    stint_text_model_desc model; /* every field resolved */
    int64_t context;
    int64_t end_token; /* -1: none */
} sti_hf_config;

/* GPT-2, Llama, Mistral, Qwen2 and Qwen3. `where` names the text in messages.
 * STINT_E_INPUT: a damaged file, a
 * size that is missing or none; STINT_E_UNSUPPORTED: another family, or a variant that
 * our graph does not compute (which key, which value). */
stint_status sti_hf_config_parse(const char *json, size_t n_bytes, const char *where,
                                 sti_hf_config *config_out);
/* Is there a class of `transformers` that computes this llama? */
bool sti_hf_config_has_class(const stint_text_model_desc *model);
/* The JSON of such a file, as `transformers` reads it. */
void sti_hf_config_print(const sti_hf_config *config, sti_text *out);

#endif
