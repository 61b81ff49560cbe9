/* A sample: the model's compression at one share, trained, written as a compact file,
 * read back and judged. Its folder holds the training's run and that file. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/stop.h"
#include "shrink/shrinker.h"
#include "stint/train.h"
#include "store/model_export.h"
#include "train/recipe_view.h"
#include "train/shrink_recipe.h"

/* Held out of the training of a sample whose model held out nothing. */
#define USUAL_VALIDATION "0.1"

/* ---- limits ---- */

bool sti_shrink_times(const stint_shrink_desc *desc)
{
    return desc->latency_s > 0 || desc->latency_share > 0 ||
           desc->objective == STINT_SHRINK_OBJECTIVE_LATENCY;
}

double sti_shrink_excess(const stint_shrink_desc *d, double bytes, double ms,
                         double base_ms)
{
    double most = 0;
    if (d->size_bytes > 0)
        most = bytes / (double)d->size_bytes;
    if (d->latency_s > 0)
        most = fmax(most, ms / (1000 * d->latency_s));
    if (d->latency_share > 0 && ms > 0)
        most = fmax(most, ms / (d->latency_share * base_ms));
    return most;
}

bool sti_sample_fits(const sti_shrinker *s, const sti_sample *sample)
{
    return sti_shrink_excess(s->desc, (double)sample->facts.bytes,
                             sample->facts.latency_ms, sample->ms) <= 1;
}

double sti_sample_slack(const sti_shrinker *s, const sti_sample *sample)
{
    const stint_shrink_desc *d = s->desc;
    const double drop = s->judge.base_accuracy - sample->facts.accuracy;
    const double of_drop = d->limits_drop ? d->accuracy_drop - drop : (double)INFINITY;
    const double of_mismatch = d->limits_mismatch
                                   ? d->mismatch - sample->facts.mismatch_rate
                                   : (double)INFINITY;
    return of_drop < of_mismatch ? of_drop : of_mismatch;
}

bool sti_sample_answers(const sti_shrinker *s, const sti_sample *sample)
{
    const stint_shrink_desc *d = s->desc;
    const double drop = s->judge.base_accuracy - sample->facts.accuracy;
    return (!d->limits_drop || drop <= d->accuracy_drop) &&
           (!d->limits_mismatch || sample->facts.mismatch_rate <= d->mismatch);
}

/* ---- the training ---- */

stint_status sti_sample_scheme(const sti_shrinker *s, double share, sti_text *out)
{
    sti_scheme_settle(s->scheme_text, &share, 1, out);
    return out->failed || !out->data
               ? sti_fail(STINT_E_MEMORY, "out of memory for a scheme")
               : STINT_OK;
}

static stint_status set_int(stint_recipe *recipe, const char *key, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return stint_recipe_set(recipe, key, text);
}

static stint_status recipe_of(const sti_shrinker *s, double share, uint64_t seed,
                              const char *folder, stint_recipe **recipe_out)
{
    stint_recipe *recipe = NULL;
    sti_text scheme = {0};
    stint_status st;
    STI_TRY(sti_recipe_copy(s->recipe, &recipe));
    STI_TRY(sti_sample_scheme(s, share, &scheme));
    STI_TRY(stint_recipe_set(recipe, "shrink.scheme", scheme.data));
    STI_TRY(set_int(recipe, "train.seed", seed));
    STI_TRY(stint_recipe_set(recipe, "run.out", folder));
    if (sti_shrink_chooses(recipe) && sti_train_section_of(recipe)->validation <= 0)
        STI_TRY(stint_recipe_set(recipe, "train.validation", USUAL_VALIDATION));
    *recipe_out = recipe;
    recipe = NULL;
out:
    sti_text_fini(&scheme);
    stint_recipe_destroy(recipe);
    return st;
}

/* A sample that a stopped search had not come to has nothing to go on from. */
static stint_status train(const sti_shrinker *s, const stint_recipe *recipe,
                          const char *folder, sti_sample *sample)
{
    stint_train_result result;
    char *checkpoints = sti_path_join(s->arena, folder, "checkpoints");
    if (!checkpoints)
        return STINT_E_MEMORY;
    const bool resume = s->desc->resume && sti_path_is_dir(checkpoints);
    sample->facts.reused = resume && sti_path_is_file(sample->dense_path);
    const stint_train_desc desc = {.resume = resume,
                                   .force =
                                       s->desc->force || (s->desc->resume && !resume),
                                   .progress = s->desc->progress,
                                   .user = s->desc->user};
    return stint_train(recipe, &desc, &result);
}

static stint_status write_compact(const char *dense, const char *path)
{
    stint_model_file *model = NULL;
    sti_compact_sizes sizes = {0};
    stint_status st = stint_model_open(dense, &model);
    if (st == STINT_OK)
        st = sti_model_write_compact(model, path, &sizes);
    stint_model_close(model);
    return st;
}

/* ---- what it is worth ---- */

/* Numbers of a weight that its file does without: zeros, or what the factors of a
 * product are fewer. */
