#include "train/lr_schedule.h"

#include "kernel/maths/smooth.h"
#include "train/schedule_section.h"

/* Epochs to steps, rounded to nearest. */
static int64_t to_steps(double epochs, int64_t steps_per_epoch)
{
    return (int64_t)(epochs * (double)steps_per_epoch + 0.5);
}

void sti_schedule_init(sti_schedule *s, const sti_schedule_values *values, double lr,
                       int64_t steps_per_epoch, int64_t steps)
{
    *s = (sti_schedule){.name = values->name,
                        .lr = lr,
                        .start = values->start_factor,
                        .final = values->final_factor,
                        .gamma = values->gamma,
                        .steps = steps,
                        .period = to_steps(values->period, steps_per_epoch),
                        .period_factor = values->period_factor};
    if (values->period > 0 && s->period == 0)
        s->period = 1;
    s->warmup = to_steps(values->warmup, steps_per_epoch);
    if (s->warmup == 0 && s->name == STI_SCHEDULE_ONE_CYCLE)
        s->warmup = (int64_t)(0.3 * (double)steps);
    if (s->warmup > steps)
        s->warmup = steps;
    double epochs[STI_MILESTONES_MAX];
    s->milestones =
        sti_recipe_milestones(values->milestones, epochs, STI_MILESTONES_MAX);
    for (int i = 0; i < s->milestones; i++)
        s->milestone[i] = to_steps(epochs[i], steps_per_epoch);
}

static double step_factor(const sti_schedule *s, int64_t step)
{
    double factor = 1;
    for (int i = 0; i < s->milestones; i++)
        if (step >= s->milestone[i])
            factor *= s->gamma;
    return factor;
}

/* Share of its cycle that a step after the warm-up is at. */
static double cosine_share(const sti_schedule *s, int64_t step, double whole)
{
    if (s->period == 0)
        return whole;
    double exact = (double)s->period;
    int64_t length = s->period, at = s->period_factor == 1 ? step % s->period : step;
    while (at >= length) {
        at -= length;
        exact *= s->period_factor;
        length = (int64_t)(exact + 0.5);
    }
    return (double)at / (double)length;
}

double sti_schedule_lr(const sti_schedule *s, int64_t step)
{
    if (step < s->warmup)
        return s->lr * (s->start + (1 - s->start) * ((double)step / (double)s->warmup));
    double rest = (double)(s->steps - s->warmup);
    double p = rest > 0 ? (double)(step - s->warmup) / rest : 1;
    switch (s->name) {
    case STI_SCHEDULE_STEP:
        return s->lr * step_factor(s, step);
    case STI_SCHEDULE_COSINE:
        p = cosine_share(s, step - s->warmup, p);
        return s->lr *
               (s->final + (1 - s->final) * 0.5 * (1 + sti_smooth_cos_turn(0.5 * p)));
    case STI_SCHEDULE_ONE_CYCLE:
        return s->lr * (s->final + (1 - s->final) * (1 - p));
    default:
        return s->lr;
    }
}
