/* Normalisation of rows: layer-norm (Ba et al. 2016) and RMS-norm (Zhang and Sennrich
 * 2019), forward and backward.
 *
 *     layer: y = scale * (x - mean) * inv + shift,  inv = 1 / sqrt(variance + epsilon)
 *     RMS:   y = scale * x * inv,                   inv = 1 / sqrt(mean x^2 + epsilon)
 *
 * Sums along a row: element i goes to accumulator (i / 16) % 4, lane i % 16, joined as
 * in reduce.h. Column sums of the backward pass: rows in chunks of 64, row after row
 * inside a chunk, chunks joined by a binary tree. The bits depend on the shape alone.
 */
#ifndef STI_KERNEL_ROW_NORM_H
#define STI_KERNEL_ROW_NORM_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

typedef struct sti_row_norm {
    int64_t rows, n; /* n >= 1 */
    float epsilon;
    const float *scale, *shift; /* [n]; shift NULL: RMS-norm */
} sti_row_norm;

/* x, y [rows, n]; mean (layer only, else NULL) and inv [rows]. y may be x. */
void sti_row_norm_f32(const sti_team *team, const sti_row_norm *args, const float *x,
                      float *y, float *mean, float *inv);

/* From dy, x, mean (NULL: RMS-norm) and inv: dx [rows, n], dscale [n] and dshift [n]
 * (NULL for RMS-norm). args->shift is not read. dx may be dy. scratch: 64-byte aligned.
 */
typedef struct sti_row_norm_grads {
    float *dx, *dscale, *dshift;
} sti_row_norm_grads;
size_t sti_row_norm_scratch_bytes(const sti_row_norm *args);
void sti_row_norm_grad_f32(const sti_team *team, const sti_row_norm *args,
                           const float *dy, const float *x, const float *mean,
                           const float *inv, const sti_row_norm_grads *grads,
                           void *scratch);

#endif
