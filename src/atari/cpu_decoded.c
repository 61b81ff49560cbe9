/* The fast loop of ALE's processor: instructions that were decoded when the image was
 * loaded, registers in registers, pairs that programs are full of in one piece.
 *
 * It makes an instruction only where all that it touches is plain: code and tables in
 * the part of the image that is read without a mapper, RAM, the stack in RAM, writes of
 * TIA, reads of whole addresses. All else is left to the interpreter of cpu_ale.c, an
 * instruction at a time: code in RAM or beside hot spots, other reads of chips and
 * mappers, decimal mode, rare opcodes. What the data bus holds is kept where the
 * program goes on elsewhere, since code may lie where nothing but the bus answers; else
 * an instruction finds there what it has fetched itself, and the last one of a frame is
 * the interpreter's. */
#include "atari/cpu_decoded.h"

#include "atari/bus.h"

/* Kinds that are no opcode. */
enum {
    KIND_SLOW = 0x02,
    KIND_STA_TIA = 0x12,
    KIND_STX_TIA = 0x22,
    KIND_STY_TIA = 0x32,
    KIND_DEX_BNE = 0x42,
    KIND_DEY_BNE = 0x52,
    KIND_INX_BNE = 0x62,
    KIND_INY_BNE = 0x72
};

/* ---- decoding ---- */

/* Bytes of the image that are mapped as one. */
enum { PART = 1024 };

/* How an opcode's operand must lie for the fast loop to have it. */
typedef enum form {
    FORM_NONE, /* it never has */
    FORM_ALONE,
    FORM_BYTE,      /* immediate, or a branch */
    FORM_RAM,       /* page 0, RAM */
    FORM_STORE,     /* the same, or a register of TIA */
    FORM_INDEXED,   /* page 0, indexed: found out when it runs */
    FORM_POINTER,   /* page 0, two bytes of RAM */
    FORM_WORD,      /* found out when it runs */
    FORM_WORD_STORE /* a register of TIA */
} form;

/* clang-format off */
static const uint8_t forms[256] = {
    [0x88] = FORM_ALONE, [0xc8] = FORM_ALONE, [0xca] = FORM_ALONE, [0xe8] = FORM_ALONE,
    [0x8a] = FORM_ALONE, [0x98] = FORM_ALONE, [0xa8] = FORM_ALONE, [0xaa] = FORM_ALONE,
    [0x18] = FORM_ALONE, [0x38] = FORM_ALONE, [0xea] = FORM_ALONE, [0x60] = FORM_ALONE,
    [0x0a] = FORM_ALONE, [0x2a] = FORM_ALONE, [0x4a] = FORM_ALONE, [0x6a] = FORM_ALONE,
    [0x48] = FORM_ALONE, [0x68] = FORM_ALONE, [0x9a] = FORM_ALONE, [0xba] = FORM_ALONE,
    [0xa9] = FORM_BYTE, [0xa2] = FORM_BYTE, [0xa0] = FORM_BYTE, [0x09] = FORM_BYTE,
    [0x29] = FORM_BYTE, [0x49] = FORM_BYTE, [0x69] = FORM_BYTE, [0xe9] = FORM_BYTE,
    [0xc9] = FORM_BYTE, [0xe0] = FORM_BYTE, [0xc0] = FORM_BYTE,
    [0x10] = FORM_BYTE, [0x30] = FORM_BYTE, [0x50] = FORM_BYTE, [0x70] = FORM_BYTE,
    [0x90] = FORM_BYTE, [0xb0] = FORM_BYTE, [0xd0] = FORM_BYTE, [0xf0] = FORM_BYTE,
    [0xa5] = FORM_RAM, [0xa6] = FORM_RAM, [0xa4] = FORM_RAM, [0x05] = FORM_RAM,
    [0x25] = FORM_RAM, [0x45] = FORM_RAM, [0x65] = FORM_RAM, [0xe5] = FORM_RAM,
    [0xc5] = FORM_RAM, [0xe4] = FORM_RAM, [0xc4] = FORM_RAM, [0x24] = FORM_RAM,
    [0xe6] = FORM_RAM, [0xc6] = FORM_RAM, [0x06] = FORM_RAM, [0x26] = FORM_RAM,
    [0x46] = FORM_RAM, [0x66] = FORM_RAM,
    [0x85] = FORM_STORE, [0x86] = FORM_STORE, [0x84] = FORM_STORE,
    [0xb5] = FORM_INDEXED, [0xb4] = FORM_INDEXED, [0xb6] = FORM_INDEXED,
    [0x95] = FORM_INDEXED, [0x75] = FORM_INDEXED, [0xd5] = FORM_INDEXED,
    [0xb1] = FORM_POINTER, [0x11] = FORM_POINTER, [0x31] = FORM_POINTER,
    [0xad] = FORM_WORD, [0xae] = FORM_WORD, [0xac] = FORM_WORD,
    [0xbd] = FORM_WORD, [0xb9] = FORM_WORD, [0xbc] = FORM_WORD, [0xbe] = FORM_WORD,
    [0x1d] = FORM_WORD, [0x3d] = FORM_WORD, [0x19] = FORM_WORD, [0x39] = FORM_WORD,
    [0x7d] = FORM_WORD, [0x79] = FORM_WORD, [0xdd] = FORM_WORD, [0xd9] = FORM_WORD,
    [0x4c] = FORM_WORD, [0x20] = FORM_WORD,
    [0x8d] = FORM_WORD_STORE, [0x8e] = FORM_WORD_STORE, [0x8c] = FORM_WORD_STORE,
};
/* clang-format on */

