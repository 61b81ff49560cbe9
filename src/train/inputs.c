#include "train/inputs.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "model/field_terms.h"
#include "model/network_recipe.h"
#include "store/model_tokenizer.h"
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
    if (sti_data_has_part(desc.path, desc.format, STINT_DATA_TEST, desc.nested)) {
        desc = sti_recipe_data_desc(in->recipe, STI_PART_TEST);
        desc.like = info;
        st = stint_data_open(&desc, &in->test_data);
        if (st != STINT_OK)
            return st;
        in->test_count = stint_data_describe(in->test_data)->count;
    }
    return STINT_OK;
}

/* Tokens mean to a model what its own tokeniser made them; another one's are noise to
 * it. */
static stint_status check_tokenizer(const sti_inputs *in, const char *start)
{
    const stint_tokenizer *own = in->start->tokenizer;
    const sti_data_values *data = sti_data_section_of(in->recipe);
    const stint_tokenizer_kind kind = (stint_tokenizer_kind)data->tokenizer;
    stint_tokenizer *other = NULL;
    if (data->tokenizer_path) {
        stint_status st = sti_model_tokenizer_read(data->tokenizer_path, &other);
        if (st == STINT_OK && strcmp(stint_tokenizer_describe(own)->hash,
                                     stint_tokenizer_describe(other)->hash) != 0)
            st = sti_fail(STINT_E_INPUT,
                          "train.start: the tokeniser of %s (%s) is not that of "
                          "data.tokenizer_path, %s (%s); leave that key out, and the "
                          "model's own is taken",
                          start, sti_model_tokenizer_words(own), data->tokenizer_path,
                          sti_model_tokenizer_words(other));
        stint_tokenizer_close(other);
        return st;
    }
    /* Byte pairs are what a recipe says that says nothing. */
    if (kind != STINT_TOKENIZER_BPE && kind != stint_tokenizer_describe(own)->kind)
        return sti_fail(STINT_E_INPUT,
                        "train.start: %s has a tokeniser of its own (%s), but "
                        "data.tokenizer is %s; leave that key out, and the model's own "
                        "is taken",
                        start, sti_model_tokenizer_words(own),
                        kind == STINT_TOKENIZER_CHAR ? "char" : "byte");
    sti_log(STINT_LOG_INFO, "tokens are those of %s: %s", start,
            sti_model_tokenizer_words(own));
    return STINT_OK;
}

/* The model to begin with comes before the text: the tokens are its own. */
static stint_status open_text_start(sti_inputs *in)
{
    const char *start = sti_train_section_of(in->recipe)->start;
    if (!start)
        return STINT_OK;
    const stint_status st = sti_model_open_for("train.start", start, &in->start);
    if (st != STINT_OK)
        return st;
    if (in->start->network.context == 0)
        return sti_fail(STINT_E_INPUT,
                        "train.start: %s is a model of images, the data are text; give "
                        "a text model",
                        start);
    if (in->start->tokenizer)
        return check_tokenizer(in, start);
    sti_log(STINT_LOG_WARNING,
            "train.start: %s holds no tokeniser: whether these tokens are those that "
            "it was trained on cannot be seen",
            start);
    return STINT_OK;
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

/* The windows of an epoch. Without enough text for one there is nothing to train on. */
static stint_status open_text(sti_inputs *in)
{
    stint_status st = sti_recipe_open_text(
        in->recipe, in->start ? in->start->tokenizer : NULL, &in->text);
    if (st != STINT_OK)
        return st;
    const sti_corpus *text = in->text;
    st = check_tokens(text);
    if (st == STINT_OK)
        st = sti_recipe_text_network(
            in->recipe, stint_tokenizer_describe(text->tokenizer)->vocabulary,
            &in->network);
    if (st != STINT_OK)
        return st;
    if (in->start)
        take_model_facts(in);
    st = take_window(in);
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
                        text->path, context, text->train.end, text->train.end - 1);
    if (in->train_count > INT32_MAX || in->test_count > INT32_MAX)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: more than 2^31 windows of %" PRId64
                        " tokens; use a larger model.context",
                        text->path, context);
    return STINT_OK;
}

