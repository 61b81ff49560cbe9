/* [shrink] of a recipe: a compression scheme, and how training makes up for it. */
#include "train/shrink_section.h"

#include <inttypes.h>

#include "base/units.h"

#define AT(field) .offset = offsetof(sti_shrink_values, field)

static const sti_option rows[] = {
    {.name = "scheme",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(scheme),
     .flag = true,
     .unit = "TEXT",
     .help = "compression of weights, as prune(0.9)"},
    {.name = "method",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     .choices = "auto|direct|fine-tune|rewind|lc|click",
     AT(method),
     .unit = "WORD",
     .help = "how accuracy is won back: not at all, by training what is left at a "
             "falling rate or by the recipe's schedule once more, by learning and "
             "compressing in turn (lc), or by pruning within a run from new weights "
             "(click); auto: click from new weights, else lc"},
    {.name = "keep",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(keep),
     .unit = "GLOBS",
     .help = "weights left alone, comma-separated; default: of kernel and pattern the "
             "first convolution, the classifier and shortcuts, of row and structure "
             "the classifier"},
    {.name = "steps",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 10000),
     .default_text = "30",
     AT(steps),
     .unit = "N",
     .help = "of lc: compressions, of which the first is the direct one"},
    {.name = "first",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, STI_OPTION_COUNT_MAX),
     .default_text = "0",
     AT(first),
     .unit = "BATCHES",
     .help = "of lc: batches of the first learning step; 0: an epoch"},
    {.name = "batches",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, STI_OPTION_COUNT_MAX),
     .default_text = "0",
     AT(batches),
     .unit = "BATCHES",
     .help = "of lc: batches of each further learning step; 0: half an epoch"},
    {.name = "mu",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e12),
     .default_text = "0",
     AT(mu),
     .unit = "NUMBER",
     .help = "of lc: how strongly weights are drawn to their compression, at first; 0: "
             "a tenth of what would bring them there in one learning step of sgd"},
    {.name = "mu_factor",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(1, 100),
     .default_text = "1.1",
     AT(mu_factor),
     .unit = "FACTOR",
     .help = "of lc: what mu grows by at each step"},
    {.name = "mu_cap",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(1e-12, 1e12),
     .default_text = "1e4",
     AT(mu_cap),
     .unit = "NUMBER",
     .help = "of lc: beyond which mu grows no more"},
    {.name = "lr_end",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e6),
     .default_text = "1e-4",
     AT(lr_end),
     .unit = "RATE",
     .help = "of lc and fine-tune: where the rate falls to in each learning step, or "
             "in the run; 0: it stays optimizer.lr"},
    {.name = "finish",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.9),
     .default_text = "0.4",
     AT(finish),
     .unit = "SHARE",
     .help = "of lc: part of the learning steps, at the end, that train what is left "
             "while zeros stay zero; nothing for schemes without zeros"},
    {.name = "select",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.9999),
     .default_text = "0.34",
     AT(select),
     .unit = "SHARE",
     .help = "of click: part of the run after which what goes is chosen"},
    {.name = "hard",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.9999),
     .default_text = "0.75",
     AT(hard),
     .unit = "SHARE",
     .help = "of click: part of the run after which it is zero"},
    {.name = "lasso",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e6),
     .default_text = "2.5e-4",
     AT(lasso),
     .unit = "NUMBER",
     .help = "of click: how strongly what goes is drawn to zero between the two"},
    {.name = "importance",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "gradient",
     .choices = "gradient|magnitude|random",
     AT(importance),
     .unit = "WORD",
     .help = "of click: what weights are chosen by; the last two are for comparisons"},
    {.name = "importance_batches",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(2, 1000000),
     .default_text = "50",
     AT(importance_batches),
     .unit = "N",
     .help = "of click: batches whose gradients say what matters"},
    {.name = "patterns",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "generated",
     .choices = "generated|fixed",
     AT(patterns),
     .unit = "WORD",
     .help = "shapes of pattern: chosen among all 126, or the published list"},
    {.name = "ratio",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1000),
     .default_text = "0",
     AT(ratio),
     .unit = "FACTOR",
     .help = "of click with kernel(auto): how many times fewer weights of convolutions "
             "are left; each layer's share is such that least importance is lost"},
    {.name = "size",
     .type = STI_OPTION_BYTES,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     AT(size_bytes),
     .unit = "SIZE",
     .help = "of click with kernel(auto), in the place of ratio: most bytes of the "
             "compact file that the run's model makes"},
    {.name = "latency",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(latency),
     .unit = "TIME",
     .help = "likewise: longest time of an image on this machine, as 5ms, or 0.5x the "
             "dense network's; the shares that are found are in recipe.ini"},
};

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_shrink_values *shrink = sti_shrink_section_of(recipe);
    if (!shrink->scheme)
        return;
    if (shrink->hard <= shrink->select)
        sti_complain(list,
                     "shrink.hard: %g is not after shrink.select, %g: what goes is "
                     "chosen first, then made zero",
                     shrink->hard, shrink->select);
}

const sti_recipe_section sti_shrink_section = {
    STI_RECIPE_SECTION("shrink", rows, sti_shrink_values),
    .check = check,
};

const sti_shrink_values *sti_shrink_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_shrink_section);
}
