#include "train/network_recipe.h"

#include "train/recipe_view.h"

sti_network_desc sti_recipe_network_desc(const stint_recipe *recipe)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    return (sti_network_desc){.name = sti_recipe_network(recipe),
                              .model = {.stem = (stint_stem)v.model->stem,
                                        .width = v.model->width,
                                        .depth = v.model->depth,
                                        .dropout = (float)v.model->dropout},
                              .smoothing = (float)v.train->label_smoothing,
                              .weight_bits = (int)v.quantise->bits,
                              .freeze_norm = v.train->freeze_norm,
                              .bf16 = v.train->precision == STI_PRECISION_BF16,
                              .winograd = v.model->convolution == STI_CONVOLUTION_AUTO};
}
