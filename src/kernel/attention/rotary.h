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

/* How the wavelengths of a model are stretched to see further than it was trained for;
 * f is the angle of one position above, w = 2 pi / f its wavelength.
 *   LINEAR  f / factor (Chen et al. 2023)
 *   LLAMA3  f where w < original / high, f / factor where w > original / low, and a mix
 *           of both between (Grattafiori et al. 2024)
 *   YARN    a mix of both by a ramp over i, from where a wave turns `high` times within
 *           `original` positions to where it turns `low` times (Peng et al. 2023);
 *           cosines and sines are also multiplied by `attention` */
typedef enum sti_rotary_kind {
    STI_ROTARY_PLAIN,
    STI_ROTARY_LINEAR,
    STI_ROTARY_LLAMA3,
    STI_ROTARY_YARN
} sti_rotary_kind;

typedef struct sti_rotary_stretch {
    sti_rotary_kind kind;
    float factor, low, high, attention, original;
} sti_rotary_stretch;

typedef struct sti_rotary {
    int64_t batch, length;      /* x [batch, length, width] */
    int64_t width, heads, size; /* the first heads * size columns are rotated */
    int64_t position;           /* of row 0 of each sequence */
    double base;                /* 10000 */
    int inverse;                /* backwards: the gradient */
    sti_rotary_stretch stretch;
} sti_rotary;

/* cos and sin of [length, size / 2] angles. */
size_t sti_rotary_scratch_bytes(const sti_rotary *args);
/* y may be x. scratch: 64-byte aligned. */
void sti_rotary_f32(const sti_team *team, const sti_rotary *args, const float *x,
                    float *y, void *scratch);

#endif