static uint8_t tia_store(uint8_t opcode)
{
    const unsigned which = opcode & 3;
    return which == 1 ? KIND_STA_TIA : which == 2 ? KIND_STX_TIA : KIND_STY_TIA;
}

static uint8_t counting_pair(uint8_t opcode)
{
    return opcode == 0xca   ? KIND_DEX_BNE
           : opcode == 0x88 ? KIND_DEY_BNE
           : opcode == 0xe8 ? KIND_INX_BNE
           : opcode == 0xc8 ? KIND_INY_BNE
                            : KIND_SLOW;
}

/* One of page 0 or without operand; next: the two bytes behind it. */
static sti_decoded decode_short(uint8_t opcode, const uint8_t next[2], uint32_t room)
{
    const form f = forms[opcode];
    sti_decoded d = {.kind = opcode, .operand = next[0]};
    const bool ram = next[0] >= 0x80;
    if (f == FORM_ALONE && room >= 3 && next[0] == 0xd0 &&
        counting_pair(opcode) != KIND_SLOW)
        return (sti_decoded){.kind = counting_pair(opcode), .branch = next[1]};
    if (f == FORM_ALONE || (room >= 2 && (f == FORM_BYTE || f == FORM_INDEXED)))
        return d;
    if (room < 2 || (f == FORM_POINTER && (!ram || next[0] == 0xff)) ||
        (f == FORM_RAM && !ram))
        d.kind = KIND_SLOW;
    if (f == FORM_STORE && !ram && room >= 2)
        d.kind = tia_store(opcode);
    return d;
}

/* Code is read from the image's parts of 1 KiB, so an instruction that does not lie in
 * one of them is left alone. Stores of TIA by a word are three bytes long, which
 * `branch` says. */
static sti_decoded decode_one(const uint8_t *at, uint32_t room)
{
    const form f = forms[at[0]];
    const uint8_t next[2] = {room > 1 ? at[1] : 0, room > 2 ? at[2] : 0};
    sti_decoded d = {.kind = at[0], .operand = (uint16_t)(next[0] | next[1] << 8)};
    if (f == FORM_NONE)
        return (sti_decoded){.kind = KIND_SLOW};
    if (f < FORM_WORD)
        return decode_short(at[0], next, room);
    if (room < 3 || (f == FORM_WORD_STORE && (d.operand & 0x1080)))
        d.kind = KIND_SLOW;
    else if (f == FORM_WORD_STORE)
        d = (sti_decoded){tia_store(at[0]), 1, d.operand};
    return d;
}

size_t sti_cpu_decoded_count(uint32_t bytes)
{
    return ((size_t)bytes + PART - 1) / PART * STI_DECODED_PART;
}

/* direct_end: where the plain part of the 4 KiB ends, within one of these parts or with
 * it. The last bytes before that are another's, since what follows may find on the bus
 * what they left there. */
