/* [loss] of a recipe: what classes count, and what a reference model adds. */
#include "train/loss_section.h"

#include <string.h>

#include "base/units.h"

#define WEIGHT_MAX 1e6
#define AT(field)  .offset = offsetof(sti_loss_values, field)

static const sti_option rows[] = {
    {.name = "class_weights",
     .type = STI_OPTION_LIST,
     STI_OPTION_NO_BOUND,
     .default_text = "none",
     AT(class_weights),
     .unit = "LIST",
     .help = "of images: what an image counts by its class: all the same (none), "
             "inversely to the class's number of images (balanced), or one number a "
             "class in their order; scaled to a mean of 1 over the images"},
    {.name = "gradient_penalty",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e4),
     .default_text = "0",
     AT(gradient_penalty),
     .unit = "FACTOR",
     .help =
         "what the mean over the images (of text: the sequences) of the squared norm "
         "of a gradient counts: that of the loss against the labels by the image, or "
         "by the embeddings of the sequence's tokens; 0: none, and steps are half as "
         "long"},
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
    {.name = "top",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 256),
     .default_text = "0",
     AT(top),
     .unit = "N",
     .help = "of the soft part, of text: the reference's so many likeliest tokens "
             "alone; 0: all"},
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

/* The number that list begins with, up to the next comma. NULL: it is none from 0 to
 * WEIGHT_MAX; else what follows it. */
static const char *next_weight(const char *list, double *out)
{
    char word[64];
    const size_t skip = strspn(list, " \t"), length = strcspn(list, ",");
    size_t end = length;
    while (end > skip && (list[end - 1] == ' ' || list[end - 1] == '\t'))
        end--;
    if (skip >= end || end - skip >= sizeof word)
        return NULL;
    memcpy(word, list + skip, end - skip);
    word[end - skip] = '\0';
    if (sti_parse_float(word, out) != STINT_OK || !(*out >= 0 && *out <= WEIGHT_MAX))
        return NULL;
    return list + length;
}

int64_t sti_class_weights_read(const char *list, double *out, int64_t room)
{
    int64_t count = 0;
    for (;;) {
        double weight;
        if (!(list = next_weight(list, &weight)))
            return -1;
        if (count < room)
            out[count] = weight;
        count++;
        if (!*list)
            return count;
        list++; /* the comma */
    }
}

bool sti_class_weights_given(const char *text)
{
    return text && strcmp(text, "none") != 0;
}

static void check_class_weights(const char *text, sti_complaints *list)
{
    if (!sti_class_weights_given(text) || strcmp(text, "balanced") == 0)
        return;
    if (sti_class_weights_read(text, NULL, 0) < 0)
        sti_complain(list,
                     "loss.class_weights: '%s' is neither none, balanced nor a list of "
                     "numbers from 0 to 1000000 such as 1,2.5,1, one a class",
                     text);
}

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_loss_values *loss = sti_loss_section_of(recipe);
    check_class_weights(loss->class_weights, list);
    if (!loss->reference && loss->weighting != STI_WEIGHTING_UNIFORM)
        sti_complain(list, "loss.weighting: weighs the labels against what a reference "
                           "says; give one by --reference, or leave it out");
    if (!loss->reference)
        return;
    if (loss->gradient_penalty > 0 && loss->hard <= 0)
        sti_complain(list, "loss.gradient_penalty: is of the loss against the labels, "
                           "and loss.hard is 0; set that above 0, or leave this out");
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
