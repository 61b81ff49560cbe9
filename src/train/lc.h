/* The arithmetic of learning and compressing in turn (L-C; Carreira-Perpinan 2017, as
 * Condensa has it, arXiv 1911.02497): the method of multipliers on
 *
 *     loss(w) + mu / 2 ||w - theta||^2 - lambda (w - theta),   theta compressed.
 *
 * Step 0 is the direct compression of w, with mu = 0. Step j >= 1 learns for some
 * batches with mu_j, then compresses: theta = projection of w - lambda / mu_j, and
 * lambda -= mu_j (w - theta). Arrays are one number a weight; loops are split over a
 * team and give the same bits with any. Nothing is allocated. */
#ifndef STI_TRAIN_LC_H
#define STI_TRAIN_LC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/team.h"
#include "train/shrink_section.h"

/* Batches of learning: `first` of step 1, `batches` of each later one. The steps after
 * `last` learn without mu, from theta, and what is zero there stays zero. */
typedef struct sti_lc_plan {
    int64_t steps, first, batches, last;
    double mu, factor, cap; /* of step 1; per step; no growth above */
} sti_lc_plan;

/* With what the recipe leaves open filled in. mu is then such that mu times the rates
 * of a learning step, each over 1 - momentum, sum to 0.1: the setting that Condensa
 * publishes for AlexNet is 0.13 by that measure, whatever the number of batches. */
sti_lc_plan sti_lc_plan_of(const sti_shrink_values *values, int64_t steps_per_epoch,
                           double lr, double momentum);
/* Batches of all steps. */
int64_t sti_lc_batches(const sti_lc_plan *plan);

/* Where a batch, counted from 0, stands: in the learning step `step`, from 1, the
 * index-th of its `count`. */
typedef struct sti_lc_place {
    int64_t step, index, count;
} sti_lc_place;
sti_lc_place sti_lc_place_of(const sti_lc_plan *plan, int64_t batch);

/* Does that learning step, from 1, train only what is left? */
bool sti_lc_finishes(const sti_lc_plan *plan, int64_t step);
/* The place of a batch in what its rate falls over: its learning step or, of those that
 * train what is left, all of them as one. */
sti_lc_place sti_lc_fall_of(const sti_lc_plan *plan, int64_t batch);

/* mu of a learning step, from 1: it grows by factor until it is above cap. */
double sti_lc_mu(const sti_lc_plan *plan, int64_t step);
/* lr times (end / lr)^(index / count); end 0: lr. */
double sti_lc_rate(double lr, double end, int64_t index, int64_t count);

/* g += scale (mu (w - theta) - lambda) */
void sti_lc_gradient(const sti_team *team, int64_t n, double mu, double scale,
                     const float *w, const float *theta, const float *lambda, float *g);
/* theta = w - lambda / mu, or w with mu = 0 */
void sti_lc_target(const sti_team *team, int64_t n, double mu, const float *w,
                   const float *lambda, float *theta);
/* lambda -= mu (w - theta) */
void sti_lc_multipliers(const sti_team *team, int64_t n, double mu, const float *w,
                        const float *theta, float *lambda);

/* x *= factor */
void sti_lc_scale(const sti_team *team, int64_t n, double factor, float *x);

/* Sums of squares of w - theta, w and lambda, in order: for the log. */
typedef struct sti_lc_norms {
    double gap, weights, multipliers;
} sti_lc_norms;
void sti_lc_add_norms(int64_t n, const float *w, const float *theta,
                      const float *lambda, sti_lc_norms *norms);

#endif
