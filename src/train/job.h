/* A run before it runs: data opened, networks built and planned, lanes chosen, memory
 * of the whole process added up. `stint plan` stops here; `stint train` goes on with
 * the very same job, so both name the same figure.
 *
 * The room train/ trains. Rooms above use: this header with inputs.h, setup.h and
 * step_plan.h, whose structs it holds; step_engine.h, steps on lanes; recipe_inputs.h
 * and recipe_view.h, what recipes say; checkpoint.h; plan_refusal.h; stop and
 * evaluation are those of base/ and infer/. */
#ifndef STI_TRAIN_JOB_H
#define STI_TRAIN_JOB_H

#include "train/grow.h"
#include "train/inputs.h"
#include "train/rank_plan.h"
#include "train/setup.h"
#include "train/step_plan.h"

enum { STI_IMAGES_HASH_BYTES = 2 * 65 };

/* Owns its four parts, of which each says what it owns in turn. The set-up refers to
 * the inputs, so a job stays where it was created and is never copied. */
typedef struct sti_job {
    sti_inputs inputs;
    sti_setup setup;
    sti_step_plan plan;
    sti_rank_plan ranks; /* how it is agreed with other processes */
    sti_course course;
    int64_t steps, epochs;   /* of the course */
    int64_t steps_per_epoch; /* without [grow] */
    /* For the checkpoints of the rank that writes them; empty until known. */
    char images_hash[STI_IMAGES_HASH_BYTES];
} sti_job;

/* Samples of the training set, by opening it. */
stint_status sti_job_count_images(const stint_recipe *recipe, int64_t *count_out);

/* comm: ranks among which the shards are shared out, or NULL. STINT_OK also when the
 * budget does not hold: see plan.result.fits, and what would fit beside it. On failure
 * the job is zeroed. */
stint_status sti_job_create(const stint_recipe *recipe, sti_comm *comm, sti_job *job);
void sti_job_fini(sti_job *job); /* a zeroed one is fine */

/* STINT_E_BUDGET with what is needed, what dominates and what would fit, or STINT_OK.
 */
stint_status sti_job_check_budget(const sti_job *job);
/* Likewise for the memory that this process can have. */
stint_status sti_job_check_machine(const sti_job *job);

/* What the engine of this job is. */
sti_step_engine_desc sti_job_engine(const sti_job *job);

#endif
