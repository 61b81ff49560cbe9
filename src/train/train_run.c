/* stint_train: from a recipe to a run's folder. */
#define _GNU_SOURCE /* flock, O_CLOEXEC, O_DIRECTORY */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/units.h"
#include "net/net.h"
#include "train/batch_auto.h"
#include "train/model_file.h"
#include "train/prune.h"
#include "train/recipe_view.h"
#include "train/report.h"
#include "train/run.h"
#include "train/select.h"
#include "train/stop.h"

/* ---- the out folder ---- */

static const char *const run_files[] = {"log.jsonl",   "model.safetensors",
                                        "errors.json", "answers.npy",
                                        "report.html", "recipe.ini"};

static stint_status name_files(sti_run *run)
{
    run->arena = sti_arena_create("run");
    if (!run->arena)
        return STINT_E_MEMORY;
    run->out = sti_recipe_out(run->recipe, run->arena);
    if (!run->out)
        return STINT_E_MEMORY;
    run->checkpoints = sti_path_join(run->arena, run->out, "checkpoints");
    run->model_path = sti_path_join(run->arena, run->out, "model.safetensors");
    run->log_path = sti_path_join(run->arena, run->out, "log.jsonl");
    return run->checkpoints && run->model_path && run->log_path ? STINT_OK
                                                                : STINT_E_MEMORY;
}

/* Number of checkpoints that are there. */
static stint_status count_checkpoints(const sti_run *run, int64_t *count)
{
    char **names;
    return sti_checkpoint_list(run->arena, run->checkpoints, &names, count);
}

/* No old result is ever replaced in silence. */
static stint_status check_out(const sti_run *run)
{
    int64_t count;
    stint_status st = count_checkpoints(run, &count);
    if (st != STINT_OK || run->desc->resume || run->desc->force)
        return st;
    if (count > 0 || sti_path_is_file(run->model_path) ||
        sti_path_is_file(run->log_path))
        return sti_fail(STINT_E_USAGE,
                        "%s holds a run already; go on with it by --resume, replace it "
                        "by --force, or choose another folder by --out",
                        run->out);
    return STINT_OK;
}

