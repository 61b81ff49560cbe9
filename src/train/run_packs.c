/* Packed activations of a running training: blocks that grow when they must or give way
 * to another plan, bounds that are chosen anew, and a resumed run that does what the
 * interrupted one did. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "train/error_section.h"
#include "train/optimizer_section.h"
#include "train/run.h"

/* Runs of one batch, at most: each time a block grows, by a sixteenth at least. */
#define MAX_RUNS 64

stint_status sti_run_create_control(sti_run *run)
{
    sti_error_control *control;
    stint_status st = sti_error_control_create(
        &run->job.setup.train, sti_error_section_of(run->recipe),
        sti_optimizer_section_of(run->recipe), run->job.setup.shards, &control);
    if (st != STINT_OK)
        return st;
    sti_error_control_destroy(run->control);
    run->control = control;
    return sti_saver_refresh(run->saver, control);
}

stint_status sti_run_rebuild(sti_run *run, const float *state, int state_count)
{
    sti_step_engine_desc desc = sti_job_engine(&run->job);
    stint_status st = sti_step_engine_rebuild(run->engine, &desc);
    if (st == STINT_OK && run->engine->profile) {
        sti_profile_fini(run->engine->profile); /* the graph it timed is gone */
        st = sti_profile_begin(run->engine->profile, run->job.setup.train.plan->graph,
                               run->engine->local.count, desc.lanes,
                               run->engine->lane_team.threads);
    }
    if (st == STINT_OK)
        st = sti_run_create_control(run);
    if (st == STINT_OK && run->control)
        sti_error_control_load(run->control, state, state_count);
    return st;
}

/* ---- a checkpoint's plan ---- */

static bool same_packs(const sti_error_control *control, const sti_pack_choice *choices,
                       int count)
{
    if (sti_error_control_count(control) != count)
        return false;
    for (int i = 0; i < count; i++) {
        const sti_pack_choice *have = &sti_error_control_row(control, i)->choice;
        if (have->value != choices[i].value || have->form != choices[i].form ||
            have->capacity != choices[i].capacity)
            return false;
    }
    return true;
}

static bool same_forms(const sti_step_plan *plan, const sti_value_form *forms,
                       int count)
{
    int have = 0;
    for (int32_t v = 0; plan->form && v < plan->form_values; v++)
        have += plan->form[v] != STI_FORM_KEEP;
    for (int i = 0; i < count; i++)
        if (!plan->form || forms[i].value < 0 || forms[i].value >= plan->form_values ||
            plan->form[forms[i].value] != forms[i].form)
            return false;
    return have == count;
}

/* Rows of a checkpoint's state that are no packs say what else is not kept. */
static int state_forms(const float *state, int count, sti_value_form *forms_out)
{
    int forms = 0;
    for (int i = 0; i < count; i++, state += STI_ERROR_STATE)
        if (!(state[STI_STATE_CAPACITY] > 0))
            forms_out[forms++] = (sti_value_form){(stint_value)state[STI_STATE_VALUE],
                                                  (int32_t)state[STI_STATE_FORM]};
    return forms;
}

/* A checkpoint without packs is of a run that went on without. */
static stint_status take_over(sti_job *job, const sti_held *held)
{
    static const sti_choice_hints exact = {.exact = true};
    if (job->setup.comm)
        return sti_rank_plan_adopt(&job->ranks, &job->setup, &job->plan, held);
    stint_status st = held->packs > 0
                          ? sti_step_repack(&job->setup, &job->plan, held->pack,
                                            held->packs, held->form, held->forms)
                          : sti_step_rechoose(&job->setup, &job->plan, &exact);
    if (st == STINT_OK)
        st = sti_step_fewer_lanes(&job->setup, &job->plan);
    return st == STINT_OK ? sti_job_check_budget(job) : st;
}

