/* [train] of a recipe: how long, in which batches and from which seeds. */
#include "train/train_section.h"

#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "train/loss_section.h"
#include "train/schedule_section.h"

#define AT(field) .offset = offsetof(sti_train_values, field)

static const sti_option rows[] = {
    {.name = "epochs",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1000000),
     .default_text = "10",
     AT(epochs),
     .flag = true,
     .unit = "N",
     .help = "passes over the training data"},
    {.name = "steps",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, STI_OPTION_COUNT_MAX),
     .default_text = "0",
     AT(steps),
     .flag = true,
     .unit = "N",
     .help = "batches to train on; 0: all epochs"},
    {.name = "batch",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 1 << 20),
     .default_text = "128",
     AT(batch),
     .automatic = true,
     .flag = true,
     .unit = "N",
     .help = "images (sequences) a step; auto: fastest"},
    {.name = "reference_batch",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 1 << 20),
     .default_text = "128",
     AT(reference_batch),
     .unit = "N",
     .help =
         "with batch = auto: the batch that the learning rate is for, which grows in "
         "proportion to what is chosen"},
    {.name = "shards",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, STI_SHARDS_MAX),
     .default_text = "4",
     AT(shards),
     .flag = true,
     .unit = "N",
     .help = "parts of a batch: more take less memory"},
    {.name = "accumulate",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, STI_ACCUMULATE_MAX),
     .default_text = "1",
     AT(accumulate),
     .unit = "N",
     .help = "micro-batches that each shard takes one after another, adding up their "
             "gradients: N times the batch in the memory of one"},
    {.name = "seed",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, STI_OPTION_COUNT_MAX),
     .default_text = "1",
     AT(seed),
     .flag = true,
     .unit = "N",
     .help = "of all chance: same seed, same bits"},
    {.name = "seed_init",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, STI_OPTION_COUNT_MAX),
     .default_text = "auto",
     .automatic = true,
     AT(seed_init),
     .unit = "N",
     .help = "of the initial weights alone; auto: seed"},
    {.name = "seed_order",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, STI_OPTION_COUNT_MAX),
     .default_text = "auto",
     .automatic = true,
     AT(seed_order),
     .unit = "N",
     .help = "of the order of the images alone; auto: seed"},
    {.name = "seed_augment",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, STI_OPTION_COUNT_MAX),
     .default_text = "auto",
     .automatic = true,
     AT(seed_augment),
     .unit = "N",
     .help = "of the augmentation alone; auto: seed"},
    {.name = "seed_dropout",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, STI_OPTION_COUNT_MAX),
     .default_text = "auto",
     .automatic = true,
     AT(seed_dropout),
     .unit = "N",
     .help = "of dropout alone; auto: seed"},
    {.name = "label_smoothing",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.99),
     .default_text = "0",
     AT(label_smoothing),
     .unit = "SHARE",
     .help = "share of the target that is spread over all classes"},
    {.name = "precision",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "f32",
     .choices = "f32|bf16",
     AT(precision),
     .flag = true,
     .unit = "KIND",
     .help = "of activations"},
    {.name = "eval_every",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1000000),
     .default_text = "1",
     AT(eval_every),
     .unit = "EPOCHS",
     .same_weights = true,
     .help = "epochs between evaluations of the test images; 0: only at the end"},
    {.name = "start",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(start),
     .flag = true,
     .unit = "MODEL",
     .same_weights = true,
     .local = true,
     .help = "model to begin from: weights and normalisation"},
    {.name = "start_blocks",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(start_blocks),
     .unit = "LIST",
     .help =
         "of text models: the block of train.start that each block begins with, as "
         "0,2,5 for a depth of 3, or even, from first to last; empty: its own, of a "
         "model as deep"},
    {.name = "freeze_norm",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(freeze_norm),
     .help =
         "batch-norm takes the running statistics of the model that training begins "
         "from, as in use, and keeps them, instead of each shard's"},
    {.name = "validation",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.9),
     .default_text = "0",
     AT(validation),
     .unit = "SHARE",
     .help = "share of the training data that is not trained on but decides for "
             "train.select: of images, of each class; of text, the last of the tokens "
             "before the test part"},
    {.name = "select",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "last",
     .choices = "last|accuracy|mismatch|loss",
     AT(select),
     .unit = "WHICH",
     .help = "weights that the model gets: of the last epoch, of the one with the best "
             "accuracy on the held-out images, with the fewest answers there that are "
             "not the reference's, or with the lowest loss on what is held out (of "
             "text, the only one of these)"},
    {.name = "select_drop",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1),
     .default_text = "0.01",
     AT(select_drop),
     .unit = "SHARE",
     .help = "of mismatch: epochs whose accuracy on the held-out images is lower than "
             "the reference's by more are taken only if all are"},
    {.name = "patience",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1000000),
     .default_text = "0",
     AT(patience),
     .unit = "EPOCHS",
     .help = "end the run when so many epochs in a row are no better, as train.select "
             "judges, than the best before them; 0: never"},
    {.name = "order",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "shuffle",
     .choices = "shuffle|file",
     AT(order),
     .unit = "HOW",
     .help =
         "of clicks: samples in another random order each epoch, or as the file has "
         "them, which is that of time"},
    {.name = "average",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.999999),
     .default_text = "0",
     AT(average),
     .unit = "SHARE",
     .help = "judge and keep an average of the weights over the steps, of which each "
             "step keeps so much, usual: 0.999; 0: the weights themselves"},
    {.name = "time",
     .type = STI_OPTION_TIME,
     STI_OPTION_NO_BOUND,
     .default_text = "0s",
     AT(time),
     .same_weights = true, /* those of a step: it says where a run ends, by a clock */
     .unit = "TIME",
     .help = "end the run after the epoch (of an agent: the update) in which so much "
             "time is over, as 20min, since it began or was resumed; 0s: never"},
};

