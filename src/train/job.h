/* A run before it runs: data opened, networks built and planned, lanes chosen, memory
 * of the whole process added up. `stint plan` stops here; `stint train` goes on with
 * the very same job, so both name the same figure. */
#ifndef STI_TRAIN_JOB_H
#define STI_TRAIN_JOB_H

#include "base/recipe.h"
#include "stint/train.h"
#include "train/crew.h"
#include "train/job_text.h"

typedef struct sti_job {
    const stint_recipe *recipe;
    stint_data *train_data, *test_data;  /* test NULL: no such split */
    stint_data *validation_data;         /* held out of the first; NULL: nothing is */
    sti_corpus *text;                    /* in place of both, for a text model */
    stint_model_file *start, *reference; /* NULL: none */
    sti_network_desc network;
    sti_network train, eval; /* eval: zeroed without a test split */
    int threads, lanes, moments;
    const char *threads_why;
    int64_t batch, shards;
    sti_comm *comm;                  /* borrowed; NULL: one process */
    int64_t own_shards;              /* of this process */
    int64_t train_count, test_count; /* images, or windows of text */
    int64_t validation_count;
    int64_t steps_per_epoch, steps, epochs;
    size_t host_bytes;      /* of blocks that were there before the job */
    size_t index_bytes;     /* of the opened data, by our own count */
    size_t base_bytes;      /* sti_memory_base when the networks were built */
    stint_plan_result plan; /* what would fit: only if it does not fit */
    uint8_t *form;          /* [form_values]: of the network as built; NULL: as it is */
    int32_t form_values;
    bool rewritten; /* to fit a budget */
    bool exact;     /* nothing may be packed, whatever the recipe says */
    /* Sizes of packed blocks, where more is known than the search knows. */
    const sti_pack_choice *sizes;
    int size_count;
} sti_job;

/* A part of the images as the recipe wants it. */
typedef enum sti_job_part {
    STI_JOB_TRAIN,
    STI_JOB_VALIDATION,
    STI_JOB_TEST
} sti_job_part;
stint_data_desc sti_job_data_desc(const stint_recipe *recipe, sti_job_part part);

/* Samples of the training set, by opening it. */
stint_status sti_job_count_images(const stint_recipe *recipe, int64_t *count_out);

/* comm: ranks among which the shards are shared out, or NULL.
 * STINT_OK also when the budget does not hold: see plan.fits. */
stint_status sti_job_create(const stint_recipe *recipe, sti_comm *comm, sti_job *job);
void sti_job_fini(sti_job *job); /* a zeroed one is fine */

/* STINT_E_BUDGET with what is needed, what dominates and what would fit, or STINT_OK.
 */
stint_status sti_job_check_budget(const sti_job *job);
/* STINT_E_UNSUPPORTED for ranks that would pack activations. */
stint_status sti_job_check_packs(const sti_job *job);
/* The same words, of a plan that does not fit. */
stint_status sti_plan_refuse(const stint_plan_result *plan);

/* What the crew of this job is. */
sti_crew_desc sti_job_crew(const sti_job *job);

/* ---- job_choice.c ---- */

/* From built, unplanned networks to lanes and rewrites: of all ways to run the step,
 * the fastest by expectation whose peak fits the budget, or, when none does, the one of
 * the lowest peak. Plans the networks; fills job->form and plan's parts, peak, lanes,
 * fits and slow-down, and smallest_bytes where the budget asked for rewrites. */
stint_status sti_job_choose(sti_job *job);
/* The lowest peak of the job as built, whatever its budget. Both leave the networks
 * planned one way or another. */
stint_status sti_job_lowest_peak(sti_job *job, size_t *peak_out);
/* The peak of one lane with these forms, or as built (NULL). */
stint_status sti_job_peak_with(sti_job *job, const uint8_t *form, size_t *peak_out);

/* What goes from forward to backward half of a network as built, with forms and the
 * blocks of packed ones by value (both NULL: as it is), into plan->tensors. */
stint_status sti_job_list_tensors(const stint_graph *graph, const uint8_t *form,
                                  const sti_pack_choice *blocks,
                                  stint_plan_result *plan);

/* ---- job_pack.c ---- */

/* The form that a value is to have, if it is not kept. */
typedef struct sti_value_form {
    stint_value value;
    int32_t form;
} sti_value_form;

/* Build and plan the training network anew with these packs, and with these rewrites
 * (forms NULL: those of the job), lanes as they are; fills the plan's parts, peak and
 * fits. On failure the job is as it was. STINT_E_INPUT: a form of no value. */
stint_status sti_job_repack(sti_job *job, const sti_pack_choice *choices, int count,
                            const sti_value_form *forms, int form_count);
/* With as many lanes fewer as the budget asks for, if that helps. */
stint_status sti_job_fewer_lanes(sti_job *job);
/* Look for a plan again, knowing how large some packed blocks are (capacity 0: not
 * worth packing); sizes NULL: for one without packs. On failure there is no network any
 * more.
 */
stint_status sti_job_rechoose(sti_job *job, const sti_pack_choice *sizes, int count);
/* The job's forms as a list, [job->form_values]; their number. */
int sti_job_list_forms(const sti_job *job, sti_value_form *forms_out);

/* ---- memory_account.c ---- */

#define STI_PART_REFERENCE "reference model" /* of plan->parts */

/* What looking for the largest batch and trying some (batch_auto.c) may leave in the
 * heap: holes among small blocks, 150 to 320 KiB. It has a line of its own, so that all
 * else is planned as in a process that looked for nothing. */
#define STI_SEARCH_BYTES ((size_t)384 << 10)

/* The process as it is, code that it will touch included, without opened data. */
size_t sti_memory_base(const sti_job *job);

/* Give memory that was freed back to the system: what earlier work of the host left
 * over would else count as resident. */
void sti_memory_trim(void);

/* Parts of the whole process with the networks planned as they are and so many lanes,
 * into plan->parts and plan->peak_bytes. */
void sti_memory_account(const sti_job *job, int lanes, stint_plan_result *plan);

#endif
