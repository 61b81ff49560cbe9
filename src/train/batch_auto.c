#include "train/batch_auto.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "train/job.h"

#define MOST_TIMES  16 /* the reference batch */
#define MOST_SHARE  8  /* of the training images: that many steps an epoch at least */
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
    if (st == STINT_OK && then && then->values.train.batch > 0) {
        recipe->values.train.batch = then->values.train.batch;
        recipe->values.optimizer.lr = then->values.optimizer.lr;
        recipe->values.schedule.warmup = then->values.schedule.warmup;
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

/* The largest batch within the bounds and the budget. */
static stint_status largest_batch(stint_recipe *recipe, int64_t *batch_out)
{
    sti_recipe_values *v = &recipe->values;
    sti_job job = {0};
    int64_t shards = v->train.shards;
    v->train.batch = round_down(MOST_TIMES * v->train.reference_batch, shards);
    if (v->train.batch < shards)
        v->train.batch = shards;
    stint_status st = sti_job_count_images(recipe, batch_out);
    if (st != STINT_OK)
        return st;
    int64_t most = round_down(*batch_out / MOST_SHARE, shards);
    if (most >= shards && v->train.batch > most)
        v->train.batch = most;
    st = sti_job_create(recipe, NULL, &job);
    if (st != STINT_OK)
        return st;
    *batch_out =
        round_down(job.plan.fits ? v->train.batch : job.plan.batch_that_fits, shards);
    if (*batch_out < shards)
        st = sti_job_check_budget(&job);
    sti_job_fini(&job);
    sti_memory_trim();
    return st;
}

/* ---- probing ---- */

/* Images a second over a few steps on the first images of the set. */
static stint_status probe_crew(const sti_job *job, sti_crew *crew, double *speed_out)
{
    sti_data_norm norm = {0};
    int32_t *samples = sti_alloc_array(job->batch, sizeof *samples, "probe");
    int64_t start = 0;
    stint_status st = samples ? STINT_OK : STINT_E_MEMORY;
    for (int c = 0; c < (int)(sizeof norm.mean / sizeof norm.mean[0]); c++)
        norm.deviation[c] = 1;
    for (int64_t i = 0; i < job->batch && samples; i++)
        samples[i] = (int32_t)(i % job->train_count);
    for (int step = 0; step <= PROBE_STEPS && st == STINT_OK; step++) {
        sti_step_result result;
        const sti_crew_batch batch = {.samples = samples,
                                      .augment = NULL,
                                      .norm = &norm,
                                      .seed = 1,
                                      .step = step};
        if (step == 1)
            start = sti_clock_ns();
        st = sti_crew_run(crew, &batch, &result);
    }
    *speed_out = (double)(job->batch * PROBE_STEPS) / sti_seconds_since(start);
    sti_free(samples);
    return st;
}

/* 0: does not fit after all. */
static stint_status probe_batch(stint_recipe *recipe, int64_t batch, double *speed_out)
{
    sti_job job;
    sti_crew *crew = NULL;
    recipe->values.train.batch = batch;
    stint_status st = sti_job_create(recipe, NULL, &job);
    *speed_out = 0;
    if (st != STINT_OK)
        return st;
    if (job.plan.fits) {
        sti_crew_desc desc = sti_job_crew(&job);
        st = sti_crew_create(&desc, &crew);
        if (st == STINT_OK)
            st = sti_network_init_weights(&job.train, &crew->team, 1, crew->params,
                                          crew->states);
        if (st == STINT_OK)
            st = probe_crew(&job, crew, speed_out);
    }
    sti_crew_destroy(crew);
    sti_job_fini(&job);
    sti_memory_trim();
    return st;
}

static stint_status probe_all(stint_recipe *recipe, int64_t largest, int64_t *batch_out)
{
    int64_t shards = recipe->values.train.shards, batch[CANDIDATES] = {0};
    double speed[CANDIDATES] = {0}, best = 0;
    stint_status st = STINT_OK;
    int count = 0;
    for (int64_t b = largest; b >= shards && count < CANDIDATES; count++) {
        batch[count] = b;
        st = probe_batch(recipe, b, &speed[count]);
        if (st != STINT_OK)
            return st;
        sti_log(STINT_LOG_INFO, "batch %" PRId64 ": %.0f images/s", b, speed[count]);
        best = speed[count] > best ? speed[count] : best;
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

static stint_status apply_batch(stint_recipe *recipe, int64_t batch, int64_t images)
{
    sti_recipe_values *v = &recipe->values;
    double times = (double)batch / (double)v->train.reference_batch;
    int64_t steps_per_epoch = images / batch > 0 ? images / batch : 1;
    double epochs = v->train.steps > 0
                        ? (double)v->train.steps / (double)steps_per_epoch
                        : (double)v->train.epochs;
    v->train.batch = batch;
    v->optimizer.lr *= times;
    if (times > 1 && v->schedule.warmup == 0 &&
        v->schedule.name != STI_SCHEDULE_ONE_CYCLE)
        v->schedule.warmup = WARM_UP * epochs;
    sti_log(STINT_LOG_INFO,
            "batch auto: %" PRId64 " images, learning rate %g, warm-up %g epochs",
            batch, v->optimizer.lr, v->schedule.warmup);
    return STINT_OK;
}

stint_status sti_batch_settle(const stint_recipe *recipe, const sti_comm *comm,
                              const char *out, bool probe, stint_recipe **settled_out)
{
    stint_recipe *settled = NULL;
    int64_t batch = 0, images = 0;
    bool done = false;
    if (comm)
        return sti_fail(STINT_E_USAGE,
                        "train.batch: 'auto' measures this machine, and every rank "
                        "would find its own; give a number by --batch");
    stint_status st = sti_recipe_copy(recipe, &settled);
    if (st == STINT_OK && out)
        st = take_over(settled, out, &done);
    if (st == STINT_OK && !done) {
        st = sti_job_count_images(settled, &images);
        if (st == STINT_OK)
            st = largest_batch(settled, &batch);
        if (st == STINT_OK && probe)
            st = probe_all(settled, batch, &batch);
        if (st == STINT_OK)
            st = apply_batch(settled, batch, images);
    }
    if (st != STINT_OK) {
        stint_recipe_destroy(settled);
        return st;
    }
    *settled_out = settled;
    return STINT_OK;
}
