/* [loss] of a recipe: what a reference model adds to the loss. */
#ifndef STI_TRAIN_LOSS_SECTION_H
#define STI_TRAIN_LOSS_SECTION_H

#include "base/recipe.h"

enum {
    STI_WEIGHTING_UNIFORM,
    STI_WEIGHTING_LEARNABLE,
    STI_WEIGHTING_SOFTADAPT,
    STI_WEIGHTING_FOCAL
};
enum { STI_SOFTADAPT_PLAIN, STI_SOFTADAPT_LOSS, STI_SOFTADAPT_NORMALISED };

typedef struct sti_loss_values {
    const char *reference; /* model to stay close to; NULL: none */
    double hard, pairing, soft, temperature;
    int weighting, softadapt;
    int64_t window; /* steps */
    double beta, focal_base, focal_right;
} sti_loss_values;

extern const sti_recipe_section sti_loss_section;
const sti_loss_values *sti_loss_section_of(const stint_recipe *recipe);

#endif
