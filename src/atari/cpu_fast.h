/* The registers of the fast loop, cpu_decoded.c, which includes this, and what its
 * instructions do to them. */
#ifndef STI_ATARI_CPU_FAST_H
#define STI_ATARI_CPU_FAST_H

#include "atari/bus.h"
#include "atari/cpu_decoded.h"

#define INLINE static inline __attribute__((always_inline))

enum { PART = STI_DECODED_BYTES };

/* The processor's registers while the loop runs. Nothing but inlined functions gets its
 * address, so that they are registers of ours. */
typedef struct fast {
    sti_bus *bus;
    sti_cpu *cpu;
    uint8_t *ram;
    uint64_t passed;             /* cycles since `base` << 16 | instructions */
    uint32_t base;               /* cycles */
    uint32_t part_pc;            /* address of `part` */
    const sti_decoded *at;       /* the next instruction */
    const sti_decoded *part;     /* the first of its part of the image */
    unsigned a, x, y, sp, carry; /* of 8 bits and of 1 */
    unsigned flags;              /* of N and Z, see flags_of */
} fast;

#define CYCLES(count) ((uint64_t)(count) << 16)

/* Flags are of 8 bits, the number that both are of. Else, with APART, they are what Z
 * is of and, 8 bits higher, what N is. In either case N is one of the bits NEGATIVE. */
enum { NEGATIVE = 0x8080, APART = 0x10000 };

INLINE unsigned flags_of(unsigned negative, unsigned nonzero)
{
    return negative == nonzero ? nonzero : nonzero | negative << 8 | APART;
}

INLINE uint32_t cycles_of(const fast *f)
{
    return f->base + (uint32_t)(f->passed >> 16);
}

INLINE uint16_t pc_of(const fast *f)
{
    return (uint16_t)(f->part_pc + (uint32_t)(f->at - f->part));
}

/* An address in decoded code. Where no plain code can lie stands one instruction that
 * another must make. */
typedef struct landing {
    const sti_decoded *at, *part;
    uint32_t part_pc;
} landing;

static landing landing_at(const sti_bus *bus, uint16_t pc)
{
    static const sti_decoded nowhere = {.kind = STI_KIND_SLOW};
    const uint32_t offset = pc & 0xfff;
    if (!(pc & 0x1000) || offset - bus->direct >= bus->direct_bytes)
        return (landing){&nowhere, &nowhere, pc};
    const uint32_t number =
        (uint32_t)(bus->slice[offset / PART] - bus->cart->rom) / PART;
    const sti_decoded *part = bus->cart->decoded + (size_t)number * STI_DECODED_PART;
    return (landing){part + offset % PART, part, pc & ~(PART - 1u)};
}

INLINE void enter(fast *f, uint16_t pc)
{
    const landing there = landing_at(f->bus, pc);
    f->at = there.at;
    f->part = there.part;
    f->part_pc = there.part_pc;
}

INLINE void go(fast *f, uint16_t to)
{
    const uint32_t place = to - f->part_pc;
    if (place < PART)
        f->at = f->part + place;
    else
        enter(f, to);
}

INLINE void take_up(fast *f)
{
    const sti_cpu *r = f->cpu;
    f->base = r->cycles;
    f->passed = (uint16_t)f->passed;
    enter(f, r->pc);
    f->a = r->a;
    f->x = r->x;
    f->y = r->y;
    f->sp = r->sp;
    f->flags = flags_of(r->negative, r->nonzero);
    f->carry = r->carry;
}

INLINE void lay_down(const fast *f)
{
    sti_cpu *r = f->cpu;
    r->cycles = cycles_of(f);
    r->pc = pc_of(f);
    r->a = (uint8_t)f->a;
    r->x = (uint8_t)f->x;
    r->y = (uint8_t)f->y;
    r->sp = (uint8_t)f->sp;
    r->negative = (uint8_t)(f->flags & APART ? f->flags >> 8 : f->flags);
    r->nonzero = (uint8_t)f->flags;
    r->carry = (uint8_t)f->carry;
}

/* ---- reads and writes ---- */

/* A read that nobody but RAM or the image sees; false: it is a chip's or a mapper's. */
INLINE bool plain(const fast *f, uint16_t address, uint8_t *value_out)
{
    const uint32_t offset = address & 0xfff;
    if (address & 0x1000) {
        if (offset - f->bus->direct >= f->bus->direct_bytes)
            return false;
        *value_out = f->bus->slice[offset >> 10][offset & 0x3ff];
        return true;
    }
    *value_out = f->ram[address & 0x7f];
    return (address & 0x280) == 0x80;
}

/* fetched: what is on the bus when it is made. */
static __attribute__((noinline)) uint8_t read_chip(sti_bus *bus, uint32_t cycles,
                                                   uint16_t address, unsigned fetched)
{
    sti_cpu *r = &bus->console->cpu;
    r->cycles = cycles;
    r->bus = (uint8_t)fetched;
    r->was_read = true;
    return sti_bus_read(bus, r, address);
}

/* A read of any address, behind its instruction. A mapper may change its banks. */
INLINE uint8_t read_at(fast *f, uint16_t address, unsigned fetched)
{
    uint8_t value = 0;
    if (plain(f, address, &value))
        return value;
    value = read_chip(f->bus, cycles_of(f), address, fetched);
    if (address & 0x1000 || f->bus->listens_low)
        enter(f, pc_of(f));
    return value;
}

/* The cycles that WSYNC lets pass. */
static __attribute__((noinline)) uint32_t write_chip(sti_bus *bus, uint32_t cycles,
                                                     uint16_t address, unsigned value)
{
    sti_cpu *r = &bus->console->cpu;
    r->cycles = cycles;
    r->was_read = true;
    sti_bus_write(bus, r, address, (uint8_t)value);
    r->bus = (uint8_t)value;
    r->was_read = false;
    return r->cycles - cycles;
}

