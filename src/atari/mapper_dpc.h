/* The DPC: a chip in the cartridge that hands out graphics byte by byte, a random
 * number and three voices of music. Inside the room only. */
#ifndef STI_ATARI_MAPPER_DPC_H
#define STI_ATARI_MAPPER_DPC_H

#include "atari/bus.h"

void sti_dpc_reset(sti_bus *bus);
uint8_t sti_dpc_read(sti_bus *bus, sti_cpu *cpu, uint16_t address);
void sti_dpc_write(sti_bus *bus, sti_cpu *cpu, uint16_t address, uint8_t value);

#endif
