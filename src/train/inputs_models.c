/* The models that a training begins with or keeps to: are they of its kind? */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "exchange/start.h"
#include "model/network_recipe.h"
#include "train/class_weights.h"
#include "train/combinations.h"
#include "train/inputs.h"
#include "train/loss_mix.h"
#include "train/recipe_view.h"
#include "train/update_choice.h"

static bool same_numbers(const float *a, const float *b, int64_t count)
{
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static stint_status check_images(const sti_inputs *in, const stint_model_file *m,
                                 const char *key, const char *path)
{
    const stint_data_info *info = stint_data_describe(in->train_data);
    const sti_network_desc *n = &m->network;
    if (n->field.coordinates > 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: %s is a field, the data are images in classes; give a "
                        "model of such images",
                        key, path);
    if (n->context > 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: %s is a text model, the data are images of %dx%dx%d; give "
                        "a model of such images",
                        key, path, (int)info->height, (int)info->width,
                        (int)info->channels);
    if (n->height == info->height && n->width == info->width &&
        n->channels == info->channels)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s: %s takes images of %" PRId64 "x%" PRId64 "x%" PRId64
                    ", the data are of %dx%dx%d; give a model of such images, or "
                    "data.size and data.channels as it was trained with",
                    key, path, n->height, n->width, n->channels, (int)info->height,
                    (int)info->width, (int)info->channels);
}

bool sti_inputs_same_classes(const stint_model_file *m, const stint_data_info *info)
{
    bool same = m->network.model.classes == info->classes;
    for (int32_t c = 0; m->class_names && c < info->classes && same; c++)
        same = strcmp(m->class_names[c], info->class_names[c]) == 0;
    return same;
}

/* Scores are put side by side: classes must be the same, in the same order. */
static stint_status check_classes(const sti_inputs *in, const char *path)
{
    const stint_data_info *info = stint_data_describe(in->train_data);
    const stint_model_file *m = in->reference;
    if (m->network.model.classes != info->classes)
        return sti_fail(STINT_E_INPUT,
                        "loss.reference: %s tells %" PRId64
                        " classes apart, the data have %d; the reference must have "
                        "learnt the same classes",
                        path, m->network.model.classes, (int)info->classes);
    for (int32_t c = 0; c < info->classes; c++)
        if (strcmp(m->class_names[c], info->class_names[c]) != 0)
            return sti_fail(STINT_E_INPUT,
                            "loss.reference: class %d of %s is '%s', of the data '%s'; "
                            "the reference must have learnt the same classes",
                            (int)c, path, m->class_names[c], info->class_names[c]);
    return STINT_OK;
}

/* The batch is normalised once, for both. */
static stint_status check_norms(const sti_inputs *in)
{
    const stint_model_file *a = in->start, *b = in->reference;
    if (!a || !b ||
        (same_numbers(a->norm.mean, b->norm.mean, a->network.channels) &&
         same_numbers(a->norm.deviation, b->norm.deviation, a->network.channels)))
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "train.start and loss.reference were trained on images of another "
                    "normalisation; take models of the same data");
}

/* An imported network, or one of ours: the recipe says which. */
static stint_status open_start(sti_inputs *in, const char *start)
{
    const stint_data_info *info = stint_data_describe(in->train_data);
    stint_status st;
    if (sti_recipe_is_imported(in->recipe)) {
        STI_TRY(sti_imported_start(start, &in->start));
        STI_TRY(sti_imported_check_classes(in->start, info->classes));
    } else {
        STI_TRY(sti_model_open_for("train.start", start, &in->start));
    }
    STI_TRY(check_images(in, in->start, "train.start", start));
    in->new_classifier = !sti_inputs_same_classes(in->start, info);
out:
    return st;
}

/* The field to begin with. */
static stint_status check_field(sti_inputs *in, const char *start)
{
    if (!start)
        return STINT_OK;
    const stint_status st = sti_model_open_for("train.start", start, &in->start);
    if (st == STINT_OK && in->start->network.field.coordinates == 0)
        return sti_fail(STINT_E_INPUT, "train.start: %s is no field; give one", start);
    return st;
}

static stint_status weigh_classes(sti_inputs *in)
{
    const sti_recipe_view v = sti_recipe_view_of(in->recipe);
    const int32_t classes = stint_data_describe(in->train_data)->classes;
    if (!sti_class_weights_given(v.loss->class_weights))
        return STINT_OK;
    in->class_weights =
        sti_alloc_array(classes, sizeof *in->class_weights, "class weights");
    in->network.class_weights = true;
    return in->class_weights
               ? sti_class_weights_make(v.loss->class_weights, in->train_data,
                                        v.data->sampling == STI_SAMPLING_BALANCED,
                                        in->class_weights)
               : STINT_E_MEMORY;
}

/* The network for the images at hand; that of a text is described with its tokens. */
static void describe_network(sti_inputs *in)
{
    const stint_data_info *info = stint_data_describe(in->train_data);
    in->network = sti_train_network_desc(in->recipe);
    in->network.source = in->start ? in->start->network.source : NULL;
    in->network.model.classes = info->classes;
    in->network.height = info->height;
    in->network.width = info->width;
    in->network.channels = info->channels;
    if (in->reference) {
        in->network.loss = sti_loss_of_recipe(sti_loss_section_of(in->recipe));
        in->network.loss.reference = &in->reference->network;
    }
}

/* The registers' taps, which the recipe's check has seen. */
static stint_status choose_taps(sti_inputs *in)
{
    const sti_bayes_values *bayes = sti_bayes_section_of(in->recipe);
    return bayes->samples > 0 && bayes->generator >= STI_NORMAL_LFSR256
               ? sti_lfsr_taps_parse(bayes->taps,
                                     (sti_normal_generator)bayes->generator,
                                     &in->network.bayes.taps)
               : STINT_OK;
}

stint_status sti_inputs_open_models(sti_inputs *in)
{
    const char *start = sti_train_section_of(in->recipe)->start;
    const char *reference = sti_loss_section_of(in->recipe)->reference;
    stint_status st = STINT_OK;
    STI_TRY(sti_combinations_check_kind(in->recipe));
    if (in->field)
        return check_field(in, start);
    if (in->text) /* its start is there; whether tensors fit is seen when they are read
                   */
        return sti_update_choose(in);
    if (sti_data_section_of(in->recipe)->window > 0)
        STI_TRY(sti_fail(STINT_E_USAGE, "data.window: is for models of text; images "
                                        "have no context to shorten"));
    if (start)
        STI_TRY(open_start(in, start));
    if (reference) {
        STI_TRY(sti_model_open_for("loss.reference", reference, &in->reference));
        STI_TRY(check_images(in, in->reference, "loss.reference", reference));
        STI_TRY(check_classes(in, reference));
    }
    STI_TRY(check_norms(in));
    describe_network(in);
    STI_TRY(choose_taps(in));
    STI_TRY(weigh_classes(in));
    STI_TRY(sti_update_choose(in));
out:
    return st;
}
