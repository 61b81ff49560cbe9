/* Programs made by chance: frames of 262 lines in which registers of TIA are written,
 * strobed and read at any cycle, values come of RAM that changes from frame to frame,
 * and the undocumented opcodes are among the rest. Frames of the wrong length are made,
 * too. The bytes depend on the seed alone, so ALE can be asked for the same ones. */
#ifndef TESTS_ATARI_ROM_MAKE_H
#define TESTS_ATARI_ROM_MAKE_H

#include <stdint.h>
#include <string.h>

#include "base/rng.h"

enum { ROM_MAKE_BYTES = 4096 };

typedef struct rom_maker {
    uint8_t *rom;
    int at;
    uint64_t seed, draws;
} rom_maker;

static uint32_t rom_below(rom_maker *m, uint32_t n)
{
    uint32_t words[4];
    sti_random4(m->seed, STI_STREAM_TEST, m->draws++, 2600, words);
    return sti_below(words[0], n);
}

static void rom_put(rom_maker *m, int count, const uint8_t *bytes)
{
    memcpy(m->rom + m->at, bytes, (size_t)count);
    m->at += count;
}

#define ROM_PUT(m, ...)                                       \
    rom_put((m), (int)sizeof((const uint8_t[]){__VA_ARGS__}), \
            (const uint8_t[]){__VA_ARGS__})

static uint8_t rom_byte(rom_maker *m)
{
    return (uint8_t)rom_below(m, 256);
}

static uint8_t rom_pick(rom_maker *m, int count, const uint8_t *from)
{
    return from[rom_below(m, (uint32_t)count)];
}

#define ROM_PICK(m, ...)                                       \
    rom_pick((m), (int)sizeof((const uint8_t[]){__VA_ARGS__}), \
             (const uint8_t[]){__VA_ARGS__})

/* A byte of RAM 80 to 8F, which change from frame to frame, or a constant. */
static void rom_load(rom_maker *m)
{
    if (rom_below(m, 2))
        ROM_PUT(m, 0xa5, (uint8_t)(0x80 + rom_below(m, 16)));
    else
        ROM_PUT(m, 0xa9, rom_byte(m));
}

static void rom_write_tia(rom_maker *m)
{
    uint8_t reg = (uint8_t)(4 + rom_below(m, 0x29));
    reg = reg >= 0x15 && reg <= 0x1a ? 0x1b : reg; /* sound */
    rom_load(m);
    switch (rom_below(m, 8)) {
    case 0:
        ROM_PUT(m, 0x8d, reg | 0x40, (uint8_t)rom_below(m, 2));
        break;
    case 1:
        ROM_PUT(m, 0x86, reg);
        break;
    case 2:
        ROM_PUT(m, 0x84, reg);
        break;
    case 3:
        ROM_PUT(m, 0x87, reg);
        break;
    default:
        ROM_PUT(m, 0x85, reg);
    }
}

/* Latches, floating bits and inputs into RAM 90 to 9F. */
static void rom_read_tia(rom_maker *m)
{
    if (rom_below(m, 2))
        ROM_PUT(m, 0xa5, (uint8_t)rom_below(m, 16));
    else
        ROM_PUT(m, 0xad, (uint8_t)(0x30 | rom_below(m, 16)), ROM_PICK(m, 0, 1, 0x20));
    ROM_PUT(m, 0x45, (uint8_t)(0x90 + rom_below(m, 16)));
    ROM_PUT(m, 0x85, (uint8_t)(0x90 + rom_below(m, 16)));
}

static void rom_use_riot(rom_maker *m)
{
    if (rom_below(m, 2)) {
        ROM_PUT(m, 0xa9, rom_byte(m), 0x8d, (uint8_t)(0x94 + rom_below(m, 4)), 0x02);
        return;
    }
    ROM_PUT(m, 0xad, (uint8_t)(0x80 + rom_below(m, 7)), 0x02);
    ROM_PUT(m, 0x65, (uint8_t)(0x80 + rom_below(m, 16)));
    ROM_PUT(m, 0x85, (uint8_t)(0x90 + rom_below(m, 16)));
}

