#include "train/job.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/team.h"
#include "base/units.h"
#include "train/click.h"
#include "train/grow_networks.h"
#include "train/memory_account.h"
#include "train/plan_picture.h"
#include "train/plan_refusal.h"
#include "train/recipe_view.h"
#include "train/shrink_recipe.h"
#include "train/what_fits.h"

stint_status sti_job_count_images(const stint_recipe *recipe, int64_t *count_out)
{
    sti_inputs inputs;
    const stint_status st = sti_inputs_open_data(recipe, &inputs);
    *count_out = inputs.train_count;
    sti_inputs_close(&inputs);
    return st;
}

/* Every rank has a shard at least. */
static stint_status check_ranks(const sti_setup *setup)
{
    const int ranks = setup->comm ? sti_comm_size(setup->comm) : 1;
    const int64_t shards = setup->shards;
    const int64_t enough = sti_shards_at_least(setup->batch / setup->accumulate, ranks);
    char more[160] = "";
    if (ranks <= shards)
        return STINT_OK;
    if (enough > 0)
        snprintf(more, sizeof more,
                 ", or train with --shards %" PRId64
                 " (which is another run: normalisation works on other parts)",
                 enough);
    return sti_fail(STINT_E_USAGE,
                    "train.shards: a batch of %" PRId64 " shard%s cannot be shared out "
                    "to %d processes; start at most %" PRId64 "%s",
                    shards, sti_s(shards), ranks, shards, more);
}

/* A parameter that changes within a run must not be read by another one. */
static stint_status check_at_once(const sti_setup *setup)
{
    if (!sti_update_section_of(setup->inputs->recipe)->at_once)
        return STINT_OK;
    if (setup->comm && sti_comm_size(setup->comm) > 1)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "update.at_once: is for one process, and this is one of %d, "
                        "whose gradients are summed first; leave it out",
                        sti_comm_size(setup->comm));
    return STINT_OK;
}

/* A batch of whole shards is larger than the set. Where not even one sample a shard (a
 * micro-batch) is there, fewer shards are what fits. */
static stint_status refuse_batch(const sti_job *job)
{
    const sti_inputs *in = &job->inputs;
    const int64_t count = in->train_count, accumulate = job->setup.accumulate;
    const int64_t parts = job->setup.shards * accumulate;
    const int64_t fewer = count < 4 ? 1 : 4; /* as many as a recipe that names none */
    char fits[96];
    if (count >= parts)
        snprintf(fits, sizeof fits, "--batch %" PRId64 " or less",
                 count / parts * parts);
    else
        snprintf(fits, sizeof fits, "--batch %" PRId64 " --shards %" PRId64 "%s",
                 count / fewer * fewer, fewer,
                 accumulate > 1 ? " --set train.accumulate=1" : "");
    return sti_fail(STINT_E_INPUT,
                    "train.batch: %" PRId64 " %s, but the training set at %s has only "
                    "%" PRId64 "; use %s",
                    job->setup.batch, sti_inputs_samples(in),
                    sti_recipe_view_of(in->recipe).data->path, count, fits);
}

static stint_status count_steps(sti_job *job)
{
    const sti_inputs *in = &job->inputs;
    const sti_setup *setup = &job->setup;
    const sti_recipe_view v = sti_recipe_view_of(in->recipe);
    if (setup->batch > in->train_count)
        return refuse_batch(job);
    const stint_status st =
        sti_course_create(in->recipe, in->train_count, &job->course);
    if (st != STINT_OK)
        return st;
    job->steps_per_epoch = sti_course_epoch_ticks(&job->course);
    if (!job->course.grows)
        sti_course_end(&job->course, sti_shrink_steps(in->recipe, job->steps_per_epoch,
                                                      job->course.steps));
    job->steps = job->course.steps;
    job->epochs = job->course.epochs;
    if (v.prune->sparsity > 0 && v.prune->epochs > 0 && v.prune->epochs >= job->epochs)
        return sti_fail(
            STINT_E_INPUT,
            "prune.epochs: %" PRId64 " epoch%s of pruning leave none of the "
            "%" PRId64 " that %" PRId64 " step%s are to train what is left; "
            "use fewer",
            v.prune->epochs, sti_s(v.prune->epochs), job->epochs, job->steps,
            sti_s(job->steps));
    return STINT_OK;
}

static bool has_statistics(const sti_network *network)
{
    for (int32_t i = 0; i < sti_graph_output_count(network->graph); i++)
        if (sti_graph_outputs(network->graph)[i].kind == STI_OUTPUT_STATE)
            return true;
    return false;
}

/* A batch is cut small to fit or to grow, but not so small that there is nothing to
 * normalise over. */
static stint_status check_micro(const sti_job *job)
{
    const sti_setup *setup = &job->setup;
    if ((setup->accumulate == 1 && !setup->grows) || sti_setup_images(setup) > 1 ||
        !has_statistics(&setup->train))
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "train.batch: %" PRId64 " images in %" PRId64 " shards of %" PRId64
                    " micro-batch%s are one image each, which batch-norm cannot take "
                    "statistics of; use --batch %" PRId64 " or more, or fewer parts",
                    setup->batch, setup->shards, setup->accumulate,
                    setup->accumulate == 1 ? "" : "es", 2 * setup->batch);
}

