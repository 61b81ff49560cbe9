#include "train/inputs.h"

#include <inttypes.h>

#include "base/fail.h"
#include "base/memory.h"
#include "model/network_recipe.h"
#include "train/recipe_view.h"

static stint_status open_images(sti_inputs *in)
{
    stint_data_desc desc = sti_recipe_data_desc(in->recipe, STI_PART_TRAIN);
    stint_status st = stint_data_open(&desc, &in->train_data);
    if (st != STINT_OK)
        return st;
    const stint_data_info *info = stint_data_describe(in->train_data);
    in->train_count = info->count;
    if (info->classes < 2)
        return sti_fail(STINT_E_INPUT,
                        "%s: all images are of one class, '%s'; there must be two or "
                        "more to learn to tell apart",
                        desc.path, info->classes > 0 ? info->class_names[0] : "");
    if (desc.hold_out > 0) {
        desc = sti_recipe_data_desc(in->recipe, STI_PART_VALIDATION);
        desc.like = info;
        st = stint_data_open(&desc, &in->validation_data);
        if (st != STINT_OK)
            return sti_fail_context(st, "train.validation");
        in->validation_count = stint_data_describe(in->validation_data)->count;
    }
    if (stint_data_has_split(desc.path, desc.format, STINT_DATA_TEST)) {
        desc = sti_recipe_data_desc(in->recipe, STI_PART_TEST);
        desc.like = info;
        st = stint_data_open(&desc, &in->test_data);
        if (st != STINT_OK)
            return st;
        in->test_count = stint_data_describe(in->test_data)->count;
    }
    return STINT_OK;
}

/* The windows of an epoch. Without enough text for one there is nothing to train on. */
static stint_status open_text(sti_inputs *in)
{
    stint_status st = sti_recipe_open_text(in->recipe, NULL, &in->text);
    if (st != STINT_OK)
        return st;
    const sti_corpus *text = in->text;
    st = sti_recipe_text_network(in->recipe,
                                 stint_tokenizer_describe(text->tokenizer)->vocabulary,
                                 &in->network);
    if (st != STINT_OK)
        return st;
    const int64_t context = in->network.context;
    in->train_count = sti_corpus_train_windows(&text->train, context);
    in->test_count = sti_corpus_test_windows(&text->test, context);
    if (in->train_count == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: a context of %" PRId64
                        " tokens is longer than the %" PRId64
                        " of its training part; set model.context to %" PRId64
                        " or less, or give more text",
                        text->path, context, text->train.end,
                        text->train.end > 1 ? text->train.end - 1 : 1);
    if (in->train_count > INT32_MAX || in->test_count > INT32_MAX)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: more than 2^31 windows of %" PRId64
                        " tokens; use a larger model.context",
                        text->path, context);
    return STINT_OK;
}

stint_status sti_inputs_open_data(const stint_recipe *recipe, sti_inputs *in)
{
    *in = (sti_inputs){.recipe = recipe};
    size_t before = sti_alloc_now_bytes();
    const stint_status st =
        sti_recipe_is_text(in->recipe) ? open_text(in) : open_images(in);
    if (st == STINT_OK)
        in->index_bytes = sti_alloc_now_bytes() - before;
    return st;
}

void sti_inputs_close(sti_inputs *in)
{
    stint_data_close(in->train_data);
    stint_data_close(in->test_data);
    stint_data_close(in->validation_data);
    sti_corpus_close(in->text);
    stint_model_close(in->start);
    stint_model_close(in->reference);
    *in = (sti_inputs){.recipe = NULL};
}

const char *sti_inputs_samples(const sti_inputs *in)
{
    return in->text ? "sequences" : "images";
}
