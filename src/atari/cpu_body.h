/* One interpreter of the 6502, included by whoever runs it with a bus and a profile of
 * his own. Before the inclusion are defined
 *
 *   CPU_RUN             name of the function made: static void CPU_RUN(sti_cpu *,
 *                       CPU_BUS *, int64_t instructions), which runs so many, or fewer
 *                       when the bus asks for a stop;
 *   CPU_EXACT           1: every access of the chip is made, each at a cycle of its
 * own, and decimal mode has the flags of the NMOS chip. 0: the profile of the Arcade
 * Learning Environment, see below; CPU_BUS             type of the bus; CPU_READ(bus,
 * r, address)           the byte there; CPU_WRITE(bus, r, address, value);
 *   CPU_STOPPED(bus)    whether to stop after this instruction;
 *   CPU_WAIT(bus, r, offset, instructions)   after BNE: a statement that may pass over
 *                       rounds of a loop that waits, of which it knows the end; or not
 *                       defined;
 *   CPU_JAM(bus, r)     an opcode that stops the processor was met; r->pc is behind it.
 *
 * ALE's processor (Stella 2's "low" one) is part of what its frames are, so the other
 * profile has its ways: the cycles of an instruction pass before its first access, no
 * access is made in vain but one of RTS, a read-modify-write writes once, pointers of
 * the indirect modes leave page 0 (a pointer at FF has its high byte at 0100), opcode
 * A7 takes 4 cycles, and decimal sums go by way of numbers of base ten. */
#include "atari/cpu_table.h"
#include "atari/registers.h"

#ifndef CPU_WAIT
#define CPU_WAIT(bus, r, offset, instructions)
#endif

typedef enum cpu_access { ACCESS_I, ACCESS_R, ACCESS_W, ACCESS_M } cpu_access;

#define CPU_INLINE static inline __attribute__((always_inline))

CPU_INLINE uint8_t cpu_read(sti_cpu *r, CPU_BUS *bus, uint16_t address)
{
    r->cycles += CPU_EXACT;
    r->bus = CPU_READ(bus, r, address);
    r->was_read = true;
    return r->bus;
}

CPU_INLINE void cpu_write(sti_cpu *r, CPU_BUS *bus, uint16_t address, uint8_t value)
{
    r->cycles += CPU_EXACT;
    CPU_WRITE(bus, r, address, value);
    r->bus = value;
    r->was_read = false;
}

/* An access that the chip makes and throws away. */
CPU_INLINE void cpu_read_in_vain(sti_cpu *r, CPU_BUS *bus, uint16_t address)
{
    if (CPU_EXACT)
        (void)cpu_read(r, bus, address);
}

CPU_INLINE void cpu_push(sti_cpu *r, CPU_BUS *bus, uint8_t value)
{
    cpu_write(r, bus, (uint16_t)(0x100 | r->sp--), value);
}

CPU_INLINE uint8_t cpu_pull(sti_cpu *r, CPU_BUS *bus)
{
    return cpu_read(r, bus, (uint16_t)(0x100 | ++r->sp));
}

CPU_INLINE uint16_t cpu_word(sti_cpu *r, CPU_BUS *bus, uint16_t low, uint16_t high)
{
    const uint8_t first = cpu_read(r, bus, low);
    return (uint16_t)(first | cpu_read(r, bus, high) << 8);
}

CPU_INLINE uint16_t cpu_fetch_word(sti_cpu *r, CPU_BUS *bus)
{
    r->pc = (uint16_t)(r->pc + 2);
    return cpu_word(r, bus, (uint16_t)(r->pc - 2), (uint16_t)(r->pc - 1));
}

/* base + index: the chip adds to the low byte first, and reads there in vain while it
 * mends the high one, which a read does without where none is carried. */
CPU_INLINE uint16_t cpu_indexed(sti_cpu *r, CPU_BUS *bus, uint16_t base, uint8_t index,
                                cpu_access access)
{
    const uint16_t sum = (uint16_t)(base + index);
    const bool crossed = (sum ^ base) & 0xff00;
    if (crossed || access != ACCESS_R)
        cpu_read_in_vain(r, bus, (uint16_t)((base & 0xff00) | (sum & 0xff)));
    if (!CPU_EXACT && crossed && access == ACCESS_R)
        r->cycles++;
    return sum;
}

/* The word at a pointer of page 0. */
CPU_INLINE uint16_t cpu_pointed(sti_cpu *r, CPU_BUS *bus, uint8_t pointer)
{
    const uint16_t next = (uint16_t)(pointer + 1);
    return cpu_word(r, bus, pointer, CPU_EXACT ? next & 0xff : next);
}

