/* The exact processor on a flat 64 KiB of RAM that writes down each access. */
#ifndef TESTS_ATARI_FLAT_BUS_H
#define TESTS_ATARI_FLAT_BUS_H

#include <stdbool.h>
#include <stdint.h>

enum { FLAT_ACCESSES = 16 };

typedef struct flat_bus {
    uint8_t ram[65536];
    struct {
        uint16_t address;
        uint8_t value;
        char how; /* 'r' or 'w' */
    } access[FLAT_ACCESSES];
    int count; /* of accesses, further ones are counted only */
    bool jammed;
} flat_bus;

static inline void flat_note(flat_bus *bus, uint16_t address, uint8_t value, char how)
{
    if (bus->count < FLAT_ACCESSES) {
        bus->access[bus->count].address = address;
        bus->access[bus->count].value = value;
        bus->access[bus->count].how = how;
    }
    bus->count++;
}

static inline uint8_t flat_read(flat_bus *bus, uint16_t address)
{
    flat_note(bus, address, bus->ram[address], 'r');
    return bus->ram[address];
}

static inline void flat_write(flat_bus *bus, uint16_t address, uint8_t value)
{
    flat_note(bus, address, value, 'w');
    bus->ram[address] = value;
}

#define CPU_RUN                           flat_run
#define CPU_EXACT                         1
#define CPU_BUS                           flat_bus
#define CPU_READ(bus, r, address)         flat_read(bus, address)
#define CPU_WRITE(bus, r, address, value) flat_write(bus, address, value)
#define CPU_STOPPED(bus)                  ((bus)->jammed)
#define CPU_JAM(bus, r)                   ((bus)->jammed = true)
#include "atari/cpu_body.h"

#endif