void sti_cpu_decode(const uint8_t *rom, uint32_t bytes, uint32_t direct_end,
                    sti_decoded *decoded_out)
{
    const uint32_t end = direct_end % PART ? direct_end % PART : PART;
    for (uint32_t part = 0; part * PART < bytes;
         part++, decoded_out += STI_DECODED_PART)
        for (uint32_t i = 0; i < STI_DECODED_PART; i++) {
            const uint32_t at = part * PART + i;
            const uint32_t stop = part * PART + end < bytes ? part * PART + end : bytes;
            decoded_out[i] = at + 3 < stop ? decode_one(rom + at, stop - at)
                                           : (sti_decoded){.kind = KIND_SLOW};
        }
}

/* ---- running ---- */

#define INLINE static inline __attribute__((always_inline))

/* The processor's registers while the loop runs. */
typedef struct fast {
    sti_bus *bus;
    sti_cpu *cpu;
    uint8_t *ram;
    uint32_t cycles;
    const sti_decoded *at;   /* the next instruction */
    const sti_decoded *part; /* the first of its part of the image */
    uint32_t part_pc;        /* address of that */
    uint32_t low, span;      /* places in the part where plain code may lie */
    unsigned a, x, y, sp, negative, nonzero, carry; /* of 8 bits and of 1 */
} fast;

INLINE uint16_t pc_of(const fast *f)
{
    return (uint16_t)(f->part_pc + (uint32_t)(f->at - f->part));
}

/* Go on at an address. Where no plain code can lie stands one instruction that another
 * must make. */
static void enter(fast *f, uint16_t pc)
{
    static const sti_decoded nowhere = {.kind = KIND_SLOW};
    const sti_bus *bus = f->bus;
    const uint32_t offset = pc & 0xfff, slice = offset / PART;
    f->at = f->part = &nowhere;
    f->part_pc = pc;
    f->low = f->span = 0;
    if (!(pc & 0x1000) || offset - bus->direct >= bus->direct_bytes)
        return;
    const uint32_t number = (uint32_t)(bus->slice[slice] - bus->cart->rom) / PART;
    f->part = bus->cart->decoded + (size_t)number * STI_DECODED_PART;
    f->at = f->part + offset % PART;
    f->part_pc = pc & ~(PART - 1u);
    f->low = bus->direct > slice * PART ? bus->direct - slice * PART : 0;
    f->span = PART - f->low;
}

INLINE void go(fast *f, uint16_t to)
{
    const uint32_t place = to - f->part_pc;
    if (place - f->low < f->span)
        f->at = f->part + place;
    else
        enter(f, to);
}

INLINE void take_up(fast *f)
{
    const sti_cpu *r = f->cpu;
    f->cycles = r->cycles;
    enter(f, r->pc);
    f->a = r->a;
    f->x = r->x;
    f->y = r->y;
    f->sp = r->sp;
    f->negative = r->negative;
    f->nonzero = r->nonzero;
    f->carry = r->carry;
}

INLINE void lay_down(const fast *f)
{
    sti_cpu *r = f->cpu;
    r->cycles = f->cycles;
    r->pc = pc_of(f);
    r->a = (uint8_t)f->a;
    r->x = (uint8_t)f->x;
    r->y = (uint8_t)f->y;
    r->sp = (uint8_t)f->sp;
    r->negative = (uint8_t)f->negative;
    r->nonzero = (uint8_t)f->nonzero;
    r->carry = (uint8_t)f->carry;
}

/* A read that nobody but RAM or the image sees; false: another must make it. */
INLINE bool plain(const fast *f, uint16_t address, uint8_t *value_out)
{
    const uint32_t offset = address & 0xfff;
    if (address & 0x1000) {
        if (offset - f->bus->direct >= f->bus->direct_bytes)
            return false;
        *value_out = f->bus->slice[offset >> 10][offset & 0x3ff];
        return true;
    }
    *value_out = f->ram[address & 0x7f];
    return (address & 0x280) == 0x80;
}

/* A read of any address, behind its instruction: chips and mappers see the cycle, and
 * the byte that was fetched last. */
