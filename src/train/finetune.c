/* stint_finetune: from a model and data to a run's folder. */
#include "train/finetune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "train/job.h"
#include "train/moments.h"
#include "train/plan_refusal.h"
#include "train/recipe_view.h"
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
        t->gain = (double)NAN;
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

/* ---- the calls ---- */

stint_status stint_finetune_plan(const stint_recipe *recipe,
                                 stint_finetune_scheme *scheme)
{
    stint_recipe *ready = NULL;
    *scheme = (stint_finetune_scheme){.tensor_count = 0};
    stint_status st = sti_finetune_ready(recipe, &ready);
    if (st == STINT_OK)
        st = find_scheme(ready, scheme);
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
    stint_recipe *ready = NULL;
    *result = (stint_finetune_result){.step_s = 0};
    stint_status st;
    STI_TRY(sti_finetune_ready(recipe, &ready));
    STI_TRY(find_scheme(ready, &result->scheme));
    sti_memory_trim();
    STI_TRY(stint_train(ready, &train, &result->train));
    if (result->train.images_per_s > 0)
        result->step_s = (double)result->train.batch / result->train.images_per_s;
out:
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
