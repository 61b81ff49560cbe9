/* The runs of a memorisation study, and the workers that train them.
 *
 * A run is one worker's affair: a step engine of one thread and one lane. The subset is
 * a mask on the order of the samples, no data is copied. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/rng.h"
#include "base/stop.h"
#include "infer/evaluate.h"
#include "train/lr_schedule.h"
#include "train/recipe_view.h"
#include "trust/memory_priv.h"

#define PROGRESS_NS 100000000

typedef struct worker {
    memory_lab *lab;
    sti_step_engine *engine;
    sti_evaluation train, test;
    int32_t *order;  /* [train] */
    int32_t *chosen; /* [members]: of one epoch */
    sti_memory_answers answers;
    bool tells; /* runs on the caller's thread */
} worker;

/* ---- one run ---- */

/* The members in the epoch's order of all samples. */
static void order_epoch(worker *w, uint64_t seed, int64_t epoch)
{
    const memory_lab *l = w->lab;
    int64_t n = 0;
    sti_shuffle(seed, STI_STREAM_SHUFFLE, (uint64_t)epoch, l->job.inputs.train_count,
                w->order);
    for (int64_t i = 0; i < l->job.inputs.train_count; i++)
        if (w->answers.member[w->order[i]])
            w->chosen[n++] = w->order[i];
}

static void tell(worker *w, bool always)
{
    memory_lab *l = w->lab;
    if (!w->tells || !l->desc->progress ||
        (!always && sti_clock_ns() - l->progress_ns < PROGRESS_NS))
        return;
    pthread_mutex_lock(&l->lock);
    const int64_t done = l->done, trained = l->trained;
    pthread_mutex_unlock(&l->lock);
    const double seconds = sti_seconds_since(l->start_ns);
    l->progress_ns = sti_clock_ns();
    l->desc->progress(
        l->desc->user,
        &(stint_train_progress){.step = done,
                                .steps = l->desc->runs,
                                .loss = (double)NAN,
                                .accuracy = (double)NAN,
                                .test_loss = (double)NAN,
                                .test_accuracy = (double)NAN,
                                .rss_bytes = sti_process_now_bytes(),
                                .seconds_left = trained > 0
                                                    ? seconds / (double)trained *
                                                          (double)(l->desc->runs - done)
                                                    : (double)NAN});
}

static stint_status run_step(worker *w, const sti_schedule *schedule, int64_t run,
                             uint64_t seed, int64_t step)
{
    const memory_lab *l = w->lab;
    const sti_recipe_view v = sti_recipe_view_of(l->recipe);
    const int64_t epoch = step / l->steps_per_epoch;
    const sti_data_augment augment = {.crop_pad = (int)v.data->crop_pad,
                                      .flip = v.data->flip,
                                      .scale_crop = v.data->scale_crop,
                                      .seed = seed,
                                      .epoch = (uint64_t)epoch};
    /* Passages stay where they are, so that a run has seen one or has not. */
    const sti_step_batch batch = {.samples = w->chosen + step % l->steps_per_epoch *
                                                             l->job.setup.batch,
                                  .augment = l->job.inputs.text ? NULL : &augment,
                                  .norm = &l->norm,
                                  .seed = seed,
                                  .step = step};
    sti_step_result result;
    stint_status st = sti_step_engine_run(w->engine, &batch, &result);
    if (st != STINT_OK)
        return st;
    const double squares = sti_step_engine_gradient_squares(w->engine, result.block);
    if (!isfinite(result.loss) || !isfinite(squares))
        return sti_fail(STINT_E_FAILED,
                        "run %" PRId64 ", step %" PRId64
                        ": the loss or a gradient is not finite; try a lower "
                        "optimizer.lr or a longer schedule.warmup",
                        run, step + 1);
    const double norm = sqrt(squares) / (double)w->engine->runs;
    sti_step_engine_update(w->engine, v.optimizer, sti_schedule_lr(schedule, step),
                           sti_update_clip(v.optimizer, norm), step, result.block);
    return STINT_OK;
}

