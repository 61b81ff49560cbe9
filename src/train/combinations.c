#include "train/combinations.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "model/network_recipe.h"
#include "train/recipe_view.h"

/* ---- features ---- */

static bool in_bf16(const stint_recipe *recipe)
{
    return sti_train_section_of(recipe)->precision == STI_PRECISION_BF16;
}

static bool in_packing(const stint_recipe *recipe)
{
    const sti_error_values *error = sti_recipe_view_of(recipe).error;
    return error->tau > 0 && error->pack == STI_PACK_ALL;
}

static bool in_net_bits(const stint_recipe *recipe)
{
    const sti_net_values *net = sti_recipe_view_of(recipe).net;
    return net->bits != 32 || net->keep < 1 || net->link;
}

static bool in_start(const stint_recipe *recipe)
{
    return sti_train_section_of(recipe)->start != NULL;
}

static bool in_start_blocks(const stint_recipe *recipe)
{
    return sti_train_section_of(recipe)->start_blocks != NULL;
}

static bool in_reference(const stint_recipe *recipe)
{
    return sti_loss_section_of(recipe)->reference != NULL;
}

static bool in_prune(const stint_recipe *recipe)
{
    return sti_prune_section_of(recipe)->sparsity > 0;
}

static bool in_quantise(const stint_recipe *recipe)
{
    return sti_quantise_section_of(recipe)->bits > 0;
}

static bool in_freeze_norm(const stint_recipe *recipe)
{
    return sti_train_section_of(recipe)->freeze_norm;
}

static bool in_accumulate(const stint_recipe *recipe)
{
    return sti_train_section_of(recipe)->accumulate > 1;
}

static bool in_growth(const stint_recipe *recipe)
{
    return sti_grow_section_of(recipe)->by == STI_GROW_SCHEDULE;
}

static bool in_noise_growth(const stint_recipe *recipe)
{
    return sti_grow_section_of(recipe)->by == STI_GROW_NOISE;
}

static bool in_bayes(const stint_recipe *recipe)
{
    return sti_bayes_section_of(recipe)->samples > 0;
}

static bool in_average(const stint_recipe *recipe)
{
    return sti_train_section_of(recipe)->average > 0;
}

static bool in_mixing(const stint_recipe *recipe)
{
    const sti_data_values *data = sti_data_section_of(recipe);
    return data->mixup > 0 || data->cutmix > 0;
}

static bool in_smoothing(const stint_recipe *recipe)
{
    return sti_train_section_of(recipe)->label_smoothing > 0;
}

static bool in_penalty(const stint_recipe *recipe)
{
    return sti_loss_section_of(recipe)->gradient_penalty > 0;
}

static bool in_class_weights(const stint_recipe *recipe)
{
    return sti_class_weights_given(sti_loss_section_of(recipe)->class_weights);
}

static bool in_balanced_weights(const stint_recipe *recipe)
{
    const char *weights = sti_loss_section_of(recipe)->class_weights;
    return weights && strcmp(weights, "balanced") == 0;
}

static bool in_balanced(const stint_recipe *recipe)
{
    return sti_data_section_of(recipe)->sampling == STI_SAMPLING_BALANCED;
}

static bool in_augmentation(const stint_recipe *recipe)
{
    const sti_data_values *data = sti_data_section_of(recipe);
    return data->crop_pad > 0 || data->flip || data->scale_crop > 0;
}

static bool in_selection(const stint_recipe *recipe)
{
    return sti_train_section_of(recipe)->select != STI_SELECT_LAST;
}

static bool in_holding_out(const stint_recipe *recipe)
{
    return sti_train_section_of(recipe)->validation > 0;
}

static bool in_clipping(const stint_recipe *recipe)
{
    return sti_optimizer_section_of(recipe)->clip > 0;
}

static bool in_restarts(const stint_recipe *recipe)
{
    return sti_schedule_section_of(recipe)->period > 0;
}

static bool in_scheme(const stint_recipe *recipe)
{
    return sti_shrink_section_of(recipe)->scheme != NULL;
}

static bool in_part(const stint_recipe *recipe)
{
    return sti_update_section_of(recipe)->what != STI_UPDATE_FULL;
}

static bool in_frozen_bytes(const stint_recipe *recipe)
{
    return sti_update_section_of(recipe)->frozen == STI_FROZEN_INT8;
}

static bool in_at_once(const stint_recipe *recipe)
{
    return sti_update_section_of(recipe)->at_once;
}

enum {
    I = 1 << STI_KIND_IMAGES,
    T = 1 << STI_KIND_TEXT,
    F = 1 << STI_KIND_FIELD,
    A = 1 << STI_KIND_AGENT,
    C = 1 << STI_KIND_CLICKS /* beside what [embedding] refuses itself */
};

