/* stint_shrink: from a model and limits to a folder with what keeps them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/search.h"
#include "base/units.h"
#include "shrink/shrinker.h"
#include "train/job.h"
#include "train/recipe_view.h"
#include "train/shrink_recipe.h"

#define SMALL_SCHEME "prune(auto)+quantise(int8)"
#define FAST_SCHEME  "pattern(8)+kernel(auto)"
/* Without convolutions of 3 x 3. */
#define FAST_SCHEME_ROWS "structure(auto,align=16)"

#define WIDTH         0.005 /* of a bracket that is narrow enough */
#define USED          0.95  /* of a size that is allowed: enough */
#define USUAL_SAMPLES 10

/* ---- the recipe ---- */

/* What only the model's own training had. */
static stint_status forget_training(stint_recipe *recipe)
{
    static const char *const keys[][2] = {
        {"train.select", "last"}, {"train.freeze_norm", "false"},
        {"train.patience", "0"},  {"loss.reference", ""},
        {"prune.sparsity", "0"},  {"quantise.bits", "0"},
        {"train.steps", "0"},     {"run.answers", "false"},
        {"run.tensorboard", ""},  {"noise.ulp", "0"},
        {"noise.order", "0"}};
    stint_status st = STINT_OK;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && st == STINT_OK; i++)
        st = stint_recipe_set(recipe, keys[i][0], keys[i][1]);
    for (int i = 0; i < recipe->set.count && st == STINT_OK; i++)
        if (strcmp(recipe->set.rows[i].section, "shrink") == 0)
            st = sti_option_default(&recipe->set, i);
    return st;
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

static bool has_3x3(const stint_model_file *model)
{
    const stint_graph *g = model->single.graph;
    int found = 0;
    for (int32_t v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role == STI_ROLE_PARAM && sti_graph_is_weight(row) &&
            row->shape.rank == 4 && row->shape.dim[0] == 3 && row->shape.dim[1] == 3)
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
    if (st == STINT_OK && sti_scheme_has(&s->scheme, STI_SCHEME_LOWRANK))
        sti_log(STINT_LOG_WARNING,
                "scheme: products of lowrank are kept multiplied out, so they save no "
                "bytes and no time yet");
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

static stint_status open_shrinker(const stint_recipe *recipe,
                                  const stint_shrink_desc *desc, sti_shrinker *s)
{
    const char *start = sti_train_section_of(recipe)->start;
    *s = (sti_shrinker){.recipe = recipe, .desc = desc};
    stint_status st;
    s->arena = sti_arena_create("shrink");
    if (!s->arena)
        return STINT_E_MEMORY;
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
    STI_TRY(name_files(s));
    STI_TRY(sti_guess_create(s->model, s->recipe, s->scheme_text, &s->guess));
out:
    return st;
}

static void close_shrinker(sti_shrinker *s)
{
    sti_guess_fini(&s->guess);
    sti_judge_fini(&s->judge);
    stint_recipe_destroy(s->own);
    stint_model_close(s->model);
    sti_arena_destroy(s->arena);
}

/* ---- searches ---- */

static uint64_t seed_of(const sti_shrinker *s, int repeat)
{
    return (uint64_t)sti_train_section_of(s->recipe)->seed + (uint64_t)repeat;
}

/* How much of what may be lost is left: the least of the limits on answers. */
static double slack(const sti_shrinker *s, const sti_sample *sample)
{
    const stint_shrink_desc *d = s->desc;
    const double drop = s->judge.base_accuracy - sample->facts.accuracy;
    const double of_drop = d->limits_drop ? d->accuracy_drop - drop : (double)INFINITY;
    const double of_mismatch = d->limits_mismatch
                                   ? d->mismatch - sample->facts.mismatch_rate
                                   : (double)INFINITY;
    return of_drop < of_mismatch ? of_drop : of_mismatch;
}

static stint_status try_share(void *user, double share, int repeat, double *value,
                              double *deviation)
{
    sti_shrinker *s = user;
    int number;
    /* Six digits stand in the scheme, so they are the share. */
    share = round(share * 1e6) / 1e6;
    stint_status st = sti_sample_take(s, share, seed_of(s, repeat), &number);
    if (st != STINT_OK)
        return st;
    *value = slack(s, &s->sample[number]);
    *deviation = s->sample[number].deviation;
    return STINT_OK;
}

/* The largest share whose answers keep the limits. */
static stint_status search_answers(sti_shrinker *s, int samples)
{
    const sti_search_desc desc = {
        .low = 0, .high = STI_SHARE_MAX, .width = WIDTH, .samples = samples};
    sti_search_result found;
    stint_status (*const ways[])(const sti_search_desc *, sti_search_fn *, void *,
                                 sti_search_result *) = {
        [STINT_SHRINK_SEARCH_BISECT] = sti_search_bisect,
        [STINT_SHRINK_SEARCH_BAYES] = sti_search_bayes,
        [STINT_SHRINK_SEARCH_GRID] = sti_search_grid};
    const stint_status st = ways[s->desc->search](&desc, try_share, s, &found);
    s->low = found.low;
    s->high = found.high;
    return st;
}

/* Shares whose file is as large as is allowed, once trained: training changes how many
 * bytes the numbers take, so the guess is corrected by what the sample before took. */
static stint_status search_size(sti_shrinker *s)
{
    const double allowed = (double)s->desc->size_bytes;
    double aim = allowed;
    int64_t least;
    stint_status st = sti_guess_bytes(&s->guess, STI_SHARE_MAX, NULL, &least, NULL);
    for (int i = 0; i < s->most && st == STINT_OK; i++) {
        const int before = s->count;
        double share;
        int64_t guessed;
        int number;
        st = sti_guess_share(&s->guess, STI_SHARE_MAX, aim, &share);
        share = ceil(share * 1e6) / 1e6;
        if (st == STINT_OK)
            st = sti_guess_bytes(&s->guess, share, NULL, &guessed, NULL);
        if (st == STINT_OK)
            st = sti_sample_take(s, share, seed_of(s, 0), &number);
        if (st != STINT_OK)
            return st;
        const double bytes = (double)s->sample[number].facts.bytes;
        if (bytes <= allowed && (bytes >= USED * allowed || share == 0))
            break;
        if (s->count == before)
            break; /* the share that was tried already: nothing nearer is left */
        aim = fmax((double)guessed * 0.5 * (1 + USED) * allowed / bytes, (double)least);
    }
    return st;
}

/* The times of a model do not follow from its share by a rule: halving again, by what
 * is measured. */
static stint_status try_latency(void *user, double share, int repeat, double *value,
                                double *deviation)
{
    sti_shrinker *s = user;
    int number;
    /* (The search looks for the last that holds, and times fall with the share.) */
    share = round((STI_SHARE_MAX - share) * 1e6) / 1e6;
    stint_status st = sti_sample_take(s, share, seed_of(s, repeat), &number);
    *deviation = 0;
    if (st == STINT_OK)
        *value = sti_sample_fits(s, &s->sample[number]) ? 1 : -1;
    return st;
}

static stint_status search_latency(sti_shrinker *s)
{
    const sti_search_desc desc = {
        .low = 0, .high = STI_SHARE_MAX, .width = 0.02, .samples = s->most};
    sti_search_result found;
    return sti_search_bisect(&desc, try_latency, s, &found);
}

static bool limits_answers(const stint_shrink_desc *d)
{
    return d->limits_drop || d->limits_mismatch;
}

static bool any_met(const sti_shrinker *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->sample[i].facts.met)
            return true;
    return false;
}

