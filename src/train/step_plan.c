#include "train/step_plan.h"

#include "base/memory.h"

void stint_plan_fini(stint_plan_result *result)
{
    sti_free(result->svg);
    sti_free(result->tensors);
    sti_free(result->stages);
    result->stages = NULL;
    result->stage_count = 0;
    result->svg = NULL;
    result->tensors = NULL;
    result->tensor_count = 0;
}

void sti_step_plan_fini(sti_step_plan *plan)
{
    sti_free(plan->form);
    stint_plan_fini(&plan->result);
    *plan = (sti_step_plan){.lanes = 0};
}

bool sti_step_plan_holds(const stint_plan_result *result, size_t budget_bytes)
{
    return budget_bytes == 0 || result->peak_bytes <= budget_bytes;
}
