#include "train/batch_auto.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/stop.h"
#include "train/memory_account.h"
#include "train/optimizer_section.h"
#include "train/run_section.h"
#include "train/schedule_section.h"
#include "train/train_section.h"

#define MAX_TIMES   16 /* the reference batch */
#define MAX_SHARE   8  /* of the training images: that many steps an epoch at least */
#define CANDIDATES  4
#define PROBE_STEPS 3 /* timed, after one that is not */
#define NEAR_BEST   0.97
#define WARM_UP     0.05 /* of the run */

/* ---- numbers of an earlier run ---- */

static stint_status take_over(stint_recipe *recipe, const char *out, bool *done)
{
    sti_arena *arena = sti_arena_create("batch");
    stint_recipe *then = NULL;
    stint_status st = STINT_OK;
    const char *path = arena ? sti_path_join(arena, out, "recipe.ini") : NULL;
    *done = false;
    if (!path)
        st = STINT_E_MEMORY;
    else if (sti_path_is_file(path))
        st = stint_recipe_load(path, &then);
    if (st == STINT_OK && then && sti_train_section_of(then)->batch > 0) {
        sti_train_values *train = sti_recipe_edit(recipe, &sti_train_section);
        sti_optimizer_values *optimizer =
            sti_recipe_edit(recipe, &sti_optimizer_section);
        sti_schedule_values *schedule = sti_recipe_edit(recipe, &sti_schedule_section);
        sti_run_values *run = sti_recipe_edit(recipe, &sti_run_section);
        train->batch = sti_train_section_of(then)->batch;
        optimizer->lr = sti_optimizer_section_of(then)->lr;
        schedule->warmup = sti_schedule_section_of(then)->warmup;
        if (sti_run_section_of(then)->memory_bytes + STI_SEARCH_BYTES ==
            run->memory_bytes)
            run->memory_bytes = sti_run_section_of(then)->memory_bytes;
        *done = true;
    }
    stint_recipe_destroy(then);
    sti_arena_destroy(arena);
    return st;
}

/* ---- what fits ---- */

/* Whole shards, of a multiple of eight images where there are as many. */
static int64_t round_down(int64_t batch, int64_t shards)
{
    int64_t images = batch / shards;
    return (images >= 16 ? images / 8 * 8 : images) * shards;
}

/* The planned batch, or the largest below it that is within the budget and what this
 * process can have; 0: none. */
static int64_t batch_within(const stint_plan_result *plan)
{
    const int64_t batch = plan->fits ? plan->batch : plan->batch_that_fits;
    return plan->machine.holds || batch < plan->machine.batch_that_fits
               ? batch
               : plan->machine.batch_that_fits;
}

/* The largest batch within the bounds and the budget. */
static stint_status largest_batch(stint_recipe *recipe, int64_t count,
                                  int64_t *batch_out)
{
    sti_train_values *train = sti_recipe_edit(recipe, &sti_train_section);
    sti_job job = {0};
    int64_t shards = train->shards;
    train->batch = round_down(MAX_TIMES * train->reference_batch, shards);
    if (train->batch < shards)
        train->batch = shards;
    int64_t max_batch = round_down(count / MAX_SHARE, shards);
    if (max_batch >= shards && train->batch > max_batch)
        train->batch = max_batch;
    stint_status st = sti_job_create(recipe, NULL, &job);
    if (st != STINT_OK)
        return st;
    *batch_out = round_down(batch_within(&job.plan.result), shards);
    if (*batch_out < shards)
        st = sti_job_check_budget(&job);
    if (*batch_out < shards && st == STINT_OK)
        st = sti_job_check_machine(&job);
    sti_job_fini(&job);
    sti_memory_trim();
    return st;
}

/* ---- probing ---- */

/* Images a second in the fastest of a few steps, on the first images of the set: what
 * else the machine does slows down some of them. */
