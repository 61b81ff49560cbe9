/* What can be judged of a recipe before data is read. Single values are held to their
 * rows' bounds when they are set, and a section's check knows its own combinations;
 * here is what asks the networks. */
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "kernel/drawn/drawn.h"
#include "kernel/normal/lfsr.h"
#include "model/field_terms.h"
#include "model/network_recipe.h"
#include "pass/pass.h"
#include "stint/model.h"
#include "stint/train.h"
#include "train/combinations.h"
#include "train/recipe_view.h"
#include "train/shrink_recipe.h"

static void check_model(const stint_recipe *recipe, sti_complaints *list)
{
    enum { MODELS_MAX = 64 };
    const char *names[MODELS_MAX], *name = sti_recipe_network(recipe);
    const stint_model_info *const lists[] = {
        stint_model_list(), stint_text_model_list(), stint_field_list()};
    int count = 0;
    for (int i = 0; i < 3; i++)
        for (const stint_model_info *m = lists[i]; m->name; m++) {
            if (strcmp(m->name, name) == 0)
                return;
            if (count < MODELS_MAX)
                names[count++] = m->name;
        }
    if (sti_recipe_is_imported(recipe))
        return;
    const char *near = sti_text_nearest(name, names, count);
    sti_text all = {0};
    for (int i = 0; i < count; i++)
        sti_text_printf(&all, "%s%s", i ? ", " : "", names[i]);
    if (near)
        sti_complain(list, "model.name: no network '%s'; did you mean %s?", name, near);
    else
        sti_complain(list, "model.name: no network '%s'; there are %s", name,
                     all.data ? all.data : "none");
    sti_text_fini(&all);
}

/* Keys of images mean nothing for text. Their values are as in the defaults unless
 * somebody set them. */
static void check_text(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    stint_text_model_desc sizes = {.depth = v.model->depth,
                                   .width = v.model->width,
                                   .heads = v.model->heads,
                                   .kv_heads = v.model->kv_heads};
    int64_t context = v.model->context;
    if (v.data->format != 0 && strcmp(sti_recipe_format(recipe), "text") != 0)
        sti_complain(list, "data.format: %s is of images, but %s learns from text",
                     sti_recipe_format(recipe), sti_recipe_network(recipe));
    if (v.data->size > 0 || v.data->channels > 0)
        sti_complain(list, "data.size, data.channels: are of images; text has neither");
    if (v.train->select == STI_SELECT_ACCURACY ||
        v.train->select == STI_SELECT_MISMATCH)
        sti_complain(list,
                     "train.select: accuracy and mismatch count classes of images; "
                     "of text, use loss");
    if (v.quantise->bits > 0 && sti_update_section_of(recipe)->what == STI_UPDATE_LORA)
        sti_complain(list, "quantise.bits: would round the sum of a weight and its "
                           "adapter, which training does not see; leave it out, or "
                           "train another part than lora");
    if (v.model->stem != STINT_STEM_AUTO)
        sti_complain(list, "model.stem: is of networks for images");
    if (stint_text_model_resolve(sti_recipe_network(recipe), &sizes, &context) !=
        STINT_OK)
        sti_complain(list, "model: %s", stint_last_error());
}

static void check_images(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    if (v.loss->top > 0)
        sti_complain(list, "loss.top: is of text, whose vocabulary is large; leave it "
                           "out");
    if (strcmp(sti_recipe_format(recipe), "text") == 0)
        sti_complain(list,
                     "data.format: text is not what %s learns from; gpt and llama do",
                     sti_recipe_network(recipe));
    if (v.model->heads || v.model->kv_heads || v.model->context || v.model->vocabulary)
        sti_complain(
            list,
            "model.heads, kv_heads, context, vocabulary: are of text models; %s "
            "has none of them",
            sti_recipe_network(recipe));
}

/* The graph is the file's: what would change it, or is told of in no imported file. */
static void check_imported(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    if (!v.train->start)
        sti_complain(list, "model.name: imported is the network of the file that "
                           "train.start names; give it by --start FILE");
    if (v.quantise->bits > 0)
        sti_complain(list, "quantise.bits: an imported network is kept as its file has "
                           "it, which rounds no weights; leave it out");
    if (v.bayes->samples > 0)
        sti_complain(list, "bayes.samples: an imported network has no weights that are "
                           "drawn; leave [bayes] out");
    if (v.shrink->scheme)
        sti_complain(list, "shrink.scheme: is of networks of Stint's own; prune an "
                           "imported one by prune.sparsity");
    if (v.model->width || v.model->depth || v.model->stem != STINT_STEM_AUTO ||
        v.model->dropout >= 0)
        sti_complain(list, "model.width, depth, stem, dropout: an imported network has "
                           "its own; leave them out");
}

