/* Spans of a line: collisions, pixels, and what happens where a line ends.
 *
 * ALE brings the picture up to the clock of each access of TIA. A span lies on one line
 * and nothing changes within it. Collisions are found by words of 64 pixels, and only
 * those that are not latched yet; pixels are made where there is a screen. */
#include <string.h>

#include "atari/bus.h"

#define BIT(thing) (1u << (thing))

/* The pairs of things that collide, in the order of the latches. */
static const uint8_t pairs[15][2] = {
    {STI_MISSILE0, STI_PLAYER1},   {STI_MISSILE0, STI_PLAYER0},
    {STI_MISSILE1, STI_PLAYER0},   {STI_MISSILE1, STI_PLAYER1},
    {STI_PLAYER0, STI_PLAYFIELD},  {STI_PLAYER0, STI_BALL},
    {STI_PLAYER1, STI_PLAYFIELD},  {STI_PLAYER1, STI_BALL},
    {STI_MISSILE0, STI_PLAYFIELD}, {STI_MISSILE0, STI_BALL},
    {STI_MISSILE1, STI_PLAYFIELD}, {STI_MISSILE1, STI_BALL},
    {STI_BALL, STI_PLAYFIELD},     {STI_PLAYER0, STI_PLAYER1},
    {STI_MISSILE0, STI_MISSILE1}};

/* Latches that each thing has a part in. */
static const uint16_t latches_of[STI_THINGS] = {0x1550, 0x1aa0, 0x2036,
                                                0x20c9, 0x4303, 0x4c0c};

/* Latches that could be set while these things are enabled; most spans have those of
 * the span before. */
static unsigned possible_latches(sti_bus *bus, unsigned enabled)
{
    unsigned once = 0, twice = 0;
    if (enabled == bus->possible_of)
        return bus->possible;
    for (int thing = 0; thing < STI_THINGS; thing++) {
        const unsigned mine = enabled & BIT(thing) ? latches_of[thing] : 0;
        twice |= once & mine;
        once |= mine;
    }
    bus->possible_of = enabled;
    bus->possible = twice;
    return twice;
}

/* Bits x0 to x1 - 1 of a line. */
static void range_bits(int x0, int x1, uint64_t range[3])
{
    for (int word = 0; word < 3; word++) {
        const int low = x0 - 64 * word, high = x1 - 64 * word;
        uint64_t bits = high >= 64 ? ~UINT64_C(0)
                        : high > 0 ? (UINT64_C(1) << high) - 1
                                   : 0;
        if (low > 0)
            bits &= low >= 64 ? 0 : ~UINT64_C(0) << low;
        range[word] = bits;
    }
}

static void collide(sti_tia *tia, const uint64_t range[3], unsigned open)
{
    for (int latch = 0; latch < 15; latch++) {
        const uint64_t *a = tia->line[pairs[latch][0]];
        const uint64_t *b = tia->line[pairs[latch][1]];
        if (!(open >> latch & 1))
            continue;
        if ((a[0] & b[0] & range[0]) | (a[1] & b[1] & range[1]) |
            (a[2] & b[2] & range[2]))
            tia->latches |= (uint16_t)BIT(latch);
    }
}

static uint64_t seen(const sti_tia *tia, int thing, int word)
{
    return tia->enabled & BIT(thing) ? tia->line[thing][word] : 0;
}

/* Who is seen: players before playfield and ball, or behind them (CTRLPF bit 2), and
 * the halves of the playfield in the colours of the players (bit 1), of which the left
 * one is then before player 1. (ALE does that in spite of bit 2 where there is nothing
 * but a playfield.) */
static void layers(const sti_tia *tia, sti_paint *paint)
{
    static const uint64_t left_half[3] = {~UINT64_C(0), 0xffff, 0};
    const bool behind = tia->ctrlpf & 4;
    const bool score =
        (tia->ctrlpf & 2) && (!behind || tia->enabled == BIT(STI_PLAYFIELD));
    for (int w = 0; w < 3; w++) {
        const uint64_t field = seen(tia, STI_PLAYFIELD, w);
        const uint64_t left = score ? field & left_half[w] : 0;
        const uint64_t right = score ? field & ~left_half[w] : 0;
        const uint64_t front =
            (score ? 0 : field) | (seen(tia, STI_BALL, w) & ~(left | right));
        const uint64_t cover = behind ? front : 0;
        const uint64_t p0 =
            seen(tia, STI_PLAYER0, w) | seen(tia, STI_MISSILE0, w) | left;
        const uint64_t p1 =
            seen(tia, STI_PLAYER1, w) | seen(tia, STI_MISSILE1, w) | right;
        paint->bits[STI_COLOUR_P0][w] = p0 & ~cover;
        paint->bits[STI_COLOUR_P1][w] = p1 & ~cover & ~p0;
        paint->bits[STI_COLOUR_PF][w] = front & (behind ? ~UINT64_C(0) : ~(p0 | p1));
    }
}

