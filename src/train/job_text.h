/* What a recipe says of text: its tokens, and the network over them. */
#ifndef STI_TRAIN_JOB_TEXT_H
#define STI_TRAIN_JOB_TEXT_H

#include "base/recipe.h"
#include "data/corpus.h"
#include "model/network.h"

/* Does the recipe name a network for text? */
bool sti_recipe_is_text(const stint_recipe *recipe);

/* The text at data.path as the recipe's tokeniser has it, or as `tokenizer` does where
 * one is given (borrowed). */
stint_status sti_recipe_open_text(const stint_recipe *recipe,
                                  const stint_tokenizer *tokenizer,
                                  sti_corpus **corpus_out);

/* The network for a vocabulary of so many tokens (0: as model.vocabulary says).
 * STINT_E_INPUT: model.vocabulary has no room for them, or sizes that do not go
 * together. */
stint_status sti_recipe_text_network(const stint_recipe *recipe, int64_t tokens,
                                     sti_network_desc *network_out);

#endif
