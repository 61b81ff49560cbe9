/* Training of an edit: features of several fields, and pictures of what they are to
 * become. Features differ by powers of the frequencies in a field, so each is brought
 * to mean 0 and deviation 1 first. */
#include "edit/field_edit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/stop.h"
#include "base/text.h"
#include "base/units.h"
#include "data/field.h"

enum { EDIT_SHARDS = 4, EDIT_ROWS = 512 }; /* of a shard */

typedef struct edit_training {
    const stint_field_edit_desc *desc;
    sti_edit_form form;
    sti_field_points **target; /* [count] */
    int64_t points, filled;    /* of all fields */
    float *feature;            /* [points, features] */
    float *value;              /* [points, outputs] */
    sti_edit_scale scale;
    stint_session *session;
} edit_training;

stint_value sti_edit_build(stint_graph *g, stint_value x, const sti_edit_form *form)
{
    stint_scope_begin(g, "linear");
    const stint_value linear = stint_dense(
        g, x, &(stint_dense_desc){.units = form->outputs, .no_bias = form->depth > 0});
    stint_scope_end(g);
    if (form->depth == 0)
        return linear;
    for (int64_t k = 0; k <= form->depth; k++) {
        const bool last = k == form->depth;
        stint_scope_begin(g, "net.%" PRId64, k);
        x = stint_dense(
            g, x, &(stint_dense_desc){.units = last ? form->outputs : form->width});
        stint_scope_end(g);
        x = last ? x : stint_relu(g, x);
    }
    return stint_add(g, linear, x);
}

/* ---- features ---- */

typedef struct grid {
    int64_t width, height;
    sti_edit_take_fn *take;
    void *user;
} grid;

static stint_status grid_give(void *user, int64_t first, int64_t count, float *out)
{
    const grid *g = user;
    sti_field_cells(g->width, g->height, first, count, out);
    return STINT_OK;
}

static stint_status grid_take(void *user, const float *rows, int64_t count)
{
    const grid *g = user;
    return g->take(g->user, rows, count);
}

stint_status sti_edit_features(const stint_model_file *model, const sti_edit_form *form,
                               int64_t width, int64_t height, int threads,
                               sti_edit_take_fn *take, void *user)
{
    grid g = {width, height, take, user};
    const stint_field_ask ask = {.order = (int)form->order, .threads = threads};
    const sti_field_stream stream = {
        .points = width * height, .give = grid_give, .take = grid_take, .user = &g};
    sti_field_choice choice = {.plan = {.outputs = 0}};
    stint_status st = sti_field_choose(model, &ask, false, &choice);
    if (st == STINT_OK)
        st = sti_field_run(model, &choice, &stream);
    sti_field_choice_fini(&choice);
    return st;
}

static stint_status keep_rows(void *user, const float *rows, int64_t count)
{
    edit_training *t = user;
    memcpy(t->feature + t->filled * t->form.features, rows,
           (size_t)(count * t->form.features) * sizeof *rows);
    t->filled += count;
    return STINT_OK;
}

static void find_scale(edit_training *t)
{
    for (int64_t f = 0; f < t->form.features; f++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < t->points; i++)
            sum += (double)t->feature[i * t->form.features + f];
        const double mean = sum / (double)t->points;
        for (int64_t i = 0; i < t->points; i++) {
            const double d = (double)t->feature[i * t->form.features + f] - mean;
            squares += d * d;
        }
        const double deviation = sqrt(squares / (double)t->points);
        t->scale.mean[f] = (float)mean;
        t->scale.inverse[f] = deviation > 0 ? (float)(1 / deviation) : 0.0f;
    }
    for (int64_t i = 0; i < t->points * t->form.features; i++) {
        const int64_t f = i % t->form.features;
        t->feature[i] = (t->feature[i] - t->scale.mean[f]) * t->scale.inverse[f];
    }
}

static stint_status collect(edit_training *t)
{
    stint_status st = STINT_OK;
    int64_t at = 0;
    for (int i = 0; i < t->desc->count && st == STINT_OK; i++) {
        const sti_field_points *target = t->target[i];
        st = sti_edit_features(t->desc->field[i], &t->form, target->width,
                               target->height, t->desc->threads, keep_rows, t);
        memcpy(t->value + at * t->form.outputs, target->values,
               (size_t)(target->count * t->form.outputs) * sizeof *t->value);
        at += target->count;
    }
    return st;
}

/* ---- what is asked for ---- */

