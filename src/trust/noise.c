/* The noise laboratory: make the runs of each arm, then measure how much they differ.
 */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/stop.h"
#include "model/network_recipe.h"
#include "train/recipe_inputs.h"
#include "train/recipe_view.h"
#include "trust/groups.h"
#include "trust/noise_metrics.h"
#include "trust/noise_runs.h"
#include "trust/noise_text.h"
#include "trust/state_log.h"

static stint_status open_test(sti_noise_lab *lab)
{
    const sti_recipe_view v = sti_recipe_view_of(lab->recipe);
    const char *format = sti_recipe_format(lab->recipe);
    if (sti_recipe_is_text(lab->recipe))
        return sti_noise_text_open(lab);
    if (!sti_data_has_part(v.data->path, format, STINT_DATA_TEST, v.data->nested))
        return sti_fail(STINT_E_INPUT,
                        "%s: has no test images, and the runs are told apart by their "
                        "answers to them",
                        v.data->path);
    const stint_data_desc desc = sti_recipe_data_desc(lab->recipe, STI_PART_TEST);
    return stint_data_open(&desc, &lab->test);
}

static stint_status count_samples(const sti_noise_lab *lab, int64_t *count_out)
{
    stint_data *train = NULL;
    const stint_data_desc desc = sti_recipe_data_desc(lab->recipe, STI_PART_TRAIN);
    if (lab->text.text) {
        *count_out = lab->text.train_count;
        return STINT_OK;
    }
    const stint_status st = stint_data_open(&desc, &train);
    if (st == STINT_OK)
        *count_out = stint_data_describe(train)->count;
    stint_data_close(train);
    return st;
}

/* Hashes for every step of short runs, and a thousand of long ones. */
static stint_status count_steps(sti_noise_lab *lab)
{
    const sti_recipe_view v = sti_recipe_view_of(lab->recipe);
    int64_t count = 0;
    const stint_status st = count_samples(lab, &count);
    lab->steps = v.train->steps > 0 ? v.train->steps
                                    : v.train->epochs * (count / v.train->batch);
    lab->hash_every = v.run->hash_every > 0 ? v.run->hash_every : 1 + lab->steps / 1000;
    return st;
}

static stint_status check(const stint_recipe *recipe, const stint_noise_desc *desc)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    stint_status st = stint_recipe_check(recipe);
    if (st != STINT_OK)
        return st;
    if (sti_recipe_is_field(recipe))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s is a field; noise is measured by the answers to test "
                        "images",
                        sti_recipe_network(recipe));
    if (sti_recipe_is_agent(recipe) || sti_recipe_is_clicks(recipe))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "the recipe is that of %s; noise is measured by the answers to "
                        "test images, or tokens",
                        sti_recipe_is_agent(recipe) ? "an agent" : "a model of clicks");
    if (desc->runs < 2)
        return sti_fail(STINT_E_USAGE,
                        "runs: %" PRId64 " run has nothing to differ from; give 2 or "
                        "more",
                        desc->runs);
    if (v.train->batch == 0)
        return sti_fail(STINT_E_USAGE,
                        "train.batch: auto would make the runs depend on the memory "
                        "that each gets; give a number of images");
    const bool impl = !desc->vary || strstr(desc->vary, "impl");
    if (impl && !desc->ulp && v.train->shards < 3)
        return sti_fail(STINT_E_USAGE,
                        "train.shards: %" PRId64 " can be summed in one order only, "
                        "which makes no implementation noise; use --shards 3 or more, "
                        "or --impl ulp",
                        v.train->shards);
    if (v.noise->order > 0 || v.noise->ulp > 0)
        return sti_fail(STINT_E_USAGE, "noise.order and noise.ulp are for the "
                                       "laboratory to set; leave them at 0");
    return STINT_OK;
}

/* ---- measuring ---- */

typedef struct noise_tables {
    int32_t *label;          /* [count] */
    const char *const *name; /* [classes] */
    sti_groups groups;
    int64_t count;
    int32_t classes;
} noise_tables;

static stint_status take_text_labels(const sti_noise_lab *lab, noise_tables *t)
{
    const char **name = NULL;
    t->count = sti_noise_text_count(lab);
    t->classes = sti_noise_text_classes(lab);
    t->label = sti_alloc_array(t->count, sizeof *t->label, "labels");
    stint_status st = t->label ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_noise_text_labels(lab, t->label);
    if (st == STINT_OK)
        st = sti_noise_text_names(lab, &name);
    t->name = name;
    return st;
}