const sti_feature sti_features[] = {
    {"bf16", "train.precision", "train.precision=bf16", "activations in bfloat16",
     in_bf16, I | T | C, true},
    {"packing", "error.pack", "error.pack=all error.tau=0.01",
     "activations packed with bounded errors", in_packing, I | T | F, false},
    {"net bits", "net.bits", "net.bits=4",
     "compressed sums of gradients; net.link and net.keep likewise", in_net_bits,
     I | T | F, false},
    {"start", "train.start", "train.start=START", "training from a model", in_start,
     I | T | F | C, false},
    {"start blocks", "train.start_blocks", "train.start_blocks=even train.start=START",
     "some of the blocks of the model to begin from", in_start_blocks, T, false},
    {"reference", "loss.reference", "loss.reference=REFERENCE",
     "a loss against another model's answers", in_reference, I | T, true},
    {"prune", "prune.sparsity", "prune.sparsity=0.5", "weights that stay zero",
     in_prune, I | T | F | C, false},
    {"quantise", "quantise.bits", "quantise.bits=4",
     "rounded weights, but of update.what = lora, whose sums would be rounded",
     in_quantise, I | T, true},
    {"freeze norm", "train.freeze_norm", "train.freeze_norm=true train.start=START",
     "batch-norm with the statistics of the model to begin from", in_freeze_norm,
     I | T | F, false},
    {"accumulate", "train.accumulate", "train.accumulate=2",
     "several micro-batches a shard", in_accumulate, I | T | F | C, false},
    {"growth", "grow.by", "grow.by=schedule grow.every=1",
     "batches that grow by epochs", in_growth, I | T | F, false},
    {"noise growth", "grow.by", "grow.by=noise train.accumulate=2",
     "batches that grow by gradient noise", in_noise_growth, I | T | F, false},
    {"bayes", "bayes.samples", "bayes.samples=2", "weights that are drawn", in_bayes,
     I | C, true},
    {"average", "train.average", "train.average=0.9",
     "an average of the weights is kept", in_average, I | T | F, false},
    {"mixup", "data.mixup", "data.mixup=0.2 data.cutmix=1",
     "images mixed in pairs; data.cutmix likewise", in_mixing, I, false},
    {"label smoothing", "train.label_smoothing", "train.label_smoothing=0.1",
     "a share of the target spread over all classes", in_smoothing, I, false},
    {"gradient penalty", "loss.gradient_penalty", "loss.gradient_penalty=0.01",
     "a loss that grows with the gradient by the image, or by the embeddings of a text",
     in_penalty, I | T, false},
    {"class weights", "loss.class_weights", "loss.class_weights=WEIGHTS",
     "images that count by class", in_class_weights, I, false},
    {"balanced weights", "loss.class_weights", "loss.class_weights=balanced",
     "images that count inversely to their class's number", in_balanced_weights, I,
     false},
    {"balanced", "data.sampling", "data.sampling=balanced",
     "every class equally often in an epoch", in_balanced, I, false},
    {"augmentation", "data.crop_pad", "data.crop_pad=2 data.flip=true",
     "shifts, mirrors, parts; data.flip, data.scale_crop likewise", in_augmentation, I,
     false},
    {"held out", "train.validation", "train.validation=0.2",
     "images or tokens that are not trained on", in_holding_out, I | T | C, true},
    {"select", "train.select", "train.select=loss train.validation=0.2",
     "the epoch that is best on what is held out; accuracy and mismatch, of images, "
     "likewise",
     in_selection, I | T | C, true},
    {"clip", "optimizer.clip", "optimizer.clip=1", "gradients cut to a norm",
     in_clipping, I | T | F | A | C, false},
    {"restarts", "schedule.period", "schedule.name=cosine schedule.period=1",
     "rates that fall again and again", in_restarts, I | T | F | A | C, false},
    {"scheme", "shrink.scheme",
     "shrink.scheme=prune(0.5) shrink.method=fine-tune train.start=START",
     "weights compressed in training", in_scheme, I | C, true},
    {"part", "update.what", "update.what=bias train.start=START",
     "a part of the parameters is trained", in_part, I | T, false},
    {"frozen bytes", "update.frozen",
     "update.frozen=int8 update.what=bias train.start=START",
     "frozen weights in a byte a number", in_frozen_bytes, I | T, false},
    {"at once", "update.at_once", "update.at_once=true train.shards=1",
     "parameters are updated within the step, where a gradient is whole before its "
     "end; of one process",
     in_at_once, I | T, false},
    {NULL, NULL, NULL, NULL, NULL, 0, false}};

/* ---- pairs ---- */

