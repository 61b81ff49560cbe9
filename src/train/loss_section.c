/* [loss] of a recipe: what a reference model adds to the loss. */
#include "train/loss_section.h"

#define AT(field) .offset = offsetof(sti_loss_values, field)

static const sti_option rows[] = {
    {.name = "reference",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(reference),
     .flag = true,
     .unit = "MODEL",
     .same_weights = true,
     .local = true,
     .help = "model whose answers to keep, by the parts of [loss]"},
    {.name = "hard",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e4),
     .default_text = "1",
     AT(hard),
     .unit = "FACTOR",
     .help = "with a reference: of the cross-entropy against the labels"},
    {.name = "pairing",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e4),
     .default_text = "1",
     AT(pairing),
     .unit = "FACTOR",
     .help = "of the mean square of the difference between both models' scores"},
    {.name = "soft",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e4),
     .default_text = "1",
     AT(soft),
     .unit = "FACTOR",
     .help = "of the cross-entropy against the reference's probabilities"},
    {.name = "temperature",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0.01, 1000),
     .default_text = "1",
     AT(temperature),
     .unit = "VALUE",
     .help = "of the soft part: both models' scores are divided by it, and the part is "
             "multiplied by its square"},
    {.name = "weighting",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "uniform",
     .choices = "uniform|learnable|softadapt|focal",
     AT(weighting),
     .unit = "NAME",
     .help = "of the parts, beside their factors: all 1; trained; by how fast each "
             "falls; or pairing stronger where the reference is right"},
    {.name = "softadapt",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "plain",
     .choices = "plain|loss|normalised",
     AT(softadapt),
     .unit = "FORM",
     .help =
         "of softadapt: by rates, by rates times the part, or by rates over the sum "
         "of their magnitudes"},
    {.name = "window",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 1000000),
     .default_text = "5",
     AT(window),
     .unit = "STEPS",
     .help = "of softadapt: steps whose mean a rate is the change of"},
    {.name = "beta",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(-1e6, 1e6),
     .default_text = "0.1",
     AT(beta),
     .unit = "VALUE",
     .help = "of softadapt: weights are softmax(beta rate)"},
    {.name = "focal_base",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e4),
     .default_text = "1",
     AT(focal_base),
     .unit = "WEIGHT",
     .help = "of focal: of every input in the pairing part"},
    {.name = "focal_right",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e4),
     .default_text = "5",
     AT(focal_right),
     .unit = "WEIGHT",
     .help = "of focal: added for inputs that the reference gets right"},
};

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_loss_values *loss = sti_loss_section_of(recipe);
    if (!loss->reference && loss->weighting != STI_WEIGHTING_UNIFORM)
        sti_complain(list, "loss.weighting: weighs the labels against what a reference "
                           "says; give one by --reference, or leave it out");
    if (!loss->reference)
        return;
    if (loss->hard <= 0 && loss->pairing <= 0 && loss->soft <= 0)
        sti_complain(list, "loss: hard, pairing and soft are all 0, so nothing would "
                           "be learnt; set one");
    if (loss->weighting == STI_WEIGHTING_FOCAL && loss->focal_base <= 0 &&
        loss->focal_right <= 0)
        sti_complain(list, "loss.focal_base: with focal_right also 0 no input would "
                           "count; set one");
}

const sti_recipe_section sti_loss_section = {
    STI_RECIPE_SECTION("loss", rows, sti_loss_values),
    .check = check,
};

const sti_loss_values *sti_loss_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_loss_section);
}