static stint_status probe_engine(const sti_job *job, sti_step_engine *engine,
                                 double *speed_out)
{
    sti_data_norm norm = {0};
    int32_t *samples = sti_alloc_array(job->setup.batch, sizeof *samples, "probe");
    stint_status st = samples ? STINT_OK : STINT_E_MEMORY;
    double best_s = 0;
    for (int c = 0; c < (int)(sizeof norm.mean / sizeof norm.mean[0]); c++)
        norm.deviation[c] = 1;
    for (int64_t i = 0; i < job->setup.batch && samples; i++)
        samples[i] = (int32_t)(i % job->inputs.train_count);
    for (int step = 0; step <= PROBE_STEPS && st == STINT_OK; step++) {
        sti_step_result result;
        const sti_step_batch batch = {.samples = samples,
                                      .augment = NULL,
                                      .norm = &norm,
                                      .class_weights = job->inputs.class_weights,
                                      .seed = 1,
                                      .step = step};
        if (sti_stop_asked() != STINT_OK) {
            st = sti_fail(sti_stop_asked(), "stopped while trying batches");
            break;
        }
        const int64_t start = sti_clock_ns();
        st = sti_step_engine_run(engine, &batch, &result);
        const double s = sti_seconds_since(start);
        if (step == 1 || (step > 1 && s < best_s))
            best_s = s;
    }
    *speed_out = best_s > 0 ? (double)job->setup.batch / best_s : 0;
    sti_free(samples);
    return st;
}

/* Speed of a step of *batch images. Where those do not fit after all nothing is tried,
 * and *batch is what does. */
static stint_status probe_batch(stint_recipe *recipe, int64_t *batch, double *speed_out)
{
    sti_job job;
    sti_step_engine *engine = NULL;
    sti_train_values *train = sti_recipe_edit(recipe, &sti_train_section);
    sti_run_values *run = sti_recipe_edit(recipe, &sti_run_section);
    train->batch = *batch;
    stint_status st = sti_job_create(recipe, NULL, &job);
    *speed_out = 0;
    if (st != STINT_OK)
        return st;
    if (job.plan.result.fits && job.plan.result.machine.holds) {
        if (job.plan.result.peak_bytes > run->tried_bytes)
            run->tried_bytes = job.plan.result.peak_bytes;
        sti_step_engine_desc desc = sti_job_engine(&job);
        st = sti_step_engine_create(&desc, &engine);
        if (st == STINT_OK)
            st = sti_network_init_weights(&job.setup.train, &engine->team, 1,
                                          engine->params, engine->states);
        if (st == STINT_OK)
            st = probe_engine(&job, engine, speed_out);
    } else {
        *batch = round_down(batch_within(&job.plan.result), job.setup.shards);
    }
    sti_step_engine_destroy(engine);
    sti_job_fini(&job);
    sti_memory_trim();
    return st;
}

stint_status sti_batch_probe(const stint_recipe *recipe, double *images_per_s)
{
    int64_t batch = sti_train_section_of(recipe)->batch;
    stint_recipe *own = NULL;
    stint_status st = sti_recipe_copy(recipe, &own);
    *images_per_s = 0;
    if (st == STINT_OK) /* (a search's own scheme has no share yet) */
        st = stint_recipe_set(own, "shrink.scheme", "");
    if (st == STINT_OK)
        st = probe_batch(own, &batch, images_per_s);
    stint_recipe_destroy(own);
    return st;
}

/* ---- choosing ---- */

static stint_status probe_all(stint_recipe *recipe, int64_t largest, int64_t *batch_out)
{
    const int64_t shards = sti_train_section_of(recipe)->shards;
    int64_t batch[CANDIDATES] = {0};
    double speed[CANDIDATES] = {0}, best = 0;
    int count = 0;
    for (int64_t b = largest; b >= shards && count < CANDIDATES;) {
        batch[count] = b;
        stint_status st = probe_batch(recipe, &b, &speed[count]);
        if (st != STINT_OK)
            return st;
        if (b < batch[count])
            continue;
        sti_log(STINT_LOG_INFO, "batch %" PRId64 ": %.0f images/s", b, speed[count]);
        best = speed[count] > best ? speed[count] : best;
        count++;
        b = round_down(b / 2, shards);
    }
    for (int i = 0; i < count; i++)
        if (speed[i] > 0 && speed[i] >= NEAR_BEST * best) {
            *batch_out = batch[i];
            return STINT_OK;
        }
    return sti_fail(STINT_E_BUDGET,
                    "train.batch: no batch fits the budget when it is tried; give a "
                    "number by --batch");
}

/* ---- the numbers that go with it ---- */