static stint_status train_network(worker *w, int64_t run, uint64_t seed)
{
    const memory_lab *l = w->lab;
    sti_schedule schedule;
    for (int i = 0; i < l->job.setup.moments; i++)
        memset(w->engine->moments[i], 0, w->engine->sizes.moments);
    memset(w->engine->states, 0, w->engine->sizes.states);
    stint_status st =
        sti_network_init_weights(&l->job.setup.train, &w->engine->team, seed,
                                 w->engine->params, w->engine->states);
    sti_schedule_init(&schedule, sti_schedule_section_of(l->recipe),
                      sti_optimizer_section_of(l->recipe)->lr, l->steps_per_epoch,
                      l->steps);
    for (int64_t step = 0; step < l->steps && st == STINT_OK; step++) {
        if (sti_stop_asked() != STINT_OK)
            return sti_fail(sti_stop_asked(), "stopped");
        if (step % l->steps_per_epoch == 0)
            order_epoch(w, seed, step / l->steps_per_epoch);
        st = run_step(w, &schedule, run, seed, step);
        tell(w, false);
    }
    return st;
}

static stint_status find_right(worker *w, sti_evaluation_of of, sti_evaluation *e,
                               const stint_data *data, uint8_t *right_out)
{
    stint_status st =
        sti_step_engine_evaluate(w->engine, of, &w->lab->norm, e, NULL, NULL);
    for (int64_t i = 0; i < e->count && st == STINT_OK; i++)
        right_out[i] = e->predicted[i] == sti_data_label(data, i);
    return st;
}

/* An evaluation's batches are of one passage each. */
static stint_status find_losses(worker *w)
{
    const stint_status st = sti_step_engine_evaluate(
        w->engine, STI_EVALUATE_TRAIN, &w->lab->norm, &w->train, NULL, NULL);
    const double context = (double)w->lab->job.inputs.network.context;
    for (int64_t i = 0; i < w->train.count && st == STINT_OK; i++)
        w->answers.loss[i] = (float)(w->train.batch_loss[i] / context);
    return st;
}

static stint_status run_one(worker *w, int64_t run)
{
    memory_lab *l = w->lab;
    uint32_t word[4];
    sti_random4(l->seed, STI_STREAM_SUBSET, (uint64_t)run, UINT64_MAX, word);
    const uint64_t seed = (uint64_t)word[0] << 32 | word[1];
    sti_memory_members(l->seed, run, l->job.inputs.train_count, l->members, w->order,
                       w->answers.member);
    stint_status st = train_network(w, run, seed);
    if (st == STINT_OK && w->answers.loss) {
        st = find_losses(w);
        return st == STINT_OK ? sti_memory_folder_write(&l->folder, run, &w->answers)
                              : st;
    }
    if (st == STINT_OK)
        st = find_right(w, STI_EVALUATE_TRAIN, &w->train, l->job.inputs.train_data,
                        w->answers.train_right);
    if (st == STINT_OK && l->job.inputs.test_data)
        st = find_right(w, STI_EVALUATE_TEST, &w->test, l->job.inputs.test_data,
                        w->answers.test_right);
    return st == STINT_OK ? sti_memory_folder_write(&l->folder, run, &w->answers) : st;
}

/* ---- workers ---- */

static void worker_fini(worker *w)
{
    sti_step_engine_destroy(w->engine);
    sti_evaluation_fini(&w->train);
    sti_evaluation_fini(&w->test);
    sti_free(w->order);
    sti_free(w->chosen);
    sti_memory_answers_fini(&w->answers);
}

