/* stint_shrink: from a model and limits to a folder with what keeps them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/stop.h"
#include "base/team.h"
#include "base/units.h"
#include "shrink/shrinker.h"
#include "train/inputs.h"
#include "train/recipe_view.h"
#include "train/shrink_recipe.h"

#define SMALL_SCHEME "prune(auto)+quantise(int8)"
#define FAST_SCHEME  "pattern(8)+kernel(auto)"
/* Without convolutions of 3 x 3. */
#define FAST_SCHEME_ROWS "structure(auto,align=16)"

#define USUAL_SAMPLES 10

/* ---- the recipe ---- */

/* Sections that only the model's own training had, as a whole. */
static bool is_forgotten(const char *section)
{
    static const char *const sections[] = {"shrink", "update", "grow"};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (strcmp(section, sections[i]) == 0)
            return true;
    return false;
}

/* What only the model's own training had. */
static stint_status forget_training(stint_recipe *recipe)
{
    static const char *const keys[][2] = {
        {"train.select", "last"}, {"train.freeze_norm", "false"},
        {"train.patience", "0"},  {"train.average", "0"},
        {"train.time", "0s"},     {"loss.reference", ""},
        {"prune.sparsity", "0"},  {"quantise.bits", "0"},
        {"run.answers", "false"}, {"run.tensorboard", ""},
        {"noise.ulp", "0"},       {"noise.order", "0"}};
    stint_status st = STINT_OK;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && st == STINT_OK; i++)
        st = stint_recipe_set(recipe, keys[i][0], keys[i][1]);
    for (int i = 0; i < recipe->set.count && st == STINT_OK; i++)
        if (is_forgotten(recipe->set.rows[i].section))
            st = sti_option_default(&recipe->set, i);
    /* Batches were all that was asked for, where there were no epochs. */
    return st == STINT_OK && sti_train_section_of(recipe)->epochs > 0
               ? stint_recipe_set(recipe, "train.steps", "0")
               : st;
}

stint_status stint_shrink_recipe(const char *model_path, stint_recipe **recipe_out)
{
    stint_model_file *model = NULL;
    stint_recipe *recipe = NULL;
    stint_status st;
    STI_TRY(sti_model_open_for("shrink", model_path, &model));
    if (model->network.context)
        STI_TRY(sti_fail(STINT_E_UNSUPPORTED,
                         "%s: a text model; only networks that classify images are "
                         "shrunk",
                         model_path));
    if (model->network.field.coordinates > 0)
        STI_TRY(sti_fail(STINT_E_UNSUPPORTED,
                         "%s: a field; only networks that classify images are shrunk",
                         model_path));
    STI_TRY(sti_recipe_copy(model->recipe, &recipe));
    STI_TRY(forget_training(recipe));
    STI_TRY(stint_recipe_set(recipe, "train.start", sti_tensor_file_path(model->file)));
    *recipe_out = recipe;
    recipe = NULL;
out:
    stint_recipe_destroy(recipe);
    stint_model_close(model);
    return st;
}

/* ---- the beginning ---- */

/* Has it kernels that the scheme for times takes? It takes none of depthwise ones. */
static bool has_3x3(const stint_model_file *model)
{
    const stint_graph *g = model->single.graph;
    int found = 0;
    for (int32_t v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        const stint_shape *w = &row->shape; /* [kh, kw, c, co] */
        if (row->role != STI_ROLE_PARAM || !sti_graph_is_weight(row) || w->rank != 4 ||
            w->dim[0] != 3 || w->dim[1] != 3)
            continue;
        if (w->dim[2] == 1 && found > 0)
            return false;
        found++;
    }
    return found > 1; /* (the first convolution is left alone) */
}

static const char *choose_scheme(const sti_shrinker *s)
{
    const char *given = sti_shrink_section_of(s->recipe)->scheme;
    if (given)
        return given;
    if (!sti_shrink_times(s->desc))
        return SMALL_SCHEME;
    return has_3x3(s->model) ? FAST_SCHEME : FAST_SCHEME_ROWS;
}

/* A recipe that has the scheme in it, so that what depends on the method can ask it. */
static stint_status own_recipe(sti_shrinker *s, const stint_recipe *given)
{
    const sti_data_values *data = sti_data_section_of(given);
    if (!data->path || !*data->path)
        return sti_fail(STINT_E_USAGE,
                        "data.path: no images given; say where they are with --data "
                        "PATH: they train what is compressed, and judge it");
    stint_status st = sti_recipe_copy(given, &s->own);
    if (st == STINT_OK)
        st = stint_recipe_set(s->own, "shrink.scheme", choose_scheme(s));
    s->recipe = s->own;
    s->scheme_text = st == STINT_OK ? sti_shrink_section_of(s->own)->scheme : NULL;
    return st;
}

