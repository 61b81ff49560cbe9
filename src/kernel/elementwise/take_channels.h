/* Some channels of each row, next to each other. */
#ifndef STI_KERNEL_TAKE_CHANNELS_H
#define STI_KERNEL_TAKE_CHANNELS_H

#include "base/team.h"

/* out[r, i] = x[r, channel[i]] for x [rows, c] and out [rows, n]; 0 <= channel[i] < c.
 * Moves 4 (rows n) bytes in and out; x and out do not overlap. */
void sti_take_channels_f32(const sti_team *team, int64_t rows, int64_t c, int64_t n,
                           const float *x, const int32_t *channel, float *out);

#endif
