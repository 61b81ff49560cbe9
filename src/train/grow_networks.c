#include "train/grow_networks.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

static const sti_choice_hints exact = {.exact = true};

bool sti_grow_has_networks(const sti_course *course)
{
    return course->count > 0 && course->stage[course->count - 1].micro > 1;
}

/* What a refusal and the picture of memory are made of. */
static void take_account(const stint_plan_result *from, stint_plan_result *to)
{
    to->peak_bytes = from->peak_bytes;
    to->peak_at_bytes = from->peak_at_bytes;
    memcpy(to->peak_at, from->peak_at, sizeof to->peak_at);
    memcpy(to->parts, from->parts, sizeof to->parts);
    to->part_count = from->part_count;
    memcpy(to->timeline_bytes, from->timeline_bytes, sizeof to->timeline_bytes);
    to->timeline_count = from->timeline_count;
}

/* The largest stage that fits, and the first that does not, whose account it then is.
 */
static void judge(const sti_setup *stage, const stint_plan_result *found,
                  stint_plan_result *result)
{
    if (found->peak_bytes > result->peak_bytes)
        take_account(found, result);
    if (found->fits) {
        result->images_that_fit = sti_setup_images(stage);
        return;
    }
    result->fits = false;
    result->stage_too_large = sti_setup_images(stage);
}

static stint_status plan_stage(sti_setup *stage, stint_plan_result *result)
{
    sti_step_plan plan = {.lanes = 0};
    stint_status st;
    STI_TRY(sti_setup_build(stage));
    STI_TRY(sti_step_choose(stage, &exact, &plan));
    judge(stage, &plan.result, result);
out:
    sti_step_plan_fini(&plan);
    sti_setup_fini(stage);
    return st;
}

stint_status sti_grow_plan_networks(const sti_setup *setup, const sti_course *course,
                                    sti_step_plan *plan)
{
    sti_setup stage = sti_setup_like(setup);
    stint_status st = STINT_OK;
    if (!sti_grow_has_networks(course) || !plan->result.fits)
        return STINT_OK;
    plan->result.images_that_fit = sti_setup_images(setup);
    for (int i = 1; i < course->count && st == STINT_OK && plan->result.fits; i++)
        if (course->stage[i].micro > course->stage[i - 1].micro) {
            stage.micro = course->stage[i].micro;
            st = plan_stage(&stage, &plan->result);
        }
    if (plan->result.fits)
        plan->result.images_that_fit = 0;
    sti_memory_trim();
    return st;
}

stint_status sti_grow_raise_smallest(const sti_setup *setup, const sti_course *course,
                                     stint_plan_result *result)
{
    sti_setup stage = sti_setup_like(setup);
    size_t lowest = 0;
    stint_status st;
    if (!sti_grow_has_networks(course))
        return STINT_OK;
    stage.micro = course->stage[course->count - 1].micro;
    STI_TRY(sti_setup_build(&stage));
    STI_TRY(sti_step_lowest_peak(&stage, &lowest));
    if (lowest > result->smallest_bytes)
        result->smallest_bytes = lowest;
out:
    sti_setup_fini(&stage);
    sti_memory_trim();
    return st;
}

stint_status sti_grow_change_networks(sti_setup *setup, int64_t micro,
                                      sti_step_plan *plan)
{
    sti_step_plan next = {.lanes = 0};
    stint_status st;
    setup->micro = micro;
    STI_TRY(sti_setup_build(setup));
    STI_TRY(sti_step_choose(setup, &exact, &next));
    if (!next.result.fits) {
        st = sti_fail(STINT_E_BUG, "a stage that was planned does not fit any more");
        goto out;
    }
    sti_free(plan->form);
    plan->form = next.form;
    plan->form_values = next.form_values;
    plan->rewritten = next.rewritten;
    plan->lanes = next.lanes;
    next.form = NULL;
out:
    sti_step_plan_fini(&next);
    return st;
}
