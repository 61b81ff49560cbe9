/* The television interface, as the Arcade Learning Environment has it: registers that
 * are written, what is read, and when a write shows.
 *
 * This TIA is a model of spans. A write first brings the picture up to its clock and a
 * delay that depends on the register, then changes it at once; RESxx sets a place from
 * the clock; HMOVE moves everything at once by a number of pixels that depends on the
 * cycle. The counters of the chip, from which all of that follows, are not there.
 *
 * Most writes change nothing that can be seen: a register gets what it holds, or a
 * colour that no frame is drawn in. Those are only noted (sti_tia_note); the picture
 * follows when something is about to change. */
#include <string.h>

#include "atari/bus.h"
#include "atari/tia_motion.h"

#define BIT(thing) (1u << (thing))

typedef struct tia_write {
    sti_bus *bus;
    sti_tia *tia;
    sti_cpu *cpu;
    int32_t clock;
    uint32_t since; /* clocks since the frame's first line began */
    uint8_t reg, value;
} tia_write;

/* Where the clock is on its line, 0..227. Few registers ask for it. */
static int hpos_of(const tia_write *w)
{
    return (int)(w->since % STI_LINE_CLOCKS);
}

void sti_tia_reset(sti_tia *tia)
{
    memset(tia, 0, sizeof *tia);
    tia->stale = (1u << STI_THINGS) - 1;
    tia->line_left = STI_LINE_CLOCKS;
    tia->vsync_end = INT32_MAX;
}

/* What follows changes what is seen, or what is done where the line ends. */
static void show(const tia_write *w)
{
    sti_tia_catch_up(w->bus);
}

static void enable(tia_write *w, int thing, bool on)
{
    const unsigned enabled =
        on ? w->tia->enabled | BIT(thing) : w->tia->enabled & ~BIT(thing);
    if (enabled != w->tia->enabled)
        show(w);
    w->tia->enabled = (uint8_t)enabled;
}

/* ---- sync and colours ---- */

static void write_vsync(tia_write *w)
{
    w->tia->vsync = w->value;
    if (w->value & 2) {
        w->tia->vsync_end = w->clock + STI_LINE_CLOCKS;
    } else if (w->clock >= w->tia->vsync_end) {
        w->tia->vsync_end = INT32_MAX;
        w->bus->stop = true;
        w->bus->console->in_frame = false;
    }
}

static void write_vblank(tia_write *w)
{
    const uint8_t changed = w->tia->vblank ^ w->value;
    if (changed & 2)
        show(w);
    if (changed & 0x80) {
        w->tia->dumping = w->value & 0x80;
        if (!w->tia->dumping)
            w->tia->dump_end = (int32_t)w->cpu->cycles;
    }
    w->tia->vblank = w->value;
}

/* The processor waits for the line's end, where it has read since it last wrote. */
static void write_wsync(tia_write *w)
{
    const int hpos = hpos_of(w);
    if (w->cpu->was_read && hpos >= 3)
        w->cpu->cycles += (uint32_t)(STI_LINE_CLOCKS - hpos) / 3;
}

/* What a colour's register holds of a value. */
static uint8_t colour_of(const sti_bus *bus, uint8_t value)
{
    const bool odd = bus->cart->pal && (bus->console->tia.lines_before & 1);
    return (uint8_t)((value & 0xfe) | odd);
}

static uint8_t *colour_at(sti_tia *tia, unsigned reg)
{
    static const uint8_t whose[4] = {STI_COLOUR_P0, STI_COLOUR_P1, STI_COLOUR_PF,
                                     STI_COLOUR_BK};
    return &tia->colour[whose[reg - 6]];
}

static void write_colour(tia_write *w)
{
    if (w->bus->screen)
        show(w);
    *colour_at(w->tia, w->reg) = colour_of(w->bus, w->value);
}

/* ---- playfield and ball ---- */

static void write_ctrlpf(tia_write *w)
{
    enum { MIDDLE = STI_BLANK_CLOCKS + 79 };
    const int hpos = hpos_of(w);
    const bool mirrored = hpos < MIDDLE ? w->value & 1 : w->tia->mirrored;
    if (w->tia->ctrlpf == w->value && w->tia->mirrored == mirrored)
        return;
    show(w);
    /* Its end may have come meanwhile, which sets `mirrored`. */
    if (hpos < MIDDLE)
        w->tia->mirrored = mirrored;
    w->tia->ctrlpf = w->value;
    w->tia->stale |= BIT(STI_PLAYFIELD) | BIT(STI_BALL);
}