static stint_status worker_init(worker *w, memory_lab *l)
{
    const sti_job *job = &l->job;
    const sti_step_engine_desc desc = sti_memory_engine(l);
    const int32_t classes = (int32_t)job->inputs.network.model.classes;
    stint_status st = sti_step_engine_create(&desc, &w->engine);
    if (st == STINT_OK)
        st = sti_evaluation_init(&w->train, job->inputs.train_count, classes,
                                 job->setup.eval.images, 1);
    if (st == STINT_OK && job->inputs.test_data)
        st = sti_evaluation_init(&w->test, job->inputs.test_count, classes,
                                 job->setup.train.images, 1);
    if (st == STINT_OK)
        st = sti_memory_answers_init(&w->answers, job->inputs.train_count,
                                     job->inputs.test_count, job->inputs.text != NULL);
    w->order = sti_alloc_array(job->inputs.train_count, sizeof *w->order, "order");
    w->chosen = sti_alloc_array(l->members, sizeof *w->chosen, "order");
    return st == STINT_OK && w->order && w->chosen ? STINT_OK
           : st == STINT_OK                        ? STINT_E_MEMORY
                                                   : st;
}

/* -1: nothing is left, or something went wrong. Runs are taken in order, so whichever
 * is lower than a failed one is at work already. */
static int64_t take_run(memory_lab *l)
{
    int64_t run = -1;
    pthread_mutex_lock(&l->lock);
    while (l->failed_run < 0 && l->next < l->desc->runs && run < 0) {
        run = l->next++;
        if (sti_memory_folder_has(&l->folder, run))
            run = -1;
    }
    pthread_mutex_unlock(&l->lock);
    return run;
}

static void settle_run(memory_lab *l, int64_t run, stint_status st)
{
    pthread_mutex_lock(&l->lock);
    if (st == STINT_OK) {
        l->done++;
        l->trained++;
    } else if (l->failed_run < 0 || run < l->failed_run) {
        l->failed_run = run;
        l->failed = st;
        snprintf(l->failure, sizeof l->failure, "%s", stint_last_error());
    }
    pthread_mutex_unlock(&l->lock);
}

static void work(void *arg, int64_t piece, int thread)
{
    worker *w = (worker *)arg + piece;
    w->tells = thread == 0;
    for (int64_t run; (run = take_run(w->lab)) >= 0;) {
        settle_run(w->lab, run, run_one(w, run));
        tell(w, true);
    }
}

static stint_status stopped(const memory_lab *l)
{
    if (l->failed != STINT_E_INTERRUPTED && l->failed != STINT_E_TERMINATED)
        return sti_fail(l->failed, "%s", l->failure);
    return sti_fail(l->failed,
                    "stopped with %" PRId64 " of %" PRId64
                    " runs done; the same command goes on from there",
                    l->done, l->desc->runs);
}

stint_status sti_memory_train_all(memory_lab *l)
{
    const sti_team team = {.threads = l->jobs};
    worker *workers = sti_alloc_array(l->jobs, sizeof *workers, "workers");
    stint_status st = workers ? STINT_OK : STINT_E_MEMORY;
    for (int i = 0; i < l->jobs && st == STINT_OK; i++) {
        workers[i].lab = l;
        st = worker_init(&workers[i], l);
    }
    l->start_ns = sti_clock_ns();
    if (st == STINT_OK)
        sti_team_run(&team, l->jobs, work, workers);
    for (int i = 0; workers && i < l->jobs; i++)
        worker_fini(&workers[i]);
    sti_free(workers);
    return st == STINT_OK && l->failed_run >= 0 ? stopped(l) : st;
}

stint_status sti_memory_count_done(memory_lab *l)
{
    sti_memory_answers a = {0};
    stint_status st =
        sti_memory_answers_init(&a, l->job.inputs.train_count, l->job.inputs.test_count,
                                l->job.inputs.text != NULL);
    for (int64_t r = 0; r < l->desc->runs && st == STINT_OK; r++) {
        char path[4200];
        if (!sti_memory_folder_has(&l->folder, r))
            continue;
        st = sti_memory_folder_read(&l->folder, r, &a);
        l->done += st == STINT_OK;
        if (st != STINT_E_INPUT)
            continue;
        snprintf(path, sizeof path, "%s/%05" PRId64 ".bits", l->folder.runs, r);
        sti_log(STINT_LOG_WARNING, "%s; the run is done again", stint_last_error());
        st = remove(path) == 0 ? STINT_OK
                               : sti_fail_errno("%s: cannot be removed", path);
    }
    sti_memory_answers_fini(&a);
    return st;
}
