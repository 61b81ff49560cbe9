/* Rotary position embedding (Su et al. 2021), in the arrangement of Llama's weights:
 * element i of a head goes with element i + size / 2.
 *
 *     angle = position * base^(-2 i / size)
 *     y_i = x_i cos - x_(i + size/2) sin,   y_(i + size/2) = x_(i + size/2) cos + x_i
 * sin
 *
 * Angles are reduced to one turn in double, then taken through our own sine and cosine.
 */
#ifndef STI_KERNEL_ROTARY_H
#define STI_KERNEL_ROTARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

typedef struct sti_rotary {
    int64_t batch, length;      /* x [batch, length, width] */
    int64_t width, heads, size; /* the first heads * size columns are rotated */
    int64_t position;           /* of row 0 of each sequence */
    double base;                /* 10000 */
    int inverse;                /* backwards: the gradient */
} sti_rotary;

/* cos and sin of [length, size / 2] angles. */
size_t sti_rotary_scratch_bytes(const sti_rotary *args);
/* y may be x. scratch: 64-byte aligned. */
void sti_rotary_f32(const sti_team *team, const sti_rotary *args, const float *x,
                    float *y, void *scratch);

#endif
