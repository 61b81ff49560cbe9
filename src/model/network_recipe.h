/* The network that a recipe describes. What is known only with the data (classes, the
 * size of images, tokens) is the caller's to fill in or to give. */
#ifndef STI_MODEL_NETWORK_RECIPE_H
#define STI_MODEL_NETWORK_RECIPE_H

#include "base/recipe.h"
#include "model/network.h"

/* Does the recipe name a network for text? */
bool sti_recipe_is_text(const stint_recipe *recipe);

/* ... or that of another program's file, which train.start is? */
bool sti_recipe_is_imported(const stint_recipe *recipe);

/* ... or one for a field? */
bool sti_recipe_is_field(const stint_recipe *recipe);

/* A network of images, as it is used. Name and sizes live as long as the recipe. */
sti_network_desc sti_recipe_network_desc(const stint_recipe *recipe);

/* What [bayes] says; zeroed where it is not on. */
sti_bayes_desc sti_recipe_bayes_desc(const stint_recipe *recipe);

/* Bits of a weight in generation (model.weights): 0 float32, 16, 8 or 4. */
int sti_recipe_generation_bits(const stint_recipe *recipe);

/* Tokens that a text's vocabulary is to have: model.vocabulary, or, of a model that was
 * published with one, that; 0: as the tokeniser has it. */
int64_t sti_recipe_vocabulary(const stint_recipe *recipe);

/* The network for a vocabulary of so many tokens (0: as sti_recipe_vocabulary says).
 * STINT_E_INPUT: model.vocabulary has no room for them, or sizes that do not go
 * together. */
stint_status sti_recipe_text_network(const stint_recipe *recipe, int64_t tokens,
                                     sti_network_desc *network_out);

/* A field of so many outputs; 0: as field.outputs names them, or one. STINT_E_INPUT:
 * another number of names, or sizes out of range. */
stint_status sti_recipe_field_network(const stint_recipe *recipe, int64_t outputs,
                                      sti_network_desc *network_out);

#endif
