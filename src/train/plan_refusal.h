/* The words of a plan that does not fit its budget. */
#ifndef STI_TRAIN_PLAN_REFUSAL_H
#define STI_TRAIN_PLAN_REFUSAL_H

#include "train/step_plan.h"

/* STINT_E_BUDGET with what is needed, what dominates and what would fit. */
stint_status sti_plan_refuse(const stint_plan_result *plan);

/* STINT_E_BUDGET where the peak is more than this process can have, with where that is
 * from and what would fit; else STINT_OK. */
stint_status sti_plan_check_machine(const stint_plan_result *plan);

/* STINT_E_MEMORY with `why`, and what would do: what fits so many bytes, which is
 * looked for by a second set-up. */
stint_status sti_plan_explain_memory(const sti_setup *setup, sti_step_plan *plan,
                                     size_t budget_bytes, const char *why);

#endif
