/* What a recipe asks for by its scheme (train/penalty.h says what each method does). */
#ifndef STI_TRAIN_SHRINK_RECIPE_H
#define STI_TRAIN_SHRINK_RECIPE_H

#include "train/lc.h"
#include "train/project.h"
#include "train/shrink_section.h"

bool sti_shrink_wanted(const stint_recipe *recipe);
/* The method that `auto` stands for, too. Of a recipe with a scheme. */
sti_shrink_method sti_shrink_method_of(const stint_recipe *recipe);
/* Its word, as in a recipe. */
const char *sti_shrink_method_name(const stint_recipe *recipe);
/* Does it judge projections, and choose among them? */
bool sti_shrink_chooses(const stint_recipe *recipe);
/* What the engine is to have. */
int sti_shrink_shadows(const stint_recipe *recipe);
bool sti_shrink_is_masked(const stint_recipe *recipe);
/* Steps of a run whose recipe says so many. */
int64_t sti_shrink_steps(const stint_recipe *recipe, int64_t steps_per_epoch,
                         int64_t steps);

/* The projection that a recipe asks for; measure: to be looked at, without memory for
 * numbers. Errors: STINT_E_USAGE of scheme and keep. */
stint_status sti_shrink_create_projection(const stint_recipe *recipe,
                                          const sti_network *network, bool measure,
                                          sti_projection **projection_out);
/* The learning steps of method lc; of other methods as if it were that. */
sti_lc_plan sti_shrink_lc_plan(const stint_recipe *recipe, int64_t steps_per_epoch);

#endif
