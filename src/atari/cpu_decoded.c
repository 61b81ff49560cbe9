/* The fast loop of ALE's processor: instructions that were decoded when the image was
 * loaded, registers in registers, pairs that programs are full of in one piece.
 *
 * It makes an instruction only where the code is plain: in the part of the image that
 * is read without a mapper. What the instruction reads and writes may be a chip's or a
 * mapper's. All else is left to the interpreter of cpu_ale.c, an instruction at a time:
 * code in RAM or beside hot spots, decimal sums, rare opcodes. What the data bus holds
 * is kept where the program goes on elsewhere, since code may lie where nothing but the
 * bus answers; else an instruction finds there what it has fetched itself, and the last
 * one of a frame is the interpreter's or a store.
 *
 * Instructions are counted, since a frame is cut after so many, but looked after only
 * where a program can go back: it leaves the loop while more are left than it can make
 * till the next such place. */
#include "atari/cpu_decoded.h"

#include "atari/cpu_fast.h"

/* Between two looks at the count: a part's length and the rounds of a short loop. */
enum { UNSEEN_MOST = 2048 };

/* clang-format off */
/* Left to the interpreter, before anything was done. */
#define SLOW_IF(condition) do { if (condition) goto slow; } while (0)
#define STEP(bytes, count) do { f.at += (bytes); f.passed += CYCLES(count) + 1; } while (0)
#define PAIR(bytes, count) do { f.at += (bytes); f.passed += CYCLES(count) + 2; } while (0)
/* What an instruction is decoded to; read before its STEP. */
#define OPERAND (f.at->operand)
#define OPERAND_BYTE ((uint8_t)f.at->operand)
#define EXTRA (f.at->extra)
/* n: operand, v: value; at: an address. */
#define ALONE(opcode, op) op_##opcode: STEP(1, 2); op; NEXT;
#define BYTE(opcode, op) op_##opcode: v = OPERAND_BYTE; STEP(2, 2); op; NEXT;
#define RAM(opcode, op) op_##opcode: v = f.ram[OPERAND & 0x7f]; STEP(2, 3); op; NEXT;
#define CHANGE(opcode, op) \
    op_##opcode: at = OPERAND & 0x7f; v = f.ram[at]; STEP(2, 5); f.ram[at] = op; NEXT;
#define STORE(opcode, r) op_##opcode: f.ram[OPERAND & 0x7f] = (uint8_t)f.r; STEP(2, 3); NEXT;
#define TIA(kind, r) \
    op_##kind: at = OPERAND; STEP(2, 3); store_tia(&f, at, f.r); NEXT_UNLESS_STOPPED;
#define WSYNC(kind, r) \
    op_##kind: at = OPERAND; STEP(2, 3); \
    if (sync(&f)) NEXT; \
    write_at(&f, at, f.r); NEXT_UNLESS_STOPPED;
#define INDEXED(opcode, r, op) \
    op_##opcode: at = (uint8_t)(OPERAND + f.r); n = OPERAND; STEP(2, 4); \
        v = read_at(&f, at, n); op; NEXT;
#define CHANGE_INDEXED(opcode, op) \
    op_##opcode: at = (uint8_t)(OPERAND + f.x); SLOW_IF(at < 0x80); \
        v = f.ram[at & 0x7f]; STEP(2, 6); f.ram[at & 0x7f] = op; NEXT;
#define STORE_INDEXED(opcode, r, index) \
    op_##opcode: at = (uint8_t)(OPERAND + f.index); STEP(2, 4); write_at(&f, at, f.r); \
    NEXT_UNLESS_STOPPED;
#define WORD(opcode, op) \
    op_##opcode: at = OPERAND; STEP(3, 4); v = read_at(&f, at, at >> 8); op; NEXT;
#define STORE_WORD(opcode, r) \
    op_##opcode: at = OPERAND; STEP(3, 4); write_at(&f, at, f.r); NEXT_UNLESS_STOPPED;
#define TABLE_OF(r, bytes, step) \
    n = OPERAND; at = (uint16_t)(n + f.r); step(bytes, 4 + ((at ^ n) & 0xff00 ? 1 : 0)); \
    v = read_at(&f, at, n >> 8);
