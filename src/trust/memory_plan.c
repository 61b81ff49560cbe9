/* What a memorisation study runs: is the recipe fit for it, how many steps a run has,
 * how many runs stand side by side within the budget. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/units.h"
#include "infer/evaluate.h"
#include "model/network_recipe.h"
#include "train/recipe_view.h"
#include "trust/memory_priv.h"

#define KEEP_MOST    ((size_t)4 << 30) /* of decoded images, without a budget */
#define THREAD_BYTES ((size_t)64 << 10)
#define NODE_BYTES   400 /* of a flat run, as in train/memory_account.c */

sti_step_engine_desc sti_memory_engine(const memory_lab *l)
{
    sti_step_engine_desc desc = sti_job_engine(&l->job);
    desc.eval = &l->job.setup.eval;
    return desc;
}

/* What a single training does beyond the steps that runs are made of here. */
static stint_status check_plain(const stint_recipe *recipe)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    const struct {
        const char *key;
        bool given;
    } keys[] = {{"train.start", v.train->start != NULL},
                {"train.validation", v.train->validation > 0},
                {"train.select", v.train->select != STI_SELECT_LAST},
                {"train.average", v.train->average > 0},
                {"data.mixup", v.data->mixup > 0},
                {"data.cutmix", v.data->cutmix > 0},
                {"loss.reference", v.loss->reference != NULL},
                {"prune.sparsity", v.prune->sparsity > 0},
                {"data.sampling", v.data->sampling != STI_SAMPLING_SHUFFLE},
                {"loss.class_weights", sti_class_weights_given(v.loss->class_weights)},
                {"noise.order", v.noise->order != 0},
                {"noise.ulp", v.noise->ulp != 0}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].given)
            return sti_fail(STINT_E_USAGE,
                            "%s: runs are plain trainings from new weights here; leave "
                            "it at its default",
                            keys[i].key);
    return STINT_OK;
}

stint_status sti_memory_check_desc(const stint_recipe *recipe,
                                   const stint_memory_desc *d)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    if (d->runs < 4)
        return sti_fail(STINT_E_USAGE,
                        "%" PRId64 " runs: an image needs two with it and two without; "
                        "give --runs 4 at least, some hundreds to tell images apart",
                        d->runs);
    if (!(d->fraction > 0 && d->fraction < 1))
        return sti_fail(STINT_E_USAGE,
                        "fraction %g: each run needs a part of the images, between 0 "
                        "and 1, and some left out; 0.7 is usual",
                        d->fraction);
    if (v.train->batch == 0)
        return sti_fail(STINT_E_USAGE,
                        "train.batch: auto is for single trainings; give "
                        "a number of images by --batch");
    if (v.grow->by != STI_GROW_NONE)
        return sti_fail(STINT_E_USAGE, "grow.by: runs are trained with one batch here; "
                                       "leave it at none");
    if (v.error->tau > 0 && v.error->pack == STI_PACK_ALL)
        return sti_fail(STINT_E_USAGE, "error.pack: runs are trained without packed "
                                       "activations here; leave it at auto");
    return check_plain(recipe);
}

static stint_status count_steps(memory_lab *l)
{
    const sti_recipe_view v = sti_recipe_view_of(l->recipe);
    l->members = (int64_t)(l->desc->fraction * (double)l->job.inputs.train_count);
    if (l->members < l->job.setup.batch)
        return sti_fail(STINT_E_USAGE,
                        "%g of %" PRId64 " training images are %" PRId64
                        ", less than a batch of %" PRId64
                        "; use a larger --fraction or a smaller --batch",
                        l->desc->fraction, l->job.inputs.train_count, l->members,
                        l->job.setup.batch);
    l->steps_per_epoch = l->members / l->job.setup.batch;
    l->steps =
        v.train->steps > 0 ? v.train->steps : v.train->epochs * l->steps_per_epoch;
    return STINT_OK;
}

/* Both kinds of images are evaluated, also where there is no test split; of a text, one
 * passage at a time, since it is each one's loss that is wanted. */
static stint_status add_eval(sti_job *job)
{
    const bool text = job->inputs.text != NULL;
    if (job->setup.eval.graph && !text)
        return STINT_OK;
    sti_network_fini(&job->setup.eval);
    stint_status st =
        sti_network_build(&job->inputs.network, STINT_EVAL,
                          text ? 1 : job->setup.train.images, &job->setup.eval);
    if (st == STINT_OK)
        st = sti_network_plan(&job->setup.eval, 1);
    return st == STINT_OK ? sti_network_agree(&job->setup.train, &job->setup.eval) : st;
}

/* What one worker takes beyond a training: answers and predictions. */
static size_t answer_bytes(const sti_job *job)
{
    const int32_t classes = (int32_t)job->inputs.network.model.classes;
    if (job->inputs.text)
        return sti_evaluation_bytes(job->inputs.train_count, 0, 1, 1) +
               (size_t)job->inputs.train_count *
                   (1 + sizeof(float) + 2 * sizeof(int32_t));
    return sti_evaluation_bytes(job->inputs.train_count, classes,
                                job->setup.train.images, 1) +
           sti_evaluation_bytes(job->inputs.test_count, classes,
                                job->setup.train.images, 1) +
           (size_t)(2 * job->inputs.train_count + job->inputs.test_count) +
           (size_t)job->inputs.train_count * 2 * sizeof(int32_t);
}

