/* What a recipe says of a network for images. */
#ifndef STI_TRAIN_NETWORK_RECIPE_H
#define STI_TRAIN_NETWORK_RECIPE_H

#include "base/recipe.h"
#include "model/network.h"

/* All but classes, the size of the images and a loss against a reference, which are the
 * caller's to fill in. The name is borrowed from the recipe. */
sti_network_desc sti_recipe_network_desc(const stint_recipe *recipe);

#endif
