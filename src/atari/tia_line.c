/* Which pixels of a line each thing covers, as 160 bits: made anew when something that
 * they depend on has changed and they are looked at. */
#include <string.h>

#include "atari/bus.h"

/* Distances of the second and third copy that NUSIZ asks for; 0: there is none. */
static const uint8_t copies[8][2] = {{0, 0},  {16, 0}, {32, 0},  {16, 32},
                                     {64, 0}, {0, 0},  {32, 64}, {0, 0}};

/* Adds at most 32 bits from pixel x on; what leaves the line on the right comes in on
 * the left. */
static void add_bits(uint64_t line[3], unsigned x, uint64_t bits)
{
    const unsigned word = x >> 6, shift = x & 63;
    line[word] |= bits << shift;
    if (word < 2 && shift > 32)
        line[word + 1] |= bits >> (64 - shift);
    line[0] |= line[2] >> 32;
    line[2] &= 0xffffffff;
}

static unsigned around(unsigned x)
{
    return x >= STI_LINE_PIXELS ? x - STI_LINE_PIXELS : x;
}

/* Each bit of a byte twice or four times. */
static uint32_t stretch(uint8_t bits, unsigned times)
{
    uint32_t wide = bits;
    if (times == 2) {
        wide = (wide | wide << 4) & 0x0f0f;
        wide = (wide | wide << 2) & 0x3333;
        wide = (wide | wide << 1) & 0x5555;
        return wide * 3;
    }
    wide = (wide | wide << 12) & 0x000f000f;
    wide = (wide | wide << 6) & 0x03030303;
    wide = (wide | wide << 3) & 0x11111111;
    return wide * 15;
}

/* A player of double or fourfold size comes a pixel late. */
static void player_line(const sti_player *p, unsigned x, uint8_t graphics,
                        uint64_t line[3])
{
    const unsigned mode = p->nusiz & 7;
    const uint8_t bits = sti_tia_turned(graphics);
    memset(line, 0, 3 * sizeof line[0]);
    if (!p->skips_first) {
        if (mode == 5)
            add_bits(line, around(x + 1), stretch(bits, 2));
        else if (mode == 7)
            add_bits(line, around(x + 1), stretch(bits, 4));
        else
            add_bits(line, x, bits);
    }
    for (int i = 0; i < 2; i++)
        if (copies[mode][i])
            add_bits(line, around(x + copies[mode][i]), bits);
}

static void missile_line(const sti_tia *tia, int which, uint64_t line[3])
{
    const uint8_t nusiz = tia->player[which].nusiz;
    const unsigned x = tia->place[STI_MISSILE0 + which];
    const bool star = which == 0 && tia->stars;
    const unsigned width = (nusiz >> 4 & 3) | (star && tia->star == STI_STAR_WIDE);
    const uint64_t bits = (1u << (1u << width)) - 1;
    memset(line, 0, 3 * sizeof line[0]);
    if (star && tia->star == STI_STAR_NONE)
        return;
    add_bits(line, x, bits);
    for (int i = 0; i < 2; i++)
        if (copies[nusiz & 7][i])
            add_bits(line, around(x + copies[nusiz & 7][i]), bits);
}

/* Half a line is 20 bits, each four pixels wide. */
static void playfield_line(const sti_tia *tia, uint64_t line[3])
{
    uint32_t half = tia->playfield;
    memset(line, 0, 3 * sizeof line[0]);
    for (unsigned side = 0; side < 2; side++) {
        if (side == 1 && tia->mirrored)
            half = (uint32_t)sti_tia_turned((uint8_t)half) << 12 |
                   (uint32_t)sti_tia_turned((uint8_t)(half >> 8)) << 4 |
                   (uint32_t)sti_tia_turned((uint8_t)(half >> 16)) >> 4;
        add_bits(line, side * 80, stretch((uint8_t)half, 4));
        add_bits(line, side * 80 + 32, stretch((uint8_t)(half >> 8), 4));
        add_bits(line, side * 80 + 64, stretch((uint8_t)(half >> 16), 4));
    }
}

void sti_tia_refresh(sti_tia *tia, unsigned things)
{
    const unsigned stale = tia->stale & things;
    tia->stale &= (uint8_t)~stale;
    if (stale & 1 << STI_PLAYFIELD)
        playfield_line(tia, tia->line[STI_PLAYFIELD]);
    if (stale & 1 << STI_BALL) {
        memset(tia->line[STI_BALL], 0, sizeof tia->line[STI_BALL]);
        add_bits(tia->line[STI_BALL], tia->place[STI_BALL],
                 (1u << (1u << (tia->ctrlpf >> 4 & 3))) - 1);
    }
    for (int i = 0; i < 2; i++) {
        if (stale & 1 << (STI_PLAYER0 + i))
            player_line(&tia->player[i], tia->place[STI_PLAYER0 + i],
                        tia->player[i].shown, tia->line[STI_PLAYER0 + i]);
        if (stale & 1 << (STI_MISSILE0 + i))
            missile_line(tia, i, tia->line[STI_MISSILE0 + i]);
    }
}

/* ALE looks at four pixels at once where a player could be, not where it is. */
void sti_tia_reach(const sti_tia *tia, int which, uint64_t line[3])
{
    player_line(&tia->player[which], tia->place[STI_PLAYER0 + which], 0xff, line);
}
