/* [error] of a recipe: the gradient error that packed activations may cause. */
#include "train/error_section.h"

#define AT(field) .offset = offsetof(sti_error_values, field)

static const sti_option rows[] = {
    {.name = "tau",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.1),
     .default_text = "0.01",
     AT(tau),
     .flag = true,
     .flag_name = "error",
     .unit = "SHARE",
     .help = "error of packing in a gradient; 0: none"},
    {.name = "every",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 1000000),
     .default_text = "1000",
     AT(every),
     .unit = "STEPS",
     .help = "steps between choices of the bounds; also after steps 1, 10 and 100"},
    {.name = "dither",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "true",
     AT(dither),
     .help = "round packed activations with a known noise, so that the error predicted "
             "is the error made"},
    {.name = "pack",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     .choices = "auto|all",
     AT(pack),
     .unit = "WHICH",
     .help = "activations to hold packed: auto, as the memory budget asks; all, every "
             "one that can be and is not made again in less time"},
    {.name = "check",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(check),
     .help = "also measure the gradient error, from tensors that are then kept: for "
             "looking into the prediction, not for saving memory"},
};

const sti_recipe_section sti_error_section = {
    STI_RECIPE_SECTION("error", rows, sti_error_values),
};

const sti_error_values *sti_error_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_error_section);
}
