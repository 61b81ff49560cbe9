/* [optimizer] of a recipe: the rule that updates the weights. */
#ifndef STI_TRAIN_OPTIMIZER_SECTION_H
#define STI_TRAIN_OPTIMIZER_SECTION_H

#include "base/recipe.h"

enum {
    STI_OPTIMIZER_SGD,
    STI_OPTIMIZER_ADAM,
    STI_OPTIMIZER_ADAMW,
    STI_OPTIMIZER_RMSPROP
};

typedef struct sti_optimizer_values {
    int name;
    double lr, momentum;
    bool nesterov;
    double weight_decay;
    bool decoupled, decay_all;
    double beta1, beta2, alpha, epsilon;
    double clip; /* of the norm of all gradients; 0: none */
} sti_optimizer_values;

extern const sti_recipe_section sti_optimizer_section;
const sti_optimizer_values *sti_optimizer_section_of(const stint_recipe *recipe);

#endif