/* On STINT_E_INPUT all is as it was. */
static stint_status adopt(sti_run *run, const sti_held *held)
{
    sti_step_engine_release(run->engine);
    const stint_status st = take_over(&run->job, held);
    if (st == STINT_OK || st == STINT_E_MEMORY || st == STINT_E_BUDGET)
        return st;
    sti_step_engine_desc desc = sti_job_engine(&run->job);
    stint_status again = sti_step_engine_rebuild(run->engine, &desc);
    return again == STINT_OK ? st : again;
}

/* On every rank, of which all do the same. */
static stint_status adopt_rows(sti_run *run, const float *state, int count)
{
    sti_held held;
    stint_status st = sti_run_agree(run, sti_held_init(&held, count, count));
    if (st == STINT_OK) {
        held.packs = sti_error_state_choices(state, count, held.pack);
        held.forms = state_forms(state, count, held.form);
        if (!same_packs(run->control, held.pack, held.packs) ||
            (held.packs > 0 && !same_forms(&run->job.plan, held.form, held.forms))) {
            st = adopt(run, &held);
            if (st == STINT_OK)
                st = sti_run_rebuild(run, state, count);
        }
    }
    sti_held_fini(&held);
    return st;
}

/* ---- what rank 0 reads in a checkpoint, told to the others ---- */

enum { NO_MORE = -1 }; /* in the place of a number of rows */

/* On rank 0. The broadcast of its root reads only. */
static stint_status tell_rows(const sti_run *run, const float *state, int64_t rows)
{
    if (!run->comm)
        return STINT_OK;
    sti_comm_set_context(run->comm, "the packed tensors of a checkpoint", 0);
    const stint_status st = sti_comm_broadcast(run->comm, 0, &rows, sizeof rows);
    return st == STINT_OK && rows > 0
               ? sti_comm_broadcast(run->comm, 0, (void *)(uintptr_t)state,
                                    (size_t)rows * STI_ERROR_STATE * sizeof *state)
               : st;
}

stint_status sti_run_adopt_packs(void *user, const float *state, int count)
{
    sti_run *run = user;
    const stint_status st = tell_rows(run, state, count);
    return st == STINT_OK ? adopt_rows(run, state, count) : st;
}

stint_status sti_run_end_adoptions(const sti_run *run)
{
    return tell_rows(run, NULL, NO_MORE);
}

/* One set of rows of rank 0; *rows_out NO_MORE: there was none. A set that cannot be
 * held is rank 0's to speak of. */
static stint_status follow_one(sti_run *run, int64_t *rows_out)
{
    float *state = NULL;
    stint_status st = sti_comm_broadcast(run->comm, 0, rows_out, sizeof *rows_out);
    const int64_t rows = *rows_out;
    if (st != STINT_OK || rows == NO_MORE)
        return st;
    state = sti_alloc_array(rows * STI_ERROR_STATE + 1, sizeof *state, "packs");
    if (!state)
        return sti_comm_give_up(run->comm, STINT_E_MEMORY);
    if (rows > 0)
        st = sti_comm_broadcast(run->comm, 0, state,
                                (size_t)rows * STI_ERROR_STATE * sizeof *state);
    if (st == STINT_OK)
        st = adopt_rows(run, state, (int)rows);
    sti_free(state);
    return st == STINT_E_INPUT ? STINT_OK : st;
}

stint_status sti_run_follow_adoptions(sti_run *run)
{
    int64_t rows = 0;
    stint_status st = STINT_OK;
    sti_comm_set_context(run->comm, "the packed tensors of a checkpoint", 0);
    while (st == STINT_OK && rows != NO_MORE)
        st = follow_one(run, &rows);
    return st;
}

stint_status sti_run_share_bounds(sti_run *run)
{
    const int count = sti_error_control_count(run->control);
    if (!run->comm || count == 0)
        return STINT_OK;
    float *state =
        sti_alloc_array((int64_t)count * STI_ERROR_STATE, sizeof *state, "packs");
    stint_status st = sti_comm_agree(run->comm, state ? STINT_OK : STINT_E_MEMORY);
    if (st == STINT_OK) {
        sti_error_control_save(run->control, state);
        st = sti_comm_broadcast(run->comm, 0, state,
                                (size_t)count * STI_ERROR_STATE * sizeof *state);
    }
    if (st == STINT_OK)
        sti_error_control_load(run->control, state, count);
    sti_free(state);
    return st;
}