INLINE uint8_t read_word(fast *f, uint16_t address)
{
    sti_cpu *r = f->cpu;
    uint8_t value = 0;
    if (plain(f, address, &value))
        return value;
    r->cycles = f->cycles;
    r->bus = (uint8_t)(address >> 8);
    r->was_read = true;
    value = sti_bus_read(f->bus, r, address);
    enter(f, pc_of(f)); /* a mapper may have changed its banks */
    return value;
}

INLINE bool indexed(fast *f, uint16_t base, unsigned index, uint8_t *value_out)
{
    const uint16_t at = (uint16_t)(base + index);
    if (!plain(f, at, value_out))
        return false;
    f->cycles += ((at ^ base) & 0xff00) != 0;
    return true;
}

INLINE uint16_t pointer(const fast *f, uint16_t operand)
{
    return (uint16_t)(f->ram[operand & 0x7f] | f->ram[(operand + 1) & 0x7f] << 8);
}

INLINE uint8_t flag(fast *f, unsigned value)
{
    f->negative = f->nonzero = (uint8_t)value;
    return (uint8_t)value;
}

INLINE void compare(fast *f, unsigned left, uint8_t right)
{
    f->carry = left >= right;
    (void)flag(f, (uint8_t)(left - right));
}

INLINE void add(fast *f, uint8_t value)
{
    const unsigned sum = (unsigned)f->a + value + f->carry;
    f->cpu->overflow = ((f->a ^ sum) & (value ^ sum) & 0x80) != 0;
    f->carry = sum > 0xff;
    f->a = flag(f, (uint8_t)sum);
}

INLINE void test_bits(fast *f, uint8_t value)
{
    f->nonzero = f->a & value;
    f->negative = value & 0x80;
    f->cpu->overflow = value >> 6 & 1;
}

INLINE uint8_t shift_left(fast *f, unsigned value, unsigned in)
{
    f->carry = value >> 7;
    return flag(f, value << 1 | in);
}

INLINE uint8_t shift_right(fast *f, unsigned value, unsigned in)
{
    f->carry = value & 1;
    return flag(f, value >> 1 | in << 7);
}

INLINE void branch(fast *f, bool taken, uint8_t distance)
{
    if (!taken)
        return;
    const uint32_t from = f->part_pc + (uint32_t)(f->at - f->part);
    const uint32_t to = from + (uint32_t)(int8_t)distance;
    f->cycles += (from ^ to) & 0xff00 ? 2 : 1;
    f->cpu->bus = distance;
    go(f, (uint16_t)to);
}

/* The value is on the bus then, and was written. */
INLINE void store_tia(fast *f, uint16_t address, unsigned value)
{
    sti_cpu *r = f->cpu;
    r->cycles = f->cycles;
    r->was_read = true;
    sti_tia_write(f->bus, r, address, (uint8_t)value);
    r->bus = (uint8_t)value;
    r->was_read = false;
    f->cycles = r->cycles;
    if (f->bus->cart->mapper->low_write)
        enter(f, pc_of(f)); /* it may have changed its banks */
}

INLINE void jump(fast *f, uint16_t to)
{
    f->cpu->bus = (uint8_t)(to >> 8);
    go(f, to);
}

INLINE void call(fast *f, uint16_t to)
{
    const uint16_t last = (uint16_t)(pc_of(f) - 1);
    f->ram[f->sp & 0x7f] = (uint8_t)(last >> 8);
    f->ram[(f->sp - 1) & 0x7f] = (uint8_t)last;
    f->sp -= 2;
    jump(f, to);
}

/* RTS reads the byte that it returns to: where that is a mapper's, another makes it. */
INLINE bool back(fast *f)
{
    uint8_t byte = 0;
    uint16_t to = 0;
    if (f->sp < 0x7f || f->sp > 0xfd)
        return false;
    to = (uint16_t)(f->ram[(f->sp + 1) & 0x7f] | f->ram[(f->sp + 2) & 0x7f] << 8);
    if (!plain(f, to, &byte))
        return false;
    f->sp = (uint8_t)(f->sp + 2);
    f->cpu->bus = byte;
    go(f, (uint16_t)(to + 1));
    return true;
}

