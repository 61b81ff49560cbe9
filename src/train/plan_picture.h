/* What a plan says of memory in the course of a step. */
#ifndef STI_TRAIN_PLAN_PICTURE_H
#define STI_TRAIN_PLAN_PICTURE_H

#include "train/step_plan.h"

/* Fills the result's timeline, and where the step of a planned training network is
 * highest. Parts and peak are there already. */
void sti_plan_describe_step(const sti_network *train, int lanes,
                            stint_plan_result *result);
/* The timeline drawn, into result->svg. */
stint_status sti_plan_draw(const sti_network *train, int lanes,
                           stint_plan_result *result);

#endif