static void check_terms(const stint_recipe *recipe, const sti_network_desc *network,
                        sti_complaints *list)
{
    sti_field_terms terms;
    const stint_status st =
        sti_field_terms_parse(network->terms, &network->names, &terms);
    sti_complain_status(list, st);
    if (st != STINT_OK)
        return;
    if (!sti_data_section_of(recipe)->path && terms.set[STI_TERMS_DATA].count > 0)
        sti_complain(list,
                     "field.data: there are no data; give them by --data PATH, or "
                     "leave it out");
    sti_field_terms_fini(&terms);
}

static void check_field(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    sti_network_desc network;
    if (v.data->format != 0)
        sti_complain(list,
                     "data.format: %s is not what a field is fitted to; leave it "
                     "out",
                     sti_recipe_format(recipe));
    if (sti_recipe_field_network(recipe, 0, &network) != STINT_OK) {
        sti_complain(list, "model: %s", stint_last_error());
        return;
    }
    /* Outputs that a recipe does not name get their names from the data. */
    if (network.terms->outputs || !v.data->path)
        check_terms(recipe, &network, list);
}

/* What is drawn inside of a domain needs no data. */
static bool has_equations(const stint_recipe *recipe)
{
    const sti_field_values *field = sti_field_section_of(recipe);
    return sti_recipe_is_field(recipe) &&
           (field->term[STI_TERMS_INSIDE] || field->term[STI_TERMS_BORDER] ||
            field->term[STI_TERMS_START]);
}

static void check_data(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    if (v.data->format >= STI_DATA_FORMAT_CRITEO)
        sti_complain(list, "data.format: %s is of clicks; dlrm learns from them",
                     sti_recipe_format(recipe));
    if (v.train->order != STI_ORDER_SHUFFLE)
        sti_complain(list,
                     "train.order: is of clicks; %s learns in another order each "
                     "epoch",
                     sti_recipe_network(recipe));
    const bool text = stint_model_is_text(sti_recipe_network(recipe));
    const bool field = stint_model_is_field(sti_recipe_network(recipe));
    if ((!v.data->path || !*v.data->path) && !has_equations(recipe))
        sti_complain(list,
                     "data.path: no %s given; say where %s with --data PATH "
                     "or path = PATH in the recipe's [data]",
                     text    ? "text"
                     : field ? "picture or points"
                             : "images",
                     text ? "it is" : "they are");
    if (field)
        check_field(recipe, list);
    else if (text)
        check_text(recipe, list);
    else
        check_images(recipe, list);
    if (sti_recipe_is_imported(recipe))
        check_imported(recipe, list);
}

static bool opens_kernels(const sti_shrink_scheme *scheme)
{
    for (int i = 0; i < scheme->count; i++)
        if (scheme->word[i].kind == STI_SCHEME_KERNEL && scheme->word[i].automatic)
            return true;
    return false;
}

/* A scheme for a training from new weights: it is pruned by kernels as it goes. */
static void check_click(const sti_shrink_scheme *scheme, sti_complaints *list)
{
    bool cuts = false, told = false;
    for (int i = 0; i < scheme->count; i++) {
        const sti_scheme_kind kind = scheme->word[i].kind;
        cuts = cuts || kind == STI_SCHEME_KERNEL || kind == STI_SCHEME_PATTERN;
        if (kind == STI_SCHEME_KERNEL || kind == STI_SCHEME_PATTERN ||
            kind == STI_SCHEME_QUANTISE)
            continue;
        told = true;
        sti_complain(list,
                     "shrink.scheme: %s is not what click prunes by, which takes "
                     "kernel, pattern and then quantise; train first, then stint "
                     "shrink the model, or set train.start and another method",
                     sti_scheme_kind_name(kind));
    }
    if (!cuts && !told)
        sti_complain(list, "shrink.scheme: click wants kernel or pattern in it");
}

/* What kernel(auto) shares out among layers. */
static void check_limits(const sti_shrink_values *shrink, sti_complaints *list)
{
    const int limits =
        (shrink->ratio != 0) + (shrink->size_bytes > 0) + (shrink->latency != NULL);
    double seconds = 0, share = 0;
    if (limits != 1)
        sti_complain(list,
                     "shrink.ratio: kernel(auto) wants to know how many times fewer "
                     "weights are to be left (shrink.ratio), or how large the compact "
                     "file may be (shrink.size), or how long an image may take "
                     "(shrink.latency): one of them; or give a share");
    else if (shrink->ratio != 0 && shrink->ratio <= 1)
        sti_complain(list, "shrink.ratio: %g leaves all weights; set it above 1",
                     shrink->ratio);
    if (!shrink->latency)
        return;
    const stint_status st = sti_parse_latency(shrink->latency, &seconds, &share);
    if (st != STINT_OK)
        sti_complain(list, "shrink.latency: %s", stint_last_error());
    else if (seconds == 0 && share == 0)
        sti_complain(list, "shrink.latency: %s: nothing is that fast", shrink->latency);
}