#define TABLE(opcode, r, op) op_##opcode: TABLE_OF(r, 3, STEP) op; NEXT;
#define STORE_TABLE(opcode, r) \
    op_##opcode: at = (uint16_t)(OPERAND + f.r); STEP(3, 5); write_at(&f, at, f.a); \
    NEXT_UNLESS_STOPPED;
#define POINTER_OF(bytes, count, step) \
    n = pointer(&f, OPERAND); at = (uint16_t)(n + f.y); \
    step(bytes, count + ((at ^ n) & 0xff00 ? 1 : 0)); v = read_at(&f, at, n >> 8);
#define POINTER(opcode, op) op_##opcode: POINTER_OF(2, 5, STEP) op; NEXT;
#define GO_IF(taken) do { \
        if (taken) { branch(&f, n); NEXT_CHECKED; } \
        NEXT; \
    } while (0)
#define BRANCH(opcode, taken) op_##opcode: n = OPERAND; STEP(2, 2); GO_IF(taken);
#define COUNT(kind, r, by, taken) \
    op_##kind: n = OPERAND; PAIR(3, 4); f.r = flag(&f, f.r + (by)); GO_IF(taken);
#define TEST(kind, r, taken) \
    op_##kind: n = OPERAND; v = EXTRA; PAIR(4, 4); compare(&f, f.r, v); GO_IF(taken);
/* A store of A behind its load of v, in TIA. */
#define SHOW(count) LOAD(a); f.passed += CYCLES(count); store_tia(&f, extra, f.a); NEXT_UNLESS_STOPPED;

#define LOAD(r) f.r = flag(&f, v)
#define BOTH(op) f.a = flag(&f, f.a op v)
#define SUM(value) add(&f, (uint8_t)(value))
#define COMPARE(r) compare(&f, f.r, v)
#define IS_MINUS (f.flags & NEGATIVE)
#define IS_ZERO is_zero(&f)

