/* Text that is trained on, and models of it that training begins with or keeps to. */
#include "train/inputs_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "model/network_recipe.h"
#include "store/model_tokenizer.h"
#include "train/loss_mix.h"
#include "train/recipe_view.h"

/* Tokens mean to a model what its own tokeniser made them; another one's are noise to
 * it. */
static stint_status check_tokenizer(const sti_inputs *in, const stint_model_file *model,
                                    const char *key, const char *path)
{
    const stint_tokenizer *own = model->tokenizer;
    const sti_data_values *data = sti_data_section_of(in->recipe);
    const stint_tokenizer_kind kind = (stint_tokenizer_kind)data->tokenizer;
    stint_tokenizer *other = NULL;
    if (data->tokenizer_path) {
        stint_status st = sti_model_tokenizer_read(data->tokenizer_path, &other);
        if (st == STINT_OK && strcmp(stint_tokenizer_describe(own)->hash,
                                     stint_tokenizer_describe(other)->hash) != 0)
            st = sti_fail(STINT_E_INPUT,
                          "%s: the tokeniser of %s (%s) is not that of "
                          "data.tokenizer_path, %s (%s); leave that key out, and the "
                          "model's own is taken",
                          key, path, sti_model_tokenizer_words(own),
                          data->tokenizer_path, sti_model_tokenizer_words(other));
        stint_tokenizer_close(other);
        return st;
    }
    /* Byte pairs are what a recipe says that says nothing. */
    if (kind != STINT_TOKENIZER_BPE && kind != stint_tokenizer_describe(own)->kind)
        return sti_fail(STINT_E_INPUT,
                        "%s: %s has a tokeniser of its own (%s), but "
                        "data.tokenizer is %s; leave that key out, and the model's own "
                        "is taken",
                        key, path, sti_model_tokenizer_words(own),
                        kind == STINT_TOKENIZER_CHAR ? "char" : "byte");
    sti_log(STINT_LOG_INFO, "tokens are those of %s: %s", path,
            sti_model_tokenizer_words(own));
    return STINT_OK;
}

/* A model that tokens come from, or go to. */
static stint_status open_model(const sti_inputs *in, const char *key, const char *path,
                               stint_model_file **model_out)
{
    const stint_status st = sti_model_open_for(key, path, model_out);
    if (st != STINT_OK)
        return st;
    if ((*model_out)->network.context == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: %s is a model of images, the data are text; give a text "
                        "model",
                        key, path);
    if ((*model_out)->tokenizer)
        return check_tokenizer(in, *model_out, key, path);
    sti_log(STINT_LOG_WARNING,
            "%s: %s holds no tokeniser: whether these tokens are those that it was "
            "trained on cannot be seen",
            key, path);
    return STINT_OK;
}

/* Both read the same tokens. */
static stint_status check_pair(const sti_inputs *in)
{
    const stint_tokenizer *a = in->start ? in->start->tokenizer : NULL;
    const stint_tokenizer *b = in->reference ? in->reference->tokenizer : NULL;
    if (!a || !b ||
        strcmp(stint_tokenizer_describe(a)->hash, stint_tokenizer_describe(b)->hash) ==
            0)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "train.start has another tokeniser (%s) than loss.reference (%s); "
                    "take models of the same tokens",
                    sti_model_tokenizer_words(a), sti_model_tokenizer_words(b));
}

stint_status sti_inputs_open_text_models(sti_inputs *in)
{
    const char *start = sti_train_section_of(in->recipe)->start;
    const char *reference = sti_loss_section_of(in->recipe)->reference;
    stint_status st = STINT_OK;
    if (start)
        STI_TRY(open_model(in, "train.start", start, &in->start));
    if (reference)
        STI_TRY(open_model(in, "loss.reference", reference, &in->reference));
    STI_TRY(check_pair(in));
out:
    return st;
}

/* Shorter sequences than the model takes; its context stays what it is. */
static stint_status take_window(sti_inputs *in)
{
    const int64_t window = sti_data_section_of(in->recipe)->window;
    sti_network_desc *net = &in->network;
    if (window > net->context)
        return sti_fail(STINT_E_INPUT,
                        "data.window: %" PRId64 " tokens, but the model's context is "
                        "%" PRId64 "; set it to that or less",
                        window, net->context);
    if (window == 0 || window == net->context)
        return STINT_OK;
    net->text.positions = net->context;
    net->context = window;
    return STINT_OK;
}

/* What a recipe has no keys for, where the model is of the same family: one that came
 * from elsewhere may have other values than new weights get. */
