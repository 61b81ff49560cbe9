/* Slices along one axis by index, and the sum of gradients back into them: a table of
 * vectors (embedding.h) is the case of outer 1. */
#ifndef STI_KERNEL_TAKE_H
#define STI_KERNEL_TAKE_H

#include <stdint.h>

#include "base/team.h"

/* x [outer, length, inner], index [count] -> y [outer, count, inner], elements of 4
 * bytes. Negative indices count from the end; those beyond the axis give the bits of a
 * quiet NaN. */
typedef struct sti_take_shape {
    int64_t outer, length, inner, count;
} sti_take_shape;

void sti_take_32(const sti_team *team, const sti_take_shape *shape,
                 const int32_t *index, const void *x, void *y);
/* dx = for each index the sum of its slices of dy, in ascending order of the position;
 * 0 where none is. */
void sti_take_grad_f32(const sti_team *team, const sti_take_shape *shape,
                       const int32_t *index, const float *dy, float *dx);

#endif
