/* [quantise] of a recipe: weights that count as rounded. */
#ifndef STI_MODEL_QUANTISE_SECTION_H
#define STI_MODEL_QUANTISE_SECTION_H

#include "base/recipe.h"

typedef struct sti_quantise_values {
    int64_t bits; /* 0: f32 */
} sti_quantise_values;

extern const sti_recipe_section sti_quantise_section;
const sti_quantise_values *sti_quantise_section_of(const stint_recipe *recipe);

#endif
