/* The exact processor against what is published of the chip: decimal mode digit by
 * digit, the accesses of addressing modes, cycle counts, and jams. With
 * STINT_PROCESSOR_TESTS naming a folder of Tom Harte's tests in their binary form
 * (00.bin to ff.bin), all cases of those are run, too; with STINT_FUNCTIONAL_TEST
 * naming Klaus Dormann's 6502_functional_test.bin, that one; and with
 * STINT_DECIMAL_TEST naming his 6502_decimal_test.a65 (Bruce Clark's), assembled for
 * 0200 with a jump to itself as end_of_test, that. */
#include "flat_bus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static flat_bus bus;

static sti_cpu begin(const uint8_t *code, size_t length)
{
    sti_cpu cpu = {.pc = 0x1234, .sp = 0xf0, .nonzero = 1};
    memset(&bus, 0, sizeof bus);
    memcpy(bus.ram + cpu.pc, code, length);
    return cpu;
}

/* Digit by digit, as on paper; valid digits only. */
static int paper_sum(int a, int b, int carry, int *carry_out)
{
    int low = (a & 15) + (b & 15) + carry, high = (a >> 4) + (b >> 4);
    if (low > 9) {
        low -= 10;
        high++;
    }
    *carry_out = high > 9;
    return (high > 9 ? high - 10 : high) << 4 | low;
}

static int paper_difference(int a, int b, int carry, int *carry_out)
{
    int low = (a & 15) - (b & 15) - !carry, high = (a >> 4) - (b >> 4);
    if (low < 0) {
        low += 10;
        high--;
    }
    *carry_out = high >= 0;
    return (high < 0 ? high + 10 : high) << 4 | low;
}

static void test_decimal(void **state)
{
    (void)state;
    for (int number = 0; number < 2 * 100 * 100; number++) {
        const int carry = number & 1, i = number / 2 / 100, j = number / 2 % 100;
        const uint8_t a = (uint8_t)(i / 10 << 4 | i % 10);
        const uint8_t b = (uint8_t)(j / 10 << 4 | j % 10);
        for (int op = 0; op < 2; op++) {
            const uint8_t code[2] = {op ? 0xe9 : 0x69, b};
            sti_cpu cpu = begin(code, 2);
            int wanted_carry = 0;
            const int wanted = op ? paper_difference(a, b, carry, &wanted_carry)
                                  : paper_sum(a, b, carry, &wanted_carry);
            cpu.a = a;
            cpu.carry = (uint8_t)carry;
            cpu.decimal = 1;
            flat_run(&cpu, &bus, 1);
            assert_int_equal(cpu.a, wanted);
            assert_int_equal(cpu.carry, wanted_carry);
            /* NMOS: Z is of the binary result. */
            assert_int_equal(cpu.nonzero == 0,
                             ((op ? a - b - !carry : a + b + carry) & 0xff) == 0);
        }
    }
}

static const struct {
    const char *what;
    uint8_t code[3];
    int count;
    struct {
        uint16_t address;
        char how;
    } access[8];
} cases[] = {
    {"LDA #", {0xa9, 1}, 2, {{0x1234, 'r'}, {0x1235, 'r'}}},
    {"STA zp,X reads the base in vain",
     {0x95, 0xf8},
     4,
     {{0x1234, 'r'}, {0x1235, 'r'}, {0xf8, 'r'}, {0x08, 'w'}}},
    {"LDA abs,X over a page reads the wrong one first",
     {0xbd, 0xf8, 0x20},
     5,
     {{0x1234, 'r'}, {0x1235, 'r'}, {0x1236, 'r'}, {0x2008, 'r'}, {0x2108, 'r'}}},
    {"STA abs,X always does",
     {0x9d, 0x01, 0x20},
     5,
     {{0x1234, 'r'}, {0x1235, 'r'}, {0x1236, 'r'}, {0x2011, 'r'}, {0x2011, 'w'}}},
    {"INC zp writes twice",
     {0xe6, 0x40},
     5,
     {{0x1234, 'r'}, {0x1235, 'r'}, {0x40, 'r'}, {0x40, 'w'}, {0x40, 'w'}}},
    {"JSR",
     {0x20, 0x00, 0x30},
     6,
     {{0x1234, 'r'},
      {0x1235, 'r'},
      {0x1f0, 'r'},
      {0x1f0, 'w'},
      {0x1ef, 'w'},
      {0x1236, 'r'}}},
    {"a branch over a page takes two reads more",
     {0xd0, 0x80},
     4,
     {{0x1234, 'r'}, {0x1235, 'r'}, {0x1236, 'r'}, {0x12b6, 'r'}}},
    {"LAX (zp),Y",
     {0xb3, 0xff},
     5,
     {{0x1234, 'r'}, {0x1235, 'r'}, {0xff, 'r'}, {0x00, 'r'}, {0x0010, 'r'}}},
};

