#include "atari/mapper_dpc.h"

/* Eight data fetchers: a counter of 11 bits that points into 2 KiB of graphics,
 * backwards, and a flag that is set while the counter is between top and bottom.
 * Fetchers 5 to 7 can count by an oscillator of their own instead, which makes square
 * waves. */
enum { DPC_GRAPHICS = 8192, DPC_COUNT = 0x7ff };

void sti_dpc_reset(sti_bus *bus)
{
    sti_cart_state *state = &bus->console->cart;
    state->dpc.cycles = 0;
    state->dpc.part_clock = 0;
    for (int i = 0; i < 4; i++)
        state->slice[i] = (uint16_t)(4 + i);
    sti_mapper_view(bus);
}

/* A shift register: what comes in is 1 where an even number of bits 3, 4, 5 and 7 are.
 */
static void clock_random(sti_dpc *dpc)
{
    const unsigned r = dpc->random;
    const unsigned odd = (r >> 3 ^ r >> 4 ^ r >> 5 ^ r >> 7) & 1;
    dpc->random = (uint8_t)(r << 1 | !odd);
}

static void touch_bank(sti_bus *bus, uint16_t address)
{
    const unsigned spot = (address & 0xfffu) - 0xff8;
    if (spot > 1)
        return;
    for (unsigned i = 0; i < 4; i++)
        bus->console->cart.slice[i] = (uint16_t)(4 * spot + i);
    sti_mapper_view(bus);
}

static void play_voice(sti_dpc *dpc, int i, int clocks)
{
    int low = dpc->counter[i] & 0xff;
    if (dpc->top[i] == 0) {
        low = 0;
    } else {
        low -= clocks % (dpc->top[i] + 1);
        low += low < 0 ? dpc->top[i] + 1 : 0;
    }
    if (low <= dpc->bottom[i])
        dpc->flag[i] = 0;
    else if (low <= dpc->top[i])
        dpc->flag[i] = 0xff;
    dpc->counter[i] = (uint16_t)((dpc->counter[i] & 0x700) | (low & 0xff));
}

/* The oscillator runs at 15750 Hz. */
static uint8_t read_music(sti_dpc *dpc, const sti_cpu *cpu)
{
    static const uint8_t loudness[8] = {0x00, 0x04, 0x05, 0x09, 0x06, 0x0a, 0x0b, 0x0f};
    const int32_t cycles = (int32_t)(cpu->cycles - (uint32_t)dpc->cycles);
    const double clocks = 15750.0 * cycles / 1193191.66666667 + dpc->part_clock;
    unsigned voices = 0;
    dpc->cycles = (int32_t)cpu->cycles;
    dpc->part_clock = clocks - (double)(int)clocks;
    for (int i = 0; i < 3; i++) {
        if ((int)clocks > 0 && dpc->music[i])
            play_voice(dpc, 5 + i, (int)clocks);
        if (dpc->music[i] && dpc->flag[5 + i])
            voices |= 1u << i;
    }
    return loudness[voices];
}

static uint8_t read_fetcher(const sti_bus *bus, sti_dpc *dpc, const sti_cpu *cpu,
                            int function, int i)
{
    const uint8_t graphics =
        bus->cart->rom[DPC_GRAPHICS + (DPC_COUNT - (dpc->counter[i] & DPC_COUNT))];
    switch (function) {
    case 0:
        return i < 4 ? dpc->random : read_music(dpc, cpu);
    case 1:
        return graphics;
    case 2:
        return graphics & dpc->flag[i];
    case 7:
        return dpc->flag[i];
    default:
        return 0;
    }
}

uint8_t sti_dpc_read(sti_bus *bus, sti_cpu *cpu, uint16_t address)
{
    sti_dpc *dpc = &bus->console->cart.dpc;
    const int i = address & 7;
    uint8_t value = 0;
    clock_random(dpc);
    if ((address & 0xfff) >= 0x40) {
        touch_bank(bus, address);
        return bus->slice[address >> 10 & 3][address & 0x3ff];
    }
    if ((dpc->counter[i] & 0xff) == dpc->top[i])
        dpc->flag[i] = 0xff;
    else if ((dpc->counter[i] & 0xff) == dpc->bottom[i])
        dpc->flag[i] = 0;
    value = read_fetcher(bus, dpc, cpu, address >> 3 & 7, i);
    if (i < 5 || !dpc->music[i - 5])
        dpc->counter[i] = (dpc->counter[i] - 1) & DPC_COUNT;
    return value;
}

static void write_fetcher(sti_dpc *dpc, int function, int i, uint8_t value)
{
    const bool music = i >= 5 && dpc->music[i - 5];
    switch (function) {
    case 0:
        dpc->top[i] = value;
        dpc->flag[i] = 0;
        break;
    case 1:
        dpc->bottom[i] = value;
        break;
    case 2:
        dpc->counter[i] =
            (uint16_t)((dpc->counter[i] & 0x700) | (music ? dpc->top[i] : value));
        break;
    case 3:
        dpc->counter[i] = (uint16_t)((value & 7) << 8 | (dpc->counter[i] & 0xff));
        if (i >= 5)
            dpc->music[i - 5] = value & 0x10;
        break;
    case 6:
        dpc->random = 1;
        break;
    default:
        break;
    }
}

void sti_dpc_write(sti_bus *bus, sti_cpu *cpu, uint16_t address, uint8_t value)
{
    sti_dpc *dpc = &bus->console->cart.dpc;
    const unsigned offset = address & 0xfff;
    (void)cpu;
    clock_random(dpc);
    if (offset >= 0x40 && offset < 0x80)
        write_fetcher(dpc, address >> 3 & 7, address & 7, value);
    else
        touch_bank(bus, address);
}