/* In `settled`, a copy of `recipe`. */
static void apply_batch(const stint_recipe *recipe, int64_t batch, int64_t images,
                        stint_recipe *settled)
{
    sti_train_values *train = sti_recipe_edit(settled, &sti_train_section);
    sti_optimizer_values *optimizer = sti_recipe_edit(settled, &sti_optimizer_section);
    sti_schedule_values *schedule = sti_recipe_edit(settled, &sti_schedule_section);
    double times = (double)batch / (double)train->reference_batch;
    int64_t steps_per_epoch = images / batch > 0 ? images / batch : 1;
    double epochs = train->steps > 0 ? (double)train->steps / (double)steps_per_epoch
                                     : (double)train->epochs;
    train->batch = batch;
    optimizer->lr = sti_optimizer_section_of(recipe)->lr * times;
    schedule->warmup = sti_schedule_section_of(recipe)->warmup;
    if (times > 1 && schedule->warmup == 0 && schedule->name != STI_SCHEDULE_ONE_CYCLE)
        schedule->warmup = WARM_UP * epochs;
    sti_log(STINT_LOG_INFO,
            "batch auto: %" PRId64 " images, learning rate %g, warm-up %g epochs",
            batch, optimizer->lr, schedule->warmup);
}

static stint_status settle(const stint_recipe *recipe, bool probe,
                           stint_recipe *settled)
{
    int64_t batch = 0, images = 0;
    sti_run_values *run = sti_recipe_edit(settled, &sti_run_section);
    run->searched = true;
    stint_status st = sti_job_count_images(settled, &images);
    if (st == STINT_OK)
        st = largest_batch(settled, images, &batch);
    if (st == STINT_OK && probe)
        st = probe_all(settled, batch, &batch);
    if (st == STINT_OK)
        apply_batch(recipe, batch, images, settled);
    return st;
}

/* *fixed: the numbers are those of an earlier run. */
static stint_status settle_copy(const stint_recipe *recipe, const char *out, bool probe,
                                bool *fixed, stint_recipe **settled_out)
{
    stint_recipe *settled = NULL;
    stint_status st = sti_recipe_copy(recipe, &settled);
    if (st == STINT_OK && out)
        st = take_over(settled, out, fixed);
    if (st == STINT_OK && !*fixed)
        st = settle(recipe, probe, settled);
    if (st != STINT_OK) {
        stint_recipe_destroy(settled);
        return st;
    }
    *settled_out = settled;
    return STINT_OK;
}

/* The largest batch that fits the process as it is now, where the one chosen does not.
 */
static stint_status create_smaller(const stint_recipe *recipe, stint_recipe *settled,
                                   sti_job *job)
{
    stint_status st = sti_job_create(settled, NULL, job);
    while (st == STINT_OK && !job->plan.result.fits) {
        const int64_t batch =
            round_down(job->plan.result.batch_that_fits, job->setup.shards);
        if (batch < job->setup.shards || batch >= job->setup.batch)
            break;
        apply_batch(recipe, batch, job->inputs.train_count, settled);
        sti_job_fini(job);
        st = sti_job_create(settled, NULL, job);
    }
    return st;
}

static stint_status create_job(const stint_recipe *recipe, sti_comm *comm,
                               const char *out, bool probe, stint_recipe **settled_out,
                               sti_job *job)
{
    bool fixed = false;
    if (sti_train_section_of(recipe)->batch > 0)
        return sti_job_create(recipe, comm, job);
    if (comm)
        return sti_fail(STINT_E_USAGE,
                        "train.batch: 'auto' measures this machine, and every rank "
                        "would find its own; give a number by --batch");
    stint_status st = settle_copy(recipe, out, probe, &fixed, settled_out);
    if (st != STINT_OK)
        return st;
    return fixed ? sti_job_create(*settled_out, NULL, job)
                 : create_smaller(recipe, *settled_out, job);
}

stint_status sti_batch_create_job(const stint_recipe *recipe, sti_comm *comm,
                                  const char *out, bool probe,
                                  stint_recipe **settled_out, sti_job *job)
{
    stint_status st = create_job(recipe, comm, out, probe, settled_out, job);
    if (st != STINT_OK || (comm && sti_comm_rank(comm) > 0))
        return st;
    st = sti_network_check_bf16(&job->inputs.network, sti_setup_images(&job->setup));
    if (st != STINT_OK)
        sti_job_fini(job);
    return st;
}
