/* What the ranks of a run hold packed: all of them the same tensors in the same blocks.
 *
 * Packing is the one rewrite that changes bits, so which tensors are packed must not
 * depend on how many processes share the work. Each rank therefore plans one process
 * that does all shards alone within its --memory, and holds packed what that one would,
 * with lanes and an account of its own. Where ranks differ, the one with the least
 * --memory decides; where one has no room for what is decided, its own plan takes its
 * place, and is said: the weights are then not those of one process.
 *
 * A plan that packs nothing changes no bit: each rank then makes again what it likes.
 */
#ifndef STI_TRAIN_RANK_PLAN_H
#define STI_TRAIN_RANK_PLAN_H

#include "train/step_plan.h"

typedef struct sti_rank_plan {
    bool alone;  /* what is held is that of a process with all shards, */
    int lanes;   /* which has so many lanes */
    int decides; /* the rank whose plan it is */
} sti_rank_plan;

/* sti_step_choose, for a set-up that may have ranks. Sends nothing: what it finds is
 * this rank's proposal. */
stint_status sti_rank_plan_choose(sti_rank_plan *ranks, sti_setup *setup,
                                  const sti_choice_hints *hints, sti_step_plan *plan);

/* The following are collective, fail on all ranks alike, and leave a plan that fits
 * each of them: STINT_E_BUDGET where there is none. */

/* From what every rank proposes to what all hold. */
stint_status sti_rank_plan_agree(sti_rank_plan *ranks, sti_setup *setup,
                                 sti_step_plan *plan);
/* Blocks of a step were too small: larger ones, or another plan, now that sizes are
 * known [count]. */
stint_status sti_rank_plan_again(sti_rank_plan *ranks, sti_setup *setup,
                                 sti_step_plan *plan, const sti_pack_choice *sizes,
                                 int count);
/* What a checkpoint holds; packs 0: nothing is packed, and each rank plans for itself.
 */
stint_status sti_rank_plan_adopt(sti_rank_plan *ranks, sti_setup *setup,
                                 sti_step_plan *plan, const sti_held *held);

#endif