/* Methods that compress and look take the compressed weights of the lowest loss, which
 * is what train.select = loss asks for. */
static void check_choice(const stint_recipe *recipe, sti_complaints *list)
{
    const int select = sti_train_section_of(recipe)->select;
    if (!sti_shrink_section_of(recipe)->scheme || select == STI_SELECT_LAST ||
        (select == STI_SELECT_LOSS && sti_shrink_chooses(recipe)))
        return;
    sti_complain(list, "train.select: with shrink.scheme the compressed weights of the "
                       "lowest loss on held-out images are taken (train.validation); "
                       "leave it out");
}

static void check_shrink(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_shrink_values *shrink = sti_shrink_section_of(recipe);
    sti_shrink_scheme scheme;
    if (!shrink->scheme)
        return;
    const stint_status st = sti_scheme_parse(shrink->scheme, &scheme);
    sti_complain_status(list, st);
    if (st != STINT_OK)
        return;
    const sti_shrink_method method = sti_shrink_method_of(recipe);
    if (method == STI_SHRINK_CLICK)
        check_click(&scheme, list);
    else if (!sti_train_section_of(recipe)->start)
        sti_complain(list,
                     "shrink.method: new weights cannot be compressed before they are "
                     "trained; give a model by --start, or method click");
    if (method == STI_SHRINK_CLICK && opens_kernels(&scheme))
        check_limits(shrink, list);
    else if (method != STI_SHRINK_CLICK && sti_scheme_is_automatic(&scheme))
        sti_complain(list,
                     "shrink.scheme: auto is what stint shrink looks for; a training "
                     "wants a share, as 0.5");
}

static void check_generator(const sti_bayes_values *bayes, sti_complaints *list)
{
    const bool lfsr = bayes->generator >= STI_NORMAL_LFSR256;
    sti_lfsr_taps taps;
    if (bayes->taps && !lfsr)
        sti_complain(list, "bayes.taps: are of shift registers; set bayes.generator to "
                           "lfsr256 or lfsr64, or leave them out");
    else if (lfsr)
        sti_complain_status(
            list, sti_lfsr_taps_parse(bayes->taps,
                                      (sti_normal_generator)bayes->generator, &taps));
    if (lfsr && bayes->estimator == STI_ESTIMATOR_LOCAL)
        sti_complain(list, "bayes.estimator: local draws outputs, and shift registers "
                           "draw weights; use bayes.generator = ars");
}

static void check_bayes(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    if (v.bayes->samples == 0)
        return;
    check_generator(v.bayes, list);
    if (v.bayes->estimator == STI_ESTIMATOR_LOCAL && v.loss->gradient_penalty > 0)
        sti_complain(list, "loss.gradient_penalty: outputs that are drawn are "
                           "differentiated once; use bayes.estimator = weight");
    if (v.bayes->prior == STI_PRIOR_MIXTURE && v.bayes->narrow >= v.bayes->deviation)
        sti_complain(list,
                     "bayes.narrow: %s is not below bayes.deviation, %s, which is that "
                     "of the mixture's wide part",
                     sti_float_text(v.bayes->narrow),
                     sti_float_text(v.bayes->deviation));
}

/* A pair wants two. */
static void check_mixing(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    if ((v.data->mixup > 0 || v.data->cutmix > 0) && v.train->batch > 0 &&
        v.train->batch == v.train->shards * v.train->accumulate)
        sti_complain(list,
                     "data.mixup, data.cutmix: images are mixed within a micro-batch, "
                     "and these are of one image; use fewer --shards, or a larger "
                     "--batch");
}

stint_status stint_recipe_check(const stint_recipe *recipe)
{
    sti_complaints list = {0};
    if (!sti_recipe_is_agent(recipe) && !sti_recipe_is_clicks(recipe)) {
        check_model(recipe, &list);
        check_data(recipe, &list);
    }
    check_shrink(recipe, &list);
    check_choice(recipe, &list);
    check_bayes(recipe, &list);
    check_mixing(recipe, &list);
    sti_combinations_check(recipe, &list);
    sti_recipe_check_sections(recipe, &list);
    return sti_complaints_end(&list);
}