static void rom_compute(rom_maker *m)
{
    switch (rom_below(m, 3)) {
    case 0:
        ROM_PUT(m, ROM_PICK(m, 0xea, 0xe8, 0xc8, 0xca, 0x88, 0x0a, 0x2a, 0x18, 0x38,
                            0x8a, 0x98, 0xaa, 0xa8, 0xf8, 0xd8, 0xb8, 0x4a, 0x6a));
        break;
    case 1:
        ROM_PUT(m,
                ROM_PICK(m, 0x05, 0x25, 0x45, 0x65, 0xe5, 0xc5, 0x24, 0xe6, 0xc6, 0x06,
                         0x26, 0x46, 0x66, 0x07, 0x27, 0x47, 0x67, 0xc7, 0xe7, 0xa7,
                         0x87, 0x04, 0x86, 0x84, 0xa6, 0xa4),
                (uint8_t)(0x90 + rom_below(m, 16)));
        break;
    default:
        ROM_PUT(m,
                ROM_PICK(m, 0x69, 0xe9, 0x29, 0x09, 0x49, 0xc9, 0xe0, 0xc0, 0xa2, 0xa0,
                         0x0b, 0x4b, 0x6b, 0x8b, 0xab, 0xcb, 0xeb, 0x80),
                rom_byte(m));
    }
}

static void rom_fill(rom_maker *m, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t kind = rom_below(m, 100);
        if (kind < 48)
            rom_write_tia(m);
        else if (kind < 62)
            rom_read_tia(m);
        else if (kind < 72)
            rom_use_riot(m);
        else
            rom_compute(m);
    }
}

/* Y lines. */
static void rom_wait(rom_maker *m, uint8_t lines)
{
    ROM_PUT(m, 0xa0, lines, 0x85, 0x02, 0x88, 0xd0, 0xfb);
}

static void rom_jump(rom_maker *m, int to)
{
    ROM_PUT(m, 0x4c, (uint8_t)to, (uint8_t)(0xf0 + (to >> 8)));
}

/* Every register that makes a picture, so that there is one. */
static void rom_set_up(rom_maker *m)
{
    for (int i = 0; i < 16; i++)
        ROM_PUT(m, 0xa5, (uint8_t)(0x80 + i), 0x18, 0x69,
                ROM_PICK(m, 1, 3, 7, 0x11, 0x35, 0xf9), 0x85, (uint8_t)(0x80 + i));
    for (uint8_t reg = 4; reg <= 0x27; reg++) {
        if ((reg > 0x0f && reg < 0x1b) || (reg > 9 && rom_below(m, 5) < 2))
            continue;
        rom_load(m);
        ROM_PUT(m, 0x85, reg);
    }
}

/* A loop of some lines with what fills them. */
static void rom_part(rom_maker *m)
{
    const uint8_t lines = (uint8_t)(20 + rom_below(m, 28));
    int loop = 0;
    ROM_PUT(m, 0xa9, lines, 0x85, 0xff);
    loop = m->at;
    for (uint32_t i = 1 + rom_below(m, 3); i > 0; i--) {
        rom_fill(m, 1 + rom_below(m, 8));
        if (rom_below(m, 5))
            ROM_PUT(m, 0x85, 0x02);
    }
    ROM_PUT(m, 0xc6, 0xff, 0xf0, 0x03);
    rom_jump(m, loop);
}

/* shape: of the frames; 0 to 3: about as long as they should be, cut within the
 * picture, too long, without VSYNC. */
static void rom_make(uint64_t seed, int shape, uint8_t rom[ROM_MAKE_BYTES])
{
    rom_maker m = {rom, 0, seed, 0};
    int frame = 0;
    memset(rom, 0xea, ROM_MAKE_BYTES);
    ROM_PUT(&m, 0x78, 0xd8, 0xa2, 0xff, 0x9a, 0xa9, 0x00, 0xaa); /* all of it to 0 */
    ROM_PUT(&m, 0x95, 0x00, 0xe8, 0xd0, 0xfb);
    frame = m.at;
    ROM_PUT(&m, 0xd8, 0xa9, shape == 3 ? 0 : 2, 0x85, 0x00);
    ROM_PUT(&m, 0x85, 0x02, 0x85, 0x02, 0x85, 0x02, 0xa9, 0x00, 0x85, 0x00);
    ROM_PUT(&m, 0xa9, 0x02, 0x85, 0x01);
    rom_set_up(&m);
    rom_fill(&m, rom_below(&m, 6));
    rom_wait(&m,
             (uint8_t)(shape == 1 ? 1 + rom_below(&m, 12) : 20 + rom_below(&m, 14)));
    rom_fill(&m, rom_below(&m, 6));
    ROM_PUT(&m, 0x85, 0x02, 0xd8, 0xa9, 0x00, 0x85, 0x01);
    for (uint32_t i = 1 + rom_below(&m, 4); i > 0; i--)
        rom_part(&m);
    if (shape != 1) {
        ROM_PUT(&m, 0xa9, ROM_PICK(&m, 2, 2, 0, 0x82, 0x42), 0x85, 0x01);
        rom_wait(&m, (uint8_t)(shape == 2 ? 60 + rom_below(&m, 140) : 30));
    }
    rom_jump(&m, frame);
    rom[0xffc] = rom[0xffe] = 0x00;
    rom[0xffd] = rom[0xfff] = 0xf0;
}

#endif