static void write_playfield(tia_write *w)
{
    sti_tia *tia = w->tia;
    uint32_t field = tia->playfield;
    if (w->reg == 0x0d)
        field = (field & 0xffff0) | w->value >> 4;
    else if (w->reg == 0x0e)
        field = (field & 0xff00f) | (uint32_t)sti_tia_turned(w->value) << 4;
    else
        field = (field & 0x00fff) | (uint32_t)w->value << 12;
    if (field == tia->playfield)
        return;
    show(w);
    tia->playfield = field;
    tia->stale |= BIT(STI_PLAYFIELD);
    enable(w, STI_PLAYFIELD, field != 0);
}

static void show_ball(tia_write *w)
{
    const sti_tia *tia = w->tia;
    enable(w, STI_BALL, tia->ball_late ? tia->ball_delayed : tia->ball_on);
}

static void write_ball(tia_write *w)
{
    w->tia->ball_on = w->value & 2;
    show_ball(w);
}

static void write_ball_late(tia_write *w)
{
    w->tia->ball_late = w->value & 1;
    show_ball(w);
}

/* ---- players and missiles ---- */

static void show_player(tia_write *w, int i)
{
    sti_player *p = &w->tia->player[i];
    const uint8_t graphics = p->late ? p->delayed : p->graphics;
    const uint8_t shown = p->reflected ? sti_tia_turned(graphics) : graphics;
    if (shown == p->shown)
        return;
    show(w);
    p->shown = shown;
    w->tia->stale |= (uint8_t)BIT(STI_PLAYER0 + i);
    enable(w, STI_PLAYER0 + i, shown != 0);
}

static void show_missile(tia_write *w, int i)
{
    const sti_player *p = &w->tia->player[i];
    enable(w, STI_MISSILE0 + i, p->missile_on && !p->missile_locked);
}

/* What the star field did to missile 0 lasts till its place is set anew. */
static void place_missile(sti_tia *tia, int i)
{
    tia->stale |= (uint8_t)BIT(STI_MISSILE0 + i);
    if (i == 0)
        tia->star = STI_STAR_PLAIN;
}

static void write_nusiz(tia_write *w)
{
    const int i = w->reg - 0x04;
    sti_player *p = &w->tia->player[i];
    if (p->nusiz == w->value && !p->skips_first &&
        (i == 1 || w->tia->star == STI_STAR_PLAIN))
        return;
    show(w);
    p->nusiz = w->value;
    p->skips_first = false;
    w->tia->stale |= (uint8_t)BIT(STI_PLAYER0 + i);
    place_missile(w->tia, i);
}

/* Turns what is shown, which enables and disables nothing. */
static void write_reflect(tia_write *w)
{
    const int i = w->reg - 0x0b;
    sti_player *p = &w->tia->player[i];
    const bool reflected = w->value & 8;
    if (p->reflected == reflected)
        return;
    show(w);
    p->reflected = reflected;
    p->shown = sti_tia_turned(p->shown);
    w->tia->stale |= (uint8_t)BIT(STI_PLAYER0 + i);
}

/* A write of one player's graphics passes on the delayed ones of the other, and GRP1
 * the ball's as well. */
static void write_graphics(tia_write *w)
{
    const int i = w->reg - 0x1b;
    sti_tia *tia = w->tia;
    tia->player[i].graphics = w->value;
    tia->player[!i].delayed = tia->player[!i].graphics;
    show_player(w, 0);
    show_player(w, 1);
    if (i == 1) {
        tia->ball_delayed = tia->ball_on;
        show_ball(w);
    }
}

static void write_player_late(tia_write *w)
{
    const int i = w->reg - 0x25;
    w->tia->player[i].late = w->value & 1;
    show_player(w, i);
}

static void write_missile(tia_write *w)
{
    const int i = w->reg - 0x1d;
    w->tia->player[i].missile_on = w->value & 2;
    show_missile(w, i);
}

/* A missile that is let go stands in the middle of its player. */
static void write_missile_lock(tia_write *w)
{
    const int i = w->reg - 0x28;
    sti_tia *tia = w->tia;
    sti_player *p = &tia->player[i];
    const int mode = p->nusiz & 7, middle = mode == 5 ? 8 : mode == 7 ? 16 : 4;
    if (p->missile_locked && !(w->value & 2)) {
        show(w);
        tia->place[STI_MISSILE0 + i] =
            (uint8_t)((tia->place[STI_PLAYER0 + i] + middle) % STI_LINE_PIXELS);
        place_missile(tia, i);
    }
    p->missile_locked = w->value & 2;
    show_missile(w, i);
}

