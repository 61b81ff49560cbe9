/* stint_memory_run: many networks, each trained on a random part of the images.
 *
 * A run is one worker's affair: a step engine of one thread and one lane, of which
 * there are as many as threads and memory allow. Images are decoded once if that fits.
 * The subset is a mask on the order of the samples, no data is copied. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/stop.h"
#include "base/units.h"
#include "infer/evaluate.h"
#include "model/network_recipe.h"
#include "train/job.h"
#include "train/lr_schedule.h"
#include "train/recipe_view.h"
#include "trust/memory_folder.h"
#include "trust/memory_page.h"

#define KEEP_MOST    ((size_t)4 << 30) /* of decoded images, without a budget */
#define THREAD_BYTES ((size_t)64 << 10)
#define NODE_BYTES   400 /* of a flat run, as in train/memory_account.c */
#define PROGRESS_NS  100000000

typedef struct lab {
    const stint_memory_desc *desc;
    stint_recipe *recipe; /* the caller's, for one thread */
    sti_arena *arena;
    sti_job job;
    sti_data_norm norm;
    sti_memory_identity identity;
    sti_memory_folder folder;
    int threads, jobs;
    bool keep;
    size_t peak_bytes; /* planned */
    int64_t members, steps_per_epoch, steps;
    uint64_t seed;
    /* Shared by the workers. */
    pthread_mutex_t lock;
    int64_t next, done,
        trained;        /* run to take; runs that are there; those of this call */
    int64_t failed_run; /* -1: none */
    stint_status failed;
    char failure[STI_LANE_TEXT];
    int64_t start_ns, progress_ns;
} lab;

typedef struct worker {
    lab *lab;
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
    const lab *l = w->lab;
    int64_t n = 0;
    sti_shuffle(seed, STI_STREAM_SHUFFLE, (uint64_t)epoch, l->job.inputs.train_count,
                w->order);
    for (int64_t i = 0; i < l->job.inputs.train_count; i++)
        if (w->answers.member[w->order[i]])
            w->chosen[n++] = w->order[i];
}

