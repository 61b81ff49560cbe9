/* What can be judged of a recipe before data is read. Single values are held to their
 * rows' bounds when they are set; here are the combinations. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "stint/model.h"
#include "train/recipe.h"

int sti_recipe_milestones(const char *text, double *epochs_out, int max)
{
    int count = 0;
    double last = 0;
    while (text && *text) {
        char word[64];
        size_t length = strcspn(text, ",");
        size_t skip = strspn(text, " \t");
        if (skip >= length || length - skip >= sizeof word || count >= max)
            return -1;
        memcpy(word, text + skip, length - skip);
        word[length - skip] = '\0';
        word[strcspn(word, " \t")] = '\0';
        double epoch;
        if (sti_parse_float(word, &epoch) != STINT_OK || epoch <= last)
            return -1;
        epochs_out[count++] = last = epoch;
        text += length;
        if (*text == ',')
            text++;
    }
    return count;
}

static void complain(sti_text *list, const char *words)
{
    if (list->length)
        sti_text_add(list, "\n");
    sti_text_add(list, words);
}

#define COMPLAIN(list, ...)                           \
    do {                                              \
        char words_[512];                             \
        snprintf(words_, sizeof words_, __VA_ARGS__); \
        complain(list, words_);                       \
    } while (0)

static void check_net(const sti_recipe_values *v, sti_text *list)
{
    double rate;
    if (v->net.bits > 8 && v->net.bits != 32)
        COMPLAIN(list, "net.bits: %" PRId64 "; 1 to 8, auto, or 32 for exact sums",
                 v->net.bits);
    if (v->net.bits == 1 && v->net.method != 0)
        complain(list, "net.bits: 1 is of method maxmin only; qsgd needs 2");
    if (v->net.bucket % 8)
        complain(list, "net.bucket: must be a multiple of 8");
    if (v->net.clip && v->net.method != 0)
        complain(list, "net.clip: is of method maxmin only");
    if (!(v->net.keep > 0))
        complain(list, "net.keep: must be above 0, for example 0.01");
    if (v->net.keep < 1 && !v->net.feedback)
        complain(list, "net.keep: below 1 needs net.feedback, or the rest is lost");
    if (v->net.link && strcmp(v->net.link, "auto") != 0 &&
        sti_parse_rate(v->net.link, &rate) != STINT_OK)
        COMPLAIN(list, "net.link: %s", stint_last_error());
    if (v->net.link && v->net.bits != 32)
        complain(list, "net.link: chooses the bits; remove net.bits");
    if (v->net.error != 1 && v->net.bits != 0)
        complain(list,
                 "net.error: is the budget of net.bits = auto; set that, or leave it "
                 "out");
    if (v->net.link && !(v->net.time > 0 && v->net.time <= 86400))
        complain(list, "net.time: must be above 0 and at most a day, for example "
                       "100ms");
    if (v->net.keep < 1 && (v->net.link || v->net.bits != 32))
        COMPLAIN(list,
                 "net.keep: below 1 sends float32 of the largest values and leaves "
                 "nothing to compress: remove %s, or net.keep",
                 v->net.link ? "net.link" : "net.bits");
}

static void check_model(const stint_recipe *recipe, sti_text *list)
{
    enum { MODELS_MAX = 64 };
    const char *names[MODELS_MAX], *name = sti_recipe_network(recipe);
    const stint_model_info *const lists[] = {stint_model_list(),
                                             stint_text_model_list()};
    int count = 0;
    for (int i = 0; i < 2; i++)
        for (const stint_model_info *m = lists[i]; m->name; m++) {
            if (strcmp(m->name, name) == 0)
                return;
            if (count < MODELS_MAX)
                names[count++] = m->name;
        }
    const char *near = sti_text_nearest(name, names, count);
    sti_text all = {0};
    for (int i = 0; i < count; i++)
        sti_text_printf(&all, "%s%s", i ? ", " : "", names[i]);
    if (near)
        COMPLAIN(list, "model.name: no network '%s'; did you mean %s?", name, near);
    else
        COMPLAIN(list, "model.name: no network '%s'; there are %s", name,
                 all.data ? all.data : "none");
    sti_text_fini(&all);
}

/* Keys of images mean nothing for text. Their values are as in the defaults unless
 * somebody set them. */