/* ---- places ---- */

/* Where a strobe at this clock puts a thing that takes so many pixels to begin. */
static uint8_t strobed_place(const tia_write *w, int in_blank, int later)
{
    const int hpos = hpos_of(w);
    if (hpos < STI_BLANK_CLOCKS)
        return (uint8_t)in_blank;
    return (uint8_t)((hpos - STI_BLANK_CLOCKS + later) % STI_LINE_PIXELS);
}

/* A player that is strobed while one of its copies is drawn finishes that; one that is
 * not about to draw a copy skips the first on this line. */
static void write_player_reset(tia_write *w)
{
    const int i = w->reg - 0x10;
    sti_tia *tia = w->tia;
    sti_player *p = &tia->player[i];
    const uint8_t place = strobed_place(w, 3, 5);
    const int distance =
        (place - tia->place[STI_PLAYER0 + i] + STI_LINE_PIXELS) % STI_LINE_PIXELS;
    const sti_strobe when = sti_tia_strobe(p->nusiz, distance);
    if (when == STI_STROBE_DRAWING)
        sti_tia_due(w->bus, w->clock + 11);
    show(w);
    tia->place[STI_PLAYER0 + i] = place;
    p->skips_first = when != STI_STROBE_ABOUT;
    tia->stale |= (uint8_t)BIT(STI_PLAYER0 + i);
}

/* Strobes shortly after HMOVE that games rely on, as ALE has them: a thing, cycles
 * since the HMOVE, the clock on the line, and the place. */
static const struct {
    uint8_t reg, cycles, hpos, place;
} after_hmove[] = {{0x12, 20, 69, 8},  {0x13, 3, 18, 3}, {0x14, 18, 60, 10},
                   {0x14, 18, 69, 10}, {0x14, 3, 18, 3}, {0x14, 7, 30, 6},
                   {0x14, 6, 27, 5}};

static void write_small_reset(tia_write *w)
{
    static const uint8_t things[3] = {STI_MISSILE0, STI_MISSILE1, STI_BALL};
    const int thing = things[w->reg - 0x12];
    uint8_t place = strobed_place(w, 2, 4);
    for (size_t i = 0; i < sizeof after_hmove / sizeof after_hmove[0]; i++)
        if (after_hmove[i].reg == w->reg && after_hmove[i].hpos == hpos_of(w) &&
            w->clock - w->tia->hmove_at == 3 * after_hmove[i].cycles)
            place = after_hmove[i].place;
    show(w);
    w->tia->place[thing] = place;
    w->tia->stale |= (uint8_t)BIT(thing);
    if (thing == STI_MISSILE0)
        place_missile(w->tia, 0);
}

static void write_motion(tia_write *w)
{
    static const uint8_t things[5] = {STI_PLAYER0, STI_PLAYER1, STI_MISSILE0,
                                      STI_MISSILE1, STI_BALL};
    const int thing = things[w->reg - 0x20];
    const uint8_t motion = w->value >> 4;
    if (thing == STI_MISSILE0 && w->clock == w->tia->hmove_at + 21 * 3 &&
        w->tia->motion[thing] == 7 && motion == 6) {
        show(w);
        w->tia->stars = true;
        w->tia->star_phase = 0;
    }
    w->tia->motion[thing] = motion;
}

static void write_hmove(tia_write *w)
{
    sti_tia *tia = w->tia;
    const int cycle = hpos_of(w) / 3;
    show(w);
    if ((cycle <= 20 || cycle == 75) && !w->bus->cart->frame.no_hmove_blank)
        tia->hmove_blank = true;
    for (int thing = STI_BALL; thing < STI_THINGS; thing++) {
        int place = tia->place[thing] + sti_tia_motion(cycle, tia->motion[thing]);
        place += place < 0 ? STI_LINE_PIXELS : 0;
        tia->place[thing] =
            (uint8_t)(place >= STI_LINE_PIXELS ? place - STI_LINE_PIXELS : place);
    }
    tia->player[0].skips_first = tia->player[1].skips_first = false;
    tia->stale |= (uint8_t)((BIT(STI_THINGS) - 1) & ~BIT(STI_PLAYFIELD));
    tia->hmove_at = w->clock;
    tia->stars = false;
    tia->star = STI_STAR_PLAIN;
}

