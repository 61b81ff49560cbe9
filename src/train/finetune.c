/* stint_finetune: from a model and data to a run's folder. */
#include "train/finetune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "train/batch_auto.h"
#include "train/job.h"
#include "train/moments.h"
#include "train/plan_refusal.h"
#include "train/recipe_view.h"
#include "train/sparse_search.h"
#include "train/what_fits.h"

/* ---- what is trained ---- */

static int count_gradients(const stint_graph *g)
{
    int count = 0;
    for (int32_t i = 0; i < sti_graph_output_count(g); i++)
        count += sti_graph_outputs(g)[i].kind == STI_OUTPUT_GRADIENT;
    return count;
}

static double share_of(const sti_job *job, const char *name)
{
    const sti_update_tensor *t = sti_update_set_find(&job->inputs.update, name);
    return t ? (double)t->share / STI_SHARE_WHOLE : 1;
}

static double gain_of(const sti_job *job, const char *name)
{
    const sti_update_tensor *t = sti_update_set_find(&job->inputs.update, name);
    return t ? t->gain : (double)NAN;
}

/* Parameters that have a gradient, and what the training keeps for each. */
static stint_status list_tensors(const sti_job *job, stint_finetune_scheme *scheme)
{
    const stint_graph *g = job->setup.train.graph;
    const int count = count_gradients(g);
    scheme->tensors = sti_alloc_array(count, sizeof *scheme->tensors, "scheme");
    if (!scheme->tensors)
        return STINT_E_MEMORY;
    for (int32_t i = 0; i < sti_graph_output_count(g); i++) {
        const sti_output *output = &sti_graph_outputs(g)[i];
        if (output->kind != STI_OUTPUT_GRADIENT)
            continue;
        const stint_shape shape = stint_value_shape(g, output->value);
        stint_finetune_tensor *t = &scheme->tensors[scheme->tensor_count++];
        snprintf(t->tensor, sizeof t->tensor, "%s",
                 stint_value_name(g, output->target));
        t->share = output->channel_count > 0 ? share_of(job, t->tensor) : 1;
        t->gain = gain_of(job, t->tensor);
        t->bytes =
            (int64_t)stint_shape_bytes(&shape) * (int64_t)(1 + job->setup.moments);
    }
    return STINT_OK;
}

/* The same step with everything trained. */
static stint_status compare_full(const stint_recipe *recipe, const sti_job *job,
                                 stint_finetune_scheme *scheme)
{
    stint_recipe *full = NULL;
    sti_job other = {.steps = 0};
    stint_status st;
    if (sti_update_section_of(recipe)->what == STI_UPDATE_FULL) {
        scheme->step_share = 1;
        scheme->full_peak_bytes = job->plan.result.peak_bytes;
        return STINT_OK;
    }
    STI_TRY(sti_recipe_copy(recipe, &full));
    STI_TRY(stint_recipe_set(full, "update.tensors", ""));
    STI_TRY(stint_recipe_set(full, "update.what", "full"));
    STI_TRY(stint_recipe_set(full, "update.frozen", "f32"));
    STI_TRY(stint_recipe_set(full, "run.memory", "auto"));
    STI_TRY(sti_job_create(full, NULL, &other));
    scheme->full_peak_bytes = other.plan.result.peak_bytes;
    scheme->step_share = sti_network_step_flop(&job->setup.train) /
                         sti_network_step_flop(&other.setup.train);
out:
    sti_job_fini(&other);
    stint_recipe_destroy(full);
    return st;
}

static stint_status describe(const stint_recipe *recipe, sti_job *job,
                             stint_finetune_scheme *scheme)
{
    const stint_model_file *start = job->inputs.start;
    stint_status st;
    if (!job->plan.result.smallest_bytes && !job->plan.result.stage_too_large)
        STI_TRY(sti_find_what_fits(&job->setup, &job->plan));
    scheme->parameters = sti_network_parameters(&job->setup.train);
    scheme->trained_parameters = sti_network_trained(&job->setup.train);
    scheme->peak_bytes = job->plan.result.peak_bytes;
    scheme->smallest_bytes = job->plan.result.smallest_bytes;
    snprintf(scheme->start_sha256, sizeof scheme->start_sha256, "%s",
             start->weights_sha256 ? start->weights_sha256 : "");
    STI_TRY(list_tensors(job, scheme));
    STI_TRY(compare_full(recipe, job, scheme));
out:
    return st;
}

