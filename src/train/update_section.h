/* [update] of a recipe: which parameters a training that begins with a model changes.
 */
#ifndef STI_TRAIN_UPDATE_SECTION_H
#define STI_TRAIN_UPDATE_SECTION_H

#include "base/recipe.h"

enum {
    STI_UPDATE_FULL,
    STI_UPDATE_LAST,    /* the classifier, or a text model's head */
    STI_UPDATE_BIAS,    /* these, and every bias */
    STI_UPDATE_TENSORS, /* a list */
    STI_UPDATE_LORA     /* adapters beside what stays as it is */
};

enum { STI_FROZEN_F32, STI_FROZEN_INT8 };

enum { STI_KEEP_NO, STI_KEEP_AUTO, STI_KEEP_YES };

typedef struct sti_update_values {
    int what;
    int frozen;        /* how what is not trained is held */
    bool at_once;      /* updates within the step */
    int keep;          /* what is frozen is made ready once; auto: without a budget */
    bool fold_norm;    /* frozen normalisations in their convolutions */
    int64_t rank;      /* of STI_UPDATE_LORA, and */
    double alpha;      /* what its product is scaled by, over the rank */
    bool attention;    /* adapters beside attention's products only */
    const char *gains; /* a gains.json, which chooses channels of shares; NULL: norms */
    const char *tensors; /* of STI_UPDATE_TENSORS: see model/update_set.h; NULL: none */
} sti_update_values;

extern const sti_recipe_section sti_update_section;
const sti_update_values *sti_update_section_of(const stint_recipe *recipe);

#endif
