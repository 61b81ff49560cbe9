/* stint_train: from a recipe to a run's folder. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/control_group.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/stop.h"
#include "net/net.h"
#include "train/batch_auto.h"
#include "train/plan_refusal.h"
#include "train/report.h"
#include "train/run.h"
#include "train/train_section.h"

/* What a planned job is worked with. */
static void free_work(sti_run *run)
{
    sti_tensorboard_close(run->board);
    sti_run_log_close(run->log);
    sti_saver_destroy(run->saver);
    sti_error_control_destroy(run->control);
    sti_evaluation_fini(&run->evaluation);
    sti_evaluation_fini(&run->validation);
    sti_projection_destroy(run->projection);
    run->projection = NULL;
    sti_free(run->reference_answer);
    run->reference_answer = NULL;
    sti_step_engine_destroy(run->engine);
    sti_free(run->order);
    sti_balanced_order_destroy(run->balanced);
    run->board = NULL;
    run->log = NULL;
    run->saver = NULL;
    run->control = NULL;
    run->engine = NULL;
    run->order = NULL;
    run->balanced = NULL;
}

/* All that the run holds, but the folder's lock and its name. */
static void free_parts(sti_run *run)
{
    free_work(run);
    sti_job_fini(&run->job);
}

/* After an allocation that failed: what would do, by what can be had when the run's own
 * blocks are free again. */
static stint_status advise_memory(sti_run *run)
{
    const size_t peak = run->job.plan.result.peak_bytes;
    char why[1024];
    if (peak == 0)
        return STINT_E_MEMORY; /* it was the plan that had no room */
    (void)snprintf(why, sizeof why, "%s", stint_last_error());
    free_work(run);
    const size_t here = sti_alloc_now_bytes() + sti_memory_obtainable();
    return sti_plan_explain_memory(&run->job.setup, &run->job.plan,
                                   here < peak ? here : peak / 2, why);
}

/* The report draws images, which is done when all else of the run is free. A report
 * that fails does not make the training fail. */
static void free_and_report(sti_run *run)
{
    stint_data *test = run->job.inputs.test_data;
    run->job.inputs.test_data = NULL;
    free_parts(run);
    sti_memory_trim();
    if (sti_report_write_of(run->out, test) != STINT_OK)
        sti_log(STINT_LOG_WARNING, "the report was not written: %s",
                stint_last_error());
    stint_data_close(test);
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

/* --force-memory trains in any case. */
static stint_status check_machine(const sti_run *run)
{
    if (run->desc->force_memory)
        return STINT_OK;
    const stint_status st = sti_job_check_machine(&run->job);
    return st == STINT_OK ? st
                          : sti_fail(st, "%s; --force-memory trains in any case",
                                     stint_last_error());
}

static stint_status plan_local(sti_run *run)
{
    stint_status st = stint_recipe_check(run->recipe);
    if (st == STINT_OK && run->comm && sti_train_section_of(run->recipe)->time > 0)
        st = sti_fail(STINT_E_USAGE, "train.time: the clocks of several processes "
                                     "differ; give them --epochs or --steps");
    if (st == STINT_OK)
        st = sti_isa_check();
    if (st == STINT_OK)
        st = sti_run_name_files(run);
    if (st == STINT_OK && sti_run_is_first(run))
        st = sti_run_check_folder(run);
    if (st == STINT_OK)
        st = create_job(run);
    if (st == STINT_OK)
        st = sti_job_check_budget(&run->job);
    if (st == STINT_OK)
        st = check_machine(run);
    if (st == STINT_OK && sti_stop_asked() != STINT_OK)
        st = sti_fail(sti_stop_asked(), "stopped before training began");
    return st;
}

static stint_status plan(sti_run *run)
{
    sti_job *job = &run->job;
    stint_status st = sti_run_agree(run, plan_local(run));
    if (st == STINT_OK)
        st = sti_run_compare_ranks(run);
    if (st == STINT_OK)
        st = sti_run_agree(run,
                           sti_rank_plan_agree(&job->ranks, &job->setup, &job->plan));
    if (st == STINT_OK && run->desc->planned)
        run->desc->planned(run->desc->user, &job->plan.result);
    return st;
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
        st = sti_run_begin(&run);
    if (st == STINT_OK) {
        st = sti_run_loop(&run);
        st = sti_run_finish(&run, st, &result);
        if (st == STINT_OK && sti_run_is_first(&run))
            free_and_report(&run);
        result.peak_rss_bytes = sti_process_peak_bytes();
        if (st == STINT_OK)
            *result_out = result;
    }
    if (st == STINT_E_MEMORY)
        st = advise_memory(&run);
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