static stint_status find_scheme(const stint_recipe *recipe,
                                stint_finetune_scheme *scheme)
{
    sti_job job = {.steps = 0};
    stint_status st;
    STI_TRY(stint_recipe_check(recipe));
    STI_TRY(sti_job_create(recipe, NULL, &job));
    STI_TRY(sti_job_check_budget(&job));
    STI_TRY(describe(recipe, &job, scheme));
out:
    sti_job_fini(&job);
    return st;
}

/* ---- before anything is made ---- */

/* batch = auto becomes a number, once for plan, comparison and training. resume: of the
 * run that lies in the out folder; probe: batches are tried. */
static stint_status settle_batch(stint_recipe **recipe, bool resume, bool probe)
{
    const char *out = sti_run_section_of(*recipe)->out;
    sti_arena *arena = NULL;
    const char *place = NULL;
    stint_recipe *settled = NULL;
    sti_job job = {.steps = 0};
    stint_status st;
    if (sti_train_section_of(*recipe)->batch > 0)
        return STINT_OK;
    STI_TRY(stint_recipe_check(*recipe));
    if (resume && out) {
        arena = sti_arena_create("finetune");
        place = arena ? sti_path_absolute(arena, out) : NULL;
        STI_TRY(place ? STINT_OK : STINT_E_MEMORY);
    }
    STI_TRY(sti_batch_create_job(*recipe, NULL, place, probe, &settled, &job));
    stint_recipe_destroy(*recipe);
    *recipe = settled;
    settled = NULL;
out:
    sti_job_fini(&job);
    stint_recipe_destroy(settled);
    sti_arena_destroy(arena);
    return st;
}

/* What a search comes to is a part: what no part can be trained with is said before. */
static stint_status check_part(const stint_recipe *recipe)
{
    stint_recipe *part = NULL;
    stint_status st;
    if (sti_train_section_of(recipe)->batch == 0)
        return sti_fail(STINT_E_USAGE,
                        "train.batch: auto fills the memory that a search shares out; "
                        "give a number by --batch");
    STI_TRY(sti_recipe_copy(recipe, &part));
    STI_TRY(stint_recipe_set(part, "update.what", "last"));
    STI_TRY(stint_recipe_check(part));
out:
    stint_recipe_destroy(part);
    return st;
}

/* ---- searching ---- */

static sti_sparse_desc sparse_desc(const stint_recipe *recipe,
                                   const stint_finetune_desc *desc)
{
    return (sti_sparse_desc){.memory_bytes = sti_run_section_of(recipe)->memory_bytes,
                             .step_share = desc->step_share,
                             .step_s = desc->step_s,
                             .gains = desc->gains,
                             .measured = desc->measured};
}

/* The scheme as a list in the recipe, with the gains that chose its channels. */
static stint_status write_scheme(stint_recipe *recipe, const sti_update_set *set,
                                 const char *gains_path)
{
    sti_text list = {0};
    stint_status st;
    sti_update_set_print(set, &list);
    STI_TRY(list.failed ? STINT_E_MEMORY : STINT_OK);
    STI_TRY(stint_recipe_set(recipe, "update.what", "tensors"));
    STI_TRY(stint_recipe_set(recipe, "update.tensors", list.data));
    STI_TRY(stint_recipe_set(recipe, "update.gains", gains_path));
out:
    sti_text_fini(&list);
    return st;
}

/* A run that goes on has its scheme already. */
static stint_status take_scheme(stint_recipe *recipe, const char *out, sti_arena *arena)
{
    const char *path = sti_path_join(arena, out, "recipe.ini");
    stint_recipe *then = NULL;
    stint_status st;
    if (!path)
        return STINT_E_MEMORY;
    STI_TRY(stint_recipe_load(path, &then));
    const sti_update_values *update = sti_update_section_of(then);
    if (update->what != STI_UPDATE_TENSORS || !update->tensors)
        STI_TRY(sti_fail(STINT_E_USAGE,
                         "%s: its run was not one whose scheme was searched for; "
                         "resume it with the --what it had",
                         path));
    STI_TRY(stint_recipe_set(recipe, "update.what", "tensors"));
    STI_TRY(stint_recipe_set(recipe, "update.tensors", update->tensors));
    STI_TRY(
        stint_recipe_set(recipe, "update.gains", update->gains ? update->gains : ""));
out:
    stint_recipe_destroy(then);
    return st;
}