static bool is_limited(const stint_shrink_desc *d)
{
    return d->size_bytes > 0 || d->latency_s > 0 || d->latency_share > 0 ||
           d->limits_drop || d->limits_mismatch;
}

static stint_status check_limits(const sti_shrinker *s)
{
    const bool automatic = sti_scheme_is_automatic(&s->scheme);
    if (automatic && !is_limited(s->desc))
        return sti_fail(STINT_E_USAGE,
                        "shrink: the scheme %s leaves a share open; say what is wanted "
                        "by --size, --latency, --accuracy-drop or --mismatch, or give "
                        "the share",
                        s->scheme_text);
    if (sti_shrink_method_of(s->recipe) == STI_SHRINK_CLICK)
        return sti_fail(STINT_E_USAGE,
                        "shrink.method: click prunes in a training from new weights: "
                        "stint train RECIPE --scheme \"%s\"",
                        s->scheme_text);
    return STINT_OK;
}

/* What the scheme asks of the network, before anything is written. */
static stint_status check_network(const sti_shrinker *s)
{
    sti_projection *projection = NULL;
    const stint_status st =
        sti_shrink_create_projection(s->recipe, &s->model->single, true, &projection);
    sti_projection_destroy(projection);
    if (st == STINT_OK && sti_scheme_has(&s->scheme, STI_SCHEME_LOWRANK) &&
        sti_shrink_times(s->desc))
        sti_log(STINT_LOG_WARNING,
                "scheme: products of lowrank save bytes, but are computed with "
                "multiplied out, so they save no time");
    return st;
}

/* A sample of other classes would get a new classifier, and be another network than the
 * one it is judged beside. */
static stint_status check_classes(const sti_shrinker *s)
{
    const stint_data_desc desc = sti_recipe_data_desc(s->recipe, STI_PART_TRAIN);
    stint_data *data = NULL;
    stint_status st = stint_data_open(&desc, &data);
    if (st != STINT_OK)
        return st;
    const stint_data_info *info = stint_data_describe(data);
    if (!sti_inputs_same_classes(s->model, info))
        st = sti_fail(STINT_E_INPUT,
                      "shrink: the training images at %s are of %d classes, '%s' the "
                      "first, and the model tells %" PRId64
                      " apart, '%s' the first; a model that is shrunk keeps its "
                      "classes: give images of just these, or train it on by stint "
                      "finetune first",
                      info->path, (int)info->classes, info->class_names[0],
                      s->model->network.model.classes,
                      s->model->class_names ? s->model->class_names[0] : "0");
    stint_data_close(data);
    return st;
}

static stint_status name_files(sti_shrinker *s)
{
    const char *out = sti_run_section_of(s->recipe)->out;
    const char *network = sti_recipe_network(s->recipe);
    if (!out || !*out)
        out = sti_arena_printf(s->arena, "runs/%s-shrunk", network);
    s->out = out ? sti_path_absolute(s->arena, out) : NULL;
    if (!s->out)
        return STINT_E_MEMORY;
    s->samples_folder = sti_path_join(s->arena, s->out, "samples");
    s->model_path = sti_path_join(s->arena, s->out, "model.safetensors");
    return s->samples_folder && s->model_path ? STINT_OK : STINT_E_MEMORY;
}

/* The model that every sample begins from is never replaced, not by --force either. */
static stint_status check_folder(const sti_shrinker *s)
{
    const char *model = sti_tensor_file_path(s->model->file);
    if (sti_path_is_same(model, s->model_path))
        return sti_fail(STINT_E_USAGE,
                        "%s would be written over by its own answer; choose another "
                        "folder by --out",
                        model);
    if (s->desc->resume || s->desc->force)
        return STINT_OK;
    if (sti_path_is_file(s->model_path) || sti_path_is_dir(s->samples_folder))
        return sti_fail(STINT_E_USAGE,
                        "%s holds a shrunk model or samples of one already; go on by "
                        "--resume, replace it by --force, or choose another folder by "
                        "--out",
                        s->out);
    return STINT_OK;
}

