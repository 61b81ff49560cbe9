/* Networks of micro-batches that grow ([grow] images).
 *
 * A stage whose micro-batches are larger than those before it has networks, lanes and
 * arenas of its own. They are planned before the run begins, so that one that does not
 * fit is refused then, and made when the stage begins, in the room of those that it
 * takes the place of: the peak of a run is that of its largest stage. */
#ifndef STI_TRAIN_GROW_NETWORKS_H
#define STI_TRAIN_GROW_NETWORKS_H

#include "train/grow.h"
#include "train/step_plan.h"

/* Are there such stages? Their steps pack nothing with errors, whose bounds are of one
 * network. */
bool sti_grow_has_networks(const sti_course *course);
/* setup and plan: of the first stage. The plan's account becomes that of the largest
 * stage; where one does not fit, result.fits, stage_too_large and images_that_fit say
 * so. */
stint_status sti_grow_plan_networks(const sti_setup *setup, const sti_course *course,
                                    sti_step_plan *plan);
/* The least that the run can take is no less than that of its largest stage. */
stint_status sti_grow_raise_smallest(const sti_setup *setup, const sti_course *course,
                                     stint_plan_result *result);
/* From built networks of the set-up to others, for micro-batches of `micro` times the
 * images of the first ones; the account of the plan stays. After a failure there are no
 * networks any more. */
stint_status sti_grow_change_networks(sti_setup *setup, int64_t micro,
                                      sti_step_plan *plan);

#endif