static void test_accesses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sti_cpu cpu = begin(cases[i].code, 3);
        cpu.x = cpu.y = 0x10;
        flat_run(&cpu, &bus, 1);
        if (bus.count != cases[i].count)
            fail_msg("%s: %d accesses", cases[i].what, bus.count);
        assert_int_equal(cpu.cycles, cases[i].count);
        for (int k = 0; k < bus.count; k++)
            if (bus.access[k].address != cases[i].access[k].address ||
                bus.access[k].how != cases[i].access[k].how)
                fail_msg("%s: access %d is %c %04X", cases[i].what, k,
                         bus.access[k].how, bus.access[k].address);
    }
}

/* Every row of the table takes the cycles that it says, where nothing is crossed and no
 * branch taken. */
static void test_cycles(void **state)
{
    static const struct {
        uint8_t opcode, cycles;
    } rows[] = {
#define ROW(opcode, cycles, mode, access, op) {opcode, cycles},
        STI_CPU_OPCODES(ROW)
#undef ROW
    };
    (void)state;
    assert_int_equal(sizeof rows / sizeof rows[0], 244);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint8_t code[3] = {rows[i].opcode, 0, 0};
        sti_cpu cpu = begin(code, 3);
        /* Flags under which a branch of this opcode falls through. */
        const uint8_t wants = code[0] >> 5 & 1;
        cpu.negative = wants ? 0 : 0x80;
        cpu.overflow = cpu.carry = cpu.nonzero = !wants;
        if ((code[0] & 0xdf) == 0xd0)
            cpu.nonzero = wants;
        flat_run(&cpu, &bus, 1);
        if (cpu.cycles != rows[i].cycles || bus.count != rows[i].cycles)
            fail_msg("opcode %02X: %u cycles, the table says %d", rows[i].opcode,
                     cpu.cycles, rows[i].cycles);
    }
}

static void test_jam(void **state)
{
    const uint8_t code[1] = {0xb2};
    sti_cpu cpu = begin(code, 1);
    (void)state;
    flat_run(&cpu, &bus, 100);
    assert_true(bus.jammed);
    assert_int_equal(cpu.pc, 0x1235);
}

/* ---- Tom Harte's tests ---- */

typedef struct suite_state {
    const uint8_t *registers, *ram;
    int ram_count;
} suite_state;

static const uint8_t *take_state(const uint8_t *at, suite_state *out)
{
    *out = (suite_state){at, at + 8, at[7]};
    return at + 8 + 3 * at[7];
}

static bool suite_case(const uint8_t **at)
{
    suite_state first, last;
    const uint8_t *q = take_state(take_state(*at + 10, &first), &last);
    const int count = *q++;
    const uint8_t *r = first.registers, *w = last.registers;
    sti_cpu cpu = {.sp = r[2], .a = r[3], .x = r[4], .y = r[5]};
    bool good = true;
    cpu.pc = (uint16_t)(r[0] << 8 | r[1]);
    sti_cpu_set_status(&cpu, r[6]);
    for (int i = 0; i < first.ram_count; i++)
        bus.ram[first.ram[3 * i] << 8 | first.ram[3 * i + 1]] = first.ram[3 * i + 2];
    bus.count = 0;
    flat_run(&cpu, &bus, 1);
    good &= cpu.pc == (w[0] << 8 | w[1]) && cpu.sp == w[2] && cpu.a == w[3] &&
            cpu.x == w[4] && cpu.y == w[5] &&
            ((sti_cpu_status(&cpu) ^ w[6]) & 0xcf) == 0 && bus.count == count;
    for (int i = 0; i < last.ram_count; i++)
        good &=
            bus.ram[last.ram[3 * i] << 8 | last.ram[3 * i + 1]] == last.ram[3 * i + 2];
    for (int i = 0; i < count && i < FLAT_ACCESSES; i++)
        good &= bus.access[i].address == (q[4 * i] << 8 | q[4 * i + 1]) &&
                bus.access[i].value == q[4 * i + 2] &&
                bus.access[i].how == q[4 * i + 3];
    *at = q + 4 * count;
    return good;
}

