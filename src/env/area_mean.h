/* Observed frames: pictures of 160 pixels a line to 84 x 84 by area. */
#ifndef STI_ENV_AREA_MEAN_H
#define STI_ENV_AREA_MEAN_H

#include <stdint.h>

enum { STI_OBSERVED = 84 };

/* Mean of the grey levels of the larger of two pictures over the area of each observed
 * pixel, to the nearest level, halves up: exact, in integers.
 * now, before [lines][160] colour bytes, at most 252 lines, before may be NULL; grey
 * [256] levels of colours; out [84][84]. */
void sti_area_mean(const uint8_t *now, const uint8_t *before, int lines,
                   const uint8_t grey[256], uint8_t *out);

#endif
