/* The registers of the 6507, a 6502 with 13 address lines and no interrupts. */
#ifndef STI_ATARI_REGISTERS_H
#define STI_ATARI_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

/* Flags are held apart. N is bit 7 of `negative`, Z says that `nonzero` is 0, the
 * others are 0 or 1. */
typedef struct sti_cpu {
    uint32_t cycles; /* since the frame began; wraps */
    uint16_t pc;
    uint8_t a, x, y, sp;
    uint8_t negative, nonzero, carry, overflow, decimal, interrupt;
    uint8_t bus;   /* the byte that was on the data bus last */
    bool was_read; /* the last access was a read */
} sti_cpu;

/* The status byte as PHP pushes it: bits 4 and 5 are always set. */
static inline uint8_t sti_cpu_status(const sti_cpu *cpu)
{
    return (uint8_t)(0x30 | (cpu->negative & 0x80) | cpu->overflow << 6 |
                     cpu->decimal << 3 | cpu->interrupt << 2 |
                     (cpu->nonzero == 0) << 1 | cpu->carry);
}

static inline void sti_cpu_set_status(sti_cpu *cpu, uint8_t status)
{
    cpu->negative = status & 0x80;
    cpu->overflow = status >> 6 & 1;
    cpu->decimal = status >> 3 & 1;
    cpu->interrupt = status >> 2 & 1;
    cpu->nonzero = !(status & 2);
    cpu->carry = status & 1;
}

#endif
