#include "train/plan_stages.h"

#include <math.h>

#include "base/memory.h"

/* What a rank sends in a step of this recipe; NaN where that is chosen under way. */
static double step_bytes(const stint_plan_net *net)
{
    for (int i = 0; i < net->sum_count; i++)
        if (net->sums[i].own)
            return net->sums[i].rank_bytes;
    return net->ranks > 1 ? (double)NAN : 0;
}

/* Steps of a run over the same images in batches like the first. */
static int64_t fixed_steps(const sti_course *c)
{
    const int64_t accumulate = c->stage[0].accumulate;
    const sti_course_point end = sti_course_at(c, c->steps);
    return end.epoch * (c->units / accumulate) + end.image / (c->unit * accumulate);
}

stint_status sti_plan_stages(const sti_job *job, stint_plan_result *result)
{
    const sti_course *c = &job->course;
    const double each = step_bytes(&result->net);
    result->stages = sti_alloc_array(c->count, sizeof *result->stages, "plan stages");
    if (!result->stages)
        return STINT_E_MEMORY;
    result->stage_count = c->count;
    for (int i = 0; i < c->count; i++) {
        const sti_stage *s = &c->stage[i];
        const int64_t steps = sti_course_stage_steps(c, i);
        result->stages[i] =
            (stint_plan_stage){.epoch = s->epoch + 1,
                               .batch = s->accumulate * s->micro * c->unit,
                               .accumulate = s->accumulate,
                               .images = s->micro * sti_setup_images(&job->setup),
                               .lr_factor = s->lr_factor,
                               .steps = steps,
                               .rank_bytes = each * (double)steps};
    }
    /* An open course may turn out shorter. */
    result->run_rank_bytes =
        c->open && each > 0 ? (double)NAN : each * (double)c->steps;
    result->run_rank_bytes_fixed = each * (double)fixed_steps(c);
    return STINT_OK;
}
