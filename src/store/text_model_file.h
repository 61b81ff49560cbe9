/* A text model opened from its files, whatever their layout; behind the public handle.
 */
#ifndef STI_STORE_TEXT_MODEL_FILE_H
#define STI_STORE_TEXT_MODEL_FILE_H

#include "stint/store.h"
#include "store/gguf_model.h"
#include "store/hf_folder.h"
#include "store/model_file.h"
#include "store/text_rounding.h"

struct stint_text_model {
    stint_model_file *file; /* one of the three */
    sti_hf_folder *folder;
    sti_gguf *gguf;
    sti_hf_config gguf_config;
    sti_gguf_weights gguf_weights;
    sti_text_rounding *rounding; /* of a file of rounded weights; NULL: none */
    sti_adapter *adapter;        /* NULL: none */
    stint_tokenizer *tokenizer;  /* of a folder or a GGUF file */
    char why[512];               /* it has none */
    stint_text_model_facts facts;
};

sti_weight_source sti_text_model_source(const stint_text_model *model);
/* What a decoder of it is made from, but for capacity and threads. */
sti_decoder_desc sti_text_model_decoder(const stint_text_model *model);

#endif