/* A wait for the timer, see bus.h; what is on the bus then is the branch's distance. */
INLINE int64_t wait(fast *f, int64_t instructions)
{
    int64_t passed = 0;
    lay_down(f);
    passed = sti_riot_skip_wait(f->bus, f->cpu, instructions);
    f->cpu->bus = STI_WAIT_OFFSET;
    f->cpu->was_read = true;
    take_up(f);
    return passed;
}

/* clang-format off */
/* Left to the interpreter, before anything was done. */
#define SLOW_IF(condition) do { if (condition) goto slow; } while (0)
#define STEP(bytes, count) do { f.at += (bytes); f.cycles += (count); } while (0)
#define ALONE(opcode, op) op_##opcode: STEP(1, 2); op; NEXT;
#define BYTE_OF(op) v = (uint8_t)d.operand; STEP(2, 2); op; NEXT;
#define BYTE(opcode, op) op_##opcode: BYTE_OF(op)
#define RAM_OF(op) v = f.ram[d.operand & 0x7f]; STEP(2, 3); op; NEXT;
#define RAM(opcode, op) op_##opcode: RAM_OF(op)
#define CHANGE(opcode, op) \
    op_##opcode: v = f.ram[d.operand & 0x7f]; STEP(2, 5); f.ram[d.operand & 0x7f] = op; NEXT;
#define STORE(opcode, r) op_##opcode: f.ram[d.operand & 0x7f] = (uint8_t)f.r; STEP(2, 3); NEXT;
#define TIA(kind, r) \
    op_##kind: STEP(2 + d.branch, 3 + d.branch); store_tia(&f, d.operand, f.r); \
    NEXT_UNLESS_STOPPED;
#define INDEXED_OF(r, op) \
    v = (uint8_t)(d.operand + f.r); SLOW_IF(v < 0x80); \
    v = f.ram[v & 0x7f]; STEP(2, 4); op; NEXT;
#define INDEXED(opcode, r, op) op_##opcode: INDEXED_OF(r, op)
#define WORD(opcode, op) \
    op_##opcode: STEP(3, 4); v = read_word(&f, d.operand); op; NEXT_UNLESS_STOPPED;
#define TABLE_OF(r, op) \
    SLOW_IF(!indexed(&f, d.operand, f.r, &v)); STEP(3, 4); op; NEXT;
#define TABLE(opcode, r, op) op_##opcode: TABLE_OF(r, op)
#define POINTER(opcode, op) \
    op_##opcode: SLOW_IF(!indexed(&f, pointer(&f, d.operand), f.y, &v)); \
        STEP(2, 5); op; NEXT;
#define BRANCH(opcode, taken) \
    op_##opcode: STEP(2, 2); branch(&f, taken, (uint8_t)d.operand); NEXT;
#define COUNT(kind, r, by) \
    op_##kind: f.r = flag(&f, f.r + (by)); STEP(3, 4); left--; \
        branch(&f, f.nonzero, d.branch); NEXT;

#define LOAD(r) f.r = flag(&f, v)
#define BOTH(op) f.a = flag(&f, f.a op v)
#define SUM(value) add(&f, (uint8_t)(value))

