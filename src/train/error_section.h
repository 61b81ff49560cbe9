/* [error] of a recipe: the gradient error that packed activations may cause. */
#ifndef STI_TRAIN_ERROR_SECTION_H
#define STI_TRAIN_ERROR_SECTION_H

#include "base/recipe.h"

enum { STI_PACK_AUTO, STI_PACK_ALL };

typedef struct sti_error_values {
    double tau;    /* gradient error allowed, a share of the mean momentum; 0: none */
    int64_t every; /* steps between collections */
    bool dither;
    int pack;   /* STI_PACK_AUTO, STI_PACK_ALL */
    bool check; /* measure the gradient error beside predicting it */
} sti_error_values;

extern const sti_recipe_section sti_error_section;
const sti_error_values *sti_error_section_of(const stint_recipe *recipe);

#endif