stint_status sti_shrink_open(const stint_recipe *recipe, const stint_shrink_desc *desc,
                             sti_shrinker *s)
{
    const char *start = sti_train_section_of(recipe)->start;
    const char *why;
    stint_status st;
    *s = (sti_shrinker){.recipe = recipe, .desc = desc};
    s->arena = sti_arena_create("shrink");
    if (!s->arena)
        return STINT_E_MEMORY;
    STI_TRY(sti_threads_choose((int)sti_run_section_of(recipe)->threads, &s->threads,
                               &why));
    s->most = desc->samples > 0 ? desc->samples : USUAL_SAMPLES;
    if (s->most > STI_SAMPLES_MAX)
        s->most = STI_SAMPLES_MAX;
    if (!start)
        STI_TRY(
            sti_fail(STINT_E_USAGE, "shrink: no model to begin from (train.start)"));
    STI_TRY(sti_model_open_for("shrink", start, &s->model));
    STI_TRY(own_recipe(s, recipe));
    STI_TRY(sti_scheme_parse(s->scheme_text, &s->scheme));
    STI_TRY(check_limits(s));
    STI_TRY(check_network(s));
    STI_TRY(check_classes(s));
    STI_TRY(name_files(s));
    STI_TRY(sti_guess_create(s->model, s->recipe, s->scheme_text, &s->guess));
out:
    return st;
}

void sti_shrink_close(sti_shrinker *s)
{
    sti_guess_fini(&s->guess);
    sti_judge_fini(&s->judge);
    stint_recipe_destroy(s->own);
    stint_model_close(s->model);
    sti_arena_destroy(s->arena);
}

/* ---- the whole ---- */

/* What either of two kinds of limits allows: the smallest sample whose answers keep
 * theirs, and the best answers of what keeps size and latency. */
static void say_either(const sti_shrinker *s, sti_text *out)
{
    const stint_shrink_desc *d = s->desc;
    const sti_sample *good = NULL, *small = NULL;
    for (int i = 0; i < s->count; i++) {
        const sti_sample *x = &s->sample[i];
        if (sti_sample_answers(s, x) && (!good || x->facts.bytes < good->facts.bytes))
            good = x;
        if (sti_sample_fits(s, x) &&
            (!small || x->facts.accuracy > small->facts.accuracy))
            small = x;
    }
    if (good && (d->limits_drop || d->limits_mismatch)) {
        sti_text_printf(out, "; the answers asked for are kept by a file of %s",
                        sti_bytes_text((size_t)good->facts.bytes));
        if (sti_shrink_times(d))
            sti_text_printf(out, " and %.3g ms", good->facts.latency_ms);
    }
    if (small && (d->size_bytes > 0 || sti_shrink_times(d)))
        sti_text_printf(out,
                        "; within the size or latency asked for %.2f points are lost",
                        100 * (s->judge.base_accuracy - small->facts.accuracy));
}

/* Limits that nothing kept: with what comes nearest, and what either allows. */
static stint_status refuse(const sti_shrinker *s, const stint_shrink_result *r)
{
    sti_text words = {0};
    sti_text_printf(&words, "%s and %.2f points lost", sti_bytes_text((size_t)r->bytes),
                    100 * r->accuracy_drop);
    if (!isnan(r->latency_ms))
        sti_text_printf(&words, ", %.3g ms", r->latency_ms);
    say_either(s, &words);
    const stint_status st = sti_fail(
        STINT_E_BUDGET,
        "shrink: no sample keeps every limit; the nearest is in %s: %s; allow more, or "
        "give another scheme, method or more --samples",
        s->model_path, words.data ? words.data : "");
    sti_text_fini(&words);
    return st;
}

/* A training that was stopped says how it goes on, evaluations and timings do not. */
static stint_status say_how_on(stint_status st)
{
    const bool stopped = st == STINT_E_INTERRUPTED || st == STINT_E_TERMINATED;
    return stopped && !strstr(stint_last_error(), "--resume")
               ? sti_fail(st, "%s; --resume goes on", stint_last_error())
               : st;
}

stint_status stint_shrink(const stint_recipe *recipe, const stint_shrink_desc *desc,
                          stint_shrink_result *result)
{
    sti_shrinker *s = sti_alloc(sizeof *s, "shrink");
    *result = (stint_shrink_result){.bytes = 0};
    if (!s)
        return STINT_E_MEMORY;
    stint_status st;
    sti_stop_hold();
    STI_TRY(sti_shrink_open(recipe, desc, s));
    STI_TRY(check_folder(s));
    STI_TRY(sti_judge_open(s->model, s->recipe, s->threads, &s->judge));
    STI_TRY(sti_shrink_read_times(s));
    STI_TRY(sti_shrink_search(s));
    const sti_sample *best = sti_shrink_choose(s);
    sti_guess_fini(&s->guess); /* (of no use any more, and large) */
    STI_TRY(sti_shrink_finish(s, best, result));
    STI_TRY(sti_shrink_write_page(s, result));
    if (!best->facts.met)
        st = refuse(s, result);
out:
    sti_stop_let_go();
    sti_shrink_close(s);
    sti_free(s);
    return say_how_on(st);
}

void stint_shrink_fini(stint_shrink_result *result)
{
    sti_free(result->samples);
    sti_free(result->layers);
    result->samples = NULL;
    result->layers = NULL;
    result->sample_count = result->layer_count = 0;
}