CPU_INLINE uint8_t cpu_zero_indexed(sti_cpu *r, CPU_BUS *bus, uint8_t index)
{
    const uint8_t base = cpu_read(r, bus, r->pc++);
    cpu_read_in_vain(r, bus, base);
    return (uint8_t)(base + index);
}

/* A jump through a word that begins at the end of a page takes its high byte from the
 * beginning of that page. */
CPU_INLINE uint16_t cpu_indirect(sti_cpu *r, CPU_BUS *bus)
{
    const uint16_t at = cpu_fetch_word(r, bus);
    return cpu_word(r, bus, at, (uint16_t)((at & 0xff00) | ((at + 1) & 0xff)));
}

/* clang-format off */
#define MODE_NON(access) 0
#define MODE_IMP(access) (cpu_read_in_vain(r, bus, r->pc), 0)
#define MODE_IMM(access) r->pc++
#define MODE_ZP(access)  cpu_read(r, bus, r->pc++)
#define MODE_ZPX(access) cpu_zero_indexed(r, bus, r->x)
#define MODE_ZPY(access) cpu_zero_indexed(r, bus, r->y)
#define MODE_ABS(access) cpu_fetch_word(r, bus)
#define MODE_ABX(access) cpu_indexed(r, bus, cpu_fetch_word(r, bus), r->x, access)
#define MODE_ABY(access) cpu_indexed(r, bus, cpu_fetch_word(r, bus), r->y, access)
#define MODE_IND(access) cpu_indirect(r, bus)
#define MODE_INX(access) cpu_pointed(r, bus, cpu_zero_indexed(r, bus, r->x))
#define MODE_INY(access) cpu_indexed(r, bus, \
    cpu_pointed(r, bus, cpu_read(r, bus, r->pc++)), r->y, access)
/* clang-format on */

/* The operand; what is modified is first written back as it is. */
CPU_INLINE uint8_t cpu_operand(sti_cpu *r, CPU_BUS *bus, uint16_t address,
                               cpu_access access)
{
    uint8_t value = 0;
    if (access == ACCESS_R || access == ACCESS_M)
        value = cpu_read(r, bus, address);
    if (CPU_EXACT && access == ACCESS_M)
        cpu_write(r, bus, address, value);
    return value;
}

CPU_INLINE uint8_t cpu_flag(sti_cpu *r, uint8_t value)
{
    r->negative = r->nonzero = value;
    return value;
}

#include "atari/cpu_sums.h"

CPU_INLINE void cpu_compare(sti_cpu *r, uint8_t left, uint8_t right)
{
    r->carry = left >= right;
    (void)cpu_flag(r, (uint8_t)(left - right));
}

CPU_INLINE uint8_t cpu_shift_left(sti_cpu *r, uint8_t value, uint8_t in)
{
    r->carry = value >> 7;
    return cpu_flag(r, (uint8_t)(value << 1 | in));
}

CPU_INLINE uint8_t cpu_shift_right(sti_cpu *r, uint8_t value, uint8_t in)
{
    r->carry = value & 1;
    return cpu_flag(r, (uint8_t)(value >> 1 | in << 7));
}

CPU_INLINE void cpu_branch(sti_cpu *r, CPU_BUS *bus, bool taken, uint8_t offset)
{
    const uint16_t from = r->pc, to = (uint16_t)(from + (int8_t)offset);
    const bool crossed = (from ^ to) & 0xff00;
    if (!taken)
        return;
    cpu_read_in_vain(r, bus, from);
    if (crossed)
        cpu_read_in_vain(r, bus, (uint16_t)((from & 0xff00) | (to & 0xff)));
    if (!CPU_EXACT)
        r->cycles += crossed ? 2 : 1;
    r->pc = to;
}

CPU_INLINE void cpu_bit(sti_cpu *r, uint8_t value)
{
    r->nonzero = r->a & value;
    r->negative = value & 0x80;
    r->overflow = value >> 6 & 1;
}

CPU_INLINE void cpu_break(sti_cpu *r, CPU_BUS *bus)
{
    (void)cpu_read(r, bus, r->pc++);
    cpu_push(r, bus, (uint8_t)(r->pc >> 8));
    cpu_push(r, bus, (uint8_t)r->pc);
    cpu_push(r, bus, sti_cpu_status(r));
    r->interrupt = 1;
    r->pc = cpu_word(r, bus, 0xfffe, 0xffff);
}

