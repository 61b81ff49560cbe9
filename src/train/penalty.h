/* What a compression does within a training: it acts on the summed gradients, on the
 * weights after an update, and on the rate, so shards, lanes and ranks need nothing.
 *
 * direct     the start is projected, and that is all
 * fine-tune  the start is projected; what is zero stays zero while the rest is trained
 *            at a rate that falls to lr_end; after each epoch the projection is judged
 * rewind     the same by the recipe's own schedule
 * lc         learning and compressing in turn (train/lc.h); each projection is judged;
 *            of the best of them, shrink.finish trains what is not zero
 * click      from new weights, within one run (train/click.h)
 *
 * A projection is judged by its loss on held-out images (train.validation); the best is
 * written as the run's model and comes back at the end; without such images the last
 * one is. The state between two steps lies in the engine's shadows (lc: theta, lambda
 * and the best theta, up to the finish; click: importance, later what stays), its mask,
 * the projection's shapes and the position, all of which checkpoints hold. */
#ifndef STI_TRAIN_PENALTY_H
#define STI_TRAIN_PENALTY_H

#include <stdint.h>

#include "stint/status.h"

/* ---- in a run; every call does nothing without a scheme ---- */

struct sti_run;

/* When the job is planned: what the run's steps look up, and what an earlier process of
 * the run has settled. */
stint_status sti_shrink_begin(struct sti_run *run);
/* New or given weights are in the engine: before anything is written. STINT_E_BUDGET:
 * what is asked of method click is out of reach. */
stint_status sti_shrink_init(struct sti_run *run);
/* Between two steps, the first and the last included: what is due at the run's
 * position and not done yet. A stop that was asked for is handed on, and what was under
 * way is done again by a run that goes on. */
stint_status sti_shrink_between(struct sti_run *run);
/* Between the sum of the gradients over all ranks and the update. */
void sti_shrink_gradients(struct sti_run *run, int64_t step, char *block);
/* The rate of a step, where the method has one of its own; else `lr`. */
double sti_shrink_rate(const struct sti_run *run, int64_t step, double lr);
/* For a failure in a step: which learning step it was, and its mu; or "". Into a
 * thread-local buffer. */
const char *sti_shrink_words(const struct sti_run *run, int64_t step);
/* The steps that the optimiser has done since its moments were cleared. */
int64_t sti_shrink_optimizer_step(const struct sti_run *run, int64_t step);
/* When all steps are done: the chosen compression into the engine, on all ranks. */
stint_status sti_shrink_end(struct sti_run *run);

#endif