static void span(sti_bus *bus, uint8_t *row, int x0, int x1)
{
    sti_tia *tia = &bus->console->tia;
    const unsigned enabled = tia->vblank & 2 ? 0 : tia->enabled;
    const unsigned open = possible_latches(bus, enabled) & ~(unsigned)tia->latches;
    if (!open && !row)
        return;
    sti_tia_refresh(tia, enabled);
    if (open) {
        uint64_t range[3];
        range_bits(x0, x1, range);
        collide(tia, range, open);
    }
    if (!row)
        return;
    if (enabled) {
        sti_paint paint;
        layers(tia, &paint);
        memcpy(paint.colour, tia->colour, sizeof paint.colour);
        bus->paint(&paint, row, x0, x1);
    } else {
        memset(row + x0, tia->vblank & 2 ? 0 : tia->colour[STI_COLOUR_BK],
               (size_t)(x1 - x0));
    }
}

/* The star field of Cosmic Ark: missile 0 moves each line, by turns wide and missing.
 */
static void move_star(sti_tia *tia)
{
    static const uint8_t steps[4] = {18, 33, 0, 17};
    static const uint8_t forms[4] = {STI_STAR_PLAIN, STI_STAR_WIDE, STI_STAR_NONE,
                                     STI_STAR_PLAIN};
    int place = tia->place[STI_MISSILE0];
    tia->star_phase = (tia->star_phase + 1) & 3;
    place -= steps[tia->star_phase];
    tia->place[STI_MISSILE0] = (uint8_t)(place < 0 ? place + STI_LINE_PIXELS : place);
    tia->star = forms[tia->star_phase];
    tia->stale |= BIT(STI_MISSILE0);
}

static void end_line(sti_tia *tia)
{
    const bool mirrored = tia->ctrlpf & 1;
    if (tia->mirrored != mirrored)
        tia->stale |= BIT(STI_PLAYFIELD);
    tia->mirrored = mirrored;
    for (int i = 0; i < 2; i++) {
        if (tia->player[i].skips_first)
            tia->stale |= (uint8_t)BIT(STI_PLAYER0 + i);
        tia->player[i].skips_first = false;
    }
    if (tia->stars)
        move_star(tia);
}

/* The first 8 pixels of a line on which HMOVE was strobed early are black. ALE blackens
 * as many bytes as there are clocks to go, beginning where the beam is. */
static void blank_after_hmove(sti_tia *tia, uint8_t *row, int from, int count)
{
    enum { END = STI_BLANK_CLOCKS + 8 };
    const int x = from > STI_BLANK_CLOCKS ? from - STI_BLANK_CLOCKS : 0;
    if (from >= END)
        return;
    if (row)
        memset(row + x, 0, (size_t)(END - from));
    if (from + count >= END)
        tia->hmove_blank = false;
}

/* At most a line. */
static void advance_line(sti_bus *bus, int32_t clock)
{
    sti_tia *tia = &bus->console->tia;
    const int32_t at = tia->drawn_to;
    const int left = tia->line_left;
    const bool whole = clock > at + left;
    int from = STI_LINE_CLOCKS - left, count = whole ? left : clock - at;
    uint8_t *row = NULL;
    tia->drawn_to = at + count;
    tia->line_left = (int16_t)(whole ? STI_LINE_CLOCKS : left - count);
    if (from < STI_BLANK_CLOCKS) {
        const int blank =
            STI_BLANK_CLOCKS - from < count ? STI_BLANK_CLOCKS - from : count;
        from += blank;
        count -= blank;
    }
    if (bus->screen) {
        const int line =
            (at - bus->display - (STI_LINE_CLOCKS - left)) / STI_LINE_CLOCKS;
        row = bus->screen->now + line * STI_LINE_PIXELS;
        if (count > 0) {
            bus->drawn_line = line;
            bus->drawn_from = from - STI_BLANK_CLOCKS;
            bus->drawn_till = bus->drawn_from + count;
        }
    }
    if (count > 0)
        span(bus, row, from - STI_BLANK_CLOCKS, from - STI_BLANK_CLOCKS + count);
    if (tia->hmove_blank)
        blank_after_hmove(tia, row, from, count);
    if (whole)
        end_line(tia);
}