CPU_INLINE void cpu_call(sti_cpu *r, CPU_BUS *bus)
{
    const uint8_t low = cpu_read(r, bus, r->pc++);
    cpu_read_in_vain(r, bus, (uint16_t)(0x100 | r->sp));
    cpu_push(r, bus, (uint8_t)(r->pc >> 8));
    cpu_push(r, bus, (uint8_t)r->pc);
    r->pc = (uint16_t)(low | cpu_read(r, bus, r->pc) << 8);
}

CPU_INLINE void cpu_return(sti_cpu *r, CPU_BUS *bus, bool from_interrupt)
{
    uint8_t low = 0;
    cpu_read_in_vain(r, bus, (uint16_t)(0x100 | r->sp));
    if (from_interrupt)
        sti_cpu_set_status(r, cpu_pull(r, bus));
    low = cpu_pull(r, bus);
    r->pc = (uint16_t)(low | cpu_pull(r, bus) << 8);
    if (!from_interrupt)
        (void)cpu_read(r, bus, r->pc++);
}

CPU_INLINE uint8_t cpu_pull_data(sti_cpu *r, CPU_BUS *bus)
{
    cpu_read_in_vain(r, bus, (uint16_t)(0x100 | r->sp));
    return cpu_pull(r, bus);
}

/* SHA, SHX, SHY and SHS store a value masked by one more than the high byte of the
 * address before it was indexed; where indexing carries, what is stored is the high
 * byte of the address, too. ALE masks by one more than the indexed one. */
CPU_INLINE void cpu_store_masked(sti_cpu *r, CPU_BUS *bus, uint16_t address,
                                 uint8_t index, uint8_t value)
{
    const uint16_t base = CPU_EXACT ? (uint16_t)(address - index) : address;
    value &= (uint8_t)((base >> 8) + 1);
    if ((base ^ address) & 0xff00)
        address = (uint16_t)(value << 8 | (address & 0xff));
    cpu_write(r, bus, address, value);
}