/* The folder itself is the lock: it goes when the process does. */
static stint_status take_out(sti_run *run)
{
    stint_status st = sti_dir_create(run->checkpoints);
    if (st != STINT_OK)
        return st;
    if (access(run->out, W_OK | X_OK) != 0 ||
        access(run->checkpoints, W_OK | X_OK) != 0)
        return sti_fail_errno("%s: cannot be written", run->out);
    run->lock_fd = open(run->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run->lock_fd < 0)
        return sti_fail_errno("%s: cannot be opened", run->out);
    if (flock(run->lock_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return sti_fail(STINT_E_USAGE,
                        "%s: another process is training there; wait for it, or choose "
                        "another folder by --out",
                        run->out);
    return STINT_OK;
}

static stint_status remove_file(const sti_run *run, const char *folder,
                                const char *name)
{
    char *path = sti_path_join(run->arena, folder, name);
    if (!path)
        return STINT_E_MEMORY;
    if (unlink(path) != 0 && errno != ENOENT)
        return sti_fail_errno("%s: cannot be replaced", path);
    return STINT_OK;
}

/* What a killed process may have left half written. */
static stint_status remove_leavings(const sti_run *run)
{
    char **names;
    int64_t count;
    stint_status st = sti_dir_list(run->arena, run->checkpoints, &names, &count);
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        if (strcmp(sti_path_extension(names[i]), ".part") == 0)
            st = remove_file(run, run->checkpoints, names[i]);
    return st;
}

static stint_status remove_old_run(const sti_run *run)
{
    char **names;
    int64_t count;
    stint_status st = sti_checkpoint_list(run->arena, run->checkpoints, &names, &count);
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        st = remove_file(run, run->checkpoints, names[i]);
    for (size_t i = 0; i < sizeof run_files / sizeof run_files[0] && st == STINT_OK;
         i++)
        st = remove_file(run, run->out, run_files[i]);
    return st;
}

/* What a repeat is to use: it looks for no batch, so it has less memory to itself, and
 * chooses the same rewrites. */
static stint_status write_recipe(const sti_run *run)
{
    sti_text text = {0};
    stint_recipe *repeat = NULL;
    char *path = sti_path_join(run->arena, run->out, "recipe.ini");
    stint_status st = path ? sti_recipe_copy(run->recipe, &repeat) : STINT_E_MEMORY;
    if (st == STINT_OK && sti_run_section_of(run->recipe)->searched) {
        sti_run_values *values = sti_recipe_edit(repeat, &sti_run_section);
        values->memory_bytes -= STI_SEARCH_BYTES;
    }
    if (st == STINT_OK)
        st = sti_recipe_write(repeat, false, &text);
    if (st == STINT_OK)
        st = sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    stint_recipe_destroy(repeat);
    return st;
}

/* ---- normalisation ---- */

typedef struct measuring {
    sti_run *run;
} measuring;

static void tell_measured(void *user, int64_t done, int64_t total)
{
    const measuring *m = user;
    const stint_train_desc *desc = m->run->desc;
    if (!desc->progress)
        return;
    desc->progress(desc->user, &(stint_train_progress){.steps = m->run->job.steps,
                                                       .epochs = m->run->job.epochs,
                                                       .test_loss = (double)NAN,
                                                       .test_accuracy = (double)NAN,
                                                       .evaluating = true,
                                                       .evaluated = done,
                                                       .to_evaluate = total});
}

static stint_status measure_norm(sti_run *run)
{
    const stint_model_file *given =
        run->job.start ? run->job.start : run->job.reference;
    if (given) {
        run->norm = given->norm;
        return STINT_OK;
    }
    sti_team team = {.threads = run->job.threads};
    sti_data_decoders *decoders;
    measuring m = {run};
    if (run->job.text)
        return STINT_OK; /* tokens are not normalised */
    stint_status st =
        sti_data_decoders_create(run->job.train_data, team.threads, &decoders);
    if (st != STINT_OK)
        return st;
    st = sti_data_measure(run->job.train_data, &team, decoders, tell_measured, &m,
                          &run->norm);
    sti_data_decoders_destroy(decoders);
    return st;
}

/* ---- beginning ---- */

/* The weights of the reference, which nothing may change until the run ends. */
static stint_status load_reference(sti_run *run)
{
    sti_loss_state_init(sti_loss_section_of(run->recipe), &run->loss);
    stint_status st =
        sti_model_load_reference(run->job.reference, &run->job.train, run->crew);
    if (st == STINT_OK)
        sti_model_reference_sha256(run->job.reference, &run->job.train, run->crew,
                                   run->reference_sha256);
    return st;
}

static stint_status check_reference(const sti_run *run)
{
    char sha256[65];
    if (!run->job.reference)
        return STINT_OK;
    sti_model_reference_sha256(run->job.reference, &run->job.train, run->crew, sha256);
    if (strcmp(sha256, run->reference_sha256) != 0 ||
        strcmp(sha256, run->job.reference->weights_sha256) != 0)
        return sti_fail(STINT_E_BUG, "the reference's weights changed in training");
    return STINT_OK;
}

static stint_status create_parts(sti_run *run)
{
    sti_crew_desc desc = sti_job_crew(&run->job);
    stint_status st = sti_crew_create(&desc, &run->crew);
    if (st == STINT_OK && run->desc->profile) {
        st = sti_profile_begin(run->desc->profile, run->job.train.graph,
                               run->crew->own.count, desc.lanes,
                               run->crew->lane_team.threads);
        run->crew->profile = run->desc->profile;
    }
    if (st == STINT_OK)
        st = sti_saver_create(&run->job, run->crew, &run->norm,
                              run->job.train.weights >= 0 ? &run->loss : NULL,
                              &run->saver);
    if (st == STINT_OK && run->job.reference)
        st = load_reference(run);
    if (st == STINT_OK)
        st = sti_run_create_control(run);
    if (st == STINT_OK && run->job.test_count > 0)
        st = sti_evaluation_init(&run->evaluation, run->job.test_count,
                                 (int32_t)run->job.network.model.classes,
                                 run->job.train.images, run->job.lanes);
    if (st == STINT_OK && sti_select_wanted(run)) {
        st = sti_evaluation_init(&run->validation, run->job.validation_count,
                                 (int32_t)run->job.network.model.classes,
                                 run->job.train.images, run->job.lanes);
        run->validation.of = STI_EVALUATE_VALIDATION;
    }
    if (st != STINT_OK)
        return st;
    if (run->job.text)
        run->evaluation.part = run->job.text->test;
    run->order = sti_alloc_array(run->job.train_count, sizeof *run->order, "order");
    run->order_epoch = -1;
    sti_schedule_init(&run->schedule, sti_schedule_section_of(run->recipe),
                      sti_optimizer_section_of(run->recipe)->lr,
                      run->job.steps_per_epoch, run->job.steps);
    return run->order ? STINT_OK : STINT_E_MEMORY;
}

/* Memory that a checkpoint which turned out broken may have filled. */
static void clear_moments(sti_run *run)
{
    for (int i = 0; i < run->job.moments; i++)
        memset(run->crew->moments[i], 0, run->crew->sizes.params);
}

/* New weights, or those of the model to begin with; then what pruning leaves. */
static stint_status init_weights(sti_run *run)
{
    const sti_recipe_view v = sti_recipe_view_of(run->recipe);
    stint_status st =
        run->job.start
            ? sti_model_start(run->job.start, &run->job.train, run->job.network.name,
                              run->crew)
            : sti_network_init_weights(&run->job.train, &run->crew->team,
                                       sti_recipe_seed(run->recipe, STI_STREAM_INIT),
                                       run->crew->params, run->crew->states);
    if (st == STINT_OK && v.noise->ulp > 0)
        st = sti_network_flip_ulp(&run->job.train, (uint64_t)v.noise->ulp,
                                  run->crew->params);
    if (st == STINT_OK && run->crew->mask)
        sti_prune(run->crew, sti_prune_share(v.prune, 0), v.prune->scope);
    return st;
}

static stint_status start_fresh(sti_run *run, bool measured)
{
    run->position = (sti_position){.train_loss = (double)NAN,
                                   .train_accuracy = (double)NAN,
                                   .test_loss = (double)NAN,
                                   .test_accuracy = (double)NAN};
    clear_moments(run);
    sti_loss_state_init(sti_loss_section_of(run->recipe), &run->loss);
    stint_status st = measured ? STINT_OK : measure_norm(run);
    return st == STINT_OK ? init_weights(run) : st;
}

/* Weights, position and normalisation: from a checkpoint, or new. *step_out: that of
 * the checkpoint, or -1. Of rank 0: the others get all by sti_run_share_start, and make
 * what they can themselves, so that it need not be sent. */
static stint_status load_or_init(sti_run *run, bool measured, int64_t *step_out)
{
    bool found = false;
    stint_status st = STINT_OK;
    *step_out = -1;
    if (!sti_run_is_first(run))
        return run->desc->resume ? STINT_OK : init_weights(run);
    if (run->desc->resume) {
        sti_saver_on_adopt(run->saver, sti_run_adopt_packs, run);
        st = sti_saver_resume(run->saver, run->checkpoints, &run->position, &found);
        if (st == STINT_OK && !found)
            sti_log(STINT_LOG_INFO,
                    "%s: no checkpoint to resume from; starting from the beginning",
                    run->out);
    }
    if (st != STINT_OK)
        return st;
    if (!found)
        return start_fresh(run, measured);
    *step_out = run->position.step;
    sti_log(STINT_LOG_INFO, "resuming after step %" PRId64 " of %" PRId64,
            run->position.step, run->job.steps);
    return STINT_OK;
}

static stint_status open_logs(sti_run *run, int64_t resume_step)
{
    const char *board = sti_run_section_of(run->recipe)->tensorboard;
    stint_status st = write_recipe(run);
    if (st == STINT_OK)
        st = sti_run_log_open(run->log_path, &run->job, resume_step,
                              run->position.epoch_images > 0, &run->log);
    if (st == STINT_OK && board && *board)
        st = sti_tensorboard_open(board, &run->board);
    return st;
}

/* The out folder, and what comes before the crew's memory is taken. */
static stint_status begin_out(sti_run *run, bool *measured)
{
    int64_t checkpoints = 0;
    if (!sti_run_is_first(run))
        return STINT_OK;
    stint_status st = take_out(run);
    if (st == STINT_OK)
        st = count_checkpoints(run, &checkpoints);
    /* As long as no checkpoint knows the answer. */
    *measured = !(run->desc->resume && checkpoints > 0);
    if (st == STINT_OK && *measured)
        st = measure_norm(run);
    return st == STINT_OK ? sti_select_begin(run) : st;
}

static stint_status begin_files(sti_run *run, int64_t resume_step)
{
    stint_status st = STINT_OK;
    if (!sti_run_is_first(run))
        return STINT_OK;
    if (!run->desc->resume)
        st = remove_old_run(run);
    if (st == STINT_OK)
        st = remove_leavings(run);
    return st == STINT_OK ? open_logs(run, resume_step) : st;
}

static stint_status begin(sti_run *run)
{
    int64_t resume_step = -1;
    bool measured = false;
    stint_status st = sti_run_agree(run, begin_out(run, &measured));
    if (st != STINT_OK)
        return st;
    st = create_parts(run);
    if (st == STINT_OK)
        st = load_or_init(run, measured, &resume_step);
    st = sti_run_agree(run, st);
    if (st == STINT_OK)
        st = sti_run_share_start(run);
    if (st == STINT_OK)
        st = sti_run_agree(run, begin_files(run, resume_step));
    return st;
}

/* ---- end ---- */

static void fill_result(const sti_run *run, stint_train_result *r)
{
    const sti_position *p = &run->position;
    *r = (stint_train_result){
        .train_loss = p->train_loss,
        .test_loss = p->test_loss,
        .test_accuracy = p->test_accuracy,
        .images_per_s = run->step_s > 0 ? (double)run->images / run->step_s : 0,
        .bits_per_byte = (double)NAN,
        .seconds = sti_seconds_since(run->start_ns),
        .planned_peak_bytes = run->job.plan.peak_bytes,
        .peak_rss_bytes = sti_process_peak_bytes(),
        .seed = (uint64_t)sti_train_section_of(run->recipe)->seed,
        .threads = run->job.threads,
        .lanes = run->job.lanes,
        .batch = run->job.batch,
        .shards = run->job.shards,
        .steps = p->step,
        .epochs = run->job.epochs,
        .parameters = run->job.plan.parameters,
        .validation_accuracy = (double)NAN,
        .validation_mismatch = (double)NAN};
    for (int i = 0; i < STI_LOSS_PARTS && run->job.reference; i++) {
        r->loss_part[i] = run->part[i];
        r->loss_weight[i] = (double)run->part_weight[i];
    }
    if (p->chosen_step > 0) {
        const double count = (double)run->job.validation_count;
        r->chosen_epoch = (p->chosen_step - 1) / run->job.steps_per_epoch + 1;
        r->validation_accuracy = (double)p->chosen_right / count;
        if (sti_train_section_of(run->recipe)->select == STI_SELECT_MISMATCH)
            r->validation_mismatch = (double)p->chosen_others / count;
    }
    if (run->job.text) {
        r->tokens_per_s = r->images_per_s * (double)run->job.network.context;
        r->bits_per_byte = sti_corpus_bits_per_byte(&run->job.text->test, p->test_loss);
    }
    sti_saver_weights_sha256(run->saver, r->weights_sha256);
    snprintf(r->out, sizeof r->out, "%s", run->out);
}

/* Resuming a finished run trains nothing, but its answers are wanted again. */
static stint_status evaluate_finished(sti_run *run)
{
    if (run->evaluated || run->job.test_count == 0)
        return STINT_OK;
    stint_status st = sti_evaluate(run->crew, &run->norm, &run->evaluation, NULL, NULL);
    run->evaluated = st == STINT_OK;
    if (run->evaluated && sti_select_wanted(run)) {
        run->position.test_loss = run->evaluation.loss;
        run->position.test_accuracy = run->evaluation.accuracy;
    }
    return st;
}

/* The class found for each test image, in the order of the data. */
static stint_status write_answers(const sti_run *run)
{
    const sti_evaluation *e = &run->evaluation;
    char *path = sti_path_join(run->arena, run->out, "answers.npy");
    return path ? sti_npy_write(path, "<i4", 1, &e->count, e->predicted,
                                (size_t)e->count * sizeof *e->predicted)
                : STINT_E_MEMORY;
}

static stint_status write_model_and_errors(sti_run *run)
{
    stint_status st = evaluate_finished(run);
    if (!sti_run_is_first(run))
        return st;
    sti_position at = run->position;
    if (sti_select_wanted(run))
        at.step = at.chosen_step;
    if (st == STINT_OK)
        st = sti_saver_write_model(run->saver, &at, run->model_path);
    if (st != STINT_OK || !run->evaluated || run->job.text)
        return st; /* (answers and mistakes are of images) */
    st = sti_run_section_of(run->recipe)->answers ? write_answers(run) : STINT_OK;
    if (st != STINT_OK)
        return st;
    char *path = sti_path_join(run->arena, run->out, "errors.json");
    return path ? sti_run_errors_write(path, run->recipe, &run->evaluation,
                                       run->job.test_data)
                : STINT_E_MEMORY;
}

static stint_status log_end(sti_run *run, stint_status status,
                            const stint_train_result *result)
{
    if (!run->log)
        return STINT_OK;
    return sti_run_log_end(run->log, status, result,
                           run->evaluated && !run->job.text ? &run->evaluation : NULL,
                           run->job.test_data);
}

/* The graph is about to go. Only a machine that was measured before is compared with:
 * measuring takes memory that no budget knows of. */
static stint_status close_profile(const sti_run *run)
{
    sti_machine machine;
    bool known = sti_machine_stored(&machine);
    return run->desc->profile
               ? sti_profile_end(run->desc->profile, known ? &machine : NULL)
               : STINT_OK;
}

/* What was timed until a signal came, as far as it got. */
static void close_profile_early(const sti_run *run, stint_status why)
{
    const bool stopped = why == STINT_E_INTERRUPTED || why == STINT_E_TERMINATED;
    if (stopped && run->desc->profile && run->desc->profile->graph &&
        close_profile(run) != STINT_OK)
        sti_log(STINT_LOG_WARNING, "there is no profile: %s", stint_last_error());
}

/* The log says how the run ended, whatever the end was; the first failure is what the
 * caller hears of. */
static stint_status finish(sti_run *run, stint_status st, stint_train_result *result)
{
    if (st == STINT_OK)
        st = close_profile(run);
    if (st == STINT_OK)
        st = check_reference(run);
    if (st == STINT_OK)
        st = sti_select_end(run);
    if (st == STINT_OK)
        st = write_model_and_errors(run);
    fill_result(run, result);
    if (st == STINT_OK)
        st = sti_run_share_end(run, result);
    if (st == STINT_OK)
        return sti_run_agree(run, log_end(run, st, result));
    char words[2048];
    snprintf(words, sizeof words, "%s", stint_last_error());
    close_profile_early(run, st);
    if (log_end(run, st, result) != STINT_OK)
        sti_log(STINT_LOG_WARNING, "%s", stint_last_error());
    return sti_fail(st, "%s", words);
}

/* All that the run holds, but the folder's lock and its name. */
static void free_parts(sti_run *run)
{
    sti_tensorboard_close(run->board);
    sti_run_log_close(run->log);
    sti_saver_destroy(run->saver);
    sti_error_control_destroy(run->control);
    sti_evaluation_fini(&run->evaluation);
    sti_evaluation_fini(&run->validation);
    sti_free(run->reference_answer);
    run->reference_answer = NULL;
    sti_crew_destroy(run->crew);
    sti_free(run->order);
    sti_job_fini(&run->job);
    run->board = NULL;
    run->log = NULL;
    run->saver = NULL;
    run->control = NULL;
    run->crew = NULL;
    run->order = NULL;
}

/* After the run's own memory is free: the report draws images. A report that fails does
 * not make the training fail. */
static void write_report(const sti_run *run)
{
    if (sti_report_write(run->out) != STINT_OK)
        sti_log(STINT_LOG_WARNING, "the report was not written: %s",
                stint_last_error());
}

static stint_status create_job(sti_run *run)
{
    stint_status st = sti_batch_create_job(run->recipe, run->comm,
                                           run->desc->resume ? run->out : NULL, true,
                                           &run->settled, &run->job);
    if (run->settled)
        run->recipe = run->settled;
    return st;
}

static stint_status plan_own(sti_run *run)
{
    stint_status st = stint_recipe_check(run->recipe);
    if (st == STINT_OK)
        st = sti_isa_check();
    if (st == STINT_OK)
        st = name_files(run);
    if (st == STINT_OK && sti_run_is_first(run))
        st = check_out(run);
    if (st == STINT_OK)
        st = create_job(run);
    if (st == STINT_OK)
        st = sti_job_check_budget(&run->job);
    if (st == STINT_OK)
        st = sti_job_check_packs(&run->job);
    if (st == STINT_OK && run->desc->planned)
        run->desc->planned(run->desc->user, &run->job.plan);
    return st;
}

static stint_status plan(sti_run *run)
{
    stint_status st = sti_run_agree(run, plan_own(run));
    return st == STINT_OK ? sti_run_compare_ranks(run) : st;
}

stint_status stint_train(const stint_recipe *recipe, const stint_train_desc *desc,
                         stint_train_result *result_out)
{
    sti_run run = {
        .recipe = recipe, .desc = desc, .lock_fd = -1, .start_ns = sti_clock_ns()};
    run.comm = sti_net_comm(desc->net);
    stint_train_result result = {0};
    stint_status st = plan(&run);
    if (st == STINT_OK)
        st = begin(&run);
    if (st == STINT_OK) {
        st = sti_run_loop(&run);
        st = finish(&run, st, &result);
        free_parts(&run);
        if (st == STINT_OK && sti_run_is_first(&run))
            write_report(&run);
        if (st == STINT_OK)
            *result_out = result;
    }
    if (st != STINT_OK && run.comm && !run.common)
        sti_comm_give_up(run.comm, st);
    free_parts(&run);
    if (run.lock_fd >= 0)
        close(run.lock_fd);
    sti_arena_destroy(run.arena);
    stint_recipe_destroy(run.settled);
    sti_stop_clear();
    return st;
}
