/* [schedule] of a recipe: the course of the learning rate. */
#ifndef STI_TRAIN_SCHEDULE_SECTION_H
#define STI_TRAIN_SCHEDULE_SECTION_H

#include "base/recipe.h"

enum {
    STI_SCHEDULE_CONSTANT,
    STI_SCHEDULE_STEP,
    STI_SCHEDULE_COSINE,
    STI_SCHEDULE_ONE_CYCLE
};

typedef struct sti_schedule_values {
    int name;
    double warmup;          /* epochs */
    const char *milestones; /* epochs */
    double gamma;
    double start_factor, final_factor; /* of lr */
    double period, period_factor;      /* epochs of the first cosine, growth of them */
} sti_schedule_values;

extern const sti_recipe_section sti_schedule_section;
const sti_schedule_values *sti_schedule_section_of(const stint_recipe *recipe);

/* Milestones as numbers, at most max of them; the number there are, or -1 when the text
 * is no ascending list of epochs. */
#define STI_MILESTONES_MAX 32
int sti_recipe_milestones(const char *text, double *epochs_out, int max);

#endif