static stint_status check_fields(edit_training *t)
{
    const stint_field_edit_desc *d = t->desc;
    stint_status st = STINT_OK;
    if (d->count < 1)
        return sti_fail(STINT_E_USAGE, "no fields to learn an edit from");
    for (int i = 0; i < d->count && st == STINT_OK; i++) {
        const stint_model_file *model = d->field[i];
        st = sti_field_check(model, true);
        if (st == STINT_OK &&
            model->network.field.outputs != d->field[0]->network.field.outputs)
            st = sti_fail(STINT_E_INPUT,
                          "%s: %d outputs, but the first field has %d; an edit is of "
                          "fields of one kind",
                          sti_tensor_file_path(model->file),
                          (int)model->network.field.outputs,
                          (int)d->field[0]->network.field.outputs);
    }
    if (st != STINT_OK)
        return st;
    t->form = (sti_edit_form){.order = d->order,
                              .outputs = d->field[0]->network.field.outputs,
                              .width = d->width ? d->width : 64,
                              .depth = d->depth};
    if (t->form.outputs != 1 && t->form.outputs != 3)
        return sti_fail(STINT_E_INPUT,
                        "fields of %d outputs; pictures have 1 (grey) or 3 (colour)",
                        (int)t->form.outputs);
    return STINT_OK;
}

static stint_status count_features(edit_training *t)
{
    const stint_field_ask ask = {.order = t->desc->order};
    sti_derivative_list list = {.row = NULL};
    stint_status st = sti_field_list(t->desc->field[0], &ask, &list);
    t->form.features = list.count;
    sti_derivatives_fini(&list);
    if (st == STINT_OK && t->form.features > STI_EDIT_FEATURES)
        st = sti_fail(STINT_E_USAGE, "%" PRId64 " features; at most %d",
                      t->form.features, STI_EDIT_FEATURES);
    return st;
}

static stint_status open_targets(edit_training *t)
{
    stint_status st = STINT_OK;
    t->target =
        sti_alloc_array(t->desc->count, sizeof(sti_field_points *), "field.edit");
    if (!t->target)
        return STINT_E_MEMORY;
    for (int i = 0; i < t->desc->count && st == STINT_OK; i++) {
        const sti_field_want want = {.path = t->desc->target[i],
                                     .channels = (int)t->form.outputs,
                                     .constant = true};
        st = sti_field_points_open(&want, &t->target[i]);
        if (st == STINT_OK && t->target[i]->height == 0)
            st = sti_fail(STINT_E_INPUT,
                          "%s: no picture; targets are pictures of the "
                          "edited fields",
                          t->desc->target[i]);
        t->points += st == STINT_OK ? t->target[i]->count : 0;
    }
    return st;
}

static stint_status take_memory(edit_training *t)
{
    const sti_edit_form *f = &t->form;
    t->feature =
        sti_alloc_array(t->points * f->features, sizeof *t->feature, "field.edit");
    t->value = sti_alloc_array(t->points * f->outputs, sizeof *t->value, "field.edit");
    t->scale.mean = sti_alloc_array(f->features, sizeof *t->scale.mean, "field.edit");
    t->scale.inverse =
        sti_alloc_array(f->features, sizeof *t->scale.inverse, "field.edit");
    return t->feature && t->value && t->scale.mean && t->scale.inverse ? STINT_OK
                                                                       : STINT_E_MEMORY;
}

/* ---- steps ---- */

static void fill_shard(void *user, int64_t shard, void *const *input)
{
    const edit_training *t = user;
    const int64_t f = t->form.features, k = t->form.outputs;
    const int64_t step = stint_session_steps(t->session);
    for (int64_t i = 0; i < EDIT_ROWS; i++) {
        uint32_t w[4];
        sti_random4((uint64_t)t->desc->seed, STI_STREAM_ORDER, (uint64_t)step,
                    (uint64_t)(shard * EDIT_ROWS + i), w);
        const int64_t at = sti_below(w[0], (uint32_t)t->points);
        memcpy((float *)input[0] + i * f, t->feature + at * f,
               (size_t)f * sizeof(float));
        memcpy((float *)input[1] + i * k, t->value + at * k, (size_t)k * sizeof(float));
    }
}

static stint_status set_int(stint_recipe *recipe, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return stint_recipe_set(recipe, key, text);
}

static stint_status make_recipe(const edit_training *t, stint_recipe **recipe_out)
{
    const stint_field_edit_desc *d = t->desc;
    stint_status st;
    STI_TRY(stint_recipe_create(recipe_out));
    stint_recipe *r = *recipe_out;
    STI_TRY(stint_recipe_set(r, "optimizer.name", "adam"));
    STI_TRY(
        stint_recipe_set(r, "optimizer.lr", sti_float_text(d->lr > 0 ? d->lr : 5e-3)));
    STI_TRY(stint_recipe_set(r, "schedule.name", "cosine"));
    STI_TRY(set_int(r, "train.shards", EDIT_SHARDS));
    STI_TRY(set_int(r, "train.batch", EDIT_SHARDS * EDIT_ROWS));
    STI_TRY(set_int(r, "train.steps", d->steps));
    STI_TRY(set_int(r, "train.seed", d->seed));
    if (d->threads > 0)
        STI_TRY(set_int(r, "run.threads", d->threads));
out:
    return st;
}

