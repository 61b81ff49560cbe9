/* A run before it runs: data opened, networks built and planned, lanes chosen, memory
 * of the whole process added up. `stint plan` stops here; `stint train` goes on with
 * the very same job, so both name the same figure. */
#ifndef STI_TRAIN_JOB_H
#define STI_TRAIN_JOB_H

#include "train/crew.h"

typedef struct sti_job {
    const stint_recipe *recipe;
    stint_data *train_data, *test_data; /* test NULL: no such split */
    sti_network_desc network;
    sti_network train, eval; /* eval: zeroed without a test split */
    int threads, lanes, moments;
    const char *threads_why;
    int64_t batch, shards;
    int64_t train_count, test_count;
    int64_t steps_per_epoch, steps, epochs;
    size_t index_bytes; /* of the opened data, by our own count */
    size_t base_bytes;  /* sti_memory_base when the networks were built */
    stint_plan_result plan;
} sti_job;

/* STINT_OK also when the budget does not hold: see plan.fits. */
stint_status sti_job_create(const stint_recipe *recipe, sti_job *job);
void sti_job_fini(sti_job *job); /* a zeroed one is fine */

/* STINT_E_BUDGET with what is needed and what would fit, or STINT_OK. */
stint_status sti_job_check_budget(const sti_job *job);

/* What the crew of this job is. */
sti_crew_desc sti_job_crew(const sti_job *job);

/* ---- memory_account.c ---- */

/* The process as it is, code that it will touch included, without opened data. */
size_t sti_memory_base(const sti_job *job);

/* Give memory that was freed back to the system: what earlier work of the host left
 * over would else count as resident. */
void sti_memory_trim(void);

/* Parts of the whole process with the networks planned as they are and so many lanes,
 * into plan->parts and plan->peak_bytes. */
void sti_memory_account(const sti_job *job, int lanes, stint_plan_result *plan);

#endif
