#include "atari/tia_motion.h"

#include "atari/console.h"

static int at_most(int value, int most)
{
    return value < 0 ? 0 : value < most ? value : most;
}

/* After the strobe comes a pulse every four clocks, first at the multiple of four that
 * is at least 6 clocks away, till a counter equals HMxx: (motion xor 8) pulses. A pulse
 * in the blank moves a thing a pixel to the left; one that falls into the picture does
 * nothing, as the thing is being clocked anyhow. A strobe that is early (cycle 75 of
 * the line before, to 20) makes the blank 8 clocks longer, which is 8 pixels to the
 * right. ALE gives 0 for cycles 21 and 22. */
int sti_tia_motion(int cycle, int motion)
{
    const int pulses = motion ^ 8, first = (3 * cycle + 6 + 3) / 4 * 4;
    const int here = at_most((76 - first) / 4, pulses);
    const int next_line = at_most(pulses - (STI_LINE_CLOCKS - first) / 4, pulses);
    if (cycle == 21 || cycle == 22)
        return 0;
    return (cycle <= 20 || cycle == 75 ? 8 : 0) - here - next_line;
}

sti_strobe sti_tia_strobe(uint8_t nusiz, int distance)
{
    static const uint8_t copies[8][3] = {{0},     {0, 16}, {0, 32},     {0, 16, 32},
                                         {0, 64}, {0},     {0, 32, 64}, {0}};
    static const uint8_t widths[8] = {8, 8, 8, 8, 8, 16, 8, 32};
    const int mode = nusiz & 7;
    for (int i = 0; i < 3; i++) {
        const int into = distance - copies[mode][i];
        if (i > 0 && copies[mode][i] == 0)
            break;
        if (into >= 0 && into < 4)
            return STI_STROBE_ABOUT;
        if (into >= 4 && into < 4 + widths[mode])
            return STI_STROBE_DRAWING;
    }
    return STI_STROBE_FREE;
}
