/* [prune] of a recipe: weights that stay zero. */
#include "train/prune_section.h"

#include <inttypes.h>

#include "base/units.h"
#include "train/train_section.h"

#define AT(field) .offset = offsetof(sti_prune_values, field)

static const sti_option rows[] = {
    {.name = "sparsity",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.9999),
     .default_text = "0",
     AT(sparsity),
     .flag = true,
     .unit = "SHARE",
     .help = "smallest weights that stay zero throughout"},
    {.name = "scope",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "global",
     .choices = "global|layer",
     AT(scope),
     .unit = "KIND",
     .help = "the share is of all such weights together, or of each layer's"},
    {.name = "epochs",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1000000),
     .default_text = "0",
     AT(epochs),
     .unit = "N",
     .help = "the share grows to its full size over the first N epochs, fast at first "
             "(cubic), with training between; 0: all at once"},
};

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_prune_values *prune = sti_prune_section_of(recipe);
    const sti_train_values *train = sti_train_section_of(recipe);
    if (prune->sparsity > 0 && train->steps == 0 && prune->epochs > 0 &&
        prune->epochs >= train->epochs)
        sti_complain(
            list,
            "prune.epochs: %" PRId64 " epoch%s of pruning leave none of the %" PRId64
            " epoch%s to train what is left; use fewer",
            prune->epochs, sti_s(prune->epochs), train->epochs, sti_s(train->epochs));
}

const sti_recipe_section sti_prune_section = {
    STI_RECIPE_SECTION("prune", rows, sti_prune_values),
    .check = check,
};

const sti_prune_values *sti_prune_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_prune_section);
}
