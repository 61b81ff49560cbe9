/* [grow] of a recipe: batches that grow in the course of a run. */
#ifndef STI_TRAIN_GROW_SECTION_H
#define STI_TRAIN_GROW_SECTION_H

#include "base/recipe.h"

enum { STI_GROW_NONE, STI_GROW_SCHEDULE, STI_GROW_NOISE };

typedef struct sti_grow_values {
    int by;         /* STI_GROW_... */
    int64_t factor; /* the batch, at each stage */
    int64_t every;  /* epochs of a stage; 0: a fifth of the run */
    double lr;      /* the rate, at each stage */
    int64_t most;   /* images of a batch; 0: an eighth of the training set */
    int64_t images; /* of a micro-batch, which grows up to so many; 0: it does not */
    double share;   /* by noise: of the scale that the batch follows */
    double smooth;  /* by noise: what is kept of the past at each step */
    bool rising;    /* lr may be above factor */
} sti_grow_values;

extern const sti_recipe_section sti_grow_section;
const sti_grow_values *sti_grow_section_of(const stint_recipe *recipe);
/* Images of the largest batch, of a training set of `count`. */
int64_t sti_grow_most(const sti_grow_values *grow, int64_t count);

#endif
