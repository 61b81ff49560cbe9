/* Packed activations of a running training: blocks that grow when they must, bounds
 * that are chosen anew, and a resumed run that packs what the interrupted one did. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "train/run.h"

/* Each time a block grows by a quarter at least. */
#define MOST_GROWTHS 32

stint_status sti_run_create_control(sti_run *run)
{
    sti_error_control *control;
    stint_status st = sti_error_control_create(&run->job.train, &run->recipe->values,
                                               run->job.shards, &control);
    if (st != STINT_OK)
        return st;
    sti_error_control_destroy(run->control);
    run->control = control;
    return sti_saver_refresh(run->saver, control);
}

/* Build everything again with these packs. state: bounds to go on with, of any packs.
 */
static stint_status use_packs(sti_run *run, const sti_pack_choice *choices, int count,
                              const float *state, int state_count)
{
    stint_status st = sti_job_repack(&run->job, choices, count);
    sti_crew_desc desc = sti_job_crew(&run->job);
    if (st == STINT_OK)
        st = sti_crew_rebuild(run->crew, &desc);
    if (st == STINT_OK && run->crew->profile) {
        sti_profile_fini(run->crew->profile); /* the graph it timed is gone */
        st = sti_profile_begin(run->crew->profile, run->job.train.graph, desc.shards,
                               desc.lanes, run->crew->lane_team.threads);
    }
    if (st == STINT_OK)
        st = sti_run_create_control(run);
    if (st == STINT_OK && run->control)
        sti_error_control_load(run->control, state, state_count);
    return st;
}

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

stint_status sti_run_adopt_packs(void *user, const float *state, int count)
{
    sti_run *run = user;
    sti_pack_choice *choices = sti_alloc_array(count, sizeof *choices, "packs");
    stint_status st = choices ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        sti_error_state_choices(state, count, choices);
        if (!same_packs(run->control, choices, count))
            st = use_packs(run, choices, count, state, count);
    }
    sti_free(choices);
    return st;
}

static void tell_growth(const sti_run *run, const sti_crew_batch *batch)
{
    for (int i = 0; i < sti_error_control_count(run->control); i++) {
        const sti_error_row *row = sti_error_control_row(run->control, i);
        if (row->overflow)
            sti_log(STINT_LOG_INFO,
                    "step %" PRId64 ": %s takes %" PRId64 " bytes packed, more than "
                    "its block of %" PRId64 "; the step is run again with a larger one",
                    batch->step + 1, row->name, (int64_t)row->bytes,
                    row->choice.capacity);
    }
}

static stint_status grow(sti_run *run)
{
    const int count = sti_error_control_count(run->control);
    sti_pack_choice *choices = sti_alloc_array(count, sizeof *choices, "packs");
    float *state =
        sti_alloc_array((int64_t)count * STI_ERROR_STATE, sizeof *state, "packs");
    stint_status st = choices && state ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        int kept = sti_error_control_enlarge(run->control, choices);
        sti_error_control_save(run->control, state);
        st = use_packs(run, choices, kept, state, count);
    }
    if (st == STINT_OK)
        st = sti_job_check_budget(&run->job);
    sti_free(choices);
    sti_free(state);
    return st;
}

stint_status sti_run_batch(sti_run *run, sti_crew_batch *batch, bool collect,
                           sti_step_result *result)
{
    bool fits = false;
    for (int i = 0; i < MOST_GROWTHS; i++) {
        if (run->control)
            batch->bounds =
                sti_error_control_bounds(run->control, batch->step, collect);
        stint_status st = sti_crew_run(run->crew, batch, result);
        if (st != STINT_OK || !run->control)
            return st;
        sti_error_control_look(run->control, result->block, &fits);
        if (fits)
            return STINT_OK;
        tell_growth(run, batch);
        if ((st = grow(run)) != STINT_OK)
            return st;
    }
    return sti_fail(STINT_E_BUG, "packed tensors do not fit into blocks of any size");
}

stint_status sti_run_choose_bounds(sti_run *run, const sti_step_result *result,
                                   int64_t steps)
{
    const void *moments[2] = {run->crew->moments[0], run->crew->moments[1]};
    sti_error_control_collect(run->control, result->block, moments, steps);
    return sti_run_log_bounds(run->log, steps, run->control);
}
