/* An image read once: for every byte of it the instruction that begins there, as the
 * fast loop of cpu_decoded.c wants it. Inside the room only. */
#ifndef STI_ATARI_CPU_DECODED_H
#define STI_ATARI_CPU_DECODED_H

#include <stddef.h>
#include <stdint.h>

/* kind: the opcode, where the fast loop has it as it stands there; numbers of opcodes
 * that stop the processor are free for others. */
typedef struct sti_decoded {
    uint8_t kind;
    uint8_t branch; /* distance of a branch that is part of a pair */
    uint16_t operand;
} sti_decoded;

/* A part of 1 KiB with, behind it, one that the fast loop leaves: straight on from a
 * part's end may lie another one. */
enum { STI_DECODED_PART = 1025 };

/* decoded_out [sti_cpu_decoded_count(bytes)]; direct_end: where in the 4 KiB that the
 * processor sees a mapper's own begins. */
size_t sti_cpu_decoded_count(uint32_t bytes);
void sti_cpu_decode(const uint8_t *rom, uint32_t bytes, uint32_t direct_end,
                    sti_decoded *decoded_out);

#endif
