/* Tokenisers wherever they are: in a file or folder of their own, or in a model. */
#ifndef STI_STORE_MODEL_TOKENIZER_H
#define STI_STORE_MODEL_TOKENIZER_H

#include "stint/text.h"

/* As stint_tokenizer_read; path may also be a model file or the folder of a run, whose
 * tokeniser it is then. STINT_E_INPUT: the model has none. */
stint_status sti_model_tokenizer_read(const char *path,
                                      stint_tokenizer **tokenizer_out);

/* "char, 65 tokens, 0123456789ab": for messages that name two. Holds until the fourth
 * call after this one of the same thread. */
const char *sti_model_tokenizer_words(const stint_tokenizer *tokenizer);

#endif
