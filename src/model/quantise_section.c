/* [quantise] of a recipe: weights that count as rounded. */
#include "model/quantise_section.h"

#define AT(field) .offset = offsetof(sti_quantise_values, field)

static const sti_option rows[] = {
    {.name = "bits",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 8),
     .default_text = "0",
     AT(bits),
     .unit = "N",
     .help =
         "weights of convolutions and dense layers count as rounded to so many bits "
         "(2 to 8), a scale an output channel, in training and use; 0: not rounded"},
};

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    if (sti_quantise_section_of(recipe)->bits == 1)
        sti_complain(list, "quantise.bits: 1 is too few for a sign and a magnitude; "
                           "use 2 to 8, or 0 for weights that are not rounded");
}

const sti_recipe_section sti_quantise_section = {
    STI_RECIPE_SECTION("quantise", rows, sti_quantise_values),
    .check = check,
};

const sti_quantise_values *sti_quantise_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_quantise_section);
}
