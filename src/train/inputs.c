#include "train/inputs_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "model/field_terms.h"
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
    stint_status st = text ? sti_inputs_open_text_models(in) : STINT_OK;
    const size_t before = sti_alloc_now_bytes();
    if (st == STINT_OK)
        st = text ? sti_inputs_open_text(in) : field ? open_field(in) : open_images(in);
    in->network.squares = sti_grow_section_of(recipe)->by == STI_GROW_NOISE;
    in->network.gradient_penalty = (float)sti_loss_section_of(recipe)->gradient_penalty;
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
