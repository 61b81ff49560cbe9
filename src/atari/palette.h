/* Colours and grey levels of colour bytes. */
#ifndef STI_ATARI_PALETTE_H
#define STI_ATARI_PALETTE_H

#include <stdbool.h>
#include <stdint.h>

/* Red, green, blue, a byte each. Odd bytes are what a PAL set shows of frames with an
 * odd number of lines: no colours, the luma alone. */
void sti_palette_rgb(bool pal, uint8_t colour, uint8_t rgb_out[3]);
/* The luma of the even byte, 0.2989 red + 0.587 green + 0.114 blue, rounded: what ALE's
 * grey screens hold. */
uint8_t sti_palette_grey(bool pal, uint8_t colour);

#endif