static stint_status count_removed(sti_arena *arena, const stint_model_file *model,
                                  sti_tensor_file *run, const char *name,
                                  int64_t *removed)
{
    const sti_tensor_row *row = sti_tensor_file_find(model->file, name);
    sti_compact_factors factors;
    if (!row)
        return sti_fail(STINT_E_BUG, "shrink: no weights of %s", name);
    float *x = sti_arena_alloc(arena, row->bytes + 1);
    stint_status st = x ? sti_tensor_file_read(model->file, row, x) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_compact_find_factors(arena, run, row, &factors);
    if (st != STINT_OK)
        return st;
    const int64_t count = (int64_t)(row->bytes / sizeof *x);
    const int64_t columns = row->dim[row->rank - 1];
    if (factors.rank > 0)
        *removed += count - factors.rank * (count / columns + columns);
    for (int64_t i = 0; i < count && factors.rank == 0; i++)
        *removed += x[i] == 0;
    return STINT_OK;
}

/* The share of the weights of convolutions and dense layers. */
static stint_status share_removed(const stint_model_file *model, const char *run_path,
                                  double *share)
{
    const stint_graph *g = model->single.graph;
    sti_tensor_file *run = NULL;
    int64_t all = 0, removed = 0;
    sti_arena *arena = sti_arena_create("weights");
    stint_status st =
        arena ? sti_tensor_file_open(run_path, &run) : (stint_status)STINT_E_MEMORY;
    for (int32_t v = 0; v < sti_graph_value_count(g) && st == STINT_OK; v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role != STI_ROLE_PARAM || !sti_graph_is_weight(row))
            continue;
        all += stint_shape_count(&row->shape);
        st = count_removed(arena, model, run, row->name, &removed);
    }
    *share = all > 0 ? (double)removed / (double)all : 0;
    sti_tensor_file_close(run);
    sti_arena_destroy(arena);
    return st;
}

static stint_status judge(sti_shrinker *s, sti_sample *sample)
{
    stint_model_file *model = NULL;
    sti_verdict v;
    struct stat file;
    stint_status st;
    STI_TRY(stint_model_open(sample->path, &model));
    if (stat(sample->path, &file) != 0)
        STI_TRY(sti_fail_errno("%s: cannot be looked at", sample->path));
    STI_TRY(sti_judge_ask(&s->judge, model, &v));
    sample->facts.bytes = (int64_t)file.st_size;
    sample->facts.accuracy = v.accuracy;
    sample->facts.mismatch_rate = v.mismatch;
    sample->deviation = v.deviation;
    sample->test_accuracy = v.test_accuracy;
    sample->facts.latency_ms = sample->ms = (double)NAN;
    if (sti_shrink_times(s->desc))
        STI_TRY(sti_shrink_time_sample(s, model, sample));
    STI_TRY(sti_shrink_write_times(s));
    if (!sti_scheme_is_automatic(&s->scheme))
        STI_TRY(share_removed(model, sample->dense_path, &sample->facts.sparsity));
    sample->facts.met = sti_sample_fits(s, sample) && sti_sample_answers(s, sample);
out:
    stint_model_close(model);
    return st;
}

/* Share and seed name the folder: a sample is a function of both. */
static char *folder_of(const sti_shrinker *s, double share, uint64_t seed)
{
    char name[64];
    snprintf(name, sizeof name, "s%.6f-%" PRIu64, share, seed);
    return sti_path_join(s->arena, s->samples_folder, name);
}

static stint_status make(sti_shrinker *s, double share, uint64_t seed,
                         sti_sample *sample)
{
    stint_recipe *recipe = NULL;
    char *folder = folder_of(s, share, seed);
    sample->dense_path =
        folder ? sti_path_join(s->arena, folder, "model.safetensors") : NULL;
    sample->path =
        folder ? sti_path_join(s->arena, folder, "compact.safetensors") : NULL;
    stint_status st = sample->dense_path && sample->path ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = recipe_of(s, share, seed, folder, &recipe);
    if (st == STINT_OK)
        st = sti_shrink_write_times(s); /* why it is this share */
    if (st == STINT_OK)
        st = train(s, recipe, folder, sample);
    if (st == STINT_OK)
        st = write_compact(sample->dense_path, sample->path);
    if (st == STINT_OK)
        st = judge(s, sample);
    stint_recipe_destroy(recipe);
    return st;
}

stint_status sti_sample_take(sti_shrinker *s, double share, uint64_t seed, int *number)
{
    for (int i = 0; i < s->count; i++)
        if (s->sample[i].share == share && s->sample[i].facts.seed == seed) {
            *number = i;
            return STINT_OK;
        }
    if (s->count == STI_SAMPLES_MAX)
        return sti_fail(STINT_E_BUG, "shrink: more samples than there is room for");
    if (sti_stop_asked() != STINT_OK)
        return sti_fail(sti_stop_asked(), "stopped before sample %d", s->count + 1);
    sti_sample *sample = &s->sample[s->count];
    *sample = (sti_sample){.facts = {.sparsity = share, .seed = seed}, .share = share};
    stint_status st = make(s, share, seed, sample);
    if (st != STINT_OK)
        return st;
    *number = s->count++;
    if (s->desc->sampled)
        s->desc->sampled(s->desc->user, &sample->facts);
    return STINT_OK;
}