/* Without one the run was stopped before its search was over. */
static bool has_recipe(const char *out, sti_arena *arena)
{
    const char *path = sti_path_join(arena, out, "recipe.ini");
    return path && sti_path_is_file(path);
}

/* What a search found, until it is known that it can be run. */
typedef struct finding {
    sti_update_set set;
    sti_gains gains;
    size_t tried_bytes; /* planned peak of the search itself */
} finding;

static void finding_fini(finding *f)
{
    sti_update_set_fini(&f->set);
    sti_gains_fini(&f->gains);
}

/* The run's plan counts what the process took before. */
static void note_tried(stint_recipe *recipe, size_t bytes,
                       stint_finetune_scheme *scheme)
{
    sti_run_values *run = sti_recipe_edit(recipe, &sti_run_section);
    run->tried_bytes = bytes;
    if (scheme->peak_bytes < bytes)
        scheme->peak_bytes = bytes;
}

static stint_status search_into(stint_recipe *recipe, const stint_finetune_desc *desc,
                                const char *out, sti_arena *arena, finding *found)
{
    sti_sparse_desc limits = sparse_desc(recipe, desc);
    sti_sparse *sparse = NULL;
    sti_sparse_facts facts;
    stint_status st;
    STI_TRY(check_part(recipe));
    if (desc->measured) {
        STI_TRY(sti_dir_create(out));
        limits.kept = sti_path_join(arena, out, "gains.json");
        STI_TRY(limits.kept ? STINT_OK : STINT_E_MEMORY);
    }
    STI_TRY(sti_sparse_create(recipe, &limits, &sparse));
    STI_TRY(sti_sparse_choose(sparse, limits.memory_bytes, &found->set, &facts));
    found->tried_bytes = sti_sparse_tried_bytes(sparse);
    sti_sparse_take_gains(sparse, &found->gains);
    STI_TRY(write_scheme(recipe, &found->set, ""));
out:
    sti_sparse_destroy(sparse);
    sti_memory_trim();
    return st;
}

/* The gains beside the run, which chooses the channels by them. */
static stint_status keep_gains(stint_recipe *recipe, const char *out, sti_arena *arena,
                               const finding *found)
{
    const char *path = sti_path_join(arena, out, "gains.json");
    stint_status st = path ? sti_dir_create(out) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_gains_write(&found->gains, path);
    return st == STINT_OK ? stint_recipe_set(recipe, "update.gains", path) : st;
}

static void list_gains(const sti_update_set *set, stint_finetune_scheme *scheme)
{
    for (int i = 0; i < scheme->tensor_count; i++) {
        const sti_update_tensor *t =
            sti_update_set_find(set, scheme->tensors[i].tensor);
        if (t)
            scheme->tensors[i].gain = t->gain;
    }
}

/* The least that a search can come to is still too much. */
static stint_status say_least(stint_status st, const finding *found)
{
    char why[1024];
    if (st != STINT_E_BUDGET)
        return st;
    snprintf(why, sizeof why, "%s", stint_last_error());
    return sti_fail(st, "%s; it would train %d tensor%s, of which the last is %s", why,
                    found->set.count, found->set.count == 1 ? "" : "s",
                    found->set.tensor[found->set.count - 1].name);
}

static stint_status search(stint_recipe *recipe, const stint_finetune_desc *desc,
                           stint_finetune_scheme *scheme)
{
    sti_arena *arena = sti_arena_create("finetune");
    const char *out =
        arena ? sti_path_absolute(arena, sti_run_section_of(recipe)->out) : NULL;
    finding found = {.set = {.count = 0}};
    stint_status st = out ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    if (desc->resume && has_recipe(out, arena)) {
        STI_TRY(take_scheme(recipe, out, arena));
        STI_TRY(find_scheme(recipe, scheme));
        goto out;
    }
    STI_TRY(search_into(recipe, desc, out, arena, &found));
    STI_TRY(say_least(find_scheme(recipe, scheme), &found));
    note_tried(recipe, found.tried_bytes, scheme);
    STI_TRY(keep_gains(recipe, out, arena, &found));
    list_gains(&found.set, scheme);
out:
    finding_fini(&found);
    sti_arena_destroy(arena);
    return st;
}

/* ---- plans of a search ---- */

