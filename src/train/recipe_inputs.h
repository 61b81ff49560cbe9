/* What a recipe says of the inputs of a training: its data, and the network over them.
 */
#ifndef STI_TRAIN_RECIPE_INPUTS_H
#define STI_TRAIN_RECIPE_INPUTS_H

#include "data/corpus.h"
#include "data/field.h"
#include "model/network.h"
#include "stint/recipe.h"

/* A part of the images as the recipe wants it. */
typedef enum sti_images_part {
    STI_PART_TRAIN,
    STI_PART_VALIDATION,
    STI_PART_TEST
} sti_images_part;
stint_data_desc sti_recipe_data_desc(const stint_recipe *recipe, sti_images_part part);

/* The text at data.path as the recipe's tokeniser has it, or as `tokenizer` does where
 * one is given (borrowed). */
stint_status sti_recipe_open_text(const stint_recipe *recipe,
                                  const stint_tokenizer *tokenizer,
                                  sti_corpus **corpus_out);

/* What a field at data.path is fitted to. */
stint_status sti_recipe_open_field(const stint_recipe *recipe,
                                   sti_field_points **points_out);

/* A network of images as it is trained: sti_recipe_network_desc with what only training
 * knows. */
sti_network_desc sti_train_network_desc(const stint_recipe *recipe);

#endif