/* A write of any address, behind its instruction. */
INLINE void write_at(fast *f, uint16_t address, unsigned value)
{
    if ((address & 0x1280) == 0x80) {
        f->ram[address & 0x7f] = (uint8_t)value;
        return;
    }
    f->base += write_chip(f->bus, cycles_of(f), address, value);
    if (address & 0x1000 || f->bus->listens_low)
        enter(f, pc_of(f));
}

INLINE void store_tia(fast *f, unsigned address, unsigned value)
{
    sti_cpu *r = f->cpu;
    r->cycles = cycles_of(f);
    sti_tia_write(f->bus, r, (uint16_t)address, (uint8_t)value);
    if (f->bus->listens_low)
        enter(f, pc_of(f));
    if (f->bus->stop) {
        r->bus = (uint8_t)value;
        r->was_read = false;
    }
}

/* WSYNC: to the line's end. false: a write like others must be made. */
INLINE bool sync(fast *f)
{
    uint32_t wait = 0;
    const bool done = sti_tia_wait(f->bus, cycles_of(f), &wait);
    f->base += wait;
    return done;
}

INLINE uint16_t pointer(const fast *f, unsigned operand)
{
    return (uint16_t)(f->ram[operand & 0x7f] | f->ram[(operand + 1) & 0x7f] << 8);
}

/* ---- what instructions do ---- */

INLINE uint8_t flag(fast *f, unsigned value)
{
    f->flags = (uint8_t)value;
    return (uint8_t)value;
}

INLINE bool is_zero(const fast *f)
{
    return (uint8_t)f->flags == 0;
}

INLINE void compare(fast *f, unsigned left, uint8_t right)
{
    f->carry = left >= right;
    (void)flag(f, left - right);
}

INLINE void add(fast *f, uint8_t value)
{
    const unsigned sum = f->a + value + f->carry;
    f->cpu->overflow = ((f->a ^ sum) & (value ^ sum) & 0x80) != 0;
    f->carry = sum > 0xff;
    f->a = flag(f, sum);
}

INLINE void test_bits(fast *f, uint8_t value)
{
    f->flags = flags_of(value & 0x80, f->a & value);
    f->cpu->overflow = value >> 6 & 1;
}

INLINE uint8_t shift_left(fast *f, unsigned value, unsigned in)
{
    f->carry = value >> 7;
    return flag(f, value << 1 | in);
}

INLINE uint8_t shift_right(fast *f, unsigned value, unsigned in)
{
    f->carry = value & 1;
    return flag(f, value >> 1 | in << 7);
}

/* To a place of the same part. */
INLINE void branch(fast *f, unsigned operand)
{
    f->at += (int8_t)operand;
    f->passed += CYCLES(1 + (operand >> 8));
}

INLINE void branch_far(fast *f, uint8_t opcode, uint8_t distance)
{
    const bool is[4] = {(f->flags & NEGATIVE) != 0, f->cpu->overflow, f->carry,
                        is_zero(f)};
    const uint16_t from = pc_of(f), to = (uint16_t)(from + (int8_t)distance);
    if (is[opcode >> 6] != (opcode >> 5 & 1))
        return;
    f->passed += CYCLES((from ^ to) & 0xff00 ? 2 : 1);
    f->cpu->bus = distance;
    go(f, to);
}

/* DEX or DEY till it is 0. */
INLINE unsigned spin(fast *f, unsigned count, unsigned crosses)
{
    const uint64_t rounds = count ? count : 256, taken = 3 + (crosses >> 8);
    f->passed += 2 * rounds + CYCLES(rounds * (2 + taken) - taken + 2);
    return flag(f, 0);
}

INLINE void jump(fast *f, uint16_t to)
{
    f->cpu->bus = (uint8_t)(to >> 8);
    go(f, to);
}

INLINE void call(fast *f, uint16_t to)
{
    const uint16_t last = (uint16_t)(pc_of(f) - 1);
    f->ram[f->sp & 0x7f] = (uint8_t)(last >> 8);
    f->ram[(f->sp - 1) & 0x7f] = (uint8_t)last;
    f->sp -= 2;
    jump(f, to);
}

/* RTS reads the byte that it returns to: where that is a mapper's, another makes it. */
INLINE bool back(fast *f)
{
    uint8_t byte = 0;
    uint16_t to = 0;
    if (f->sp < 0x7f || f->sp > 0xfd)
        return false;
    to = (uint16_t)(f->ram[(f->sp + 1) & 0x7f] | f->ram[(f->sp + 2) & 0x7f] << 8);
    if (!plain(f, to, &byte))
        return false;
    f->sp += 2;
    f->cpu->bus = byte;
    go(f, (uint16_t)(to + 1));
    return true;
}

/* A wait for the timer, see bus.h; what is on the bus then is the branch's distance. */
INLINE void wait(fast *f, uint16_t enough)
{
    if ((uint16_t)f->passed >= enough)
        return;
    lay_down(f);
    f->passed +=
        (uint64_t)sti_riot_skip_wait(f->bus, f->cpu, enough - (uint16_t)f->passed);
    f->cpu->bus = STI_WAIT_OFFSET;
    f->cpu->was_read = true;
    take_up(f);
}

INLINE void read_tia(fast *f, uint8_t opcode, unsigned operand)
{
    const uint8_t v = read_at(f, (uint16_t)operand, operand);
    if (opcode == 0x24)
        test_bits(f, v);
    else if (opcode == 0xa5)
        f->a = flag(f, v);
    else if (opcode == 0xa6)
        f->x = flag(f, v);
    else
        f->y = flag(f, v);
}

#endif