static void write_motion_clear(tia_write *w)
{
    memset(w->tia->motion, 0, sizeof w->tia->motion);
}

static void write_latch_clear(tia_write *w)
{
    show(w);
    w->tia->latches = 0;
}

/* ---- the registers ---- */

enum { TIA_REGISTERS = 0x2d, DELAY_PLAYFIELD = 255 };

static const struct {
    void (*write)(tia_write *w);
    uint8_t delay; /* colour clocks till it shows */
} registers[TIA_REGISTERS] = {
    [0x00] = {write_vsync, 0},
    [0x01] = {write_vblank, 1},
    [0x02] = {write_wsync, 0},
    [0x04] = {write_nusiz, 8},
    [0x05] = {write_nusiz, 8},
    [0x06] = {write_colour, 0},
    [0x07] = {write_colour, 0},
    [0x08] = {write_colour, 0},
    [0x09] = {write_colour, 0},
    [0x0a] = {write_ctrlpf, 0},
    [0x0b] = {write_reflect, 1},
    [0x0c] = {write_reflect, 1},
    [0x0d] = {write_playfield, DELAY_PLAYFIELD},
    [0x0e] = {write_playfield, DELAY_PLAYFIELD},
    [0x0f] = {write_playfield, DELAY_PLAYFIELD},
    [0x10] = {write_player_reset, 0},
    [0x11] = {write_player_reset, 0},
    [0x12] = {write_small_reset, 8},
    [0x13] = {write_small_reset, 8},
    [0x14] = {write_small_reset, 0},
    [0x1b] = {write_graphics, 1},
    [0x1c] = {write_graphics, 1},
    [0x1d] = {write_missile, 0},
    [0x1e] = {write_missile, 0},
    [0x1f] = {write_ball, 0},
    [0x20] = {write_motion, 0},
    [0x21] = {write_motion, 0},
    [0x22] = {write_motion, 0},
    [0x23] = {write_motion, 0},
    [0x24] = {write_motion, 0},
    [0x25] = {write_player_late, 0},
    [0x26] = {write_player_late, 0},
    [0x27] = {write_ball_late, 0},
    [0x28] = {write_missile_lock, 0},
    [0x29] = {write_missile_lock, 0},
    [0x2a] = {write_hmove, 0},
    [0x2b] = {write_motion_clear, 0},
    [0x2c] = {write_latch_clear, 0},
};

/* The playfield is read in groups of four pixels: a write shows from the next one on.
 */
static int delay_of(unsigned reg, uint32_t since)
{
    static const uint8_t playfield[4] = {4, 5, 2, 3};
    const int delay = registers[reg].delay;
    return delay == DELAY_PLAYFIELD ? playfield[since % STI_LINE_CLOCKS / 3 & 3]
                                    : delay;
}

/* What ALE draws last is a span of its own, see sti_tia_spill. */
static void show_end(sti_bus *bus, int32_t clock, bool too_long)
{
    sti_tia_catch_up(bus);
    sti_tia_due(bus, clock);
    sti_tia_catch_up(bus);
    if (!too_long)
        return;
    bus->console->cut_frames += bus->console->in_frame;
    bus->stop = true;
    bus->console->in_frame = false;
}

static inline bool holds_graphics(const sti_tia *tia, int i, uint8_t value)
{
    const sti_player *other = &tia->player[!i];
    return tia->player[i].graphics == value && other->delayed == other->graphics &&
           (i == 0 || tia->ball_delayed == tia->ball_on);
}

/* Whether a register holds what it is written, and so do those that it passes on: of
 * the registers that programs write line by line. */
static inline bool holds(const sti_bus *bus, unsigned reg, uint8_t value)
{
    sti_tia *tia = &bus->console->tia;
    switch (reg) {
    case 0x06:
    case 0x07:
    case 0x08:
    case 0x09:
        return *colour_at(tia, reg) == colour_of(bus, value);
    case 0x0d:
        return (tia->playfield & 15) == value >> 4;
    case 0x0e:
        return (tia->playfield >> 4 & 0xff) == sti_tia_turned(value);
    case 0x0f:
        return tia->playfield >> 12 == value;
    case 0x1b:
        return holds_graphics(tia, 0, value);
    case 0x1c:
        return holds_graphics(tia, 1, value);
    case 0x1d:
        return tia->player[0].missile_on == (value >> 1 & 1);
    case 0x1e:
        return tia->player[1].missile_on == (value >> 1 & 1);
    case 0x1f:
        return tia->ball_on == (value >> 1 & 1);
    default:
        return false;
    }
}

