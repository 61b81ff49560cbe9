/* [grow] of a recipe: batches that grow in the course of a run. */
#ifndef STI_TRAIN_GROW_SECTION_H
#define STI_TRAIN_GROW_SECTION_H

#include "base/recipe.h"

enum { STI_GROW_NONE, STI_GROW_SCHEDULE };

typedef struct sti_grow_values {
    int by;         /* STI_GROW_... */
    int64_t factor; /* the batch, at each stage */
    int64_t every;  /* epochs of a stage; 0: a fifth of the run */
    double lr;      /* the rate, at each stage */
    int64_t most;   /* images of a batch; 0: an eighth of the training set */
    bool rising;    /* lr may be above factor */
} sti_grow_values;

extern const sti_recipe_section sti_grow_section;
const sti_grow_values *sti_grow_section_of(const stint_recipe *recipe);

#endif
