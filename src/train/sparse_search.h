/* The search for what a fine-tuning trains within a memory and a time: gains of the
 * user's data (train/gains.h), the dynamic programme (plan/update_scheme.h) for a
 * ladder of budgets, and the planner of whole processes, which judges.
 *
 * The ladder does not depend on the budget asked for, and of its schemes the one of
 * most gain that fits is taken: so less budget never gets more gain. Everything is
 * planned for one lane and two threads, so that -j never changes a scheme. */
#ifndef STI_TRAIN_SPARSE_SEARCH_H
#define STI_TRAIN_SPARSE_SEARCH_H

#include "train/gains.h"

typedef struct sti_sparse_desc {
    size_t memory_bytes; /* of the whole process; 0: any */
    double step_share;   /* of the full step's arithmetic; 0: any */
    double step_s;       /* or seconds of a step; 0: any */
    const char *gains;   /* a file, in the place of collecting them; NULL: none */
    bool measured;       /* by short trainings, */
    const char *kept;    /* which are kept there as they go; NULL: nowhere */
} sti_sparse_desc;

/* What is known of a scheme. */
typedef struct sti_sparse_facts {
    size_t peak_bytes;
    double step_share, gain;
    int64_t trained;
} sti_sparse_facts;

typedef struct sti_sparse sti_sparse;

/* Opens the recipe's data and model, collects gains and makes the ladder. recipe: as it
 * is to be trained, but for update. desc is borrowed. STINT_E_BUDGET: not even the
 * classifier alone can be trained in this time. */
stint_status sti_sparse_create(const stint_recipe *recipe, const sti_sparse_desc *desc,
                               sti_sparse **sparse_out);
void sti_sparse_destroy(sti_sparse *sparse); /* NULL is fine */
/* The highest planned peak of steps that ran for it, within the budget; 0: none did. */
size_t sti_sparse_tried_bytes(const sti_sparse *sparse);
/* The gains are the caller's then; the search goes on without. */
void sti_sparse_take_gains(sti_sparse *sparse, sti_gains *gains_out);

/* The scheme of most gain within this memory (0: any) and desc's time, or, where none
 * fits, the classifier alone, which the run's own planner may yet make fit. */
stint_status sti_sparse_choose(sti_sparse *sparse, size_t memory_bytes,
                               sti_update_set *set_out, sti_sparse_facts *facts_out);
/* Planned peaks of the least scheme and of training everything. */
void sti_sparse_range(const sti_sparse *sparse, size_t *least_out, size_t *full_out);

#endif
