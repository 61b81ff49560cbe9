/* [prune] of a recipe: weights that stay zero. */
#ifndef STI_TRAIN_PRUNE_SECTION_H
#define STI_TRAIN_PRUNE_SECTION_H

#include "base/recipe.h"

enum { STI_PRUNE_GLOBAL, STI_PRUNE_LAYER };

typedef struct sti_prune_values {
    double sparsity; /* 0: nothing */
    int scope;
    int64_t epochs; /* over which the share grows; 0: all at once */
} sti_prune_values;

extern const sti_recipe_section sti_prune_section;
const sti_prune_values *sti_prune_section_of(const stint_recipe *recipe);

#endif
