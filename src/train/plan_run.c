/* stint_plan: what a run will take, without running it. */
#include "base/cpu.h"
#include "base/fail.h"
#include "net/wire.h"
#include "train/batch_auto.h"
#include "train/grow_networks.h"
#include "train/plan_net.h"
#include "train/plan_picture.h"
#include "train/plan_stages.h"
#include "train/recipe_view.h"
#include "train/what_fits.h"

/* The ranks of a plan; *comm_out NULL: one process. */
static stint_status plan_ranks(const stint_recipe *recipe, int ranks,
                               sti_comm **comm_out)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    const bool grouped = v.net->scheme == STI_SCHEME_TWO_LEVEL;
    const int group = grouped ? (int)v.net->group : 1;
    *comm_out = NULL;
    if (ranks < 0 || ranks > WIRE_RANKS)
        return sti_fail(STINT_E_USAGE, "a plan of %d processes; 1 to %d are possible",
                        ranks, WIRE_RANKS);
    if (ranks <= 1)
        return STINT_OK;
    const stint_status st = sti_schedule_check((sti_scheme)v.net->scheme, ranks, group);
    return st == STINT_OK ? sti_comm_create_planned(ranks, group, comm_out) : st;
}

static stint_status plan_job(sti_job *job, const stint_plan_desc *desc)
{
    stint_plan_result *result = &job->plan.result;
    stint_status st = STINT_OK;
    if (!result->smallest_bytes && !result->stage_too_large)
        STI_TRY(sti_find_what_fits(&job->setup, &job->plan));
    STI_TRY(sti_grow_raise_smallest(&job->setup, &job->course, result));
    if (sti_job_check_machine(job) != STINT_OK)
        sti_log(STINT_LOG_WARNING, "%s", stint_last_error());
    STI_TRY(sti_plan_net(&job->setup, &result->net));
    STI_TRY(sti_plan_stages(job, result));
    if (desc->svg)
        STI_TRY(sti_plan_draw(&job->setup.train, job->plan.lanes, result));
out:
    return st;
}

stint_status stint_plan(const stint_recipe *recipe, const stint_plan_desc *desc,
                        stint_plan_result *result_out)
{
    static const stint_plan_desc plain = {0};
    sti_job job = {.steps = 0};
    stint_recipe *settled = NULL;
    sti_comm *comm = NULL;
    stint_status st;
    desc = desc ? desc : &plain;
    STI_TRY(stint_recipe_check(recipe));
    STI_TRY(sti_isa_check());
    STI_TRY(plan_ranks(recipe, desc->ranks, &comm));
    STI_TRY(sti_batch_create_job(recipe, comm, NULL, false, &settled, &job));
    STI_TRY(plan_job(&job, desc));
    *result_out = job.plan.result;
    job.plan.result.svg = NULL; /* the caller's now */
    job.plan.result.tensors = NULL;
    job.plan.result.stages = NULL;
out:
    sti_job_fini(&job);
    sti_comm_destroy(comm);
    stint_recipe_destroy(settled);
    return st;
}