/* The line that begins here will be followed by others like it. */
static bool steady(const sti_tia *tia)
{
    return tia->line_left == STI_LINE_CLOCKS && !tia->hmove_blank && !tia->stars &&
           !tia->player[0].skips_first && !tia->player[1].skips_first &&
           tia->mirrored == (tia->ctrlpf & 1);
}

/* Whole lines up to a clock that are as the one that has just ended. */
static void repeat_line(sti_bus *bus, int32_t clock)
{
    sti_tia *tia = &bus->console->tia;
    const int count = (clock - tia->drawn_to - 1) / STI_LINE_CLOCKS;
    if (count <= 0)
        return;
    if (bus->screen) {
        const int line = (tia->drawn_to - bus->display) / STI_LINE_CLOCKS;
        uint8_t *row = bus->screen->now + line * STI_LINE_PIXELS;
        for (int i = 0; i < count; i++, row += STI_LINE_PIXELS)
            memcpy(row, row - STI_LINE_PIXELS, STI_LINE_PIXELS);
        bus->drawn_line = line + count - 1;
        bus->drawn_from = 0;
        bus->drawn_till = STI_LINE_PIXELS;
    }
    tia->drawn_to += count * STI_LINE_CLOCKS;
}

void sti_tia_advance(sti_bus *bus, int32_t clock)
{
    const sti_tia *tia = &bus->console->tia;
    if (clock > bus->display_end)
        clock = bus->display_end;
    do {
        const bool again = steady(tia);
        advance_line(bus, clock);
        if (again && tia->line_left == STI_LINE_CLOCKS)
            repeat_line(bus, clock);
    } while (tia->drawn_to < clock);
}

/* Pixels of a thing that ALE would have to look at one by one. */
static bool touches(const sti_tia *tia, int thing, const uint64_t range[3])
{
    uint64_t reach[3];
    const uint64_t *line = tia->line[thing];
    if (thing == STI_PLAYFIELD || !(tia->enabled & BIT(thing)))
        return false;
    if (thing == STI_PLAYER0 || thing == STI_PLAYER1) {
        sti_tia_reach(tia, thing - STI_PLAYER0, reach);
        line = reach;
    }
    return ((line[0] & range[0]) | (line[1] & range[1]) | (line[2] & range[2])) != 0;
}

/* Combinations of things for which ALE has loops of their own, which write four pixels
 * at once where no thing but the playfield can be. */
static bool by_fours(const sti_tia *tia)
{
    enum { PF = 1, BL = 2, P0 = 4, P1 = 8, M0 = 16, M1 = 32 };
    static const uint8_t any[] = {PF,      P0,      P1,      M0,      M1,      BL,
                                  P0 | P1, M0 | M1, BL | M0, BL | M1, BL | P1, 0};
    static const uint8_t without_score[] = {PF | P0, PF | P1, PF | BL, 0};
    for (int i = 0; any[i]; i++)
        if (any[i] == tia->enabled)
            return true;
    for (int i = 0; without_score[i]; i++)
        if (without_score[i] == tia->enabled)
            return !(tia->ctrlpf & 2);
    return false;
}

void sti_tia_spill(sti_bus *bus)
{
    sti_tia *tia = &bus->console->tia;
    const int till = bus->drawn_till, four = till & ~3;
    uint64_t range[3];
    if (!bus->screen || !(till & 3) || four < bus->drawn_from ||
        tia->drawn_to >= bus->display_end || tia->vblank & 2 || !by_fours(tia))
        return;
    range_bits(four, four + 4, range);
    sti_tia_refresh(tia, tia->enabled);
    for (int thing = 0; thing < STI_THINGS; thing++)
        if (touches(tia, thing, range))
            return;
    span(bus, bus->screen->now + bus->drawn_line * STI_LINE_PIXELS, till, four + 4);
}
