/* What the divergence of a Bayesian network's weights counts in the loss of a step.
 *
 * The loss is a mean over images, so that the divergence, a sum over weights, is
 * divided by the images of the training set; over an epoch it then counts once. Courses
 * multiply that:
 *   even       1
 *   geometric  M 2^-(i + 1) / (1 - 2^-M) at step i, from 0, of the M of an epoch: the
 *              first steps hold to the prior, the last ones to the data (Blundell et
 *              al. 2015)
 *   ramp       rises from 0 to 1 over bayes.kl_ramp epochs
 * A function of the step alone, so that a resumed run goes on as it was. */
#ifndef STI_TRAIN_KL_COURSE_H
#define STI_TRAIN_KL_COURSE_H

#include "model/bayes_section.h"
#include "train/grow.h"

/* images: of the training set. at: where the step begins (sti_course_at). */
double sti_kl_weight(const sti_bayes_values *bayes, int64_t images,
                     const sti_course *course, const sti_course_point *at);

#endif
