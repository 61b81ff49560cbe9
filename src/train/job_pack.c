/* The training network with other tensors packed, or in other blocks. */
#include "plan/budget.h"
#include "train/job.h"

stint_status sti_job_repack(sti_job *job, const sti_pack_choice *choices, int count)
{
    sti_network fresh;
    const bool check = job->recipe->values.error.check;
    stint_status st =
        sti_network_build(&job->network, STINT_TRAIN, job->train.images, &fresh);
    if (st != STINT_OK)
        return st;
    st = sti_network_pack(&fresh, choices, count, check);
    if (st == STINT_OK && job->form)
        st = sti_budget_apply(fresh.graph, job->form, job->form_values);
    if (st == STINT_OK)
        st = sti_network_plan(&fresh, sti_crew_lane_threads(job->threads, job->lanes));
    if (st != STINT_OK) {
        sti_network_fini(&fresh);
        return st;
    }
    sti_network_fini(&job->train);
    job->train = fresh;
    sti_memory_account(job, job->lanes, &job->plan);
    job->plan.fits =
        job->plan.budget_bytes == 0 || job->plan.peak_bytes <= job->plan.budget_bytes;
    return STINT_OK;
}
