/* The bus of a console that is running: what is found out once a run. Inside the room
 * only. */
#ifndef STI_ATARI_BUS_H
#define STI_ATARI_BUS_H

#include "atari/console.h"
#include "atari/paint.h"

typedef struct sti_bus {
    sti_console *console;
    const sti_cart *cart;
    uint8_t *cart_ram;
    const uint8_t *slice[4];       /* bytes of the image at 1000, 1400, 1800, 1C00 */
    uint32_t direct, direct_bytes; /* of these 4 KiB, which are read without a mapper */
    sti_screen *screen;            /* NULL: no pixels */
    sti_paint_fn *paint;
    int32_t display,
        display_end;     /* clocks of the picture's first and behind its last */
    bool listens_low;    /* the mapper does, to accesses that TIA gets */
    int32_t clocks_most; /* since frame_start, behind which a frame is cut */
    int32_t due; /* clock that the picture is to be brought to, before it changes */
    int32_t idle_clock; /* of the last write that changed nothing, see sti_tia_settle */
    uint8_t idle_register;          /* 0: there was none, or it was settled */
    unsigned possible_of, possible; /* latches of these enabled things, see span */
    int drawn_from, drawn_till, drawn_line; /* of the last span that was drawn */
    bool stop;                              /* the frame is over */
} sti_bus;

enum { STI_TIA_WSYNC = 2 }; /* its register */

struct sti_mapper {
    const char *name;
    uint32_t direct, direct_bytes; /* offsets in the 4 KiB */
    void (*reset)(sti_bus *bus);
    uint8_t (*read)(sti_bus *bus, sti_cpu *cpu, uint16_t address);
    void (*write)(sti_bus *bus, sti_cpu *cpu, uint16_t address, uint8_t value);
    /* Accesses below 1000 that TIA gets, for mappers that listen there, or NULL. The
     * read gives true where it answers in TIA's place. */
    bool (*low_read)(sti_bus *bus, uint16_t address, uint8_t *value_out);
    void (*low_write)(sti_bus *bus, uint16_t address, uint8_t value);
};

/* The mapper of an image; NULL: none has this size. */
const sti_mapper *sti_mapper_find(const uint8_t *rom, uint32_t bytes,
                                  uint32_t *ram_bytes_out);
/* Point bus->slice to what console->cart says. */
static inline void sti_mapper_view(sti_bus *bus)
{
    for (int i = 0; i < 4; i++)
        bus->slice[i] = bus->cart->rom + 1024u * bus->console->cart.slice[i];
}

/* The bits of a byte the other way round. */
static inline uint8_t sti_tia_turned(uint8_t bits)
{
    bits = (uint8_t)(bits >> 4 | bits << 4);
    bits = (uint8_t)((bits & 0xcc) >> 2 | (bits & 0x33) << 2);
    return (uint8_t)((bits & 0xaa) >> 1 | (bits & 0x55) << 1);
}

/* ALE would have brought the picture and the latches up to a clock, at least. */
static inline void sti_tia_due(sti_bus *bus, int32_t clock)
{
    bus->due = bus->due < clock ? clock : bus->due;
}
/* A write that changes nothing is noted. How far ALE would have drawn for it is found
 * out before something is to be drawn: between two writes lie more clocks than a
 * write's delay has, so that the last one counts. */
static inline void sti_tia_note(sti_bus *bus, uint32_t clock, unsigned reg)
{
    bus->idle_clock = (int32_t)clock;
    bus->idle_register = (uint8_t)reg;
}
void sti_tia_settle(sti_bus *bus);
void sti_tia_advance(sti_bus *bus, int32_t clock);
/* Bring them there. */
static inline void sti_tia_catch_up(sti_bus *bus)
{
    const sti_tia *tia = &bus->console->tia;
    if (bus->due >= bus->display && tia->drawn_to < bus->display_end &&
        tia->drawn_to < bus->due)
        sti_tia_advance(bus, bus->due);
}
/* What WSYNC does in a cycle, behind the reads of its instruction: the cycles till the
 * line's end. false: there is more to do, which sti_tia_write does. */
static inline bool sti_tia_wait(sti_bus *bus, uint32_t cycles, uint32_t *wait_out)
{
    const uint32_t clock = cycles * 3;
    const uint32_t since = clock - (uint32_t)bus->console->tia.frame_start;
    const uint32_t hpos = since % STI_LINE_CLOCKS;
    if ((int32_t)since >= bus->clocks_most || bus->listens_low)
        return false;
    sti_tia_note(bus, clock, STI_TIA_WSYNC);
    *wait_out = hpos >= 3 ? (STI_LINE_CLOCKS - hpos) / 3 : 0;
    return true;
}
uint8_t sti_tia_read(sti_bus *bus, const sti_cpu *cpu, uint16_t address);
void sti_tia_write(sti_bus *bus, sti_cpu *cpu, uint16_t address, uint8_t value);
void sti_tia_reset(sti_tia *tia);
/* What ALE leaves behind the beam where a frame ends within the picture. */
void sti_tia_spill(sti_bus *bus);
/* The pixels that a thing covers, where they are out of date. */
void sti_tia_refresh(sti_tia *tia, unsigned things);
/* Where a player's copies are, whatever their graphics. */
void sti_tia_reach(const sti_tia *tia, int which, uint64_t line[3]);

uint8_t sti_riot_read(sti_console *console, const sti_cpu *cpu, uint16_t address);
void sti_riot_write(sti_console *console, const sti_cpu *cpu, uint16_t address,
                    uint8_t value);

/* "LDA INTIM; BNE to it", or with LDX or LDY: behind the branch that was taken, pass
 * over the rounds that will find the timer above 0. What is left is as if they had been
 * run by ALE's processor. Returns the instructions passed over, at most so many. */
enum { STI_WAIT_OFFSET = 0xfb };
int64_t sti_riot_skip_wait(sti_bus *bus, sti_cpu *cpu, int64_t instructions);

static inline uint8_t sti_bus_read(sti_bus *bus, sti_cpu *cpu, uint16_t address)
{
    const uint32_t offset = address & 0xfff;
    if (address & 0x1000) {
        if (offset - bus->direct < bus->direct_bytes)
            return bus->slice[offset >> 10][offset & 0x3ff];
        return bus->cart->mapper->read(bus, cpu, address);
    }
    if (!(address & 0x80))
        return sti_tia_read(bus, cpu, address);
    return address & 0x200 ? sti_riot_read(bus->console, cpu, address)
                           : bus->console->riot.ram[address & 0x7f];
}

static inline void sti_bus_write(sti_bus *bus, sti_cpu *cpu, uint16_t address,
                                 uint8_t value)
{
    if (address & 0x1000) {
        if (bus->cart->mapper->write)
            bus->cart->mapper->write(bus, cpu, address, value);
    } else if (!(address & 0x80)) {
        sti_tia_write(bus, cpu, address, value);
    } else if (address & 0x200) {
        sti_riot_write(bus->console, cpu, address, value);
    } else {
        bus->console->riot.ram[address & 0x7f] = value;
    }
}

/* Runs on ALE's processor, or on the exact one, till the frame ends. To interpret gives
 * what to run gives, bit for bit, but slower. */
void sti_cpu_interpret_ale(sti_bus *bus, int64_t instructions);
void sti_cpu_run_ale(sti_bus *bus, int64_t instructions);
void sti_cpu_run_exact(sti_bus *bus, int64_t instructions);

#endif
