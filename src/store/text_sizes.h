/* Sizes of a text model among the texts of its file: STI_META_TEXT, and
 * STI_META_TEXT_MORE where the model has more than GPT-2 and the first Llama had. */
#ifndef STI_STORE_TEXT_SIZES_H
#define STI_STORE_TEXT_SIZES_H

#include "store/model_meta.h"

/* Whole and possible numbers into *context_out and *desc_out; NULL, or what is wrong
 * with the texts (a literal). file: see sti_meta_find_in_file. What the sizes are worth
 * shows when the network is built. */
const char *sti_text_sizes_read(const sti_tensor_file *file, int64_t *context_out,
                                stint_text_model_desc *desc_out);

#endif