const sti_refusal sti_refusals[] = {
    /* Two that want the same thing, each in its way. */
    {"balanced weights", "balanced",
     "loss.class_weights: balanced, and data.sampling too, would count rare classes "
     "twice; choose one of them",
     false},
    {"scheme", "prune",
     "shrink.scheme: prunes by itself; leave out prune.sparsity, or give prune(S) in "
     "the scheme",
     false},
    {"scheme", "quantise",
     "shrink.scheme: quantises by itself; leave out quantise.bits, or give "
     "quantise(intN) in the scheme",
     false},
    {"scheme", "growth",
     "grow.by: the steps of a compression scheme are of one batch; leave it at none",
     false},
    {"scheme", "noise growth",
     "grow.by: the steps of a compression scheme are of one batch; leave it at none",
     false},
    {"scheme", "average",
     "train.average: with shrink.scheme the compressed weights are kept, and a mean of "
     "those is not compressed; leave it out",
     false},
    /* Weights that are drawn. */
    {"bayes", "prune",
     "bayes.samples: of weights that are drawn none stays zero; leave out [bayes] or "
     "prune.sparsity",
     false},
    {"bayes", "quantise",
     "bayes.samples: weights that are drawn are not rounded; leave out [bayes] or "
     "quantise.bits",
     false},
    {"bayes", "scheme",
     "bayes.samples: weights that are drawn are not compressed; leave out [bayes] or "
     "shrink.scheme",
     false},
    {"bayes", "noise growth",
     "grow.by: noise is that of the images, and [bayes] adds that of the weights; use "
     "schedule",
     false},
    {"bayes", "part",
     "update.what: weights that are drawn are trained all together; leave out "
     "bayes.samples, or set full",
     false},
    /* What counts all weights, or all epochs. */
    {"part", "prune",
     "update.what: pruning is for trainings of all parameters; leave out "
     "prune.sparsity, or set full",
     false},
    {"part", "scheme",
     "update.what: a compression scheme is for trainings of all parameters; leave out "
     "shrink.scheme, or set full",
     false},
    {"frozen bytes", "bf16",
     "update.frozen: int8 weights are widened to float32, not to bfloat16; set "
     "train.precision = f32, or update.frozen = f32",
     true},
    {"frozen bytes", "quantise",
     "update.frozen: weights of few bits are rounded once more in a byte; leave out "
     "one of update.frozen and quantise.bits",
     false},
    {NULL, NULL, NULL, false}};

/* ---- recipes ---- */

const char *const sti_kind_words[STI_KINDS] = {"networks of images", "a model of text",
                                               "a field", "an agent",
                                               "a recommendation model"};

static int kind_of(const stint_recipe *recipe)
{
    return sti_recipe_is_agent(recipe)    ? STI_KIND_AGENT
           : sti_recipe_is_clicks(recipe) ? STI_KIND_CLICKS
           : sti_recipe_is_text(recipe)   ? STI_KIND_TEXT
           : sti_recipe_is_field(recipe)  ? STI_KIND_FIELD
                                          : STI_KIND_IMAGES;
}

enum { REFUSAL_BYTES = 512 };

/* What it is names the other keys that ask for it, too. */
static const char *refuse_kind(const sti_feature *f, int kind,
                               char words[REFUSAL_BYTES])
{
    int n = snprintf(words, REFUSAL_BYTES, "%s (%s): is not for %s, but for", f->key,
                     f->what, sti_kind_words[kind]);
    const char *gap = " ";
    for (int i = 0; i < STI_KINDS; i++)
        if (f->kinds >> i & 1 && i != STI_KIND_CLICKS) {
            n += snprintf(words + n, REFUSAL_BYTES - (size_t)n, "%s%s", gap,
                          sti_kind_words[i]);
            gap = ", ";
        }
    return words;
}

static bool asks(const stint_recipe *recipe, const char *name)
{
    const sti_feature *f = sti_features;
    while (f->name && strcmp(f->name, name) != 0)
        f++;
    return f->name && f->in(recipe);
}

void sti_combinations_check(const stint_recipe *recipe, sti_complaints *list)
{
    const int kind = kind_of(recipe);
    /* These are told by sti_combinations_check_kind. */
    const bool later = kind == STI_KIND_TEXT || kind == STI_KIND_FIELD;
    char words[REFUSAL_BYTES];
    for (const sti_feature *f = sti_features; f->name; f++)
        if (!(f->kinds >> kind & 1) && !(later && f->unsupported) && f->in(recipe))
            sti_complain(list, "%s", refuse_kind(f, kind, words));
    for (const sti_refusal *r = sti_refusals; r->a; r++)
        if (!r->unsupported && asks(recipe, r->a) && asks(recipe, r->b))
            sti_complain(list, "%s", r->why);
}

stint_status sti_combinations_check_kind(const stint_recipe *recipe)
{
    const int kind = kind_of(recipe);
    char words[REFUSAL_BYTES];
    for (const sti_feature *f = sti_features; f->name; f++)
        if (f->unsupported && !(f->kinds >> kind & 1) && f->in(recipe))
            return sti_fail(STINT_E_UNSUPPORTED, "%s", refuse_kind(f, kind, words));
    for (const sti_refusal *r = sti_refusals; r->a; r++)
        if (r->unsupported && asks(recipe, r->a) && asks(recipe, r->b))
            return sti_fail(STINT_E_UNSUPPORTED, "%s", r->why);
    return STINT_OK;
}