static void tell(worker *w, bool always)
{
    lab *l = w->lab;
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
    const lab *l = w->lab;
    const sti_recipe_view v = sti_recipe_view_of(l->recipe);
    const int64_t epoch = step / l->steps_per_epoch;
    const sti_data_augment augment = {.crop_pad = (int)v.data->crop_pad,
                                      .flip = v.data->flip,
                                      .scale_crop = v.data->scale_crop,
                                      .seed = seed,
                                      .epoch = (uint64_t)epoch};
    const sti_step_batch batch = {.samples = w->chosen + step % l->steps_per_epoch *
                                                             l->job.setup.batch,
                                  .augment = &augment,
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
    const double norm = sqrt(squares) / (double)l->job.setup.shards;
    sti_step_engine_update(w->engine, v.optimizer, sti_schedule_lr(schedule, step),
                           sti_update_clip(v.optimizer, norm), step, result.block);
    return STINT_OK;
}

static stint_status train_network(worker *w, int64_t run, uint64_t seed)
{
    const lab *l = w->lab;
    sti_schedule schedule;
    for (int i = 0; i < l->job.setup.moments; i++)
        memset(w->engine->moments[i], 0, w->engine->sizes.params);
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

static stint_status run_one(worker *w, int64_t run)
{
    lab *l = w->lab;
    uint32_t word[4];
    sti_random4(l->seed, STI_STREAM_SUBSET, (uint64_t)run, UINT64_MAX, word);
    const uint64_t seed = (uint64_t)word[0] << 32 | word[1];
    sti_memory_members(l->seed, run, l->job.inputs.train_count, l->members, w->order,
                       w->answers.member);
    stint_status st = train_network(w, run, seed);
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
    sti_free(w->answers.member);
    sti_free(w->answers.train_right);
    sti_free(w->answers.test_right);
}

static sti_step_engine_desc engine_desc(const lab *l)
{
    sti_step_engine_desc desc = sti_job_engine(&l->job);
    desc.eval = &l->job.setup.eval;
    return desc;
}

static stint_status answers_init(sti_memory_answers *a, int64_t train, int64_t test)
{
    a->member = sti_alloc((size_t)train, "answers");
    a->train_right = sti_alloc((size_t)train, "answers");
    a->test_right = sti_alloc((size_t)test, "answers");
    return a->member && a->train_right && a->test_right ? STINT_OK : STINT_E_MEMORY;
}

static stint_status worker_init(worker *w, lab *l)
{
    const sti_job *job = &l->job;
    const sti_step_engine_desc desc = engine_desc(l);
    const int32_t classes = (int32_t)job->inputs.network.model.classes;
    stint_status st = sti_step_engine_create(&desc, &w->engine);
    if (st == STINT_OK)
        st = sti_evaluation_init(&w->train, job->inputs.train_count, classes,
                                 job->setup.train.images, 1);
    if (st == STINT_OK && job->inputs.test_data)
        st = sti_evaluation_init(&w->test, job->inputs.test_count, classes,
                                 job->setup.train.images, 1);
    if (st == STINT_OK)
        st = answers_init(&w->answers, job->inputs.train_count, job->inputs.test_count);
    w->order = sti_alloc_array(job->inputs.train_count, sizeof *w->order, "order");
    w->chosen = sti_alloc_array(l->members, sizeof *w->chosen, "order");
    return st == STINT_OK && w->order && w->chosen ? STINT_OK
           : st == STINT_OK                        ? STINT_E_MEMORY
                                                   : st;
}

/* -1: nothing is left, or something went wrong. Runs are taken in order, so whichever
 * is lower than a failed one is at work already. */
static int64_t take_run(lab *l)
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

static void settle_run(lab *l, int64_t run, stint_status st)
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

static stint_status stopped(const lab *l)
{
    if (l->failed != STINT_E_INTERRUPTED && l->failed != STINT_E_TERMINATED)
        return sti_fail(l->failed, "%s", l->failure);
    return sti_fail(l->failed,
                    "stopped with %" PRId64 " of %" PRId64
                    " runs done; the same command goes on from there",
                    l->done, l->desc->runs);
}

static stint_status train_all(lab *l)
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

/* Those that are there and sound; a damaged one is made again. */
static stint_status count_done(lab *l)
{
    sti_memory_answers a = {0};
    stint_status st =
        answers_init(&a, l->job.inputs.train_count, l->job.inputs.test_count);
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
    sti_free(a.member);
    sti_free(a.train_right);
    sti_free(a.test_right);
    return st;
}

/* ---- planning ---- */

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
                {"loss.reference", v.loss->reference != NULL},
                {"prune.sparsity", v.prune->sparsity > 0},
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

static stint_status check_desc(const stint_recipe *recipe, const stint_memory_desc *d)
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
    if (v.error->tau > 0 && v.error->pack == STI_PACK_ALL)
        return sti_fail(STINT_E_USAGE, "error.pack: runs are trained without packed "
                                       "activations here; leave it at auto");
    return check_plain(recipe);
}

static stint_status count_steps(lab *l)
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

/* Both kinds of images are evaluated, also where there is no test split. */
static stint_status add_eval(sti_job *job)
{
    if (job->setup.eval.graph)
        return STINT_OK;
    stint_status st = sti_network_build(&job->inputs.network, STINT_EVAL,
                                        job->setup.train.images, &job->setup.eval);
    if (st == STINT_OK)
        st = sti_network_plan(&job->setup.eval, 1);
    return st == STINT_OK ? sti_network_agree(&job->setup.train, &job->setup.eval) : st;
}

/* What one worker takes beyond a training: answers and predictions. */
static size_t answer_bytes(const sti_job *job)
{
    const int32_t classes = (int32_t)job->inputs.network.model.classes;
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
static size_t worker_bytes(const lab *l)
{
    const sti_job *job = &l->job;
    const sti_step_engine_desc desc = engine_desc(l);
    sti_step_engine_sizes sizes;
    sti_step_engine_measure(&desc, &sizes);
    return sizes.total + decoder_bytes(job->inputs.train_data) +
           decoder_bytes(job->inputs.test_data) + answer_bytes(job) + THREAD_BYTES +
           (size_t)(sti_graph_node_count(job->setup.train.graph) +
                    sti_graph_node_count(job->setup.eval.graph)) *
               NODE_BYTES;
}

/* Columns, their packed copy, pairs and tables. */
static size_t estimate_bytes(const lab *l)
{
    const int64_t n = l->job.inputs.train_count, tests = l->job.inputs.test_count;
    const int64_t nearest = l->desc->nearest > 0 ? l->desc->nearest : 8;
    return 2 * sti_memory_bits_bytes(l->desc->runs, n, tests) + (size_t)n * 64 +
           (size_t)(tests * nearest) * sizeof(stint_memory_pair) +
           (size_t)(l->threads * n) * sizeof(uint32_t);
}

static size_t kept_bytes(const sti_job *job)
{
    return sti_data_kept_bytes(job->inputs.train_data) +
           (job->inputs.test_data ? sti_data_kept_bytes(job->inputs.test_data) : 0);
}

static stint_status create_job(lab *l, size_t budget)
{
    sti_run_values *run = sti_recipe_edit(l->recipe, &sti_run_section);
    run->memory_bytes = budget;
    stint_status st = sti_job_create(l->recipe, NULL, &l->job);
    if (st == STINT_OK)
        st = add_eval(&l->job);
    return st;
}

static size_t peak_of(const lab *l, int jobs, bool keep)
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

/* One run within the budget first, by rewriting its step if need be; then decoded
 * images; then runs side by side. */
static stint_status plan(lab *l, size_t budget)
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
        sti_data_section_of(l->recipe)->scale_crop <= 0 &&
        (budget > 0 ? peak_of(l, 1, true) <= budget : kept_bytes(&l->job) <= KEEP_MOST);
    l->jobs = l->desc->jobs > 0 ? (int)l->desc->jobs : l->threads;
    if (l->jobs > l->desc->runs)
        l->jobs = (int)l->desc->runs;
    while (budget > 0 && l->jobs > 1 && peak_of(l, l->jobs, l->keep) > budget)
        l->jobs--;
    l->peak_bytes = peak_of(l, l->jobs, l->keep);
    sti_log(STINT_LOG_INFO,
            "%" PRId64 " runs of %" PRId64 " of %" PRId64 " images, %" PRId64
            " steps each, %d side by side, images decoded %s, %s planned",
            l->desc->runs, l->members, l->job.inputs.train_count, l->steps, l->jobs,
            l->keep ? "once" : "for every batch", sti_bytes_text(l->peak_bytes));
    return STINT_OK;
}

/* ---- images ---- */

static stint_status prepare_split(const lab *l, stint_data *data, sti_data_norm *norm,
                                  char sha256_out[65])
{
    const sti_team team = {.threads = l->jobs};
    sti_data_decoders *decoders;
    stint_status st = sti_data_decoders_create(data, team.threads, &decoders);
    if (st != STINT_OK)
        return st;
    if (l->keep)
        st = sti_data_keep(data, &team, decoders);
    if (st == STINT_OK && norm)
        st = sti_data_measure(data, &team, decoders, NULL, NULL, norm);
    if (st == STINT_OK)
        st = sti_data_sha256(data, decoders, sha256_out);
    sti_data_decoders_destroy(decoders);
    return st;
}

static stint_status prepare_images(lab *l)
{
    sti_memory_identity *id = &l->identity;
    *id = (sti_memory_identity){.recipe = l->recipe,
                                .fraction = l->desc->fraction,
                                .train = l->job.inputs.train_count,
                                .test = l->job.inputs.test_count,
                                .members = l->members};
    stint_status st =
        prepare_split(l, l->job.inputs.train_data, &l->norm, id->train_sha256);
    return st == STINT_OK && l->job.inputs.test_data
               ? prepare_split(l, l->job.inputs.test_data, NULL, id->test_sha256)
               : st;
}

/* ---- results ---- */

static stint_status read_columns(const lab *l, sti_memory_bits *b)
{
    sti_memory_answers a = {0};
    stint_status st = answers_init(&a, b->train, b->test);
    for (int64_t r = 0; r < b->runs && st == STINT_OK; r++) {
        st = sti_memory_folder_read(&l->folder, r, &a);
        for (int64_t i = 0; i < b->train && st == STINT_OK; i++) {
            if (a.member[i])
                sti_memory_set(b->member, b->words, i, r);
            if (a.train_right[i])
                sti_memory_set(b->train_right, b->words, i, r);
        }
        for (int64_t j = 0; j < b->test && st == STINT_OK; j++)
            if (a.test_right[j])
                sti_memory_set(b->test_right, b->words, j, r);
    }
    sti_free(a.member);
    sti_free(a.train_right);
    sti_free(a.test_right);
    return st;
}

static void read_labels(const lab *l, sti_memory_bits *b)
{
    b->classes = (int32_t)l->job.inputs.network.model.classes;
    for (int64_t i = 0; i < b->train; i++)
        b->train_label[i] = sti_data_label(l->job.inputs.train_data, i);
    for (int64_t j = 0; j < b->test; j++)
        b->test_label[j] = sti_data_label(l->job.inputs.test_data, j);
}

static int64_t count_bits(const uint64_t *a, const uint64_t *b, int64_t words)
{
    int64_t count = 0;
    for (int64_t w = 0; w < words; w++)
        count += __builtin_popcountll(a[w] & (b ? ~b[w] : UINT64_MAX));
    return count;
}

/* Means over the runs. */
static void find_accuracies(const sti_memory_bits *b, stint_memory *m)
{
    const int64_t left_out =
        b->runs * b->train - count_bits(b->member, NULL, b->words * b->train);
    m->train_accuracy =
        (double)count_bits(b->train_right, b->member, b->words * b->train) /
        (double)left_out;
    m->test_accuracy =
        b->test > 0 ? (double)count_bits(b->test_right, NULL, b->words * b->test) /
                          (double)(b->runs * b->test)
                    : (double)NAN;
}

static stint_status estimate(const lab *l, stint_memory *m)
{
    const sti_team team = {.threads = l->threads};
    sti_memory_bits bits;
    stint_status st = sti_memory_bits_init(
        &bits, l->desc->runs, l->job.inputs.train_count, l->job.inputs.test_count);
    if (st != STINT_OK)
        return st;
    st = read_columns(l, &bits);
    if (st == STINT_OK) {
        read_labels(l, &bits);
        st = sti_memory_estimate(&bits, l->desc, l->seed, &team, m);
    }
    if (st == STINT_OK) {
        find_accuracies(&bits, m);
        m->members = l->members;
        m->fraction = l->desc->fraction;
        st = sti_memory_write(l->folder.path, &bits, m, l->job.inputs.train_data,
                              l->job.inputs.test_data);
    }
    sti_memory_bits_fini(&bits);
    return st;
}

/* ---- all ---- */

static const char *out_folder(const lab *l, const stint_recipe *recipe)
{
    const char *out = sti_recipe_out(recipe, l->arena);
    if (!out || (sti_run_section_of(recipe)->out && *sti_run_section_of(recipe)->out))
        return out;
    return sti_arena_printf(l->arena, "%s-memory", out);
}

static stint_status begin(lab *l, const stint_recipe *recipe)
{
    stint_status st = stint_recipe_check(recipe);
    if (st == STINT_OK && sti_recipe_is_text(recipe))
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "%s learns from text; what is memorised is measured image by "
                      "image",
                      sti_recipe_network(recipe));
    if (st == STINT_OK)
        st = sti_isa_check();
    if (st == STINT_OK)
        st = check_desc(recipe, l->desc);
    if (st == STINT_OK)
        st = sti_threads_choose((int)sti_run_section_of(recipe)->threads, &l->threads,
                                NULL);
    if (st == STINT_OK)
        st = sti_recipe_copy(recipe, &l->recipe);
    if (st != STINT_OK)
        return st;
    sti_run_values *run = sti_recipe_edit(l->recipe, &sti_run_section);
    sti_error_values *error = sti_recipe_edit(l->recipe, &sti_error_section);
    run->threads = 1;
    run->lanes = 1;
    error->tau = 0; /* budgets are met without loss */
    l->seed = (uint64_t)sti_train_section_of(recipe)->seed;
    l->arena = sti_arena_create("memorisation");
    const char *out = l->arena ? out_folder(l, recipe) : NULL;
    if (!out)
        return STINT_E_MEMORY;
    st = plan(l, sti_run_section_of(recipe)->memory_bytes);
    if (st == STINT_OK)
        st = prepare_images(l);
    if (st == STINT_OK)
        st = sti_memory_folder_open(l->arena, out, &l->identity, &l->folder);
    return st;
}