#define FAST_OPCODES \
    ALONE(0x88, f.y = flag(&f, f.y - 1)) ALONE(0xc8, f.y = flag(&f, f.y + 1)) \
    ALONE(0xca, f.x = flag(&f, f.x - 1)) ALONE(0xe8, f.x = flag(&f, f.x + 1)) \
    ALONE(0x8a, f.a = flag(&f, f.x)) ALONE(0x98, f.a = flag(&f, f.y)) \
    ALONE(0xa8, f.y = flag(&f, f.a)) ALONE(0xaa, f.x = flag(&f, f.a)) \
    ALONE(0x9a, f.sp = f.x) ALONE(0xba, f.x = flag(&f, f.sp)) \
    ALONE(0x18, f.carry = 0) ALONE(0x38, f.carry = 1) ALONE(0xea, (void)0) \
    ALONE(0xd8, f.cpu->decimal = 0) ALONE(0xf8, f.cpu->decimal = 1) ALONE(0xb8, f.cpu->overflow = 0) \
    ALONE(0x0a, f.a = shift_left(&f, f.a, 0)) ALONE(0x2a, f.a = shift_left(&f, f.a, f.carry)) \
    ALONE(0x4a, f.a = shift_right(&f, f.a, 0)) ALONE(0x6a, f.a = shift_right(&f, f.a, f.carry)) \
    BYTE(0xa9, LOAD(a)) BYTE(0xa2, LOAD(x)) BYTE(0xa0, LOAD(y)) \
    BYTE(0x09, BOTH(|)) BYTE(0x29, BOTH(&)) BYTE(0x49, BOTH(^)) \
    BYTE(0xc9, COMPARE(a)) BYTE(0xe0, COMPARE(x)) BYTE(0xc0, COMPARE(y)) \
    RAM(0xa5, LOAD(a)) RAM(0xa6, LOAD(x)) RAM(0xa4, LOAD(y)) \
    RAM(0x05, BOTH(|)) RAM(0x25, BOTH(&)) RAM(0x45, BOTH(^)) RAM(0x24, test_bits(&f, v)) \
    RAM(0xc5, COMPARE(a)) RAM(0xe4, COMPARE(x)) RAM(0xc4, COMPARE(y)) \
    CHANGE(0xe6, flag(&f, v + 1u)) CHANGE(0xc6, flag(&f, v - 1u)) \
    CHANGE(0x06, shift_left(&f, v, 0)) CHANGE(0x26, shift_left(&f, v, f.carry)) \
    CHANGE(0x46, shift_right(&f, v, 0)) CHANGE(0x66, shift_right(&f, v, f.carry)) \
    CHANGE_INDEXED(0xf6, flag(&f, v + 1u)) CHANGE_INDEXED(0xd6, flag(&f, v - 1u)) \
    STORE(0x85, a) STORE(0x86, x) STORE(0x84, y) \
    STORE_INDEXED(0x95, a, x) STORE_INDEXED(0x94, y, x) STORE_INDEXED(0x96, x, y) \
    STORE_WORD(0x8d, a) STORE_WORD(0x8e, x) STORE_WORD(0x8c, y) \
    STORE_TABLE(0x9d, x) STORE_TABLE(0x99, y) \
    INDEXED(0xb5, x, LOAD(a)) INDEXED(0xb4, x, LOAD(y)) INDEXED(0xb6, y, LOAD(x)) \
    INDEXED(0xd5, x, COMPARE(a)) INDEXED(0x15, x, BOTH(|)) INDEXED(0x35, x, BOTH(&)) \
    INDEXED(0x55, x, BOTH(^)) \
    WORD(0xad, LOAD(a)) WORD(0xae, LOAD(x)) WORD(0xac, LOAD(y)) WORD(0x2c, test_bits(&f, v)) \
    WORD(0xcd, COMPARE(a)) WORD(0x0d, BOTH(|)) WORD(0x2d, BOTH(&)) WORD(0x4d, BOTH(^)) \
    TABLE(0xbd, x, LOAD(a)) TABLE(0xb9, y, LOAD(a)) TABLE(0xbc, x, LOAD(y)) TABLE(0xbe, y, LOAD(x)) \
    TABLE(0x1d, x, BOTH(|)) TABLE(0x3d, x, BOTH(&)) TABLE(0x5d, x, BOTH(^)) \
    TABLE(0x19, y, BOTH(|)) TABLE(0x39, y, BOTH(&)) TABLE(0x59, y, BOTH(^)) \
    TABLE(0xdd, x, COMPARE(a)) TABLE(0xd9, y, COMPARE(a)) \
    POINTER(0xb1, LOAD(a)) POINTER(0x11, BOTH(|)) POINTER(0x31, BOTH(&)) POINTER(0x51, BOTH(^)) \
    POINTER(0xd1, COMPARE(a)) POINTER(0xb3, f.x = LOAD(a)) \
    BRANCH(0x10, !IS_MINUS) BRANCH(0x30, IS_MINUS) \
    BRANCH(0x50, !f.cpu->overflow) BRANCH(0x70, f.cpu->overflow) \
    BRANCH(0x90, !f.carry) BRANCH(0xb0, f.carry) BRANCH(0xf0, IS_ZERO)

/* ALE's LAX of page 0 takes 4 cycles. */
#define FAST_UNDOCUMENTED \
    op_0xa7: v = f.ram[OPERAND & 0x7f]; STEP(2, 4); f.x = LOAD(a); NEXT; \
    CHANGE(0xc7, (compare(&f, f.a, (uint8_t)(v - 1)), (uint8_t)(v - 1)))