/* ---- blocks that turn out too small ---- */

static void tell_growth(const sti_run *run, const sti_step_batch *batch)
{
    for (int i = 0; i < sti_error_control_count(run->control); i++) {
        const sti_error_row *row = sti_error_control_row(run->control, i);
        if (row->overflow && sti_run_is_first(run))
            sti_log(STINT_LOG_INFO,
                    "step %" PRId64 ": %s takes %" PRId64 " bytes packed, more than "
                    "its block of %" PRId64 "; the step is run again with another plan",
                    batch->step + 1, row->name, (int64_t)row->bytes,
                    row->choice.capacity);
    }
}

static stint_status plan_again(sti_run *run, const sti_pack_choice *sizes, int count)
{
    sti_job *job = &run->job;
    if (run->comm)
        return sti_run_agree(run, sti_rank_plan_again(&job->ranks, &job->setup,
                                                      &job->plan, sizes, count));
    const stint_status st = sti_step_enlarge(&job->setup, &job->plan, sizes, count);
    return st == STINT_OK ? sti_job_check_budget(job) : st;
}

static stint_status grow(sti_run *run, const sti_step_batch *batch)
{
    const int count = sti_error_control_count(run->control);
    sti_pack_choice *sizes = sti_alloc_array(count, sizeof *sizes, "packs");
    float *state =
        sti_alloc_array((int64_t)count * STI_ERROR_STATE, sizeof *state, "packs");
    stint_status st = sizes && state ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        tell_growth(run, batch);
        sti_error_control_enlarge(run->control, sizes);
        sti_error_control_save(run->control, state);
        if (run->log)
            st = sti_run_log_growth(run->log, batch->step + 1, run->control);
    }
    if (st == STINT_OK) {
        sti_step_engine_release(run->engine);
        st = plan_again(run, sizes, count);
    }
    if (st == STINT_OK)
        st = sti_run_rebuild(run, state, count);
    if (st == STINT_OK && run->log)
        st = sti_run_log_plan(run->log, batch->step + 1, &run->job.plan.result,
                              sti_error_control_count(run->control));
    sti_free(sizes);
    sti_free(state);
    return st;
}

/* Once with these bounds, or with anew chosen ones if some tensor has none. */
static stint_status run_once(sti_run *run, sti_step_batch *batch, bool collect,
                             sti_step_result *result, bool *done)
{
    const bool trial = run->control && sti_error_control_lacks(run->control);
    bool fits = true;
    *done = false;
    if (run->control)
        batch->bounds = sti_error_control_bounds(run->control, collect || trial);
    batch->trial = trial;
    stint_status st = sti_step_engine_run(run->engine, batch, result);
    if (st == STINT_OK && run->control)
        sti_error_control_set_shards(run->control, run->engine->runs);
    if (st == STINT_OK && run->control)
        sti_error_control_look(run->control, result->block, &fits);
    if (st != STINT_OK)
        return st;
    if (!fits)
        return grow(run, batch);
    *done = !trial;
    return trial ? sti_run_choose_bounds(run, result, batch->step) : STINT_OK;
}

stint_status sti_run_batch(sti_run *run, sti_step_batch *batch, bool collect,
                           sti_step_result *result)
{
    bool done = false;
    for (int i = 0; i < MAX_RUNS; i++) {
        stint_status st = run_once(run, batch, collect, result, &done);
        if (st != STINT_OK || done)
            return st;
    }
    return sti_fail(STINT_E_BUG, "packed tensors do not fit into blocks of any size");
}

stint_status sti_run_choose_bounds(sti_run *run, const sti_step_result *result,
                                   int64_t steps)
{
    const void *moments[2] = {run->engine->moments[0], run->engine->moments[1]};
    sti_error_control_collect(run->control, result->block, moments, steps);
    return run->log ? sti_run_log_bounds(run->log, steps, run->control) : STINT_OK;
}
