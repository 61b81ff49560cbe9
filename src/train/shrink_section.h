/* [shrink] of a recipe: a compression scheme, and how training makes up for it. */
#ifndef STI_TRAIN_SHRINK_SECTION_H
#define STI_TRAIN_SHRINK_SECTION_H

#include "base/recipe.h"

typedef enum sti_shrink_method {
    STI_SHRINK_AUTO, /* click from new weights, else lc */
    STI_SHRINK_DIRECT,
    STI_SHRINK_FINE_TUNE,
    STI_SHRINK_REWIND,
    STI_SHRINK_LC,
    STI_SHRINK_CLICK
} sti_shrink_method;

enum { STI_IMPORTANCE_GRADIENT, STI_IMPORTANCE_MAGNITUDE, STI_IMPORTANCE_RANDOM };
enum { STI_PATTERNS_GENERATED, STI_PATTERNS_FIXED };

typedef struct sti_shrink_values {
    const char *scheme; /* NULL: nothing is compressed */
    int method;         /* sti_shrink_method */
    const char *keep;   /* NULL: see train/project.h */
    /* L-C */
    int64_t steps, first, batches;
    double mu, mu_factor, mu_cap, lr_end, finish;
    /* ClickTrain */
    double select, hard, lasso;
    int importance;
    int64_t importance_batches;
    int patterns;
    double ratio; /* of kernel(auto); 0: none, as of the next two */
    size_t size_bytes;
    const char *latency; /* NULL: none */
} sti_shrink_values;

extern const sti_recipe_section sti_shrink_section;
const sti_shrink_values *sti_shrink_section_of(const stint_recipe *recipe);

#endif
