/* The processor on a console's bus: as the Arcade Learning Environment has it. */
#include "atari/bus.h"

#define CPU_RUN                           run_ale
#define CPU_EXACT                         0
#define CPU_BUS                           sti_bus
#define CPU_READ(bus, r, address)         sti_bus_read(bus, r, address)
#define CPU_WRITE(bus, r, address, value) sti_bus_write(bus, r, address, value)
#define CPU_STOPPED(bus)                  ((bus)->stop)
#define CPU_WAIT(bus, r, offset, instructions)       \
    if ((offset) == STI_WAIT_OFFSET && (r)->nonzero) \
        (instructions) -= sti_riot_skip_wait(bus, r, instructions);
#define CPU_JAM(bus, r)                                      \
    do {                                                     \
        (bus)->stop = true;                                  \
        (bus)->console->jammed = true;                       \
        (bus)->console->jammed_at = (uint16_t)((r)->pc - 1); \
    } while (0)
#include "atari/cpu_body.h"

void sti_cpu_interpret_ale(sti_bus *bus, int64_t instructions)
{
    run_ale(&bus->console->cpu, bus, instructions);
}
