/* The scale of gradient noise, and the batch that it asks for.
 *
 * After McCandlish et al. 2018 (arXiv 1812.06162): of gradients g over b images and G
 * over the B of a whole batch, with expectations |E g|^2 + tr / b and |E G|^2 + tr / B,
 *
 *   squares = (B |G|^2 - b |g|^2) / (B - b)   estimates the square of the true gradient
 *   trace   = (|g|^2 - |G|^2) / (1/b - 1/B)   that of the covariance of one image
 *
 * and trace / squares is the batch at which noise and gradient are of one size. Both
 * are smoothed apart, for the mean of a ratio is none of the ratio of means; the weight
 * of what was smoothed corrects the bias of the beginning. Everything that a decision
 * depends on is in the position, so that a resumed run decides alike; every rank has
 * the same sums, so that all do. */
#ifndef STI_TRAIN_GROW_NOISE_H
#define STI_TRAIN_GROW_NOISE_H

#include "store/position.h"
#include "train/grow.h"
#include "train/grow_section.h"

/* What a step says: mean |g|^2 of micro-batches of `micro` images, and |G|^2 of their
 * mean over `batch`, which is more than one of them. */
typedef struct sti_noise_sample {
    int64_t micro, batch;
    double micro_squares, batch_squares;
} sti_noise_sample;
void sti_noise_add(const sti_noise_sample *sample, double smooth,
                   sti_position *position);
/* Images; NaN: none yet, or no gradient is seen above the noise. */
double sti_noise_scale(const sti_position *position);

/* After a step that led to position->step: where a quarter of an epoch is over and the
 * scale asks for it, a larger batch from here on, in course and position. train_count:
 * images of the training set. */
void sti_noise_grow(const stint_recipe *recipe, int64_t train_count, sti_course *course,
                    sti_position *position);
/* The course as it was when this position was written. */
void sti_noise_resume(const stint_recipe *recipe, const sti_position *position,
                      sti_course *course);

#endif