/* Sums of decimal mode are another's. */
#define BINARY(kind) op_##kind: SLOW_IF(f.cpu->decimal);
#define FAST_SUMS \
    BINARY(0x69) v = OPERAND_BYTE; STEP(2, 2); SUM(v); NEXT; \
    BINARY(0xe9) v = OPERAND_BYTE; STEP(2, 2); SUM(~v); NEXT; \
    BINARY(0x65) v = f.ram[OPERAND & 0x7f]; STEP(2, 3); SUM(v); NEXT; \
    BINARY(0xe5) v = f.ram[OPERAND & 0x7f]; STEP(2, 3); SUM(~v); NEXT; \
    BINARY(0x75) at = (uint8_t)(OPERAND + f.x); n = OPERAND; STEP(2, 4); v = read_at(&f, at, n); SUM(v); NEXT; \
    BINARY(0xf5) at = (uint8_t)(OPERAND + f.x); n = OPERAND; STEP(2, 4); v = read_at(&f, at, n); SUM(~v); NEXT; \
    BINARY(0x7d) TABLE_OF(x, 3, STEP) SUM(v); NEXT; \
    BINARY(0x79) TABLE_OF(y, 3, STEP) SUM(v); NEXT; \
    BINARY(0xfd) TABLE_OF(x, 3, STEP) SUM(~v); NEXT; \
    BINARY(0xf9) TABLE_OF(y, 3, STEP) SUM(~v); NEXT; \
    BINARY(0x71) POINTER_OF(2, 5, STEP) SUM(v); NEXT; \
    BINARY(0xf1) POINTER_OF(2, 5, STEP) SUM(~v); NEXT; \
    BINARY(STI_KIND_SEC_SBC) v = OPERAND_BYTE; PAIR(3, 4); f.carry = 1; SUM(~v); NEXT; \
    BINARY(STI_KIND_SEC_SBC_RAM) v = f.ram[OPERAND & 0x7f]; PAIR(3, 5); f.carry = 1; SUM(~v); NEXT; \
    BINARY(STI_KIND_CLC_ADC) v = OPERAND_BYTE; PAIR(3, 4); f.carry = 0; SUM(v); NEXT; \
    BINARY(STI_KIND_CLC_ADC_RAM) v = f.ram[OPERAND & 0x7f]; PAIR(3, 5); f.carry = 0; SUM(v); NEXT; \
    BINARY(STI_KIND_SBC_BCS) n = OPERAND; v = EXTRA; PAIR(4, 4); SUM(~v); GO_IF(f.carry);

#define FAST_PAIRS \
    COUNT(STI_KIND_DEX_BNE, x, -1, !IS_ZERO) COUNT(STI_KIND_DEY_BNE, y, -1, !IS_ZERO) \
    COUNT(STI_KIND_INX_BNE, x, 1, !IS_ZERO) COUNT(STI_KIND_INY_BNE, y, 1, !IS_ZERO) \
    COUNT(STI_KIND_DEX_BPL, x, -1, !IS_MINUS) COUNT(STI_KIND_DEY_BPL, y, -1, !IS_MINUS) \
    TEST(STI_KIND_CMP_BNE, a, !IS_ZERO) TEST(STI_KIND_CMP_BEQ, a, IS_ZERO) \
    TEST(STI_KIND_CMP_BCC, a, !f.carry) TEST(STI_KIND_CMP_BCS, a, f.carry) \
    TEST(STI_KIND_CPX_BNE, x, !IS_ZERO) TEST(STI_KIND_CPY_BNE, y, !IS_ZERO) \
    op_STI_KIND_DEC_BNE: \
        n = OPERAND; at = EXTRA & 0x7f; PAIR(4, 7); \
        f.ram[at] = flag(&f, f.ram[at] - 1u); GO_IF(!IS_ZERO); \
    op_STI_KIND_LDA_TIA: \
        v = OPERAND_BYTE; extra = EXTRA; PAIR(4, 2); SHOW(3) \
    op_STI_KIND_LDA_RAM_TIA: \
        v = f.ram[OPERAND & 0x7f]; extra = EXTRA; PAIR(4, 3); SHOW(3) \
    op_STI_KIND_LDA_RAM_X_TIA: \
        at = (uint8_t)(OPERAND + f.x); if (at < 0x80) goto op_0xb5; \
        v = f.ram[at & 0x7f]; extra = EXTRA; PAIR(4, 4); SHOW(3) \
    op_STI_KIND_LDA_X_TIA: \
        at = (uint16_t)(OPERAND + f.x); if (!plain(&f, at, &v)) goto op_0xbd; \
        goto table_shown; \
    op_STI_KIND_LDA_Y_TIA: \
        at = (uint16_t)(OPERAND + f.y); if (!plain(&f, at, &v)) goto op_0xb9; \
    table_shown: \
        n = OPERAND; extra = EXTRA; PAIR(5, 4 + ((at ^ n) & 0xff00 ? 1 : 0)); SHOW(3) \
    op_STI_KIND_LDA_POINTER_TIA: \
        n = pointer(&f, OPERAND); at = (uint16_t)(n + f.y); \
        if (!plain(&f, at, &v)) goto op_0xb1; \
        extra = EXTRA; PAIR(4, 5 + ((at ^ n) & 0xff00 ? 1 : 0)); SHOW(3) \
    op_STI_KIND_LDA_STA: \
        v = OPERAND_BYTE; at = EXTRA & 0x7f; PAIR(4, 5); LOAD(a); f.ram[at] = v; NEXT; \
    op_STI_KIND_LDA_RAM_STA: \
        v = f.ram[OPERAND & 0x7f]; at = EXTRA & 0x7f; PAIR(4, 6); LOAD(a); f.ram[at] = v; NEXT; \
    op_STI_KIND_SPIN: \
        n = OPERAND; v = EXTRA; f.at += 3; \
        if (v == 0xca) f.x = spin(&f, f.x, n); else f.y = spin(&f, f.y, n); \
        NEXT_CHECKED;