/* clang-format off */
#define STORE(value) cpu_write(r, bus, at, (value))
#define OP_LDA r->a = cpu_flag(r, v);
#define OP_LDX r->x = cpu_flag(r, v);
#define OP_LDY r->y = cpu_flag(r, v);
#define OP_LAX r->a = r->x = cpu_flag(r, v);
#define OP_STA STORE(r->a);
#define OP_STX STORE(r->x);
#define OP_STY STORE(r->y);
#define OP_SAX STORE(r->a & r->x);
#define OP_ORA r->a = cpu_flag(r, r->a | v);
#define OP_AND r->a = cpu_flag(r, r->a & v);
#define OP_EOR r->a = cpu_flag(r, r->a ^ v);
#define OP_ADC cpu_add(r, v);
#define OP_SBC cpu_subtract(r, v);
#define OP_CMP cpu_compare(r, r->a, v);
#define OP_CPX cpu_compare(r, r->x, v);
#define OP_CPY cpu_compare(r, r->y, v);
#define OP_BIT cpu_bit(r, v);
#define OP_ASL STORE(cpu_shift_left(r, v, 0));
#define OP_ROL STORE(cpu_shift_left(r, v, r->carry));
#define OP_LSR STORE(cpu_shift_right(r, v, 0));
#define OP_ROR STORE(cpu_shift_right(r, v, r->carry));
#define OP_INC STORE(cpu_flag(r, (uint8_t)(v + 1)));
#define OP_DEC STORE(cpu_flag(r, (uint8_t)(v - 1)));
#define OP_ASL_A r->a = cpu_shift_left(r, r->a, 0);
#define OP_ROL_A r->a = cpu_shift_left(r, r->a, r->carry);
#define OP_LSR_A r->a = cpu_shift_right(r, r->a, 0);
#define OP_ROR_A r->a = cpu_shift_right(r, r->a, r->carry);
#define OP_SLO v = cpu_shift_left(r, v, 0); STORE(v); r->a = cpu_flag(r, r->a | v);
#define OP_RLA v = cpu_shift_left(r, v, r->carry); STORE(v); r->a = cpu_flag(r, r->a & v);
#define OP_SRE v = cpu_shift_right(r, v, 0); STORE(v); r->a = cpu_flag(r, r->a ^ v);
#define OP_RRA v = cpu_shift_right(r, v, r->carry); STORE(v); cpu_add(r, v);
#define OP_DCP v--; STORE(v); cpu_compare(r, r->a, v);
#define OP_ISB v++; STORE(v); cpu_subtract(r, v);
#define OP_ANC r->a = cpu_flag(r, r->a & v); r->carry = r->a >> 7;
#define OP_ASR r->a = cpu_shift_right(r, r->a & v, 0);
#define OP_ARR cpu_and_rotate(r, v);
#define OP_ANE r->a = cpu_flag(r, (r->a | 0xee) & r->x & v);
#define OP_LXA r->a = r->x = cpu_flag(r, (r->a | 0xee) & v);
#define OP_LAS r->a = r->x = r->sp = cpu_flag(r, r->sp & v);
#define OP_SBX r->carry = (r->a & r->x) >= v; r->x = cpu_flag(r, (uint8_t)((r->a & r->x) - v));
#define OP_SHA cpu_store_masked(r, bus, at, r->y, r->a & r->x);
#define OP_SHX cpu_store_masked(r, bus, at, r->y, r->x);
#define OP_SHY cpu_store_masked(r, bus, at, r->x, r->y);
#define OP_SHS r->sp = r->a & r->x; cpu_store_masked(r, bus, at, r->y, r->sp);
#define OP_TAX r->x = cpu_flag(r, r->a);
#define OP_TAY r->y = cpu_flag(r, r->a);
#define OP_TXA r->a = cpu_flag(r, r->x);
#define OP_TYA r->a = cpu_flag(r, r->y);
#define OP_TSX r->x = cpu_flag(r, r->sp);
#define OP_TXS r->sp = r->x;
#define OP_INX r->x = cpu_flag(r, (uint8_t)(r->x + 1));
#define OP_INY r->y = cpu_flag(r, (uint8_t)(r->y + 1));
#define OP_DEX r->x = cpu_flag(r, (uint8_t)(r->x - 1));
#define OP_DEY r->y = cpu_flag(r, (uint8_t)(r->y - 1));
#define OP_CLC r->carry = 0;
#define OP_SEC r->carry = 1;
#define OP_CLI r->interrupt = 0;
#define OP_SEI r->interrupt = 1;
#define OP_CLD r->decimal = 0;
#define OP_SED r->decimal = 1;
#define OP_CLV r->overflow = 0;
#define OP_NOP
#define OP_PHA cpu_push(r, bus, r->a);
#define OP_PHP cpu_push(r, bus, sti_cpu_status(r));
#define OP_PLA r->a = cpu_flag(r, cpu_pull_data(r, bus));
#define OP_PLP sti_cpu_set_status(r, cpu_pull_data(r, bus));
#define OP_JMP r->pc = at;
#define OP_JSR cpu_call(r, bus);
#define OP_RTS cpu_return(r, bus, false);
#define OP_RTI cpu_return(r, bus, true);
#define OP_BRK cpu_break(r, bus);
#define OP_BPL cpu_branch(r, bus, !(r->negative & 0x80), v);
#define OP_BMI cpu_branch(r, bus, r->negative & 0x80, v);
#define OP_BVC cpu_branch(r, bus, !r->overflow, v);
#define OP_BVS cpu_branch(r, bus, r->overflow, v);
#define OP_BCC cpu_branch(r, bus, !r->carry, v);
#define OP_BCS cpu_branch(r, bus, r->carry, v);
#define OP_BNE cpu_branch(r, bus, r->nonzero, v); CPU_WAIT(bus, r, v, instructions)
#define OP_BEQ cpu_branch(r, bus, !r->nonzero, v);

#define CPU_CASE(opcode, count, mode, access, op)                                \
    case opcode:                                                                 \
        if (!CPU_EXACT)                                                          \
            r->cycles += (opcode) == 0xa7 ? 4 : (count);                         \
        at = MODE_##mode(ACCESS_##access);                                       \
        v = cpu_operand(r, bus, at, ACCESS_##access);                            \
        OP_##op                                                                  \
        break;
/* clang-format on */

static void CPU_RUN(sti_cpu *cpu, CPU_BUS *bus, int64_t instructions)
{
    sti_cpu registers = *cpu, *r = &registers;
    uint16_t at = 0;
    uint8_t v = 0;
    while (instructions-- > 0) {
        switch (cpu_read(r, bus, r->pc++)) {
            STI_CPU_OPCODES(CPU_CASE)
        default:
            r->cycles += CPU_EXACT ? 0 : 2;
            CPU_JAM(bus, r);
        }
        if (CPU_STOPPED(bus))
            break;
    }
    *cpu = registers;
}