static stint_status search(sti_shrinker *s)
{
    const stint_shrink_desc *d = s->desc;
    stint_status st = STINT_OK;
    int number;
    if (!sti_scheme_is_automatic(&s->scheme))
        return sti_sample_take(s, 0, seed_of(s, 0), &number);
    if (d->size_bytes > 0)
        st = search_size(s);
    else if (d->latency_s > 0 || d->latency_share > 0)
        st = search_latency(s);
    if (st != STINT_OK || !limits_answers(d) || any_met(s) || s->count >= s->most)
        return st;
    return search_answers(s, s->most - s->count);
}

/* ---- the choice ---- */

/* Size and latency over their limits: the larger of the ratios. */
static double excess(const sti_shrinker *s, const sti_sample *sample)
{
    const stint_shrink_desc *d = s->desc;
    const double ms = sample->facts.latency_ms;
    double most = 0;
    if (d->size_bytes > 0)
        most = (double)sample->facts.bytes / (double)d->size_bytes;
    if (d->latency_s > 0)
        most = fmax(most, ms / (1000 * d->latency_s));
    if (d->latency_share > 0)
        most = fmax(most, ms / (d->latency_share * sample->ms));
    return most;
}

/* Is a the better one? What keeps all limits comes first, then what keeps size and
 * latency, or is nearest to them, then what keeps the answers. */
static bool is_better(const sti_shrinker *s, const sti_sample *a, const sti_sample *b)
{
    const stint_shrink_desc *d = s->desc;
    const bool hard = d->size_bytes > 0 || d->latency_s > 0 || d->latency_share > 0;
    if (a->facts.met != b->facts.met)
        return a->facts.met;
    if (sti_sample_fits(s, a) != sti_sample_fits(s, b))
        return sti_sample_fits(s, a);
    if (!sti_sample_fits(s, a))
        return excess(s, a) < excess(s, b);
    if (hard)
        return a->facts.accuracy > b->facts.accuracy;
    if (!a->facts.met)
        return slack(s, a) > slack(s, b);
    if (d->objective == STINT_SHRINK_OBJECTIVE_LATENCY)
        return a->facts.latency_ms < b->facts.latency_ms;
    return a->facts.bytes < b->facts.bytes;
}