#define FAST_REST \
    TIA(STI_KIND_STA_TIA, a) TIA(STI_KIND_STX_TIA, x) TIA(STI_KIND_STY_TIA, y) \
    WSYNC(STI_KIND_STA_WSYNC, a) WSYNC(STI_KIND_STX_WSYNC, x) WSYNC(STI_KIND_STY_WSYNC, y) \
    op_STI_KIND_READ_TIA: \
        n = OPERAND; v = EXTRA; STEP(2, 3); read_tia(&f, v, n); NEXT; \
    op_STI_KIND_FAR: \
        n = OPERAND; v = EXTRA; STEP(2, 2); branch_far(&f, v, (uint8_t)n); NEXT_CHECKED; \
    op_0xd0: \
        n = OPERAND; STEP(2, 2); \
        if (IS_ZERO) NEXT; \
        branch(&f, n); \
        if ((uint8_t)n == STI_WAIT_OFFSET) wait(&f, enough); \
        NEXT_CHECKED; \
    op_0x91: \
        at = (uint16_t)(pointer(&f, OPERAND) + f.y); STEP(2, 6); write_at(&f, at, f.a); \
        NEXT_UNLESS_STOPPED; \
    op_0x4c: at = OPERAND; f.passed += CYCLES(3) + 1; jump(&f, at); NEXT_CHECKED; \
    op_0x20: SLOW_IF(f.sp < 0x81); at = OPERAND; STEP(3, 6); call(&f, at); NEXT_CHECKED; \
    op_0x60: SLOW_IF(!back(&f)); f.passed += CYCLES(6) + 1; NEXT_CHECKED; \
    op_0x48: SLOW_IF(f.sp < 0x80); f.ram[f.sp-- & 0x7f] = (uint8_t)f.a; STEP(1, 3); NEXT; \
    op_0x68: \
        SLOW_IF(f.sp < 0x7f || f.sp == 0xff); \
        f.a = flag(&f, f.ram[++f.sp & 0x7f]); STEP(1, 4); NEXT;

