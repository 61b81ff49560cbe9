/* [bayes] of a recipe: weights that are distributions. */
#include "model/bayes_section.h"

#include "model/quantise_section.h"

#define AT(field) .offset = offsetof(sti_bayes_values, field)

static const sti_option rows[] = {
    {.name = "samples",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 128),
     .default_text = "0",
     AT(samples),
     .flag = true,
     .flag_name = "bayes",
     .unit = "N",
     .help = "draws of the weights for an image; 0: fixed weights"},
    {.name = "generator",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "ars",
     .choices = "ars|philox",
     AT(generator),
     .unit = "NAME",
     .help = "what draws them: rounds of AES or of Philox, at any place"},
    {.name = "estimator",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "weight",
     .choices = "weight|local",
     AT(estimator),
     .unit = "NAME",
     .help = "what is drawn: weights, once for all images of a run, or the outputs of "
             "their layers, for each image"},
    {.name = "prior",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "gauss",
     .choices = "gauss|mixture",
     AT(prior),
     .unit = "NAME",
     .help = "what weights are held to be before data is seen: normal, or normal with "
             "one of two deviations"},
    {.name = "deviation",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(1e-6, 1e6),
     .default_text = "1",
     AT(deviation),
     .unit = "VALUE",
     .help = "standard deviation of the prior, or of a mixture's wide part"},
    {.name = "narrow",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(1e-6, 1e6),
     .default_text = "0.0025",
     AT(narrow),
     .unit = "VALUE",
     .help = "standard deviation of a mixture's narrow part"},
    {.name = "wide_share",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0.0001, 0.9999),
     .default_text = "0.5",
     AT(wide_share),
     .unit = "SHARE",
     .help = "share of a mixture's wide part"},
    {.name = "sigma",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(1e-6, 10),
     .default_text = "0.02",
     AT(sigma),
     .unit = "VALUE",
     .help = "standard deviation that every weight begins with"},
    {.name = "kl",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e4),
     .default_text = "1",
     AT(kl),
     .unit = "FACTOR",
     .help = "what the divergence from the prior, summed over the weights and divided "
             "by the training images, counts in the loss"},
    {.name = "kl_course",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "even",
     .choices = "even|geometric|ramp",
     AT(kl_course),
     .unit = "NAME",
     .help = "how it is spread: alike over all steps, halving from step to step of an "
             "epoch, or rising over the first epochs"},
    {.name = "kl_ramp",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0.0001, 1e6),
     .default_text = "5",
     AT(kl_ramp),
     .unit = "EPOCHS",
     .help = "epochs that kl_course = ramp rises over"},
};

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_bayes_values *bayes = sti_bayes_section_of(recipe);
    if (bayes->samples > 0 && sti_quantise_section_of(recipe)->bits > 0)
        sti_complain(list, "bayes.samples: weights that are drawn are not rounded; "
                           "leave out [bayes] or quantise.bits");
}

const sti_recipe_section sti_bayes_section = {
    STI_RECIPE_SECTION("bayes", rows, sti_bayes_values),
    .check = check,
};

const sti_bayes_values *sti_bayes_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_bayes_section);
}
