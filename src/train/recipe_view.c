#include "train/recipe_view.h"

#include "model/network_recipe.h"

sti_recipe_view sti_recipe_view_of(const stint_recipe *recipe)
{
    return (sti_recipe_view){.model = sti_model_section_of(recipe),
                             .data = sti_data_section_of(recipe),
                             .train = sti_train_section_of(recipe),
                             .grow = sti_grow_section_of(recipe),
                             .loss = sti_loss_section_of(recipe),
                             .prune = sti_prune_section_of(recipe),
                             .quantise = sti_quantise_section_of(recipe),
                             .bayes = sti_bayes_section_of(recipe),
                             .shrink = sti_shrink_section_of(recipe),
                             .update = sti_update_section_of(recipe),
                             .optimizer = sti_optimizer_section_of(recipe),
                             .schedule = sti_schedule_section_of(recipe),
                             .error = sti_error_section_of(recipe),
                             .noise = sti_noise_section_of(recipe),
                             .net = sti_net_section_of(recipe),
                             .run = sti_run_section_of(recipe)};
}

bool sti_recipe_is_clicks(const stint_recipe *recipe)
{
    return stint_model_is_clicks(sti_recipe_network(recipe));
}
