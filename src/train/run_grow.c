/* Networks of another size for a run under way, where micro-batches grow. */
#include <inttypes.h>

#include "base/fail.h"
#include "train/grow_networks.h"
#include "train/run.h"
#include "train/select.h"

/* Evaluations are cut as the networks are. */
static stint_status make_evaluations(sti_run *run)
{
    const sti_job *job = &run->job;
    const int32_t classes = (int32_t)job->inputs.network.model.classes;
    stint_status st = STINT_OK;
    sti_evaluation_fini(&run->evaluation);
    sti_evaluation_fini(&run->validation);
    run->evaluated = false;
    if (job->inputs.test_count > 0)
        st = sti_evaluation_init(&run->evaluation, job->inputs.test_count, classes,
                                 job->setup.train.images, job->plan.lanes);
    if (st == STINT_OK && sti_select_looks(run))
        st = sti_evaluation_init(&run->validation, job->inputs.validation_count,
                                 classes, job->setup.train.images, job->plan.lanes);
    return st;
}

stint_status sti_run_grow_networks(sti_run *run, int64_t micro)
{
    sti_job *job = &run->job;
    const int64_t now = job->setup.micro > 1 ? job->setup.micro : 1;
    stint_status st;
    if (micro == now)
        return STINT_OK;
    sti_step_engine_release(run->engine);
    STI_TRY(sti_grow_change_networks(&job->setup, micro, &job->plan));
    STI_TRY(sti_run_rebuild(run, NULL, 0));
    STI_TRY(make_evaluations(run));
    if (run->log)
        sti_log(STINT_LOG_INFO,
                "step %" PRId64 ": micro-batches of %" PRId64 " images from here on",
                run->position.step + 1, job->setup.train.images);
out:
    return st;
}
