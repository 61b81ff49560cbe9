/* Pooling over windows of channels-last images.
 *
 *     x [n, h, w, c]  ->  y [n, oh, ow, c],   oh = (h + 2 pad - size) / stride + 1
 *
 * Positions outside the image take no part in a maximum and count as zeros in an
 * average, which always divides by size^2. Sums go over windows in ascending order; one
 * image is one piece of work, and within it every element has one owner.
 *
 * The choice of a max pool is saved as the smallest exact index: position i * size + j
 * in the window, in 2 bits for size <= 2, 4 bits for size <= 4 and 8 bits for size
 * <= 16. Indices are packed little end first within an output row, and each output row
 * begins on a byte: index [n, oh, row_bytes], row_bytes = ceil(ow c bits / 8); spare
 * bits are 0. */
#ifndef STI_KERNEL_POOL_H
#define STI_KERNEL_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

#define STI_POOL_MAX_SIZE 16

typedef struct sti_pool_shape {
    int64_t n, h, w, c, size, stride, pad, oh, ow;
} sti_pool_shape;

int sti_pool_index_bits(int64_t size);
int64_t sti_pool_row_bytes(const sti_pool_shape *shape);

/* The first of equal maxima wins; a NaN beats every number. index may be NULL.
 * pad < size, so that no window is empty. */
void sti_max_pool_f32(const sti_team *team, const sti_pool_shape *shape, const float *x,
                      float *y_out, uint8_t *index_out);
/* dx = 0, then dx[chosen] += dy: the adjoint of gather. */
void sti_max_unpool_f32(const sti_team *team, const sti_pool_shape *shape,
                        const float *dy, const uint8_t *index, float *dx_out);
/* y = x[chosen]. */
void sti_pool_gather_f32(const sti_team *team, const sti_pool_shape *shape,
                         const float *x, const uint8_t *index, float *y_out);

void sti_avg_pool_f32(const sti_team *team, const sti_pool_shape *shape, const float *x,
                      float *y_out);
/* The adjoint of the average. */
void sti_avg_unpool_f32(const sti_team *team, const sti_pool_shape *shape,
                        const float *dy, float *dx_out);

/* y [n, c] = mean over `area` >= 1 rows of x [n, area, c]: row i goes to accumulator
 * i % 4, joined as (0 + 1) + (2 + 3), times 1 / area. */
void sti_global_pool_f32(const sti_team *team, int64_t n, int64_t area, int64_t c,
                         const float *x, float *y_out);
/* dx [n, area, c] = dy [n, c] / area, everywhere; area >= 1. */
void sti_global_unpool_f32(const sti_team *team, int64_t n, int64_t area, int64_t c,
                           const float *dy, float *dx_out);

#endif
