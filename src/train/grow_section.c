/* [grow] of a recipe: batches that grow in the course of a run. */
#include "train/grow_section.h"

#include <inttypes.h>

#include "base/units.h"
#include "train/error_section.h"
#include "train/train_section.h"

enum { MOST_SHARE = 8 }; /* of the training set */

#define AT(field) .offset = offsetof(sti_grow_values, field)

static const sti_option rows[] = {
    {.name = "by",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "none",
     .choices = "none|schedule|noise",
     AT(by),
     .flag = true,
     .flag_name = "grow",
     .unit = "KIND",
     .help = "growth"},
    {.name = "factor",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 64),
     .default_text = "2",
     AT(factor),
     .unit = "N",
     .help = "what the batch is multiplied by at each stage; by noise: at most"},
    {.name = "every",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1000000),
     .default_text = "0",
     AT(every),
     .unit = "EPOCHS",
     .help = "epochs of a stage by schedule; 0: a fifth of the run"},
    {.name = "lr",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0.0001, 64),
     .default_text = "0.75",
     AT(lr),
     .unit = "FACTOR",
     .help = "what the learning rate is multiplied by whenever the batch is multiplied "
             "by grow.factor, on top of [schedule]; where the batch may not grow any "
             "more the rate falls by lr / factor instead"},
    {.name = "most",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, STI_OPTION_COUNT_MAX),
     .default_text = "0",
     AT(most),
     .unit = "N",
     .help = "images of the largest batch; 0: an eighth of the training set"},
    {.name = "images",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, STI_OPTION_COUNT_MAX),
     .default_text = "0",
     AT(images),
     .unit = "N",
     .help = "by schedule: micro-batches grow up to so many images before there are "
             "more of them, which is faster and takes more memory; 0: they stay"},
    {.name = "share",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0.000001, 1000),
     .default_text = "1",
     AT(share),
     .unit = "SHARE",
     .help = "by noise: of the noise scale, the share that the batch follows"},
    {.name = "smooth",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.999999),
     .default_text = "0.995",
     AT(smooth),
     .unit = "SHARE",
     .help = "by noise: what a step keeps of the smoothed sums of the noise scale"},
    {.name = "rising",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(rising),
     .help = "lr may be above factor: the rate an image then rises"},
};

static void check_noise(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_train_values *train = sti_train_section_of(recipe);
    if (train->shards * train->accumulate == 1)
        sti_complain(list,
                     "grow.by: noise is seen between the micro-batches of a step, "
                     "of which there is one; use more --shards or "
                     "train.accumulate");
    if (sti_grow_section_of(recipe)->factor == 1)
        sti_complain(list,
                     "grow.factor: a batch that grows by noise is multiplied by at "
                     "most 1, which is never; use 2 or more");
}

/* Networks of several sizes are known beforehand, or not at all. */
static void check_images(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_grow_values *grow = sti_grow_section_of(recipe);
    const sti_train_values *train = sti_train_section_of(recipe);
    const int64_t first = train->batch / (train->shards * train->accumulate);
    if (grow->images == 0)
        return;
    if (grow->by == STI_GROW_NOISE)
        sti_complain(list,
                     "grow.images: micro-batches grow by schedule alone; by noise "
                     "there are more of them; leave it at 0");
    if (grow->images < first)
        sti_complain(list,
                     "grow.images: %" PRId64 " image%s are less than the first "
                     "micro-batch of %" PRId64 "; use that or more, or 0",
                     grow->images, sti_s(grow->images), first);
    if (grow->by == STI_GROW_SCHEDULE &&
        sti_error_section_of(recipe)->pack == STI_PACK_ALL)
        sti_complain(list, "error.pack: where micro-batches grow all activations are "
                           "exact; leave it at auto, or grow.images at 0");
}

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_grow_values *grow = sti_grow_section_of(recipe);
    const sti_train_values *train = sti_train_section_of(recipe);
    if (grow->by == STI_GROW_NONE)
        return;
    if (grow->by == STI_GROW_NOISE)
        check_noise(recipe, list);
    check_images(recipe, list);
    if (grow->lr > (double)grow->factor && !grow->rising)
        sti_complain(list,
                     "grow.lr: %s is above grow.factor, %" PRId64
                     ", so that the rate an image rises from stage to stage; use "
                     "%" PRId64 " or less, or set grow.rising",
                     sti_float_text(grow->lr), grow->factor, grow->factor);
    if (train->batch == 0)
        sti_complain(list, "train.batch: 'auto' looks for one batch, and [grow] has "
                           "many; give the first by --batch N");
    if (train->steps > 0 && train->epochs == 0)
        sti_complain(list, "train.epochs: the stages of [grow] are parts of them, also "
                           "where train.steps ends the run; give a number");
    if (grow->most > 0 && grow->most < train->batch)
        sti_complain(list,
                     "grow.most: %" PRId64 " image%s are less than the first batch, "
                     "train.batch = %" PRId64 "; use that or more",
                     grow->most, sti_s(grow->most), train->batch);
}

const sti_recipe_section sti_grow_section = {
    STI_RECIPE_SECTION("grow", rows, sti_grow_values),
    .check = check,
};

int64_t sti_grow_most(const sti_grow_values *grow, int64_t count)
{
    const int64_t most = grow->most > 0 ? grow->most : count / MOST_SHARE;
    return most < count ? most : count;
}

const sti_grow_values *sti_grow_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_grow_section);
}
