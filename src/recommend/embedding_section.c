/* [embedding] of a recipe. */
#include "recommend/embedding_section.h"

#include <inttypes.h>
#include <string.h>

#include "data/data_section.h"
#include "model/bayes_section.h"
#include "model/model_section.h"
#include "train/optimizer_section.h"
#include "train/prune_section.h"
#include "train/shrink_section.h"
#include "train/train_section.h"

#define AT(field) .offset = offsetof(sti_embedding_values, field)

static const sti_option rows[] = {
    {.name = "path",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(path),
     .unit = "DIR",
     .same_weights = true,
     .local = true,
     .help =
         "folder that holds the rows on disk; else embeddings/ in the run's folder"},
    {.name = "policy",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "future",
     .choices = "future|static|lfu|lru",
     AT(policy),
     .unit = "NAME",
     .same_weights = true,
     .local = true,
     .help = "which row in memory gives way: that of the farthest next use, the least "
             "frequent one, the least used, the longest unused"},
    {.name = "lookahead",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 4096),
     .default_text = "256",
     AT(lookahead),
     .unit = "N",
     .same_weights = true,
     .local = true,
     .help =
         "batches that policy = future knows beforehand, as far as an eighth of the "
         "rows' memory holds them"},
    {.name = "hot",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.95),
     .default_text = "0.5",
     AT(hot),
     .unit = "SHARE",
     .same_weights = true,
     .local = true,
     .help = "of the rows in memory, the most frequent ones, which stay and are found "
             "without a look-up"},
    {.name = "prefetch",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 8),
     .default_text = "2",
     AT(prefetch),
     .unit = "N",
     .same_weights = true,
     .local = true,
     .help = "batches whose rows come in while one is computed"},
    {.name = "io",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     .choices = "auto|uring|threads|mmap",
     AT(io),
     .unit = "HOW",
     .same_weights = true,
     .local = true,
     .help = "how rows are read and written; auto: uring, else threads, both past the "
             "page cache"},
    {.name = "cache",
     .type = STI_OPTION_BYTES,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     AT(cache_bytes),
     .unit = "SIZE",
     .same_weights = true,
     .local = true,
     .help = "memory for rows; auto: what --memory leaves, or all rows"},
    {.name = "optimizer",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "rowwise-adagrad",
     .choices = "sgd|adagrad|rowwise-adagrad|lazy-adam",
     AT(optimizer),
     .unit = "NAME",
     .help = "rule that updates a row when a batch has it"},
    {.name = "lr",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e6),
     .default_text = "0",
     AT(lr),
     .unit = "RATE",
     .help = "learning rate of rows, by the same schedule; 0: optimizer.lr"},
    {.name = "epsilon",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1),
     .default_text = "1e-10",
     AT(epsilon),
     .unit = "VALUE",
     .help = "added to the root of adagrad's and adam's sums"},
    {.name = "scale",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 100),
     .default_text = "0.05",
     AT(scale),
     .unit = "VALUE",
     .help = "new rows are uniform between -scale and scale"},
};

static void check_data(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_data_values *data = sti_data_section_of(recipe);
    if (!data->path || !*data->path)
        sti_complain(list, "data.path: no clicks given; say where they are with --data "
                           "FILE, or path = FILE in the recipe's [data]");
    if (data->format > 0 && data->format < STI_DATA_FORMAT_CSV)
        sti_complain(list,
                     "data.format: %s is not of clicks; criteo, csv, libsvm and libffm "
                     "are",
                     sti_data_format_name(data->format));
}

/* What is made for networks whose weights are all in memory. */
static void check_train(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_train_values *train = sti_train_section_of(recipe);
    const sti_optimizer_values *optimizer = sti_optimizer_section_of(recipe);
    if (optimizer->clip > 0)
        sti_complain(list, "optimizer.clip: the norm of all gradients is not known "
                           "before rows are updated; leave it at 0");
    if (optimizer->decay_all)
        sti_complain(list, "optimizer.decay_all: rows do not decay, since each is "
                           "touched by few batches; leave it out");
    if (train->batch == 0)
        sti_complain(list, "train.batch: auto is not for clicks; give a number");
    if (train->accumulate > 1)
        sti_complain(list, "train.accumulate: is not for clicks; use more --shards");
    if (train->precision != STI_PRECISION_F32)
        sti_complain(list, "train.precision: dlrm is trained in f32");
    if (train->start)
        sti_complain(list, "train.start: dlrm begins with new weights and rows");
    if (train->validation > 0 || train->select != STI_SELECT_LAST)
        sti_complain(list, "train.validation, train.select: are of images; of clicks "
                           "data.validation is the test part");
}

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    if (strcmp(sti_recipe_network(recipe), "dlrm") != 0)
        return;
    check_data(recipe, list);
    check_train(recipe, list);
    if (sti_prune_section_of(recipe)->sparsity > 0 ||
        sti_shrink_section_of(recipe)->scheme ||
        sti_bayes_section_of(recipe)->samples > 0)
        sti_complain(list,
                     "prune.sparsity, shrink.scheme, bayes.samples: are of images; "
                     "dlrm has none of them");
}

const sti_recipe_section sti_embedding_section = {
    STI_RECIPE_SECTION("embedding", rows, sti_embedding_values),
    .check = check,
};

const sti_embedding_values *sti_embedding_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_embedding_section);
}
