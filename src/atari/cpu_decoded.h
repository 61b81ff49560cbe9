/* An image read once: for every byte of it the instruction that begins there, as the
 * fast loop of cpu_decoded.c wants it. Inside the room only. */
#ifndef STI_ATARI_CPU_DECODED_H
#define STI_ATARI_CPU_DECODED_H

#include <stdint.h>

/* kind: the opcode, where the fast loop has it as it stands there; numbers of opcodes
 * that stop the processor are free for others. */
typedef struct sti_decoded {
    uint8_t kind;
    uint8_t branch; /* distance of a branch that is part of a pair */
    uint16_t operand;
} sti_decoded;

/* decoded_out [bytes]. */
void sti_cpu_decode(const uint8_t *rom, uint32_t bytes, sti_decoded *decoded_out);

#endif