uint64_t sti_recipe_seed(const stint_recipe *recipe, sti_stream stream)
{
    const sti_train_values *train = sti_train_section_of(recipe);
    int64_t own = stream == STI_STREAM_INIT      ? train->seed_init
                  : stream == STI_STREAM_SHUFFLE ? train->seed_order
                  : stream == STI_STREAM_AUGMENT ? train->seed_augment
                  : stream == STI_STREAM_DROPOUT ? train->seed_dropout
                                                 : 0;
    return (uint64_t)(own > 0 ? own : train->seed);
}

bool sti_recipe_is_agent(const stint_recipe *recipe)
{
    return !sti_recipe_says(recipe, "env.rom", "") ||
           sti_recipe_says(recipe, "env.kind", "chain");
}

/* The nearest batch at or above that the shards divide. */
static int64_t rounded_batch(int64_t batch, int64_t shards)
{
    return (batch + shards - 1) / shards * shards;
}

static void check_select(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_train_values *train = sti_train_section_of(recipe);
    if (train->select == STI_SELECT_LAST && train->patience > 0)
        sti_complain(list,
                     "train.patience: which epoch is better is train.select's to say; "
                     "set it to accuracy, mismatch or loss");
    if (train->select == STI_SELECT_LAST)
        return;
    if (train->validation <= 0)
        sti_complain(
            list, "train.select: 'accuracy', 'mismatch' and 'loss' look at data that "
                  "are not trained on; set train.validation to a share, such as "
                  "0.1");
    if (train->select == STI_SELECT_MISMATCH && !sti_loss_section_of(recipe)->reference)
        sti_complain(list,
                     "train.select: 'mismatch' counts answers that are not the "
                     "reference's; give one by --reference, or choose 'accuracy'");
}

static void check_batch(const sti_train_values *train, sti_complaints *list)
{
    const int64_t parts = train->shards * train->accumulate;
    if (train->accumulate == 1 && train->batch % parts != 0)
        sti_complain(list,
                     "train.batch: %" PRId64 " image%s cannot be cut into %" PRId64
                     " equal shards; use --batch %" PRId64 " or other --shards",
                     train->batch, sti_s(train->batch), train->shards,
                     rounded_batch(train->batch, parts));
    else if (train->batch % parts != 0)
        sti_complain(list,
                     "train.batch: %" PRId64 " image%s cannot be cut into %" PRId64
                     " equal shards of %" PRId64 " micro-batches each; use --batch "
                     "%" PRId64 ", other --shards or another train.accumulate",
                     train->batch, sti_s(train->batch), train->shards,
                     train->accumulate, rounded_batch(train->batch, parts));
    if (train->batch == 0 && train->accumulate > 1)
        sti_complain(list, "train.accumulate: belongs to a batch of a known size; give "
                           "one by --batch N, or leave it at 1 for --batch auto");
}

static void check_warmup(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_train_values *train = sti_train_section_of(recipe);
    const double warmup = sti_schedule_section_of(recipe)->warmup;
    if (train->steps == 0 && warmup > 0 && warmup > (double)train->epochs &&
        !sti_recipe_is_agent(recipe)) /* which has none */
        sti_complain(list,
                     "schedule.warmup: %s epochs of warm-up are more than the %" PRId64
                     " epochs of the run; use fewer",
                     sti_float_text(warmup), train->epochs);
}

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_train_values *train = sti_train_section_of(recipe);
    if (train->epochs == 0 && train->steps == 0)
        sti_complain(list,
                     "train.epochs: 0 epochs and 0 steps leave nothing to do; set one");
    if (!sti_recipe_is_agent(recipe)) /* whose shards are of environments */
        check_batch(train, list);
    check_warmup(recipe, list);
    check_select(recipe, list);
    if (train->start_blocks && !train->start)
        sti_complain(
            list, "train.start_blocks: are blocks of a model to begin from; give one "
                  "by --start, or leave it out");
    if (train->freeze_norm && !train->start)
        sti_complain(list,
                     "train.freeze_norm: new weights have no statistics to keep; give "
                     "a model to begin from by --start, or leave it out");
}

/* These two rates do not look at the end of the run: it may be moved. */
static bool free_now(const stint_recipe *now, const sti_option *row)
{
    const int name = sti_schedule_section_of(now)->name;
    return (name == STI_SCHEDULE_CONSTANT || name == STI_SCHEDULE_STEP) &&
           (strcmp(row->name, "epochs") == 0 || strcmp(row->name, "steps") == 0);
}

const sti_recipe_section sti_train_section = {
    STI_RECIPE_SECTION("train", rows, sti_train_values),
    .check = check,
    .free_now = free_now,
};

const sti_train_values *sti_train_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_train_section);
}
