/* The words of a plan that does not fit its budget. */
#ifndef STI_TRAIN_PLAN_REFUSAL_H
#define STI_TRAIN_PLAN_REFUSAL_H

#include "stint/train.h"

/* STINT_E_BUDGET with what is needed, what dominates and what would fit. */
stint_status sti_plan_refuse(const stint_plan_result *plan);

#endif