/* What a scheme asks of a network, before anything is written. */
static stint_status check_scheme(const sti_job *job)
{
    const stint_recipe *recipe = job->inputs.recipe;
    sti_projection *projection = NULL;
    if (!sti_shrink_wanted(recipe))
        return STINT_OK;
    stint_status st =
        sti_shrink_create_projection(recipe, &job->setup.train, true, &projection);
    if (st == STINT_OK)
        st = sti_click_check(recipe, projection, job->steps);
    sti_projection_destroy(projection);
    return st;
}

/* How the sets of a field's loss get their derivatives. */
static void describe_derivatives(const sti_network *network, stint_plan_result *result)
{
    static const char *const sets[STI_TERMS] = {"inside", "border", "start", "data"};
    for (int s = 0; s < STI_TERMS; s++) {
        const sti_field_way *way = &network->way[s];
        if (way->asked)
            result->derivatives[result->derivative_count++] = (stint_plan_derivatives){
                .set = sets[s],
                .jets = way->jets,
                .laplacian = way->laplacian,
                .reverse_multiply_adds = way->reverse_multiply_adds,
                .jets_multiply_adds = way->jets_multiply_adds};
    }
}

static stint_status plan_step(sti_job *job)
{
    const sti_choice_hints hints = {.exact = sti_grow_has_networks(&job->course)};
    sti_setup *setup = &job->setup;
    stint_plan_result *result = &job->plan.result;
    stint_status st;
    STI_TRY(sti_setup_build(setup));
    STI_TRY(check_micro(job));
    setup->base_bytes = sti_memory_base(setup);
    STI_TRY(sti_rank_plan_choose(&job->ranks, setup, &hints, &job->plan));
    STI_TRY(sti_grow_plan_networks(setup, &job->course, &job->plan));
    STI_TRY(check_scheme(job));
    if (setup->eval.graph)
        STI_TRY(sti_network_agree(&setup->train, &setup->eval));
    result->threads = setup->threads;
    result->batch = setup->batch;
    result->shards = setup->shards;
    result->parameters = sti_network_parameters(&setup->train);
    result->forward_flop = sti_network_forward_flop(&setup->train);
    result->context = job->inputs.network.context;
    result->of_field = job->inputs.network.field.coordinates > 0;
    result->derivative_count = 0;
    describe_derivatives(&setup->train, result);
    sti_plan_describe_step(&setup->train, job->plan.lanes, result);
out:
    return st;
}

stint_status sti_job_create(const stint_recipe *recipe, sti_comm *comm, sti_job *job)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    sti_setup *setup = &job->setup;
    stint_status st;
    *job = (sti_job){.setup = {.inputs = &job->inputs,
                               .comm = comm,
                               .moments = sti_update_moments(v.optimizer),
                               .accumulate = v.train->accumulate,
                               .grows = v.grow->by != STI_GROW_NONE,
                               .host_bytes = sti_alloc_now_bytes()}};
    sti_setup_cut(setup, v.train->batch, v.train->shards);
    STI_TRY(check_ranks(setup));
    STI_TRY(
        sti_threads_choose((int)v.run->threads, &setup->threads, &setup->threads_why));
    STI_TRY(sti_inputs_open_data(recipe, &job->inputs));
    STI_TRY(count_steps(job));
    STI_TRY(sti_inputs_open_models(&job->inputs));
    STI_TRY(check_at_once(setup));
    STI_TRY(plan_step(job));
    if (job->inputs.start)
        STI_TRY(sti_model_check_start(job->inputs.start, &job->inputs.network,
                                      &setup->train, job->inputs.new_classifier));
    if (!job->plan.result.fits && !job->plan.result.stage_too_large)
        STI_TRY(sti_find_what_fits(setup, &job->plan));
    if (!job->plan.result.fits)
        STI_TRY(sti_grow_raise_smallest(setup, &job->course, &job->plan.result));
    STI_TRY(sti_find_what_machine_holds(setup, &job->plan));
    return STINT_OK;
out:
    sti_job_fini(job);
    return st;
}

void sti_job_fini(sti_job *job)
{
    sti_step_plan_fini(&job->plan);
    sti_course_fini(&job->course);
    sti_setup_fini(&job->setup);
    sti_inputs_close(&job->inputs);
    *job = (sti_job){.steps = 0};
}

sti_step_engine_desc sti_job_engine(const sti_job *job)
{
    return sti_setup_engine(&job->setup, job->plan.lanes);
}

stint_status sti_job_check_budget(const sti_job *job)
{
    return job->plan.result.fits ? STINT_OK : sti_plan_refuse(&job->plan.result);
}

stint_status sti_job_check_machine(const sti_job *job)
{
    return sti_plan_check_machine(&job->plan.result);
}
