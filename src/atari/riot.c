/* The 6532: interval timer and ports. Its RAM is read and written in bus.h.
 *
 * The timer holds T and counts down once in 2^shift cycles. When it has run out it
 * counts on, once a cycle, and remembers the first read after that; ALE gives what it
 * reads from then on an offset of its own, which is kept here. */
#include "atari/bus.h"

/* Cycles since the timer was written, but for this one. */
static uint32_t cycles_since(const sti_riot *riot, uint32_t now)
{
    return now - 1 - (uint32_t)riot->set_at;
}

static uint8_t timer_run_out(sti_riot *riot, uint32_t now)
{
    const uint32_t since = cycles_since(riot, now);
    const int32_t length = riot->timer << riot->shift;
    int32_t left = (int32_t)((uint32_t)length - since - 1);
    if (left <= -2 && !riot->was_read) {
        riot->was_read = true;
        riot->read_at = (int32_t)now;
    }
    if (riot->was_read)
        left = (int32_t)(riot->timer - (since >> riot->shift) -
                         ((uint32_t)riot->read_at - (uint32_t)riot->set_at -
                          (uint32_t)length));
    return (uint8_t)left;
}

uint8_t sti_riot_read(sti_console *console, const sti_cpu *cpu, uint16_t address)
{
    sti_riot *riot = &console->riot;
    const int32_t left =
        riot->timer - (int32_t)(cycles_since(riot, cpu->cycles) >> riot->shift) - 1;
    switch (address & 7) {
    case 0:
        return console->input.port_a;
    case 1:
        return riot->port_a_output;
    case 2:
        return console->input.switches;
    case 3: /* port B is always read */
        return 0;
    case 4:
    case 6:
        return left >= 0 ? (uint8_t)left : timer_run_out(riot, cpu->cycles);
    default:
        return left >= 0 || riot->was_read ? 0 : 0x80;
    }
}

/* The register that the loop at pc reads the timer into, or NULL: it is another loop.
 * Code that is not plain bytes of the image is never looked at. */
static uint8_t *waiting_register(const sti_bus *bus, sti_cpu *cpu)
{
    const uint32_t offset = cpu->pc & 0xfff;
    if (!(cpu->pc & 0x1000) || offset < bus->direct ||
        offset + 5 > bus->direct + bus->direct_bytes || (offset & 0x3ff) + 5 > 0x400 ||
        (cpu->pc & 0xff) + 5 > 0x100)
        return NULL;
    const uint8_t *code = &bus->slice[offset >> 10][offset & 0x3ff];
    if (code[1] != 0x84 || code[2] != 0x02)
        return NULL;
    return code[0] == 0xad   ? &cpu->a
           : code[0] == 0xae ? &cpu->x
           : code[0] == 0xac ? &cpu->y
                             : NULL;
}

/* A round of the wait is 7 cycles; it reads 4 cycles after it begins, and another
 * follows unless 0 is read. */
enum { WAIT_ROUND = 7, WAIT_READ = 4, WAIT_INSTRUCTIONS = 2 };

/* Rounds that find the timer above 0, the first of which reads in cycle `first`. */
static int64_t rounds_running(const sti_riot *riot, uint32_t first)
{
    const int64_t last =
        (int64_t)riot->set_at + (riot->timer - 1) * ((int64_t)1 << riot->shift);
    return last >= first ? (last - first) / WAIT_ROUND + 1 : 0;
}

/* What the timer that has run out, and was read since, counts on from: what is read is
 * this less the steps since it was written. */
static uint32_t run_out_from(const sti_riot *riot)
{
    return riot->timer - ((uint32_t)riot->read_at - (uint32_t)riot->set_at -
                          ((uint32_t)riot->timer << riot->shift));
}

/* The same of a timer that has run out. It counts modulo 256: at one step a cycle a
 * round is 7 steps, and 183 is the inverse of 7; else a round never passes a step by.
 */
static int64_t rounds_run_out(const sti_riot *riot, uint32_t first)
{
    enum { SEVENTH = 183 };
    const uint32_t since = cycles_since(riot, first);
    const uint32_t step = since >> riot->shift;
    const uint32_t steps = (run_out_from(riot) - step) & 0xff;
    if (riot->shift == 0)
        return steps * SEVENTH & 0xff;
    if (steps == 0)
        return 0;
    return (((int64_t)step + steps) * ((int64_t)1 << riot->shift) - since + WAIT_ROUND -
            1) /
           WAIT_ROUND;
}

int64_t sti_riot_skip_wait(sti_bus *bus, sti_cpu *cpu, int64_t instructions)
{
    const sti_riot *riot = &bus->console->riot;
    uint8_t *value = waiting_register(bus, cpu);
    if (!value)
        return 0;
    const uint32_t first = cpu->cycles + WAIT_READ;
    int64_t rounds =
        riot->was_read ? rounds_run_out(riot, first) : rounds_running(riot, first);
    if (rounds > instructions / WAIT_INSTRUCTIONS)
        rounds = instructions / WAIT_INSTRUCTIONS;
    if (rounds <= 0)
        return 0;
    cpu->cycles += (uint32_t)(rounds * WAIT_ROUND);
    const uint32_t read_at = cpu->cycles - WAIT_ROUND + WAIT_READ;
    const uint32_t from = riot->was_read ? run_out_from(riot) : riot->timer - 1u;
    *value = cpu->negative = cpu->nonzero =
        (uint8_t)(from - (cycles_since(riot, read_at) >> riot->shift));
    return rounds * WAIT_INSTRUCTIONS;
}

void sti_riot_write(sti_console *console, const sti_cpu *cpu, uint16_t address,
                    uint8_t value)
{
    static const uint8_t shifts[4] = {0, 3, 6, 10};
    sti_riot *riot = &console->riot;
    if ((address & 7) == 1)
        riot->port_a_output = value;
    if ((address & 0x14) != 0x14)
        return;
    riot->timer = value;
    riot->shift = shifts[address & 3];
    riot->set_at = (int32_t)cpu->cycles;
    riot->was_read = false;
}
