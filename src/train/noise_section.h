/* [noise] of a recipe: differences that a study of noise asks for. */
#ifndef STI_TRAIN_NOISE_SECTION_H
#define STI_TRAIN_NOISE_SECTION_H

#include "base/recipe.h"

typedef struct sti_noise_values {
    int64_t order, ulp; /* seeds; 0: none */
} sti_noise_values;

extern const sti_recipe_section sti_noise_section;
const sti_noise_values *sti_noise_section_of(const stint_recipe *recipe);

#endif