/* Every kind that decoding gives but those that are slow. */
#define FAST_KINDS(L) \
    L(0x88) L(0xc8) L(0xca) L(0xe8) L(0x8a) L(0x98) L(0xa8) L(0xaa) L(0x18) L(0x38) \
    L(0xea) L(0x60) L(0x0a) L(0x2a) L(0x4a) L(0x6a) L(0x48) L(0x68) L(0x9a) L(0xba) \
    L(0xd8) L(0xf8) L(0xb8) L(0xa9) L(0xa2) L(0xa0) L(0x09) L(0x29) L(0x49) L(0x69) \
    L(0xe9) L(0xc9) L(0xe0) L(0xc0) L(0x10) L(0x30) L(0x50) L(0x70) L(0x90) L(0xb0) \
    L(0xd0) L(0xf0) L(0xa5) L(0xa6) L(0xa4) L(0x24) L(0x05) L(0x25) L(0x45) L(0x65) \
    L(0xe5) L(0xc5) L(0xe4) L(0xc4) L(0xe6) L(0xc6) L(0x06) L(0x26) L(0x46) L(0x66) \
    L(0xc7) L(0xa7) L(0x85) L(0x86) L(0x84) L(0xb5) L(0xb4) L(0xb6) L(0x95) L(0x94) \
    L(0x96) L(0x75) L(0xf5) L(0xd5) L(0x15) L(0x35) L(0x55) L(0xf6) L(0xd6) L(0xb1) \
    L(0x11) L(0x31) L(0x51) L(0x71) L(0xf1) L(0xd1) L(0xb3) L(0x91) L(0xad) L(0xae) \
    L(0xac) L(0x2c) L(0xcd) L(0x0d) L(0x2d) L(0x4d) L(0xbd) L(0xb9) L(0xbc) L(0xbe) \
    L(0x1d) L(0x3d) L(0x5d) L(0x19) L(0x39) L(0x59) L(0x7d) L(0x79) L(0xfd) L(0xf9) \
    L(0xdd) L(0xd9) L(0x4c) L(0x20) L(0x9d) L(0x99) L(0x8d) L(0x8e) L(0x8c) \
    L(STI_KIND_STA_TIA) L(STI_KIND_STX_TIA) L(STI_KIND_STY_TIA) \
    L(STI_KIND_STA_WSYNC) L(STI_KIND_STX_WSYNC) L(STI_KIND_STY_WSYNC) \
    L(STI_KIND_READ_TIA) L(STI_KIND_FAR) L(STI_KIND_SPIN) L(STI_KIND_DEX_BNE) \
    L(STI_KIND_DEY_BNE) L(STI_KIND_INX_BNE) L(STI_KIND_INY_BNE) L(STI_KIND_DEX_BPL) \
    L(STI_KIND_DEY_BPL) L(STI_KIND_DEC_BNE) L(STI_KIND_CMP_BNE) L(STI_KIND_CMP_BEQ) \
    L(STI_KIND_CMP_BCC) L(STI_KIND_CMP_BCS) L(STI_KIND_CPX_BNE) L(STI_KIND_CPY_BNE) \
    L(STI_KIND_SBC_BCS) L(STI_KIND_SEC_SBC) L(STI_KIND_SEC_SBC_RAM) L(STI_KIND_CLC_ADC) \
    L(STI_KIND_CLC_ADC_RAM) L(STI_KIND_LDA_TIA) L(STI_KIND_LDA_RAM_TIA) \
    L(STI_KIND_LDA_X_TIA) L(STI_KIND_LDA_Y_TIA) L(STI_KIND_LDA_POINTER_TIA) \
    L(STI_KIND_LDA_RAM_X_TIA) L(STI_KIND_LDA_STA) L(STI_KIND_LDA_RAM_STA)

#define LABEL(kind) [kind] = &&op_##kind,

/* Each instruction leaps to the next one's code itself: a processor foresees that
 * better than leaps from one place. */
#define NEXT goto *code[f.at->kind]
#define NEXT_UNLESS_STOPPED do { \
        if (bus->stop) goto out; \
        NEXT; \
    } while (0)
#define NEXT_CHECKED do { \
        if ((uint16_t)f.passed >= enough) goto out; \
        NEXT; \
    } while (0)
/* clang-format on */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic" /* labels as values */

static int64_t run_decoded(sti_bus *bus, int64_t instructions)
{
    static const void *const code[256] = {
        [0] = &&slow, [STI_KIND_SLOW] = &&slow, FAST_KINDS(LABEL)};
    const uint16_t enough = (uint16_t)(instructions - UNSEEN_MOST);
    fast f = {.bus = bus, .cpu = &bus->console->cpu, .ram = bus->console->riot.ram};
    unsigned n = 0, extra = 0;
    uint16_t at = 0;
    uint8_t v = 0;
    take_up(&f);
    NEXT;
    FAST_OPCODES
    FAST_UNDOCUMENTED
    FAST_SUMS
    FAST_PAIRS
    FAST_REST
slow:
    lay_down(&f);
    sti_cpu_interpret_ale(bus, 1);
    take_up(&f);
    f.passed++;
    if (!bus->stop)
        NEXT_CHECKED;
out:
    lay_down(&f);
    return instructions - (uint16_t)f.passed;
}

#pragma GCC diagnostic pop

void sti_cpu_run_ale(sti_bus *bus, int64_t instructions)
{
    if (!bus->stop && instructions > UNSEEN_MOST && instructions <= UINT16_MAX)
        instructions = run_decoded(bus, instructions);
    if (!bus->stop)
        sti_cpu_interpret_ale(bus, instructions);
}
