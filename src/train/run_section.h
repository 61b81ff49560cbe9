/* [run] of a recipe: what this machine gives to a run, and what the run leaves. */
#ifndef STI_TRAIN_RUN_SECTION_H
#define STI_TRAIN_RUN_SECTION_H

#include "base/recipe.h"

typedef struct sti_run_values {
    const char *out; /* NULL: runs/<recipe's name> */
    int64_t threads; /* 0: choose */
    size_t memory_bytes;
    /* No keys, but what happened in this process: the batch was found here
     * (batch_auto.c), and the highest planned peak of those that ran, or of the steps
     * that gains were collected in (finetune.c). */
    bool searched;
    size_t tried_bytes;
    int64_t lanes;            /* 0: by memory */
    int64_t checkpoint_every; /* steps, 0: each epoch */
    int64_t keep;
    int64_t log_every;
    int64_t hash_every; /* steps; 0: none */
    bool answers;
    const char *tensorboard; /* NULL: none */
} sti_run_values;

extern const sti_recipe_section sti_run_section;
const sti_run_values *sti_run_section_of(const stint_recipe *recipe);

/* Where the run's files go, absolute: run.out, or runs/<name of the recipe file or of
 * the network>. In the arena; NULL when out of memory. */
char *sti_recipe_out(const stint_recipe *recipe, sti_arena *arena);

#endif