static size_t decoder_bytes(const stint_data *data)
{
    return data ? sti_data_memory_bytes(data, 2, 1) - sti_data_memory_bytes(data, 1, 1)
                : 0;
}

/* Every worker but the first, whose share is in the job's plan. */
static size_t worker_bytes(const memory_lab *l)
{
    const sti_job *job = &l->job;
    const sti_step_engine_desc desc = sti_memory_engine(l);
    sti_step_engine_sizes sizes;
    sti_step_engine_measure(&desc, &sizes);
    return sizes.total + decoder_bytes(job->inputs.train_data) +
           decoder_bytes(job->inputs.test_data) + answer_bytes(job) + THREAD_BYTES +
           (size_t)(sti_graph_node_count(job->setup.train.graph) +
                    sti_graph_node_count(job->setup.eval.graph)) *
               NODE_BYTES;
}

/* Columns, their packed copy, pairs and tables. */
static size_t estimate_bytes(const memory_lab *l)
{
    const int64_t n = l->job.inputs.train_count, tests = l->job.inputs.test_count;
    const int64_t nearest = l->desc->nearest > 0 ? l->desc->nearest : 8;
    if (l->job.inputs.text)
        return sti_memory_text_bytes(l->desc->runs, n);
    return 2 * sti_memory_bits_bytes(l->desc->runs, n, tests) + (size_t)n * 64 +
           (size_t)(tests * nearest) * sizeof(stint_memory_pair) +
           (size_t)(l->threads * n) * sizeof(uint32_t);
}

static size_t kept_bytes(const sti_job *job)
{
    if (job->inputs.text)
        return 0;
    return sti_data_kept_bytes(job->inputs.train_data) +
           (job->inputs.test_data ? sti_data_kept_bytes(job->inputs.test_data) : 0);
}

static stint_status create_job(memory_lab *l, size_t budget)
{
    sti_run_values *run = sti_recipe_edit(l->recipe, &sti_run_section);
    run->memory_bytes = budget;
    stint_status st = sti_job_create(l->recipe, NULL, &l->job);
    if (st == STINT_OK)
        st = add_eval(&l->job);
    return st;
}

static size_t peak_of(const memory_lab *l, int jobs, bool keep)
{
    const size_t own = l->job.plan.result.peak_bytes + (keep ? kept_bytes(&l->job) : 0);
    const size_t training =
        answer_bytes(&l->job) + (size_t)(jobs - 1) * worker_bytes(l);
    const size_t estimate = estimate_bytes(l);
    return own + (training > estimate ? training : estimate);
}

/* What the process itself takes differs a little from call to call: rounded up. */
static stint_status refuse_budget(size_t need, size_t budget)
{
    return sti_fail(
        STINT_E_BUDGET,
        "memory: one run at a time and the estimate need %s at least, budget "
        "%s; use a smaller --batch, or --memory %zuM",
        sti_bytes_text(need), sti_bytes_text(budget), (need + (3U << 19) - 1) >> 20);
}

stint_status sti_memory_plan(memory_lab *l, size_t budget)
{
    stint_status st = create_job(l, 0);
    if (st == STINT_OK && budget > 0 && peak_of(l, 1, false) > budget) {
        const size_t beside = peak_of(l, 1, false) - l->job.plan.result.peak_bytes;
        sti_job_fini(&l->job);
        st = create_job(l, budget > beside ? budget - beside : 1);
        if (st == STINT_OK && !l->job.plan.result.fits)
            st = refuse_budget(l->job.plan.result.smallest_bytes + beside, budget);
    }
    if (st == STINT_OK)
        st = count_steps(l);
    if (st != STINT_OK)
        return st;
    /* Parts are cut out of the pictures themselves, anew for every batch. */
    l->keep =
        !l->job.inputs.text && sti_data_section_of(l->recipe)->scale_crop <= 0 &&
        (budget > 0 ? peak_of(l, 1, true) <= budget : kept_bytes(&l->job) <= KEEP_MOST);
    l->jobs = l->desc->jobs > 0 ? (int)l->desc->jobs : l->threads;
    if (l->jobs > l->desc->runs)
        l->jobs = (int)l->desc->runs;
    while (budget > 0 && l->jobs > 1 && peak_of(l, l->jobs, l->keep) > budget)
        l->jobs--;
    l->peak_bytes = peak_of(l, l->jobs, l->keep);
    sti_log(STINT_LOG_INFO,
            "%" PRId64 " runs of %" PRId64 " of %" PRId64 " %s, %" PRId64
            " steps each, %d side by side%s, %s planned",
            l->desc->runs, l->members, l->job.inputs.train_count,
            sti_inputs_samples(&l->job.inputs), l->steps, l->jobs,
            l->job.inputs.text ? ""
            : l->keep          ? ", images decoded once"
                               : ", images decoded for every batch",
            sti_bytes_text(l->peak_bytes));
    return STINT_OK;
}
