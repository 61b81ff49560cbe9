/* The stages of a run whose batches grow, and what its ranks send in all. */
#ifndef STI_TRAIN_PLAN_STAGES_H
#define STI_TRAIN_PLAN_STAGES_H

#include "train/job.h"

/* Fills stages, stage_count and the bytes of the run from the job's course and from
 * result.net, which is known. STINT_E_MEMORY. */
stint_status sti_plan_stages(const sti_job *job, stint_plan_result *result);

#endif