static stint_status open_session(edit_training *t)
{
    static const char *const inputs[2] = {"features", "targets"};
    const stint_shape x = STINT_SHAPE(EDIT_ROWS, t->form.features);
    const stint_shape y = STINT_SHAPE(EDIT_ROWS, t->form.outputs);
    stint_recipe *recipe = NULL;
    stint_graph *g = NULL;
    stint_status st;
    STI_TRY(make_recipe(t, &recipe));
    STI_TRY(stint_graph_create(STINT_TRAIN, &g));
    const stint_value in = stint_input(g, inputs[0], &x);
    const stint_value want = stint_input(g, inputs[1], &y);
    const stint_session_desc desc = {
        .graph = g,
        .loss = stint_mean_squared_error(g, sti_edit_build(g, in, &t->form), want),
        .inputs = inputs,
        .input_count = 2,
        .fill = fill_shard,
        .user = t,
        .recipe = recipe};
    st = stint_session_open(&desc, &t->session);
out:
    stint_recipe_destroy(recipe);
    return st;
}

static stint_status train(edit_training *t, double *loss_out)
{
    stint_session_result r = {.loss = 0};
    const int64_t tail = t->desc->steps / 10 + 1;
    double sum = 0;
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < t->desc->steps && st == STINT_OK; i++) {
        st = stint_session_step(t->session, &r);
        sum += i >= t->desc->steps - tail ? r.loss : 0;
        if (st == STINT_OK && sti_stop_asked() != STINT_OK)
            st = sti_fail(sti_stop_asked(), "stopped while an edit was trained");
    }
    *loss_out = sum / (double)(t->desc->steps < tail ? t->desc->steps : tail);
    return st;
}

/* ---- the file ---- */

static stint_status write_edit(const edit_training *t, const char *path)
{
    sti_text form = {0}, scale = {0};
    const sti_edit_form *f = &t->form;
    sti_text_printf(&form,
                    "order %" PRId64 " outputs %" PRId64 " width %" PRId64
                    " depth %" PRId64 " features %" PRId64,
                    f->order, f->outputs, f->width, f->depth, f->features);
    for (int64_t i = 0; i < f->features; i++)
        sti_text_printf(&scale, "%s%a %a", i ? " " : "", (double)t->scale.mean[i],
                        (double)t->scale.inverse[i]);
    const stint_session_text texts[] = {{STI_EDIT_FORM, form.data},
                                        {STI_EDIT_SCALE, scale.data}};
    const stint_status st =
        form.failed || scale.failed
            ? STINT_E_MEMORY
            : stint_session_save(t->session, path, true, NULL, 0, texts, 2);
    sti_text_fini(&form);
    sti_text_fini(&scale);
    return st;
}

/* Mean square of what an edit has to change: the fields' own values beside targets. */
static double unedited_loss(const edit_training *t)
{
    double sum = 0;
    for (int64_t i = 0; i < t->points; i++)
        for (int64_t o = 0; o < t->form.outputs; o++) {
            const double d = (double)t->feature[i * t->form.features + o] -
                             (double)t->value[i * t->form.outputs + o];
            sum += d * d;
        }
    return sum / (double)(t->points * t->form.outputs);
}

static void close_training(edit_training *t)
{
    stint_session_close(t->session);
    for (int i = 0; t->target && i < t->desc->count; i++)
        sti_field_points_close(t->target[i]);
    sti_free(t->target);
    sti_free(t->feature);
    sti_free(t->value);
    sti_free(t->scale.mean);
    sti_free(t->scale.inverse);
}

stint_status stint_field_edit_train(const stint_field_edit_desc *desc, const char *path,
                                    stint_field_edit_result *result_out)
{
    const int64_t start_ns = sti_clock_ns();
    edit_training t = {.desc = desc};
    stint_field_edit_result r = {.loss = 0};
    stint_status st;
    if (desc->steps < 1 || desc->width < 0 || desc->width > STI_EDIT_WIDTH ||
        desc->depth < 0 || desc->depth > STI_EDIT_DEPTH)
        return sti_fail(
            STINT_E_USAGE,
            "an edit of %" PRId64 " steps, width %" PRId64 " and depth %" PRId64
            "; wanted 1 step or more, width up to %d and depth up to %d",
            desc->steps, desc->width, desc->depth, STI_EDIT_WIDTH, STI_EDIT_DEPTH);
    STI_TRY(check_fields(&t));
    STI_TRY(count_features(&t));
    STI_TRY(open_targets(&t));
    STI_TRY(take_memory(&t));
    STI_TRY(collect(&t));
    r.unedited = unedited_loss(&t);
    find_scale(&t);
    STI_TRY(open_session(&t));
    STI_TRY(train(&t, &r.loss));
    STI_TRY(write_edit(&t, path));
    r.points = t.points;
    r.features = t.form.features;
    r.seconds = sti_seconds_since(start_ns);
    *result_out = r;
out:
    close_training(&t);
    sti_stop_clear();
    return st;
}
