/* The instruction set of the 6502, one row an opcode: all 151 documented ones and 93
 * that are not. A row is X(opcode, cycles, mode, access, operation).
 *
 * cycles: without the one for a page that indexing crosses (of accesses R alone) and
 * without those of a branch that is taken.
 * mode: how the address of the operand is made: NON (nothing is read), IMP (the byte
 * after the opcode is read and thrown away), IMM, ZP, ZPX, ZPY, ABS, ABX, ABY, IND, INX
 * and INY, where INX is (zero page,X) and INY is (zero page),Y.
 * access: I (no operand), R (the operand is read), W (it is written by the operation),
 * M (it is read, written back as it is, and written anew by the operation). operation:
 * the body OP_NAME in cpu_body.h.
 *
 * The twelve opcodes without a row (02 12 22 32 42 52 62 72 92 b2 d2 f2) stop the
 * processor till it is reset. */
#ifndef STI_ATARI_CPU_TABLE_H
#define STI_ATARI_CPU_TABLE_H

/* clang-format off */
#define STI_CPU_OPCODES(X) \
    X(0x00, 7, NON, I, BRK)      X(0x01, 6, INX, R, ORA)      X(0x03, 8, INX, M, SLO)  \
    X(0x04, 3, ZP, R, NOP)       X(0x05, 3, ZP, R, ORA)       X(0x06, 5, ZP, M, ASL)   \
    X(0x07, 5, ZP, M, SLO)       X(0x08, 3, IMP, I, PHP)      X(0x09, 2, IMM, R, ORA)  \
    X(0x0a, 2, IMP, I, ASL_A)    X(0x0b, 2, IMM, R, ANC)      X(0x0c, 4, ABS, R, NOP)  \
    X(0x0d, 4, ABS, R, ORA)      X(0x0e, 6, ABS, M, ASL)      X(0x0f, 6, ABS, M, SLO)  \
    X(0x10, 2, IMM, R, BPL)      X(0x11, 5, INY, R, ORA)      X(0x13, 8, INY, M, SLO)  \
    X(0x14, 4, ZPX, R, NOP)      X(0x15, 4, ZPX, R, ORA)      X(0x16, 6, ZPX, M, ASL)  \
    X(0x17, 6, ZPX, M, SLO)      X(0x18, 2, IMP, I, CLC)      X(0x19, 4, ABY, R, ORA)  \
    X(0x1a, 2, IMP, I, NOP)      X(0x1b, 7, ABY, M, SLO)      X(0x1c, 4, ABX, R, NOP)  \
    X(0x1d, 4, ABX, R, ORA)      X(0x1e, 7, ABX, M, ASL)      X(0x1f, 7, ABX, M, SLO)  \
    X(0x20, 6, NON, I, JSR)      X(0x21, 6, INX, R, AND)      X(0x23, 8, INX, M, RLA)  \
    X(0x24, 3, ZP, R, BIT)       X(0x25, 3, ZP, R, AND)       X(0x26, 5, ZP, M, ROL)   \
    X(0x27, 5, ZP, M, RLA)       X(0x28, 4, IMP, I, PLP)      X(0x29, 2, IMM, R, AND)  \
    X(0x2a, 2, IMP, I, ROL_A)    X(0x2b, 2, IMM, R, ANC)      X(0x2c, 4, ABS, R, BIT)  \
    X(0x2d, 4, ABS, R, AND)      X(0x2e, 6, ABS, M, ROL)      X(0x2f, 6, ABS, M, RLA)  \
    X(0x30, 2, IMM, R, BMI)      X(0x31, 5, INY, R, AND)      X(0x33, 8, INY, M, RLA)  \
    X(0x34, 4, ZPX, R, NOP)      X(0x35, 4, ZPX, R, AND)      X(0x36, 6, ZPX, M, ROL)  \
    X(0x37, 6, ZPX, M, RLA)      X(0x38, 2, IMP, I, SEC)      X(0x39, 4, ABY, R, AND)  \
    X(0x3a, 2, IMP, I, NOP)      X(0x3b, 7, ABY, M, RLA)      X(0x3c, 4, ABX, R, NOP)  \
    X(0x3d, 4, ABX, R, AND)      X(0x3e, 7, ABX, M, ROL)      X(0x3f, 7, ABX, M, RLA)  \
    X(0x40, 6, IMP, I, RTI)      X(0x41, 6, INX, R, EOR)      X(0x43, 8, INX, M, SRE)  \
    X(0x44, 3, ZP, R, NOP)       X(0x45, 3, ZP, R, EOR)       X(0x46, 5, ZP, M, LSR)   \
    X(0x47, 5, ZP, M, SRE)       X(0x48, 3, IMP, I, PHA)      X(0x49, 2, IMM, R, EOR)  \
    X(0x4a, 2, IMP, I, LSR_A)    X(0x4b, 2, IMM, R, ASR)      X(0x4c, 3, ABS, W, JMP)  \
    X(0x4d, 4, ABS, R, EOR)      X(0x4e, 6, ABS, M, LSR)      X(0x4f, 6, ABS, M, SRE)  \
    X(0x50, 2, IMM, R, BVC)      X(0x51, 5, INY, R, EOR)      X(0x53, 8, INY, M, SRE)  \
    X(0x54, 4, ZPX, R, NOP)      X(0x55, 4, ZPX, R, EOR)      X(0x56, 6, ZPX, M, LSR)  \
    X(0x57, 6, ZPX, M, SRE)      X(0x58, 2, IMP, I, CLI)      X(0x59, 4, ABY, R, EOR)  \
    X(0x5a, 2, IMP, I, NOP)      X(0x5b, 7, ABY, M, SRE)      X(0x5c, 4, ABX, R, NOP)  \
    X(0x5d, 4, ABX, R, EOR)      X(0x5e, 7, ABX, M, LSR)      X(0x5f, 7, ABX, M, SRE)  \
    X(0x60, 6, IMP, I, RTS)      X(0x61, 6, INX, R, ADC)      X(0x63, 8, INX, M, RRA)  \
    X(0x64, 3, ZP, R, NOP)       X(0x65, 3, ZP, R, ADC)       X(0x66, 5, ZP, M, ROR)   \
    X(0x67, 5, ZP, M, RRA)       X(0x68, 4, IMP, I, PLA)      X(0x69, 2, IMM, R, ADC)  \
    X(0x6a, 2, IMP, I, ROR_A)    X(0x6b, 2, IMM, R, ARR)      X(0x6c, 5, IND, W, JMP)  \
    X(0x6d, 4, ABS, R, ADC)      X(0x6e, 6, ABS, M, ROR)      X(0x6f, 6, ABS, M, RRA)  \
    X(0x70, 2, IMM, R, BVS)      X(0x71, 5, INY, R, ADC)      X(0x73, 8, INY, M, RRA)  \
    X(0x74, 4, ZPX, R, NOP)      X(0x75, 4, ZPX, R, ADC)      X(0x76, 6, ZPX, M, ROR)  \
    X(0x77, 6, ZPX, M, RRA)      X(0x78, 2, IMP, I, SEI)      X(0x79, 4, ABY, R, ADC)  \
    X(0x7a, 2, IMP, I, NOP)      X(0x7b, 7, ABY, M, RRA)      X(0x7c, 4, ABX, R, NOP)  \
    X(0x7d, 4, ABX, R, ADC)      X(0x7e, 7, ABX, M, ROR)      X(0x7f, 7, ABX, M, RRA)  \
    X(0x80, 2, IMM, R, NOP)      X(0x81, 6, INX, W, STA)      X(0x82, 2, IMM, R, NOP)  \
    X(0x83, 6, INX, W, SAX)      X(0x84, 3, ZP, W, STY)       X(0x85, 3, ZP, W, STA)   \
    X(0x86, 3, ZP, W, STX)       X(0x87, 3, ZP, W, SAX)       X(0x88, 2, IMP, I, DEY)  \
    X(0x89, 2, IMM, R, NOP)      X(0x8a, 2, IMP, I, TXA)      X(0x8b, 2, IMM, R, ANE)  \
    X(0x8c, 4, ABS, W, STY)      X(0x8d, 4, ABS, W, STA)      X(0x8e, 4, ABS, W, STX)  \
    X(0x8f, 4, ABS, W, SAX)      X(0x90, 2, IMM, R, BCC)      X(0x91, 6, INY, W, STA)  \
    X(0x93, 6, INY, W, SHA)      X(0x94, 4, ZPX, W, STY)      X(0x95, 4, ZPX, W, STA)  \
    X(0x96, 4, ZPY, W, STX)      X(0x97, 4, ZPY, W, SAX)      X(0x98, 2, IMP, I, TYA)  \
    X(0x99, 5, ABY, W, STA)      X(0x9a, 2, IMP, I, TXS)      X(0x9b, 5, ABY, W, SHS)  \
    X(0x9c, 5, ABX, W, SHY)      X(0x9d, 5, ABX, W, STA)      X(0x9e, 5, ABY, W, SHX)  \
    X(0x9f, 5, ABY, W, SHA)      X(0xa0, 2, IMM, R, LDY)      X(0xa1, 6, INX, R, LDA)  \
    X(0xa2, 2, IMM, R, LDX)      X(0xa3, 6, INX, R, LAX)      X(0xa4, 3, ZP, R, LDY)   \
    X(0xa5, 3, ZP, R, LDA)       X(0xa6, 3, ZP, R, LDX)       X(0xa7, 3, ZP, R, LAX)   \
    X(0xa8, 2, IMP, I, TAY)      X(0xa9, 2, IMM, R, LDA)      X(0xaa, 2, IMP, I, TAX)  \
    X(0xab, 2, IMM, R, LXA)      X(0xac, 4, ABS, R, LDY)      X(0xad, 4, ABS, R, LDA)  \
    X(0xae, 4, ABS, R, LDX)      X(0xaf, 4, ABS, R, LAX)      X(0xb0, 2, IMM, R, BCS)  \
    X(0xb1, 5, INY, R, LDA)      X(0xb3, 5, INY, R, LAX)      X(0xb4, 4, ZPX, R, LDY)  \
    X(0xb5, 4, ZPX, R, LDA)      X(0xb6, 4, ZPY, R, LDX)      X(0xb7, 4, ZPY, R, LAX)  \
    X(0xb8, 2, IMP, I, CLV)      X(0xb9, 4, ABY, R, LDA)      X(0xba, 2, IMP, I, TSX)  \
    X(0xbb, 4, ABY, R, LAS)      X(0xbc, 4, ABX, R, LDY)      X(0xbd, 4, ABX, R, LDA)  \
    X(0xbe, 4, ABY, R, LDX)      X(0xbf, 4, ABY, R, LAX)      X(0xc0, 2, IMM, R, CPY)  \
    X(0xc1, 6, INX, R, CMP)      X(0xc2, 2, IMM, R, NOP)      X(0xc3, 8, INX, M, DCP)  \
    X(0xc4, 3, ZP, R, CPY)       X(0xc5, 3, ZP, R, CMP)       X(0xc6, 5, ZP, M, DEC)   \
    X(0xc7, 5, ZP, M, DCP)       X(0xc8, 2, IMP, I, INY)      X(0xc9, 2, IMM, R, CMP)  \
    X(0xca, 2, IMP, I, DEX)      X(0xcb, 2, IMM, R, SBX)      X(0xcc, 4, ABS, R, CPY)  \
    X(0xcd, 4, ABS, R, CMP)      X(0xce, 6, ABS, M, DEC)      X(0xcf, 6, ABS, M, DCP)  \
    X(0xd0, 2, IMM, R, BNE)      X(0xd1, 5, INY, R, CMP)      X(0xd3, 8, INY, M, DCP)  \
    X(0xd4, 4, ZPX, R, NOP)      X(0xd5, 4, ZPX, R, CMP)      X(0xd6, 6, ZPX, M, DEC)  \
    X(0xd7, 6, ZPX, M, DCP)      X(0xd8, 2, IMP, I, CLD)      X(0xd9, 4, ABY, R, CMP)  \
    X(0xda, 2, IMP, I, NOP)      X(0xdb, 7, ABY, M, DCP)      X(0xdc, 4, ABX, R, NOP)  \
    X(0xdd, 4, ABX, R, CMP)      X(0xde, 7, ABX, M, DEC)      X(0xdf, 7, ABX, M, DCP)  \
    X(0xe0, 2, IMM, R, CPX)      X(0xe1, 6, INX, R, SBC)      X(0xe2, 2, IMM, R, NOP)  \
    X(0xe3, 8, INX, M, ISB)      X(0xe4, 3, ZP, R, CPX)       X(0xe5, 3, ZP, R, SBC)   \
    X(0xe6, 5, ZP, M, INC)       X(0xe7, 5, ZP, M, ISB)       X(0xe8, 2, IMP, I, INX)  \
    X(0xe9, 2, IMM, R, SBC)      X(0xea, 2, IMP, I, NOP)      X(0xeb, 2, IMM, R, SBC)  \
    X(0xec, 4, ABS, R, CPX)      X(0xed, 4, ABS, R, SBC)      X(0xee, 6, ABS, M, INC)  \
    X(0xef, 6, ABS, M, ISB)      X(0xf0, 2, IMM, R, BEQ)      X(0xf1, 5, INY, R, SBC)  \
    X(0xf3, 8, INY, M, ISB)      X(0xf4, 4, ZPX, R, NOP)      X(0xf5, 4, ZPX, R, SBC)  \
    X(0xf6, 6, ZPX, M, INC)      X(0xf7, 6, ZPX, M, ISB)      X(0xf8, 2, IMP, I, SED)  \
    X(0xf9, 4, ABY, R, SBC)      X(0xfa, 2, IMP, I, NOP)      X(0xfb, 7, ABY, M, ISB)  \
    X(0xfc, 4, ABX, R, NOP)      X(0xfd, 4, ABX, R, SBC)      X(0xfe, 7, ABX, M, INC)  \
    X(0xff, 7, ABX, M, ISB)
/* clang-format on */

#endif
