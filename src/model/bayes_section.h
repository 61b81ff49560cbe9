/* [bayes] of a recipe: weights that are distributions. */
#ifndef STI_MODEL_BAYES_SECTION_H
#define STI_MODEL_BAYES_SECTION_H

#include "base/recipe.h"

enum { STI_KL_EVEN, STI_KL_GEOMETRIC, STI_KL_RAMP };

typedef struct sti_bayes_values {
    int64_t samples;   /* runs of each micro-batch; 0: an ordinary network */
    int generator;     /* sti_normal_generator */
    const char *taps;  /* of an LFSR; NULL: its own */
    int estimator;     /* sti_estimator */
    int prior;         /* sti_prior_kind */
    double deviation;  /* of the prior, or of its wide part */
    double narrow;     /* deviation of a mixture's narrow part */
    double wide_share; /* of a mixture */
    double sigma;      /* of every weight at the beginning */
    double kl;         /* factor of KL in the loss */
    int kl_course;     /* STI_KL_... */
    double kl_ramp;    /* epochs */
} sti_bayes_values;

extern const sti_recipe_section sti_bayes_section;
const sti_bayes_values *sti_bayes_section_of(const stint_recipe *recipe);

#endif
