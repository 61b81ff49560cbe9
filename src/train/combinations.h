/* What a training can be made of, and which two of these mean nothing together.
 *
 * One table is where a recipe's refusals of pairs come from, what `stint help
 * combinations` prints, docs/combinations.md is made of, and a test goes through: every
 * pair that is not in it has to run. Who adds a feature adds a row. */
#ifndef STI_TRAIN_COMBINATIONS_H
#define STI_TRAIN_COMBINATIONS_H

#include "base/recipe.h"

/* Kinds of networks; sti_feature.kinds has a bit 1 << kind for each. */
enum {
    STI_KIND_IMAGES,
    STI_KIND_TEXT,
    STI_KIND_FIELD,
    STI_KIND_AGENT,
    STI_KIND_CLICKS,
    STI_KINDS /* how many there are */
};
extern const char *const sti_kind_words[STI_KINDS];

typedef struct sti_feature {
    const char *name; /* "mixup" */
    const char *key;  /* where a recipe asks for it */
    /* Keys and values, with blanks between, that ask for it. START and REFERENCE are
       models to be put in, WEIGHTS a number a class. */
    const char *example;
    const char *what;
    bool (*in)(const stint_recipe *recipe);
    unsigned kinds;   /* that have it */
    bool unsupported; /* text and fields without it: STINT_E_UNSUPPORTED, when data has
                         been opened; else STINT_E_USAGE */
} sti_feature;

typedef struct sti_refusal {
    const char *a, *b; /* names of features */
    const char *why;   /* begins with the key at fault, ends with the way out */
    bool unsupported;  /* it would mean something: STINT_E_UNSUPPORTED, when data has
                          been  opened; else STINT_E_USAGE */
} sti_refusal;

/* Rows end with one whose name, or a, is NULL. */
extern const sti_feature sti_features[];
extern const sti_refusal sti_refusals[];

/* A complaint for whatever the recipe asks for that its kind of network has not, and
 * for every pair that means nothing. */
void sti_combinations_check(const stint_recipe *recipe, sti_complaints *complaints);
/* STINT_E_UNSUPPORTED for the first feature that a text or a field has not, or the
 * first pair that is not there. */
stint_status sti_combinations_check_kind(const stint_recipe *recipe);

#endif
