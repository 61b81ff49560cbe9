/* [loss] of a recipe: what classes count, and what a reference model adds. */
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
    int64_t top;    /* 0: all */
    int64_t window; /* steps */
    double beta, focal_base, focal_right;
    double gradient_penalty;
    const char *class_weights; /* see class_weights.h */
} sti_loss_values;

extern const sti_recipe_section sti_loss_section;

/* Does loss.class_weights ask for any? */
bool sti_class_weights_given(const char *text);
/* Numbers of a list, of which the first `room` go to out. -1: it is no list of numbers
 * from 0 to 1,000,000. */
int64_t sti_class_weights_read(const char *list, double *out, int64_t room);

const sti_loss_values *sti_loss_section_of(const stint_recipe *recipe);

#endif