void sti_tia_settle(sti_bus *bus)
{
    const uint32_t since =
        (uint32_t)bus->idle_clock - (uint32_t)bus->console->tia.frame_start;
    if (bus->idle_register)
        sti_tia_due(bus, bus->idle_clock + delay_of(bus->idle_register, since));
    bus->idle_register = 0;
}

/* All others. */
static __attribute__((noinline)) void write_register(sti_bus *bus, sti_cpu *cpu,
                                                     uint16_t address, uint8_t value)
{
    const unsigned reg = address & 0x3f;
    const int32_t clock = (int32_t)(cpu->cycles * 3);
    const uint32_t since = (uint32_t)clock - (uint32_t)bus->console->tia.frame_start;
    const bool too_long = (int32_t)since >= bus->clocks_most;
    const bool known = reg < TIA_REGISTERS && registers[reg].write;
    const int32_t shown = clock + (known ? delay_of(reg, since) : 0);
    if (bus->cart->mapper->low_write)
        bus->cart->mapper->low_write(bus, address, value);
    sti_tia_settle(bus);
    if (reg == 0 || too_long)
        show_end(bus, shown, too_long);
    sti_tia_due(bus, shown);
    if (!known)
        return;
    tia_write w = {.bus = bus,
                   .tia = &bus->console->tia,
                   .cpu = cpu,
                   .clock = clock,
                   .since = since,
                   .reg = (uint8_t)reg,
                   .value = value};
    registers[reg].write(&w);
}

void sti_tia_write(sti_bus *bus, sti_cpu *cpu, uint16_t address, uint8_t value)
{
    const uint32_t clock = cpu->cycles * 3;
    const uint32_t since = clock - (uint32_t)bus->console->tia.frame_start;
    if ((int32_t)since < bus->clocks_most && !bus->listens_low &&
        holds(bus, address & 0x3f, value))
        sti_tia_note(bus, clock, address & 0x3f);
    else
        write_register(bus, cpu, address, value);
}

/* ---- reading ---- */

/* A paddle's input is high once its capacitor has charged: 1.6 * R * 0.01 uF. */
static bool paddle_charged(const sti_bus *bus, const sti_cpu *cpu, int which)
{
    const sti_console *console = bus->console;
    const int32_t ohms =
        which < 2 ? console->input.paddle[which ^ bus->cart->frame.paddles_swapped] : 0;
    const double seconds = 1.6 * ohms * 0.01e-6;
    if (!bus->cart->frame.paddles)
        return false;
    if (ohms == 0)
        return true;
    return !console->tia.dumping &&
           cpu->cycles > (uint32_t)console->tia.dump_end + (uint32_t)(seconds * 1.19e6);
}

uint8_t sti_tia_read(sti_bus *bus, const sti_cpu *cpu, uint16_t address)
{
    sti_tia *tia = &bus->console->tia;
    const uint8_t noise = cpu->bus & 0x3f;
    const int reg = address & 15;
    uint8_t value = 0;
    if (bus->cart->mapper->low_read &&
        bus->cart->mapper->low_read(bus, address, &value))
        return value;
    if (reg < 8) {
        sti_tia_settle(bus);
        sti_tia_due(bus, (int32_t)(cpu->cycles * 3));
        sti_tia_catch_up(bus);
        if (reg == 6) /* the ball and the playfield alone */
            return (uint8_t)((tia->latches >> 12 & 1) << 7 | noise);
        if (reg == 7)
            return (uint8_t)((tia->latches >> 13 & 1) << 7 |
                             (tia->latches >> 14 & 1) << 6 | noise);
        return (uint8_t)((tia->latches >> 2 * reg & 1) << 7 |
                         (tia->latches >> (2 * reg + 1) & 1) << 6 | noise);
    }
    if (reg < 12)
        return (uint8_t)(paddle_charged(bus, cpu, reg - 8) << 7 | noise);
    if (reg < 14)
        return (uint8_t)(!bus->console->input.fire[reg - 12] << 7 | noise);
    return noise;
}