static const sti_sample *choose(const sti_shrinker *s)
{
    const sti_sample *best = &s->sample[0];
    for (int i = 1; i < s->count; i++)
        if (is_better(s, &s->sample[i], best))
            best = &s->sample[i];
    return best;
}

/* ---- the whole ---- */

/* Limits that nothing kept: with what comes nearest, and what either allows. */
static stint_status refuse(const sti_shrinker *s, const stint_shrink_result *r)
{
    const stint_shrink_desc *d = s->desc;
    sti_text words = {0};
    sti_text_printf(&words, "%s and %.2f points lost", sti_bytes_text((size_t)r->bytes),
                    100 * r->accuracy_drop);
    if (!isnan(r->latency_ms))
        sti_text_printf(&words, ", %.3g ms", r->latency_ms);
    if (d->limits_drop && d->size_bytes > 0)
        for (int i = 0; i < s->count; i++)
            if (sti_sample_answers(s, &s->sample[i]))
                sti_text_printf(&words, "; %.2f points are kept by a file of %s",
                                100 * d->accuracy_drop,
                                sti_bytes_text((size_t)s->sample[i].facts.bytes));
    const stint_status st = sti_fail(
        STINT_E_BUDGET,
        "shrink: no sample keeps every limit; the nearest is in %s: %s; allow more, or "
        "give another scheme, method or more --samples",
        s->model_path, words.data ? words.data : "");
    sti_text_fini(&words);
    return st;
}

stint_status stint_shrink(const stint_recipe *recipe, const stint_shrink_desc *desc,
                          stint_shrink_result *result)
{
    sti_shrinker *s = sti_alloc(sizeof *s, "shrink");
    *result = (stint_shrink_result){.bytes = 0};
    if (!s)
        return STINT_E_MEMORY;
    stint_status st;
    STI_TRY(open_shrinker(recipe, desc, s));
    STI_TRY(check_folder(s));
    STI_TRY(sti_judge_open(s->model, s->recipe, &s->judge));
    STI_TRY(search(s));
    const sti_sample *best = choose(s);
    STI_TRY(sti_shrink_finish(s, best, result));
    STI_TRY(sti_shrink_write_page(s, result));
    if (!best->facts.met)
        st = refuse(s, result);
out:
    close_shrinker(s);
    sti_free(s);
    return st;
}

void stint_shrink_fini(stint_shrink_result *result)
{
    sti_free(result->samples);
    sti_free(result->layers);
    result->samples = NULL;
    result->layers = NULL;
    result->sample_count = result->layer_count = 0;
}

/* ---- planning ---- */

static const double plan_shares[] = {0,    0.1,  0.2,  0.3,  0.4,   0.5,  0.6,
                                     0.7,  0.75, 0.8,  0.85, 0.9,   0.92, 0.94,
                                     0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995};

static stint_status guess_all(sti_shrinker *s, stint_shrink_plan_result *r)
{
    const bool automatic = sti_scheme_is_automatic(&s->scheme);
    const int count = automatic ? (int)(sizeof plan_shares / sizeof plan_shares[0]) : 1;
    stint_status st = STINT_OK;
    for (int i = 0; i < count && st == STINT_OK; i++) {
        stint_shrink_guess *g = &r->guesses[r->guess_count++];
        g->sparsity = plan_shares[i];
        st = sti_guess_bytes(&s->guess, g->sparsity, NULL, &g->bytes, &g->nonzeros);
    }
    r->samples = automatic ? s->most : 1;
    return st;
}

static stint_status count_steps(const sti_shrinker *s, int64_t *steps)
{
    const sti_train_values *train = sti_train_section_of(s->recipe);
    int64_t images, epoch;
    stint_status st = sti_job_count_images(s->recipe, &images);
    if (st != STINT_OK)
        return st;
    if (sti_shrink_chooses(s->recipe) && train->validation <= 0)
        images -= images / 10; /* what a sample holds out */
    epoch = train->batch > 0 && images >= train->batch ? images / train->batch : 1;
    *steps = sti_shrink_steps(s->recipe, epoch,
                              train->steps > 0 ? train->steps : train->epochs * epoch);
    return STINT_OK;
}

stint_status stint_shrink_plan(const stint_recipe *recipe,
                               const stint_shrink_desc *desc,
                               stint_shrink_plan_result *result)
{
    sti_shrinker *s = sti_alloc(sizeof *s, "shrink");
    *result = (stint_shrink_plan_result){.guess_count = 0};
    if (!s)
        return STINT_E_MEMORY;
    stint_status st;
    STI_TRY(open_shrinker(recipe, desc, s));
    snprintf(result->scheme, sizeof result->scheme, "%s", s->scheme_text);
    snprintf(result->method, sizeof result->method, "%s",
             sti_shrink_method_name(s->recipe));
    result->base_bytes = s->model->parameters * (int64_t)sizeof(float);
    STI_TRY(guess_all(s, result));
    STI_TRY(count_steps(s, &result->sample_steps));
out:
    close_shrinker(s);
    sti_free(s);
    return st;
}
