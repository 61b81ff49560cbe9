/* The processor on a console's bus: every access of the chip, at its own cycle. */
#include "atari/bus.h"

#define CPU_RUN                           run_exact
#define CPU_EXACT                         1
#define CPU_BUS                           sti_bus
#define CPU_READ(bus, r, address)         sti_bus_read(bus, r, address)
#define CPU_WRITE(bus, r, address, value) sti_bus_write(bus, r, address, value)
#define CPU_STOPPED(bus)                  ((bus)->stop)
#define CPU_JAM(bus, r)                                      \
    do {                                                     \
        (bus)->stop = true;                                  \
        (bus)->console->jammed = true;                       \
        (bus)->console->jammed_at = (uint16_t)((r)->pc - 1); \
    } while (0)
#include "atari/cpu_body.h"

void sti_cpu_run_exact(sti_bus *bus, int64_t instructions)
{
    run_exact(&bus->console->cpu, bus, instructions);
}