static stint_status take_labels(const sti_noise_lab *lab, noise_tables *t)
{
    if (lab->text.text)
        return take_text_labels(lab, t);
    const stint_data_info *info = stint_data_describe(lab->test);
    t->count = info->count;
    t->classes = info->classes;
    t->name = info->class_names;
    t->label = sti_alloc_array(t->count, sizeof *t->label, "labels");
    for (int64_t i = 0; t->label && i < t->count; i++)
        t->label[i] = sti_data_label(lab->test, i);
    return t->label ? STINT_OK : STINT_E_MEMORY;
}

/* answers.npy of a run into memory of its own. */
static stint_status read_answers(const char *path, int64_t count, int32_t **out)
{
    sti_npy npy = {.rank = 0};
    stint_status st = path ? sti_npy_open(path, &npy) : STINT_E_MEMORY;
    if (st != STINT_OK)
        return st;
    if (npy.kind != 'i' || npy.item_bytes != 4 || npy.rank != 1 || npy.count != count)
        st = sti_fail(STINT_E_INPUT,
                      "%s: is not an answer for each of %" PRId64 " inputs", path,
                      count);
    else if (!(*out = sti_alloc_array(count, sizeof **out, "answers")))
        st = STINT_E_MEMORY;
    else
        memcpy(*out, npy.data, (size_t)count * sizeof **out);
    sti_npy_close(&npy);
    return st;
}

static stint_status measure_answers(sti_noise_lab *lab, int index,
                                    const noise_tables *t, stint_noise_arm *arm)
{
    const int64_t runs = lab->desc->runs;
    int32_t **answer = sti_alloc_array(runs, sizeof *answer, "answers");
    stint_status st = answer ? STINT_OK : STINT_E_MEMORY;
    for (int64_t r = 0; r < runs && st == STINT_OK; r++)
        st = lab->text.text
                 ? sti_noise_text_answers(
                       lab, sti_noise_run_path(lab, index, r, "model.safetensors"),
                       &answer[r])
                 : read_answers(sti_noise_run_path(lab, index, r, "answers.npy"),
                                t->count, &answer[r]);
    const sti_noise_table table = {.runs = runs,
                                   .count = t->count,
                                   .classes = t->classes,
                                   .label = t->label,
                                   .answer = (const int32_t *const *)answer,
                                   .group = t->groups.of,
                                   .groups = t->groups.count};
    if (st == STINT_OK)
        st = sti_noise_measure(&table, arm);
    for (int64_t r = 0; r < runs && st == STINT_OK; r++) {
        int64_t right = 0;
        for (int64_t i = 0; i < t->count; i++)
            right += answer[r][i] == t->label[i];
        arm->accuracy[r] = (double)right / (double)t->count;
    }
    for (int64_t r = 0; answer && r < runs; r++)
        sti_free(answer[r]);
    sti_free(answer);
    return st;
}

static stint_status measure_distance(sti_noise_lab *lab, int index,
                                     stint_noise_arm *arm)
{
    const int64_t runs = lab->desc->runs;
    const char **path = sti_arena_alloc(lab->matrix.arena, (size_t)runs * sizeof *path);
    if (!path)
        return STINT_E_MEMORY;
    for (int64_t r = 0; r < runs; r++)
        if (!(path[r] = sti_noise_run_path(lab, index, r, "model.safetensors")))
            return STINT_E_MEMORY;
    return sti_noise_distances(path, runs, &arm->distance, &arm->distance_normalised);
}

/* Against the first run: all are the same as each other only if they are as it. */
static stint_status measure_onset(sti_noise_lab *lab, int index, stint_noise_arm *arm,
                                  sti_arena *keep)
{
    sti_arena *arena = sti_arena_create("hashes");
    sti_state_log first, other;
    const char *path = sti_noise_run_path(lab, index, 0, "log.jsonl");
    stint_status st =
        arena && path ? sti_state_log_read(path, arena, &first) : STINT_E_MEMORY;
    arm->onset_step = -1;
    for (int64_t r = 1; r < lab->desc->runs && st == STINT_OK; r++) {
        sti_arena *own = sti_arena_create("hashes");
        int64_t step;
        const char *tensor;
        path = sti_noise_run_path(lab, index, r, "log.jsonl");
        st = own && path ? sti_state_log_read(path, own, &other) : STINT_E_MEMORY;
        if (st == STINT_OK && sti_state_log_part(&first, &other, &step, &tensor) &&
            (arm->onset_step < 0 || step < arm->onset_step)) {
            arm->onset_step = step;
            arm->onset_tensor = sti_arena_strdup(keep, tensor ? tensor : "");
            st = arm->onset_tensor ? STINT_OK : STINT_E_MEMORY;
        }
        sti_arena_destroy(own);
    }
    sti_arena_destroy(arena);
    return st;
}