#define FAST_OPCODES \
    ALONE(0x88, f.y = flag(&f, f.y - 1)) ALONE(0xc8, f.y = flag(&f, f.y + 1)) \
    ALONE(0xca, f.x = flag(&f, f.x - 1)) ALONE(0xe8, f.x = flag(&f, f.x + 1)) \
    ALONE(0x8a, f.a = flag(&f, f.x)) ALONE(0x98, f.a = flag(&f, f.y)) \
    ALONE(0xa8, f.y = flag(&f, f.a)) ALONE(0xaa, f.x = flag(&f, f.a)) \
    ALONE(0x9a, f.sp = f.x) ALONE(0xba, f.x = flag(&f, f.sp)) \
    ALONE(0x18, f.carry = 0) ALONE(0x38, f.carry = 1) ALONE(0xea, (void)0) \
    ALONE(0x0a, f.a = shift_left(&f, f.a, 0)) ALONE(0x2a, f.a = shift_left(&f, f.a, f.carry)) \
    ALONE(0x4a, f.a = shift_right(&f, f.a, 0)) ALONE(0x6a, f.a = shift_right(&f, f.a, f.carry)) \
    BYTE(0xa9, LOAD(a)) BYTE(0xa2, LOAD(x)) BYTE(0xa0, LOAD(y)) \
    BYTE(0x09, BOTH(|)) BYTE(0x29, BOTH(&)) BYTE(0x49, BOTH(^)) \
    BYTE(0xc9, compare(&f, f.a, v)) BYTE(0xe0, compare(&f, f.x, v)) BYTE(0xc0, compare(&f, f.y, v)) \
    RAM(0xa5, LOAD(a)) RAM(0xa6, LOAD(x)) RAM(0xa4, LOAD(y)) \
    RAM(0x05, BOTH(|)) RAM(0x25, BOTH(&)) RAM(0x45, BOTH(^)) RAM(0x24, test_bits(&f, v)) \
    RAM(0xc5, compare(&f, f.a, v)) RAM(0xe4, compare(&f, f.x, v)) RAM(0xc4, compare(&f, f.y, v)) \
    CHANGE(0xe6, flag(&f, (uint8_t)(v + 1))) CHANGE(0xc6, flag(&f, (uint8_t)(v - 1))) \
    CHANGE(0x06, shift_left(&f, v, 0)) CHANGE(0x26, shift_left(&f, v, f.carry)) \
    CHANGE(0x46, shift_right(&f, v, 0)) CHANGE(0x66, shift_right(&f, v, f.carry)) \
    STORE(0x85, a) STORE(0x86, x) STORE(0x84, y) \
    TIA(KIND_STA_TIA, a) TIA(KIND_STX_TIA, x) TIA(KIND_STY_TIA, y) \
    INDEXED(0xb5, x, LOAD(a)) INDEXED(0xb4, x, LOAD(y)) INDEXED(0xb6, y, LOAD(x)) \
    INDEXED(0xd5, x, compare(&f, f.a, v)) \
    WORD(0xad, LOAD(a)) WORD(0xae, LOAD(x)) WORD(0xac, LOAD(y)) \
    TABLE(0xbd, x, LOAD(a)) TABLE(0xb9, y, LOAD(a)) TABLE(0xbc, x, LOAD(y)) TABLE(0xbe, y, LOAD(x)) \
    TABLE(0x1d, x, BOTH(|)) TABLE(0x3d, x, BOTH(&)) TABLE(0x19, y, BOTH(|)) TABLE(0x39, y, BOTH(&)) \
    TABLE(0xdd, x, compare(&f, f.a, v)) TABLE(0xd9, y, compare(&f, f.a, v)) \
    POINTER(0xb1, LOAD(a)) POINTER(0x11, BOTH(|)) POINTER(0x31, BOTH(&)) \
    BRANCH(0x10, !(f.negative & 0x80)) BRANCH(0x30, f.negative & 0x80) \
    BRANCH(0x50, !f.cpu->overflow) BRANCH(0x70, f.cpu->overflow) \
    BRANCH(0x90, !f.carry) BRANCH(0xb0, f.carry) BRANCH(0xf0, !f.nonzero) \
    COUNT(KIND_DEX_BNE, x, -1) COUNT(KIND_DEY_BNE, y, -1) \
    COUNT(KIND_INX_BNE, x, 1) COUNT(KIND_INY_BNE, y, 1)

/* Sums of decimal mode are another's. */
#define BINARY(opcode) op_##opcode: SLOW_IF(f.cpu->decimal);
#define FAST_SUMS \
    BINARY(0x69) BYTE_OF(SUM(v)) BINARY(0xe9) BYTE_OF(SUM(~v)) \
    BINARY(0x65) RAM_OF(SUM(v)) BINARY(0xe5) RAM_OF(SUM(~v)) \
    BINARY(0x75) INDEXED_OF(x, SUM(v)) \
    BINARY(0x7d) TABLE_OF(x, SUM(v)) BINARY(0x79) TABLE_OF(y, SUM(v))

