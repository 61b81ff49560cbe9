/* Batch-norm inputs made ready for the codec, and back.
 *
 * fold:    u = (x - mean) * inv, and coarse times that where the bit is not set
 * unfold:  n = u, and u / coarse where the bit is not set
 *          x = n * deviation + mean        y = n * scale + shift where the bit is set,
 * else 0
 *
 * Under one bound on u all channels have the same error in units of their deviation,
 * and what a ReLU lets no gradient through (where batch-norm's gradient reads x only
 * in a small correction) an error 1 / coarse times as large: fewer bits.
 *
 * x, u, y [rows, c]; mean, inv, deviation, scale, shift [c]; bits as in elementwise.h,
 * NULL: all set. No fused multiply-adds; the bits are the same on every instruction
 * set. */
#ifndef STI_KERNEL_FOLD_H
#define STI_KERNEL_FOLD_H

#include <stdint.h>

#include "base/team.h"

/* A power of two, so that nothing is rounded on the way back. */
#define STI_FOLD_COARSE 0.125f

void sti_fold_f32(const sti_team *team, int64_t rows, int64_t c, const float *x,
                  const float *mean, const float *inv, const uint8_t *bits,
                  float *u_out);

/* x or y may be NULL, and either may be u. */
typedef struct sti_unfold {
    int64_t rows, c;
    const float *u;
    const float *mean, *inv;    /* for x */
    const float *scale, *shift; /* for y */
    const uint8_t *bits;
    float *x, *y;
} sti_unfold;
/* deviation: scratch [c]. */
void sti_unfold_f32(const sti_team *team, const sti_unfold *args, float *deviation);

#endif