static stint_noise_part *new_parts(sti_arena *arena, const char *const *name,
                                   int64_t count)
{
    stint_noise_part *part = sti_arena_alloc(arena, (size_t)(count + 1) * sizeof *part);
    for (int64_t i = 0; part && i < count; i++)
        if (!(part[i].name = sti_arena_strdup(arena, name[i])))
            return NULL;
    return part;
}

static stint_status measure_arm(sti_noise_lab *lab, int index, const noise_tables *t,
                                stint_noise_result *out)
{
    const sti_noise_vary *vary = &lab->vary[index];
    stint_noise_arm *arm = &out->arm[index];
    *arm = (stint_noise_arm){
        .name = sti_arena_strdup(out->arena, vary->name),
        .control = strcmp(vary->folder, "control") == 0,
        .accuracy = sti_arena_alloc(out->arena,
                                    (size_t)lab->desc->runs * sizeof *arm->accuracy),
        .class_part = new_parts(out->arena, t->name, t->classes),
        .group_part = new_parts(out->arena, t->groups.name, t->groups.count)};
    if (!arm->name || !arm->accuracy || !arm->class_part || !arm->group_part)
        return STINT_E_MEMORY;
    stint_status st = measure_answers(lab, index, t, arm);
    if (st == STINT_OK)
        st = measure_distance(lab, index, arm);
    if (st == STINT_OK)
        st = measure_onset(lab, index, arm, out->arena);
    if (st == STINT_OK && arm->control)
        out->control_zero = sti_noise_is_zero(arm, t->classes, t->groups.count);
    return st;
}

static stint_status measure(sti_noise_lab *lab, const noise_tables *t,
                            stint_noise_result *out)
{
    out->arm = sti_arena_alloc(out->arena, (size_t)lab->arms * sizeof *out->arm);
    if (!out->arm)
        return STINT_E_MEMORY;
    out->arms = lab->arms;
    out->classes = t->classes;
    out->groups = t->groups.count;
    out->inputs = t->count;
    out->control_zero = true;
    out->made = lab->made;
    out->kept = lab->kept;
    stint_status st = STINT_OK;
    for (int i = 0; i < lab->arms && st == STINT_OK; i++)
        st = measure_arm(lab, i, t, out);
    return st;
}

static stint_status work(sti_noise_lab *lab, stint_noise_result *out)
{
    noise_tables t = {.count = 0};
    stint_status st = sti_noise_arms(lab);
    if (st == STINT_OK)
        st = open_test(lab);
    if (st == STINT_OK)
        st = count_steps(lab);
    if (st == STINT_OK)
        st = take_labels(lab, &t);
    if (st == STINT_OK)
        st = sti_groups_init(&t.groups, lab->desc->group, lab->desc->group_count,
                             t.count);
    if (st == STINT_OK)
        st = sti_matrix_open(&lab->matrix, lab->recipe, lab->desc->program,
                             lab->desc->out);
    if (st == STINT_OK)
        st = sti_noise_manifest(lab);
    if (st == STINT_OK)
        st = sti_matrix_write_recipe(&lab->matrix);
    if (st == STINT_OK)
        st = sti_noise_run_all(lab);
    if (st == STINT_OK)
        st = measure(lab, &t, out);
    sti_free(t.label);
    sti_groups_fini(&t.groups);
    return st;
}

stint_status stint_trust_noise(const stint_recipe *recipe, const stint_noise_desc *desc,
                               stint_noise_result *out)
{
    sti_noise_lab lab = {.recipe = recipe, .desc = desc, .matrix = {.lock_fd = -1}};
    *out = (stint_noise_result){.arena = sti_arena_create("noise")};
    lab.arena = out->arena;
    stint_status st = out->arena ? check(recipe, desc) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = work(&lab, out);
    stint_data_close(lab.test);
    sti_inputs_close(&lab.text);
    sti_matrix_close(&lab.matrix);
    sti_stop_clear();
    if (st != STINT_OK)
        stint_noise_fini(out);
    return st;
}

void stint_noise_fini(stint_noise_result *result)
{
    if (result->arena)
        sti_arena_destroy(result->arena);
    *result = (stint_noise_result){0};
}
