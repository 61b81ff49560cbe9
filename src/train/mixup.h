/* Images of a micro-batch mixed in pairs, and how much each of two labels then counts:
 * data.mixup (Zhang et al. 2018) and data.cutmix (Yun et al. 2019).
 *
 * Image j of n is mixed with image n - 1 - j. Its share s is drawn from Beta(a, a), a
 * function of (seed, epoch, sample): with mixup every pixel becomes s x + (1 - s)
 * other, with cutmix a box of the other image takes the place of 1 - s of the area,
 * around a point drawn evenly and cut off at the border, after which s is what is left.
 * Where both are asked for each image takes one of them, by chance. Padding, and the
 * middle one of an odd number, stay as they are. */
#ifndef STI_TRAIN_MIXUP_H
#define STI_TRAIN_MIXUP_H

#include <stdint.h>

#include "base/team.h"

typedef struct sti_mixup {
    double mixup, cutmix; /* a of either; 0: not asked for */
    uint64_t seed, epoch;
} sti_mixup;

typedef struct sti_mixup_batch {
    int64_t count, height, width, channels;
    const int32_t *samples; /* [count]; NULL: nothing is mixed */
    float *x;               /* [count, height, width, channels] */
    const int32_t *labels;  /* [count] */
    int32_t *others;        /* [count]: labels of the other images */
    float *share;           /* [count, 1]: what an image's own label counts */
    float *rest;            /* [count, 1]: 1 - share */
} sti_mixup_batch;

/* Mix, or leave alone: others is labels then, and share is 1. */
void sti_mixup_apply(const sti_team *team, const sti_mixup *mixup,
                     const sti_mixup_batch *batch);

/* A number from Beta(a, a), a > 0, for (seed, epoch, sample). */
double sti_mixup_beta(const sti_mixup *mixup, double a, int32_t sample);

#endif
