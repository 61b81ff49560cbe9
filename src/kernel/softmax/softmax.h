/* Softmax of rows, its cross-entropy loss against integer labels, and counting of right
 * answers. Rows are x [rows, n], n >= 1; sums over a row go to 16 accumulators by
 * position modulo 16, joined by halves (8, 4, 2, 1). exp and log are those of maths.h.
 */
#ifndef STI_KERNEL_SOFTMAX_H
#define STI_KERNEL_SOFTMAX_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

/* y = exp(x - max) / sum exp(x - max) a row. y may be x. */
void sti_softmax_f32(const sti_team *team, int64_t rows, int64_t n, const float *x,
                     float *y);

/* Targets q = (1 - smoothing) onehot(label) + smoothing / n. A row with label -1 is
 * padding: its loss and gradient are 0. Any other label outside 0..n-1 gives a NaN,
 * which the training loop stops at: readers have checked labels long before.
 *
 * row_loss [rows] = -sum_j q_j log softmax(x)_j. */
typedef struct sti_cross_entropy {
    int64_t rows, n;
    float smoothing;
    const float *x;
    const int32_t *label;
} sti_cross_entropy;
void sti_cross_entropy_f32(const sti_team *team, const sti_cross_entropy *args,
                           float *row_loss_out);
/* dx = factor * (softmax(x) - q). dx may be x. */
void sti_cross_entropy_grad_f32(const sti_team *team, const sti_cross_entropy *args,
                                float factor, float *dx_out);
/* Both in one pass over the exponentials; row_loss_out may be NULL. */
void sti_cross_entropy_both_f32(const sti_team *team, const sti_cross_entropy *args,
                                float factor, float *row_loss_out, float *dx_out);
/* q itself (args->x is not read), and mask [rows]: 1, or 0 for padding. */
void sti_cross_entropy_target_f32(const sti_team *team, const sti_cross_entropy *args,
                                  float *q_out, float *mask_out);

/* Cross-entropy of one row against soft targets, both at temperature T > 0, times T^2:
 *     -T^2 sum_j softmax(target / T)_j log softmax(x / T)_j
 * with sums in float64, ascending. */
float sti_soft_cross_entropy_row_f32(int64_t n, float temperature, const float *x,
                                     const float *target);

/* Rows whose largest entry (the first of equals; a row with a NaN has none) is at the
 * label. */
int64_t sti_count_correct_f32(int64_t rows, int64_t n, const float *x,
                              const int32_t *label);

/* Sum in float64, ascending, rounded once at the end: for a few thousand numbers. */
float sti_sum_short_f32(int64_t n, const float *x);

#endif