static void check_text(const stint_recipe *recipe, sti_text *list)
{
    const sti_recipe_values *v = &recipe->values;
    stint_text_model_desc sizes = {.depth = v->model.depth,
                                   .width = v->model.width,
                                   .heads = v->model.heads,
                                   .kv_heads = v->model.kv_heads};
    int64_t context = v->model.context;
    if (v->data.format != 0 && strcmp(sti_recipe_format(recipe), "text") != 0)
        COMPLAIN(list, "data.format: %s is of images, but %s learns from text",
                 sti_recipe_format(recipe), sti_recipe_network(recipe));
    if (v->data.size > 0 || v->data.channels > 0)
        complain(list, "data.size, data.channels: are of images; text has neither");
    if (v->data.crop_pad > 0 || v->data.flip)
        complain(list, "data.crop_pad, data.flip: are of images; text is varied by "
                       "where its windows begin");
    if (v->train.label_smoothing > 0)
        complain(list, "train.label_smoothing: is of images; the loss of text is in "
                       "nats of the token that comes");
    if (v->model.stem != STINT_STEM_AUTO)
        complain(list, "model.stem: is of networks for images");
    if (stint_text_model_resolve(sti_recipe_network(recipe), &sizes, &context) !=
        STINT_OK)
        COMPLAIN(list, "model: %s", stint_last_error());
}

static void check_images(const stint_recipe *recipe, sti_text *list)
{
    const sti_recipe_values *v = &recipe->values;
    if (strcmp(sti_recipe_format(recipe), "text") == 0)
        COMPLAIN(list, "data.format: text is not what %s learns from; gpt and llama do",
                 sti_recipe_network(recipe));
    if (v->model.heads || v->model.kv_heads || v->model.context || v->model.vocabulary)
        COMPLAIN(list,
                 "model.heads, kv_heads, context, vocabulary: are of text models; %s "
                 "has none of them",
                 sti_recipe_network(recipe));
}

static void check_data(const stint_recipe *recipe, sti_text *list)
{
    const sti_recipe_values *v = &recipe->values;
    const bool text = stint_model_is_text(sti_recipe_network(recipe));
    if (!v->data.path || !*v->data.path)
        COMPLAIN(list,
                 "data.path: no %s given; say where %s with --data PATH "
                 "or path = PATH in the recipe's [data]",
                 text ? "text" : "images", text ? "it is" : "they are");
    if (text)
        check_text(recipe, list);
    else
        check_images(recipe, list);
    if (v->data.channels == 2)
        complain(list, "data.channels: 2 is neither grey (1) nor colour (3)");
    if (v->data.size > 0 && v->data.crop_pad >= v->data.size)
        COMPLAIN(list,
                 "data.crop_pad: %" PRId64 " pixels would shift images of data.size "
                 "%" PRId64 " out of sight; use less than the size",
                 v->data.crop_pad, v->data.size);
}

/* The nearest batch at or above that the shards divide. */
static int64_t rounded_batch(int64_t batch, int64_t shards)
{
    return (batch + shards - 1) / shards * shards;
}

static void check_train(const sti_recipe_values *v, sti_text *list)
{
    if (v->train.epochs == 0 && v->train.steps == 0)
        complain(list,
                 "train.epochs: 0 epochs and 0 steps leave nothing to do; set one");
    if (v->train.batch == 0 && v->run.memory_bytes == 0)
        complain(list, "train.batch: auto fills a memory budget; give one by --memory "
                       "SIZE, or a number of images");
    if (v->train.batch % v->train.shards != 0)
        COMPLAIN(list,
                 "train.batch: %" PRId64 " image%s cannot be cut into %" PRId64
                 " equal shards; use --batch %" PRId64 " or other --shards",
                 v->train.batch, sti_s(v->train.batch), v->train.shards,
                 rounded_batch(v->train.batch, v->train.shards));
    if (v->noise.order > 0 && v->train.shards < 3)
        COMPLAIN(list,
                 "noise.order: %" PRId64
                 " shard%s can be summed in one order only; use "
                 "--shards 3 or more, or noise.ulp",
                 v->train.shards, sti_s(v->train.shards));
    if (v->run.lanes > v->train.shards)
        COMPLAIN(list,
                 "run.lanes: %" PRId64 " lanes for %" PRId64
                 " shards; there are at most as many lanes as shards",
                 v->run.lanes, v->train.shards);
}

static void check_optimizer(const sti_recipe_values *v, sti_text *list)
{
    if (!(v->optimizer.lr > 0))
        complain(list, "optimizer.lr: must be above 0, for example 0.1");
    if (v->optimizer.name == STI_OPTIMIZER_SGD) {
        if (v->optimizer.nesterov && v->optimizer.momentum <= 0)
            complain(list, "optimizer.nesterov: needs a momentum above 0");
    } else if (v->optimizer.nesterov) {
        complain(list, "optimizer.nesterov: is of sgd only; remove it or use sgd");
    }
}