#define FAST_REST \
    op_0x95: \
        v = (uint8_t)(d.operand + f.x); \
        STEP(2, 4); \
        if (v >= 0x80) f.ram[v & 0x7f] = (uint8_t)f.a; else store_tia(&f, v, f.a); \
        NEXT_UNLESS_STOPPED; \
    op_0xd0: \
        STEP(2, 2); \
        branch(&f, f.nonzero, (uint8_t)d.operand); \
        if ((uint8_t)d.operand == STI_WAIT_OFFSET && f.nonzero) left -= wait(&f, left); \
        NEXT; \
    op_0x4c: jump(&f, d.operand); f.cycles += 3; NEXT; \
    op_0x20: SLOW_IF(f.sp < 0x81); STEP(3, 6); call(&f, d.operand); NEXT; \
    op_0x60: SLOW_IF(!back(&f)); f.cycles += 6; NEXT; \
    op_0x48: SLOW_IF(f.sp < 0x80); f.ram[f.sp-- & 0x7f] = (uint8_t)f.a; STEP(1, 3); NEXT; \
    op_0x68: \
        SLOW_IF(f.sp < 0x7f || f.sp == 0xff); \
        f.a = flag(&f, f.ram[++f.sp & 0x7f]); STEP(1, 4); NEXT;

/* Every kind that decoding gives but those that are slow. */
#define FAST_KINDS(L) \
    L(0x88) L(0xc8) L(0xca) L(0xe8) L(0x8a) L(0x98) L(0xa8) L(0xaa) L(0x18) L(0x38) \
    L(0xea) L(0x60) L(0x0a) L(0x2a) L(0x4a) L(0x6a) L(0x48) L(0x68) L(0x9a) L(0xba) \
    L(0xa9) L(0xa2) L(0xa0) L(0x09) L(0x29) L(0x49) L(0x69) L(0xe9) L(0xc9) L(0xe0) \
    L(0xc0) L(0x10) L(0x30) L(0x50) L(0x70) L(0x90) L(0xb0) L(0xd0) L(0xf0) L(0xa5) \
    L(0xa6) L(0xa4) L(0x05) L(0x25) L(0x45) L(0x65) L(0xe5) L(0xc5) L(0xe4) L(0xc4) \
    L(0x24) L(0xe6) L(0xc6) L(0x06) L(0x26) L(0x46) L(0x66) L(0x85) L(0x86) L(0x84) \
    L(0xb5) L(0xb4) L(0xb6) L(0x95) L(0x75) L(0xd5) L(0xb1) L(0x11) L(0x31) L(0xad) \
    L(0xae) L(0xac) L(0xbd) L(0xb9) L(0xbc) L(0xbe) L(0x1d) L(0x3d) L(0x19) L(0x39) \
    L(0x7d) L(0x79) L(0xdd) L(0xd9) L(0x4c) L(0x20) L(KIND_STA_TIA) L(KIND_STX_TIA) \
    L(KIND_STY_TIA) L(KIND_DEX_BNE) L(KIND_DEY_BNE) L(KIND_INX_BNE) L(KIND_INY_BNE)

#define LABEL(kind) [kind] = &&op_##kind,

/* Each instruction leaps to the next one's code itself: a processor foresees that
 * better than leaps from one place. A pair is two instructions. */
#define NEXT do { \
        if (left <= 2) goto out; \
        left--; d = *f.at; \
        goto *code[d.kind]; \
    } while (0)
#define NEXT_UNLESS_STOPPED do { \
        if (bus->stop) goto out; \
        NEXT; \
    } while (0)
/* clang-format on */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic" /* labels as values */

void sti_cpu_run_ale(sti_bus *bus, int64_t instructions)
{
    static const void *const code[256] = {
        [0] = &&slow, [KIND_SLOW] = &&slow, FAST_KINDS(LABEL)};
    fast f = {.bus = bus, .cpu = &bus->console->cpu, .ram = bus->console->riot.ram};
    sti_decoded d = {0};
    int64_t left = instructions;
    uint8_t v = 0;
    take_up(&f);
    NEXT_UNLESS_STOPPED;
    FAST_OPCODES
    FAST_SUMS
    FAST_REST
slow:
    lay_down(&f);
    sti_cpu_interpret_ale(bus, 1);
    take_up(&f);
    NEXT_UNLESS_STOPPED;
out:
    lay_down(&f);
    if (!bus->stop)
        sti_cpu_interpret_ale(bus, left);
}

#pragma GCC diagnostic pop
