/* What would fit a budget that a plan does not: less memory is found by rewriting alone
 * (step_plan.h), here by another batch, more shards, or a larger budget. */
#ifndef STI_TRAIN_WHAT_FITS_H
#define STI_TRAIN_WHAT_FITS_H

#include "train/step_plan.h"

/* Fills the result's batch_that_fits and shards_that_fit (those planned, where they
 * fit), and smallest_bytes, the least memory that the recipe runs in, where it is not
 * known yet. By a second set-up over the same inputs, which is thrown away; that takes
 * a while. Rewrites name the values of a network as it is built, which are the same for
 * any number of images. */
stint_status sti_find_what_fits(const sti_setup *setup, sti_step_plan *plan);

/* What would fit so many bytes. */
typedef struct sti_fit {
    int64_t batch;       /* with these shards and rewrites; 0: none below the planned */
    size_t memory_bytes; /* a budget that the recipe runs in, in whole MiB; 0: none */
} sti_fit;

/* Fills smallest_bytes, too; takes a while, as above. */
stint_status sti_find_fit(const sti_setup *setup, sti_step_plan *plan,
                          size_t budget_bytes, sti_fit *out);

/* Holds the planned peak against what this process can have, and fills the result's
 * `machine`. Quick where it holds. */
stint_status sti_find_what_machine_holds(const sti_setup *setup, sti_step_plan *plan);

#endif