/* Budgets from the least to the full step's peak. */
static stint_status list_budgets(sti_sparse *sparse, stint_finetune_scheme *scheme)
{
    static const double parts[5] = {0.1, 0.25, 0.5, 0.75, 1};
    size_t least, full;
    stint_status st = STINT_OK;
    sti_sparse_range(sparse, &least, &full);
    for (int i = 0; i < 5 && st == STINT_OK; i++) {
        sti_update_set set = {.count = 0};
        sti_sparse_facts f;
        const size_t budget =
            least + (size_t)(parts[i] * (double)(full > least ? full - least : 0));
        st = sti_sparse_choose(sparse, budget, &set, &f);
        if (st != STINT_OK)
            break;
        scheme->budgets[scheme->budget_count++] = (struct stint_finetune_budget){
            budget, f.peak_bytes, f.step_share, f.gain, f.trained};
        sti_update_set_fini(&set);
    }
    return st;
}

static stint_status plan_search(stint_recipe *recipe, const stint_finetune_desc *desc,
                                stint_finetune_scheme *scheme)
{
    const sti_sparse_desc limits = sparse_desc(recipe, desc);
    sti_sparse *sparse = NULL;
    sti_update_set set = {.count = 0};
    sti_sparse_facts facts;
    stint_finetune_scheme budgets = {.budget_count = 0};
    size_t tried_bytes;
    stint_status st;
    STI_TRY(check_part(recipe));
    STI_TRY(sti_sparse_create(recipe, &limits, &sparse));
    STI_TRY(sti_sparse_choose(sparse, limits.memory_bytes, &set, &facts));
    STI_TRY(list_budgets(sparse, &budgets));
    tried_bytes = sti_sparse_tried_bytes(sparse);
    sti_sparse_destroy(sparse);
    sparse = NULL;
    STI_TRY(write_scheme(recipe, &set, ""));
    STI_TRY(find_scheme(recipe, scheme));
    note_tried(recipe, tried_bytes, scheme);
    list_gains(&set, scheme);
    memcpy(scheme->budgets, budgets.budgets, sizeof budgets.budgets);
    scheme->budget_count = budgets.budget_count;
out:
    sti_update_set_fini(&set);
    sti_sparse_destroy(sparse);
    return st;
}

/* ---- the calls ---- */

stint_status stint_finetune_plan(const stint_recipe *recipe,
                                 const stint_finetune_desc *desc,
                                 stint_finetune_scheme *scheme)
{
    static const stint_finetune_desc plain = {0};
    sti_finetune_draft draft = {.path = NULL};
    stint_recipe *ready = NULL;
    stint_status st;
    *scheme = (stint_finetune_scheme){.tensor_count = 0};
    desc = desc ? desc : &plain;
    STI_TRY(sti_finetune_ready(recipe, true, &draft, &ready));
    if (!desc->search)
        STI_TRY(settle_batch(&ready, false, false));
    STI_TRY(desc->search ? plan_search(ready, desc, scheme)
                         : find_scheme(ready, scheme));
out:
    sti_finetune_draft_fini(&draft);
    stint_recipe_destroy(ready);
    return st;
}

stint_status stint_finetune(const stint_recipe *recipe, const stint_finetune_desc *desc,
                            stint_finetune_result *result)
{
    const stint_train_desc train = {.resume = desc->resume,
                                    .force = desc->force,
                                    .progress = desc->progress,
                                    .planned = desc->planned,
                                    .user = desc->user};
    sti_finetune_draft draft = {.path = NULL};
    stint_recipe *ready = NULL;
    *result = (stint_finetune_result){.step_s = 0};
    stint_status st;
    STI_TRY(sti_finetune_ready(recipe, desc->force || desc->resume, &draft, &ready));
    if (!desc->search)
        STI_TRY(settle_batch(&ready, desc->resume, true));
    STI_TRY(desc->search ? search(ready, desc, &result->scheme)
                         : find_scheme(ready, &result->scheme));
    STI_TRY(sti_finetune_draft_keep(&draft, ready));
    sti_memory_trim();
    STI_TRY(stint_train(ready, &train, &result->train));
    if (result->train.images_per_s > 0)
        result->step_s = (double)result->train.batch / result->train.images_per_s;
out:
    sti_finetune_draft_fini(&draft);
    stint_recipe_destroy(ready);
    return st;
}

void stint_finetune_scheme_fini(stint_finetune_scheme *scheme)
{
    sti_free(scheme->tensors);
    *scheme = (stint_finetune_scheme){.tensor_count = 0};
}

void stint_finetune_fini(stint_finetune_result *result)
{
    stint_finetune_scheme_fini(&result->scheme);
}
