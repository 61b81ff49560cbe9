#include "train/kl_course.h"

#include <math.h>

static double geometric(const sti_course *course, const sti_course_point *at)
{
    const int64_t images = course->units * course->unit;
    const int64_t steps = (images + at->whole - 1) / at->whole;
    const int64_t step = at->image / at->whole;
    return (double)steps * ldexp(1, -(int)(step < 1000 ? step : 1000) - 1) /
           (1 - ldexp(1, -(int)(steps < 1000 ? steps : 1000)));
}

static double ramp(const sti_bayes_values *bayes, const sti_course *course,
                   const sti_course_point *at)
{
    const double images = (double)(course->units * course->unit);
    const double epochs = (double)at->epoch + (double)at->image / images;
    return epochs < bayes->kl_ramp ? epochs / bayes->kl_ramp : 1;
}

double sti_kl_weight(const sti_bayes_values *bayes, int64_t images,
                     const sti_course *course, const sti_course_point *at)
{
    const double even = bayes->kl / (double)images;
    if (bayes->kl_course == STI_KL_GEOMETRIC)
        return even * geometric(course, at);
    return bayes->kl_course == STI_KL_RAMP ? even * ramp(bayes, course, at) : even;
}