/* Jams and the unstable stores (SHA, SHX, SHY, SHS) are left out, and NOPs of absolute
 * addresses, whose last read that suite leaves out. */
static bool left_out(int opcode)
{
    static const uint8_t unstable[] = {0x93, 0x9b, 0x9c, 0x9e, 0x9f, 0x0c};
    for (size_t i = 0; i < sizeof unstable; i++)
        if (unstable[i] == opcode)
            return true;
    return (opcode & 0x1f) == 0x12 || (opcode & 0x9f) == 0x02 ||
           ((opcode & 0x1f) == 0x1c && opcode != 0xbc);
}

static void test_processor_tests(void **state)
{
    const char *folder = getenv("STINT_PROCESSOR_TESTS");
    (void)state;
    if (!folder)
        skip();
    for (int opcode = 0; opcode < 256; opcode++) {
        char path[512];
        uint8_t *data = malloc(2 << 20);
        FILE *file = NULL;
        size_t size = 0;
        (void)snprintf(path, sizeof path, "%s/%02x.bin", folder, (unsigned)opcode);
        file = fopen(path, "rb");
        assert_non_null(file);
        size = fread(data, 1, 2 << 20, file);
        fclose(file);
        for (const uint8_t *at = data; at < data + size && !left_out(opcode);)
            if (!suite_case(&at))
                fail_msg("%s: the case before byte %td", path, at - data);
        free(data);
    }
}

/* It begins at 0400 and ends in a jump to itself: at 3469 where all went well. */
static void test_functional(void **state)
{
    enum { FROM = 0x400, GOOD = 0x3469 };
    const char *path = getenv("STINT_FUNCTIONAL_TEST");
    sti_cpu cpu = {.pc = FROM, .sp = 0xff, .nonzero = 1};
    uint16_t before = 0;
    (void)state;
    if (!path)
        skip();
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    memset(&bus, 0, sizeof bus);
    assert_int_equal(fread(bus.ram, 1, sizeof bus.ram, file), sizeof bus.ram);
    fclose(file);
    do {
        before = cpu.pc;
        flat_run(&cpu, &bus, 1);
    } while (cpu.pc != before && !bus.jammed);
    assert_int_equal(cpu.pc, GOOD);
}

/* All pairs of bytes, digits or not, with the flags that it was assembled to look at.
 * Byte 0B is 1 till all went well. */
static void test_decimal_suite(void **state)
{
    enum { FROM = 0x200, ERROR = 0x0b };
    const char *path = getenv("STINT_DECIMAL_TEST");
    sti_cpu cpu = {.pc = FROM, .sp = 0xff, .nonzero = 1};
    uint16_t before = 0;
    (void)state;
    if (!path)
        skip();
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    memset(&bus, 0, sizeof bus);
    assert_true(fread(bus.ram + FROM, 1, sizeof bus.ram - FROM, file) > 100);
    fclose(file);
    do {
        before = cpu.pc;
        flat_run(&cpu, &bus, 1);
    } while (cpu.pc != before && !bus.jammed);
    assert_false(bus.jammed);
    assert_int_equal(bus.ram[ERROR], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decimal),         cmocka_unit_test(test_accesses),
        cmocka_unit_test(test_cycles),          cmocka_unit_test(test_jam),
        cmocka_unit_test(test_processor_tests), cmocka_unit_test(test_functional),
        cmocka_unit_test(test_decimal_suite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