static stint_status check_coordinates(const sti_inputs *in)
{
    if (in->network.field.coordinates == in->field->coordinates)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "field.coordinates: %" PRId64
                    " of them, but the points of %s have %d; name as many",
                    in->network.field.coordinates, in->field->path,
                    in->field->coordinates);
}

/* An epoch of equations alone, whose points are drawn anew in every step. */
enum { EQUATION_STEPS = 100 };

/* Points of the test against a solution that is known, about. */
enum { EXACT_POINTS = 4096 };

static void exact_values(const void *user, const double *point, double *out)
{
    const sti_field_terms *terms = user;
    for (int i = 0; i < terms->exact.count; i++)
        out[i] = sti_expression_value(&terms->exact.expression[i], point);
}

/* A field without data: nothing is given but its equations. */
static stint_status open_equations(sti_inputs *in, const sti_field_terms *terms)
{
    const int64_t batch = sti_train_section_of(in->recipe)->batch;
    const int coordinates = (int)in->network.field.coordinates;
    const int outputs = (int)in->network.field.outputs;
    stint_status st =
        sti_field_points_none(coordinates, outputs, EQUATION_STEPS * batch, &in->field);
    in->network.field_drawn = true;
    if (st == STINT_OK && terms->exact.count > 0)
        st = sti_field_points_grid(coordinates, outputs, terms->domain.low,
                                   terms->domain.high, EXACT_POINTS, exact_values,
                                   terms, &in->field_test);
    return st;
}

/* All points are trained on, and all of them tell how well they are met. */
static stint_status open_points(sti_inputs *in)
{
    stint_status st = sti_recipe_open_field(in->recipe, &in->field);
    if (st == STINT_OK)
        st = sti_recipe_field_network(in->recipe, in->field->outputs, &in->network);
    in->network.field_targets = in->field ? in->field->columns : 0;
    in->field_test = in->field;
    return st == STINT_OK ? check_coordinates(in) : st;
}

static stint_status open_field(sti_inputs *in)
{
    sti_field_terms terms = {.any = false};
    stint_status st = sti_recipe_field_network(in->recipe, 0, &in->network);
    if (st != STINT_OK)
        return st;
    if (sti_data_section_of(in->recipe)->path) {
        st = open_points(in);
    } else {
        st = sti_field_terms_parse(in->network.terms, &in->network.names, &terms);
        if (st == STINT_OK)
            st = open_equations(in, &terms);
    }
    sti_field_terms_fini(&terms);
    if (st != STINT_OK)
        return st;
    in->network.field_batch = sti_train_section_of(in->recipe)->batch;
    in->train_count = in->field->count;
    in->test_count = in->field_test ? in->field_test->count : 0;
    return STINT_OK;
}

stint_status sti_inputs_open_data(const stint_recipe *recipe, sti_inputs *in)
{
    *in = (sti_inputs){.recipe = recipe};
    const bool text = sti_recipe_is_text(in->recipe);
    const bool field = sti_recipe_is_field(in->recipe);
    stint_status st = text ? open_text_start(in) : STINT_OK;
    const size_t before = sti_alloc_now_bytes();
    if (st == STINT_OK)
        st = text ? open_text(in) : field ? open_field(in) : open_images(in);
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
    if (in->field_test != in->field)
        sti_field_points_close(in->field_test);
    sti_field_points_close(in->field);
    stint_model_close(in->start);
    stint_model_close(in->reference);
    sti_free(in->class_weights);
    sti_update_set_fini(&in->update);
    *in = (sti_inputs){.recipe = NULL};
}

const char *sti_inputs_samples(const sti_inputs *in)
{
    return in->text ? "sequences" : in->field ? "points" : "images";
}
