/* How far HMOVE moves what, and what a strobe of RESPx meets: functions of the cycle
 * and of distances alone. */
#ifndef STI_ATARI_TIA_MOTION_H
#define STI_ATARI_TIA_MOTION_H

#include <stdint.h>

/* Pixels, to the right where positive, for an HMOVE in a cycle of the line, 0..75, with
 * a motion of 0..15. */
int sti_tia_motion(int cycle, int motion);

typedef enum sti_strobe {
    STI_STROBE_FREE,   /* far from every copy */
    STI_STROBE_ABOUT,  /* a copy is about to be drawn */
    STI_STROBE_DRAWING /* one is being drawn */
} sti_strobe;

/* distance: of the new place from the old one, 0..159 pixels to the right. */
sti_strobe sti_tia_strobe(uint8_t nusiz, int distance);

#endif