static void check_schedule(const sti_recipe_values *v, sti_text *list)
{
    double epochs[STI_MILESTONES_MAX];
    int count =
        sti_recipe_milestones(v->schedule.milestones, epochs, STI_MILESTONES_MAX);
    if (count < 0)
        COMPLAIN(list,
                 "schedule.milestones: '%s' is no ascending list of at most %d epochs "
                 "such as 60,120",
                 v->schedule.milestones, STI_MILESTONES_MAX);
    if (v->schedule.name == STI_SCHEDULE_STEP && count == 0)
        complain(list, "schedule.milestones: the step schedule needs the epochs after "
                       "which the rate falls, for example 60,120");
    if (v->schedule.name != STI_SCHEDULE_STEP && count > 0)
        complain(list, "schedule.milestones: belong to name = step; remove them or "
                       "choose that schedule");
    if (v->train.steps == 0 && v->schedule.warmup > 0 &&
        v->schedule.warmup > (double)v->train.epochs)
        COMPLAIN(list,
                 "schedule.warmup: %s epochs of warm-up are more than the %" PRId64
                 " epochs of the run; use fewer",
                 sti_float_text(v->schedule.warmup), v->train.epochs);
}

static void check_select(const sti_recipe_values *v, sti_text *list)
{
    if (v->train.select == STI_SELECT_LAST && v->train.patience > 0)
        complain(list,
                 "train.patience: which epoch is better is train.select's to say; "
                 "set it to accuracy or mismatch");
    if (v->train.select == STI_SELECT_LAST)
        return;
    if (v->train.validation <= 0)
        complain(list,
                 "train.select: 'accuracy' and 'mismatch' look at images that are "
                 "not trained on; set train.validation to a share, such as 0.1");
    if (v->train.select == STI_SELECT_MISMATCH && !v->loss.reference)
        complain(list, "train.select: 'mismatch' counts answers that are not the "
                       "reference's; give one by --reference, or choose 'accuracy'");
}

static void check_start(const sti_recipe_values *v, sti_text *list)
{
    if (v->train.freeze_norm && !v->train.start)
        complain(list,
                 "train.freeze_norm: new weights have no statistics to keep; give a "
                 "model to begin from by --start, or leave it out");
}

static void check_prune(const sti_recipe_values *v, sti_text *list)
{
    if (v->prune.sparsity > 0 && v->train.steps == 0 && v->prune.epochs > 0 &&
        v->prune.epochs >= v->train.epochs)
        COMPLAIN(list,
                 "prune.epochs: %" PRId64
                 " epoch%s of pruning leave none of the %" PRId64
                 " epoch%s to train what is left; use fewer",
                 v->prune.epochs, sti_s(v->prune.epochs), v->train.epochs,
                 sti_s(v->train.epochs));
}

static void check_loss(const sti_recipe_values *v, sti_text *list)
{
    if (v->quantise.bits == 1)
        complain(list, "quantise.bits: 1 is too few for a sign and a magnitude; use 2 "
                       "to 8, or 0 for weights that are not rounded");
    if (!v->loss.reference && v->loss.weighting != STI_WEIGHTING_UNIFORM)
        complain(list, "loss.weighting: weighs the labels against what a reference "
                       "says; give one by --reference, or leave it out");
    if (!v->loss.reference)
        return;
    if (v->loss.hard <= 0 && v->loss.pairing <= 0 && v->loss.soft <= 0)
        complain(list, "loss: hard, pairing and soft are all 0, so nothing would be "
                       "learnt; set one");
    if (v->loss.weighting == STI_WEIGHTING_FOCAL && v->loss.focal_base <= 0 &&
        v->loss.focal_right <= 0)
        complain(list, "loss.focal_base: with focal_right also 0 no input would count; "
                       "set one");
}

stint_status stint_recipe_check(const stint_recipe *recipe)
{
    sti_text list = {0};
    const sti_recipe_values *v = &recipe->values;
    check_model(recipe, &list);
    check_data(recipe, &list);
    check_train(v, &list);
    check_optimizer(v, &list);
    check_schedule(v, &list);
    check_net(v, &list);
    check_loss(v, &list);
    check_select(v, &list);
    check_start(v, &list);
    check_prune(v, &list);
    stint_status st = STINT_OK;
    if (list.failed)
        st = sti_fail(STINT_E_MEMORY, "out of memory while checking the recipe");
    else if (list.length)
        st = sti_fail(STINT_E_USAGE, "%s", list.data);
    sti_text_fini(&list);
    return st;
}
