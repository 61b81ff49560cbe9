/* [optimizer] of a recipe: the rule that updates the weights. */
#include "train/optimizer_section.h"

#define AT(field) .offset = offsetof(sti_optimizer_values, field)

static const sti_option rows[] = {
    {.name = "name",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "sgd",
     .choices = "sgd|adam|adamw|rmsprop",
     AT(name),
     .unit = "NAME",
     .help = "rule that updates the weights"},
    {.name = "lr",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e6),
     .default_text = "0.1",
     AT(lr),
     .flag = true,
     .unit = "RATE",
     .help = "learning rate, highest of the schedule"},
    {.name = "momentum",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.9999),
     .default_text = "0.9",
     AT(momentum),
     .unit = "SHARE",
     .help = "of sgd; 0 needs no memory"},
    {.name = "nesterov",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(nesterov),
     .help = "Nesterov's form of momentum"},
    {.name = "weight_decay",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 10),
     .default_text = "0",
     AT(weight_decay),
     .unit = "FACTOR",
     .help = "pull of the weights towards zero"},
    {.name = "decoupled",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(decoupled),
     .help = "decay acts on the weights beside the gradient (always so with adamw)"},
    {.name = "decay_all",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(decay_all),
     .help = "decay also biases and normalisation parameters"},
    {.name = "beta1",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.9999999),
     .default_text = "0.9",
     AT(beta1),
     .unit = "SHARE",
     .help = "of adam: memory of the mean gradient"},
    {.name = "beta2",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.9999999),
     .default_text = "0.999",
     AT(beta2),
     .unit = "SHARE",
     .help = "of adam: memory of the mean squared gradient"},
    {.name = "alpha",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.9999999),
     .default_text = "0.99",
     AT(alpha),
     .unit = "SHARE",
     .help = "of rmsprop: memory of the mean squared gradient"},
    {.name = "epsilon",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(1e-16, 1),
     .default_text = "1e-8",
     AT(epsilon),
     .unit = "VALUE",
     .help = "of adam and rmsprop: added to the root of the mean squared gradient"},
    {.name = "clip",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e6),
     .default_text = "0",
     AT(clip),
     .unit = "NORM",
     .help = "a gradient whose norm over all weights is above this is scaled down to "
             "it; 0: never"},
};

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_optimizer_values *optimizer = sti_optimizer_section_of(recipe);
    if (!(optimizer->lr > 0))
        sti_complain(list, "optimizer.lr: must be above 0, for example 0.1");
    if (!optimizer->nesterov)
        return;
    if (optimizer->name != STI_OPTIMIZER_SGD)
        sti_complain(list, "optimizer.nesterov: is of sgd only; remove it or use sgd");
    else if (optimizer->momentum <= 0)
        sti_complain(list, "optimizer.nesterov: needs a momentum above 0");
}

const sti_recipe_section sti_optimizer_section = {
    STI_RECIPE_SECTION("optimizer", rows, sti_optimizer_values),
    .check = check,
};

const sti_optimizer_values *sti_optimizer_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_optimizer_section);
}
