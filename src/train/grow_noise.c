#include "train/grow_noise.h"

#include <math.h>

#include "kernel/maths/smooth.h"
#include "train/train_section.h"

#define CLEARLY 1.2 /* times the batch, from which on it grows */

enum { DECISIONS = 4 }; /* an epoch */

void sti_noise_add(const sti_noise_sample *s, double smooth, sti_position *p)
{
    const double b = (double)s->micro, all = (double)s->batch, left = 1 - smooth;
    const double squares = (all * s->batch_squares - b * s->micro_squares) / (all - b);
    const double trace = (s->micro_squares - s->batch_squares) / (1 / b - 1 / all);
    p->noise_squares = smooth * p->noise_squares + left * squares;
    p->noise_trace = smooth * p->noise_trace + left * trace;
    p->noise_weight = smooth * p->noise_weight + left;
}

double sti_noise_scale(const sti_position *p)
{
    const double trace = p->noise_trace / p->noise_weight;
    const double squares = p->noise_squares / p->noise_weight;
    return p->noise_weight > 0 && squares > 0 && trace >= 0 ? trace / squares
                                                            : (double)NAN;
}

/* (batch / first batch)^(log lr / log factor), so that `factor` times the batch takes
 * `lr` times the rate. */
static double rate_of(const stint_recipe *recipe, int64_t accumulate)
{
    const sti_grow_values *grow = sti_grow_section_of(recipe);
    const double times =
        (double)accumulate / (double)sti_train_section_of(recipe)->accumulate;
    return sti_smooth_exp(sti_smooth_log(times) * sti_smooth_log(grow->lr) /
                          sti_smooth_log((double)grow->factor));
}

/* Micro-batches a shard that the scale asks for: a multiple of the first batch's, at
 * most `factor` times those of now and grow.most; those of now where it asks for less.
 */
static int64_t wanted(const stint_recipe *recipe, int64_t train_count,
                      const sti_course *c, const sti_position *p, int64_t now)
{
    const sti_grow_values *grow = sti_grow_section_of(recipe);
    const int64_t first = sti_train_section_of(recipe)->accumulate;
    const int64_t most = sti_grow_most(grow, train_count) / c->unit;
    const double ask = grow->share * sti_noise_scale(p) / (double)c->unit;
    int64_t limit = now * grow->factor < most ? now * grow->factor : most;
    if (!(ask >= CLEARLY * (double)now))
        return now;
    if (ask < (double)limit)
        limit = (int64_t)ask;
    return limit / first * first > now ? limit / first * first : now;
}

void sti_noise_grow(const stint_recipe *recipe, int64_t train_count, sti_course *c,
                    sti_position *p)
{
    const sti_course_point before = sti_course_at(c, p->step - 1);
    const sti_course_point at = sti_course_at(c, p->step);
    const int64_t now = before.whole / c->unit;
    if (before.tick * DECISIONS / c->units == at.tick * DECISIONS / c->units)
        return;
    const int64_t more = wanted(recipe, train_count, c, p, now);
    if (more == now)
        return;
    p->grow_accumulate = more;
    p->grow_step = p->step;
    p->grow_epoch = at.epoch;
    p->grow_image = at.image;
    sti_noise_resume(recipe, p, c);
}

void sti_noise_resume(const stint_recipe *recipe, const sti_position *p, sti_course *c)
{
    if (p->grow_accumulate > 0)
        sti_course_go_on(
            c, &(sti_stage){.step = p->grow_step,
                            .epoch = p->grow_epoch,
                            .image = p->grow_image,
                            .accumulate = p->grow_accumulate,
                            .micro = 1,
                            .lr_factor = rate_of(recipe, p->grow_accumulate)});
}
