/* An image read once: for every byte of it the instruction that begins there, or a pair
 * of them, as the fast loop of cpu_decoded.c wants it. Inside the room only. */
#ifndef STI_ATARI_CPU_DECODED_H
#define STI_ATARI_CPU_DECODED_H

#include <stddef.h>
#include <stdint.h>

/* kind: the opcode, where the fast loop has it as it stands there, or one of those
 * below. operand, extra: by the kind; of a branch that stays in its part of the image
 * the operand is its distance and, in bit 8, whether it goes to another page. */
typedef struct sti_decoded {
    uint8_t kind;
    uint8_t extra;
    uint16_t operand;
} sti_decoded;

/* A part of 1 KiB with, behind it, one that the fast loop leaves: straight on from a
 * part's end may lie another one. */
enum { STI_DECODED_PART = 1025, STI_DECODED_BYTES = 1024 };

/* Kinds that are no opcode have numbers of opcodes that the fast loop never has. */
enum {
    STI_KIND_SLOW = 0x02, /* another makes it */
    /* Stores of TIA, by an address of page 0. */
    STI_KIND_STA_TIA = 0x12,
    STI_KIND_STX_TIA = 0x22,
    STI_KIND_STY_TIA = 0x32,
    STI_KIND_STA_WSYNC = 0x42,
    STI_KIND_STX_WSYNC = 0x8f,
    STI_KIND_STY_WSYNC = 0x9f,
    STI_KIND_READ_TIA = 0x52, /* in page 0: LDA, LDX, LDY, BIT by extra, the opcode */
    STI_KIND_FAR = 0x62,      /* a branch to another part; extra: the opcode */
    STI_KIND_SPIN = 0x72,     /* DEX or DEY, and BNE back to it; extra: the opcode */
    /* Counting and a branch. */
    STI_KIND_DEX_BNE = 0x03,
    STI_KIND_DEY_BNE = 0x13,
    STI_KIND_INX_BNE = 0x23,
    STI_KIND_INY_BNE = 0x33,
    STI_KIND_DEX_BPL = 0x43,
    STI_KIND_DEY_BPL = 0x53,
    STI_KIND_DEC_BNE = 0x63, /* extra: the byte of RAM */
    /* A comparison with a constant, extra, and a branch. */
    STI_KIND_CMP_BNE = 0x0b,
    STI_KIND_CMP_BEQ = 0x1b,
    STI_KIND_CMP_BCC = 0x2b,
    STI_KIND_CMP_BCS = 0x3b,
    STI_KIND_CPX_BNE = 0x4b,
    STI_KIND_CPY_BNE = 0x5b,
    STI_KIND_SBC_BCS = 0x6b, /* the same of a difference */
    /* SEC and a difference, CLC and a sum: with a constant or a byte of RAM. */
    STI_KIND_SEC_SBC = 0x7b,
    STI_KIND_SEC_SBC_RAM = 0x8b,
    STI_KIND_CLC_ADC = 0x9b,
    STI_KIND_CLC_ADC_RAM = 0xab,
    /* A load of A and a store of it in TIA; extra: the register. */
    STI_KIND_LDA_TIA = 0x0f,         /* a constant */
    STI_KIND_LDA_RAM_TIA = 0x1f,     /* page 0 */
    STI_KIND_LDA_X_TIA = 0x2f,       /* a word, with X */
    STI_KIND_LDA_Y_TIA = 0x3f,       /* a word, with Y */
    STI_KIND_LDA_POINTER_TIA = 0x4f, /* through a pointer, with Y */
    STI_KIND_LDA_RAM_X_TIA = 0x5f,   /* page 0, with X */
    /* The same of a constant, or a byte of RAM, and a store in RAM. */
    STI_KIND_LDA_STA = 0x6f,
    STI_KIND_LDA_RAM_STA = 0x7f
};

/* decoded_out [sti_cpu_decoded_count(bytes)]; direct, direct_end: of the 4 KiB that the
 * processor sees, what is read without a mapper. */
size_t sti_cpu_decoded_count(uint32_t bytes);
void sti_cpu_decode(const uint8_t *rom, uint32_t bytes, uint32_t direct,
                    uint32_t direct_end, sti_decoded *decoded_out);

#endif