stint_status stint_memory_run(const stint_recipe *recipe, const stint_memory_desc *desc,
                              stint_memory *m)
{
    lab l = {.desc = desc,
             .failed_run = -1,
             .folder.lock_fd = -1,
             .lock = PTHREAD_MUTEX_INITIALIZER};
    const int64_t start_ns = sti_clock_ns();
    *m = (stint_memory){0};
    stint_status st = begin(&l, recipe);
    if (st == STINT_OK)
        st = count_done(&l);
    if (st == STINT_OK && l.done < desc->runs)
        st = train_all(&l);
    if (st == STINT_OK)
        st = estimate(&l, m);
    if (st == STINT_OK) {
        m->runs_done = l.trained;
        m->jobs = l.jobs;
        m->kept_in_memory = l.keep;
        m->seconds = sti_seconds_since(start_ns);
        m->planned_peak_bytes = l.peak_bytes;
        m->peak_rss_bytes = sti_process_peak_bytes();
        snprintf(m->out, sizeof m->out, "%s", l.folder.path);
    }
    sti_memory_folder_close(&l.folder);
    sti_job_fini(&l.job);
    stint_recipe_destroy(l.recipe);
    sti_arena_destroy(l.arena);
    pthread_mutex_destroy(&l.lock);
    sti_stop_clear();
    return st;
}
