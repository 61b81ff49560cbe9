/* Colours into the pixels of a line: the innermost loop of drawing. */
#ifndef STI_ATARI_PAINT_H
#define STI_ATARI_PAINT_H

#include <stdint.h>

typedef struct sti_paint {
    uint64_t bits[3][3]; /* pixels of P0's, P1's and PF's colour, none twice */
    uint8_t colour[4];   /* by STI_COLOUR_; the last is for all other pixels */
} sti_paint;

/* Writes pixels x0 to x1 - 1 of row, 0 <= x0 < x1 <= 160; the other bytes of the row's
 * 160 stay, though they may be written again. Every instruction set gives the same. */
typedef void sti_paint_fn(const sti_paint *paint, uint8_t *row, int x0, int x1);
sti_paint_fn sti_paint_span_ref, sti_paint_span_avx2;

/* That of the instruction set in use. */
sti_paint_fn *sti_paint_now(void);

#endif