static void take_model_facts(sti_inputs *in)
{
    const stint_text_model_desc *from = &in->start->network.text;
    stint_text_model_desc *to = &in->network.text;
    if (strcmp(in->start->network.name, in->network.name) != 0)
        return;
    to->epsilon = from->epsilon;
    to->rotary_base = from->rotary_base;
    to->head = from->head;
    to->hidden = from->hidden;
}

/* There is something to tell apart, and something to predict. */
static stint_status check_tokens(const sti_corpus *text)
{
    if (text->train.end < 2)
        return sti_fail(STINT_E_INPUT,
                        "%s: the text has %" PRId64 " token%s to train on, but two are "
                        "needed to predict one by the other; give more text",
                        text->path, text->train.end, sti_s(text->train.end));
    if (stint_tokenizer_describe(text->tokenizer)->vocabulary < 2)
        return sti_fail(
            STINT_E_INPUT,
            "%s: all of the text is one and the same character, so there "
            "is nothing to learn; give a text of two or more different ones",
            text->path);
    return STINT_OK;
}

/* The same tokens at the same places: whatever the reference says has to be of them. */
static stint_status take_reference(sti_inputs *in)
{
    const char *path = sti_loss_section_of(in->recipe)->reference;
    const sti_network_desc *r = &in->reference->network;
    if (r->text.vocabulary != in->network.text.vocabulary)
        return sti_fail(STINT_E_INPUT,
                        "loss.reference: %s tells %" PRId64
                        " tokens apart, the model to be trained %" PRId64
                        "; set model.vocabulary to as many, or take a reference of the "
                        "same tokeniser",
                        path, r->text.vocabulary, in->network.text.vocabulary);
    if (r->context < in->network.context)
        return sti_fail(STINT_E_INPUT,
                        "loss.reference: %s takes %" PRId64
                        " tokens at once, sequences are of %" PRId64
                        "; set model.context (or data.window) to as many or fewer",
                        path, r->context, in->network.context);
    in->network.loss = sti_loss_of_recipe(sti_loss_section_of(in->recipe));
    in->network.loss.reference = r;
    return STINT_OK;
}

/* The tokeniser of the model to begin from, else of the reference. NULL: neither. */
static const stint_tokenizer *given_tokenizer(const sti_inputs *in)
{
    const stint_tokenizer *own = in->start ? in->start->tokenizer : NULL;
    return own || !in->reference ? own : in->reference->tokenizer;
}

/* The windows of an epoch. Without enough text for one there is nothing to train on. */
stint_status sti_inputs_open_text(sti_inputs *in)
{
    stint_status st = sti_recipe_open_text(in->recipe, given_tokenizer(in), &in->text);
    if (st != STINT_OK)
        return st;
    const sti_corpus *text = in->text;
    const char *blocks = sti_train_section_of(in->recipe)->start_blocks;
    st = check_tokens(text);
    if (st == STINT_OK)
        st = sti_recipe_text_network(
            in->recipe, stint_tokenizer_describe(text->tokenizer)->vocabulary,
            &in->network);
    if (st != STINT_OK)
        return st;
    if (in->start)
        take_model_facts(in);
    if (in->start && blocks)
        st = sti_model_take_blocks(in->start, blocks, in->network.text.depth);
    if (st != STINT_OK)
        return st;
    st = take_window(in);
    if (st == STINT_OK && in->reference)
        st = take_reference(in);
    if (st != STINT_OK)
        return st;
    const int64_t context = in->network.context;
    in->train_count = sti_corpus_train_windows(&text->train, context);
    in->test_count = sti_corpus_test_windows(&text->test, context);
    in->validation_count = sti_corpus_test_windows(&text->held, context);
    if (in->validation_count == 0 && sti_train_section_of(in->recipe)->validation > 0)
        return sti_fail(STINT_E_INPUT,
                        "train.validation: %" PRId64 " of the %" PRId64
                        " tokens of %s are held out, but two are needed to predict one "
                        "by the other; set a larger share, or give more text",
                        text->held.end - text->held.begin, text->tokens, text->path);
    if (in->train_count == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: a context of %" PRId64
                        " tokens is longer than the %" PRId64
                        " of its training part; set model.context to %" PRId64
                        " or less, or give more text",
                        text->path, context, text->train.end, text->train.end - 1);
    if (in->train_count > INT32_MAX || in->test_count > INT32_MAX)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: more than 2^31 windows of %" PRId64
                        " tokens; use a larger model.context",
                        text->path, context);
    return STINT_OK;
}
