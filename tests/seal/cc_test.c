/* The compiler against gcc -fwrapv: random programs, each on 16 inputs. More of them:
 * STINT_SEAL_PROGRAMS=10000, and others: STINT_SEAL_FIRST=1000, a multiple of 20. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "random_program.h"
#include "seal/cc.h"
#include "seal/circuit.h"

enum { IN_BITS = 8 + 16 + 32 + 64 + 4 * 16, OUT_BITS = 64 + 2 * 32, RUNS = 16 };

typedef int64_t program_fn(int8_t a, uint16_t b, int32_t c, uint64_t d,
                           const int16_t in[4], int32_t out[2]);

typedef struct inputs {
    int8_t a;
    uint16_t b;
    int32_t c;
    uint64_t d;
    int16_t in[4];
} inputs;

static inputs draw_inputs(program *p)
{
    inputs x = {.a = (int8_t)draw(p, 256), .b = (uint16_t)draw(p, 1 << 16)};
    x.c = draw(p, 2) ? (int32_t)(draw(p, 1u << 31) * 2) : (int32_t)draw(p, 20) - 10;
    x.d = (uint64_t)draw(p, 1u << 31) << 33 ^ draw(p, 1u << 31);
    for (int i = 0; i < 4; i++)
        x.in[i] = draw(p, 2) ? (int16_t)draw(p, 1 << 16) : (int16_t)draw(p, 8);
    return x;
}

/* Bit `run` of the words from *at on is the value. */
static void put(uint64_t *word, int *at, int run, uint64_t value, int bits)
{
    for (int i = 0; i < bits; i++)
        word[(*at)++] |= (value >> i & 1) << run;
}

static uint64_t get(const uint64_t *word, int *at, int run, int bits)
{
    uint64_t value = 0;
    for (int i = 0; i < bits; i++)
        value |= (word[(*at)++] >> run & 1) << i;
    return value;
}

static void put_inputs(uint64_t *word, int run, const inputs *x)
{
    int at = 0;
    put(word, &at, run, (uint64_t)x->a, 8);
    put(word, &at, run, x->b, 16);
    put(word, &at, run, (uint64_t)x->c, 32);
    put(word, &at, run, x->d, 64);
    for (int i = 0; i < 4; i++)
        put(word, &at, run, (uint64_t)x->in[i], 16);
    assert_int_equal(at, IN_BITS);
}

static void compile(const char *text, size_t n_bytes, const char *entry,
                    sti_circuit *circuit)
{
    sti_imported made;
    const sti_cc_options options = {.entry = entry};
    if (sti_cc_compile("random.c", text, n_bytes, &options, &made) != STINT_OK)
        fail_msg("%s: %s", entry, stint_last_error());
    const sti_circuit_source source = {.netlist = &made.netlist,
                                       .input = made.input,
                                       .output = made.output,
                                       .inputs = made.inputs,
                                       .outputs = made.outputs,
                                       .result = made.result,
                                       .effort = 1};
    assert_int_equal(sti_circuit_map(&source, circuit), STINT_OK);
    sti_imported_fini(&made);
}

static void check_program(program *p, int number, program_fn *reference)
{
    char entry[32];
    sti_circuit circuit;
    inputs x[RUNS];
    uint64_t in[IN_BITS] = {0}, out[OUT_BITS];
    snprintf(entry, sizeof entry, "f%d", number);
    compile(p->text->data, p->text->length, entry, &circuit);
    assert_int_equal(circuit.input_bits, IN_BITS);
    assert_int_equal(circuit.output_bits, OUT_BITS);
    for (int run = 0; run < RUNS; run++) {
        x[run] = draw_inputs(p);
        put_inputs(in, run, &x[run]);
    }
    assert_int_equal(sti_circuit_simulate(&circuit, in, out), STINT_OK);
    for (int run = 0; run < RUNS; run++) {
        int32_t want_out[2] = {0, 0};
        int at = 0;
        const int64_t want =
            reference(x[run].a, x[run].b, x[run].c, x[run].d, x[run].in, want_out);
        const int64_t got = (int64_t)get(out, &at, run, 64);
        const int32_t got0 = (int32_t)get(out, &at, run, 32);
        const int32_t got1 = (int32_t)get(out, &at, run, 32);
        if (got != want || got0 != want_out[0] || got1 != want_out[1])
            fail_msg("seed %d, %s, run %d: %ld %d %d, gcc %ld %d %d", (int)p->seed,
                     entry, run, (long)got, got0, got1, (long)want, want_out[0],
                     want_out[1]);
    }
    sti_circuit_fini(&circuit);
}

static void check_many(int seed, int programs)
{
    char folder[] = "/tmp/stint-cc-XXXXXX", path[64], library[64], command[256];
    sti_text text = {0};
    program p = {.text = &text, .seed = (uint64_t)seed};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/p.c", folder);
    snprintf(library, sizeof library, "%s/p.so", folder);
    sti_text_add(&text, "#include <stdint.h>\n");
    for (int i = 0; i < programs; i++)
        make_program(&p, i);
    assert_false(text.failed);
    assert_int_equal(sti_file_write(path, text.data, text.length), STINT_OK);
    snprintf(command, sizeof command,
             "gcc -w -std=c17 -fwrapv -O1 -shared -fPIC -o %s %s", library, path);
    assert_int_equal(system(command), 0);
    void *handle = dlopen(library, RTLD_NOW);
    assert_non_null(handle);
    for (int i = 0; i < programs; i++) {
        char name[32];
        program_fn *reference;
        snprintf(name, sizeof name, "f%d", i);
        void *symbol = dlsym(handle, name);
        memcpy(&reference, &symbol, sizeof reference);
        check_program(&p, i, reference);
    }
    dlclose(handle);
    if (!getenv("STINT_SEAL_KEEP")) {
        unlink(path);
        unlink(library);
        rmdir(folder);
    }
    sti_text_fini(&text);
}

static void random_programs_are_as_gcc_has_them(void **state)
{
    const char *more = getenv("STINT_SEAL_PROGRAMS");
    const char *from = getenv("STINT_SEAL_FIRST");
    const int programs = more ? atoi(more) : 20, first = from ? atoi(from) : 0;
    (void)state;
    for (int i = first; i < first + programs; i += 20)
        check_many(1 + i / 20, 20);
}

/* Each line: a program that is refused, and words of the refusal. */
static const struct {
    const char *text, *words;
} refusals[] = {
    {"int f(int x) { return f(x); }", "p.c:1: 'f' calls itself"},
    {"int f(int x) {\n while (x) x--;\n return x; }",
     "p.c:2: how often this loop runs"},
    {"int f(int x) { int i = 0;\n for (;;) i ^= 1; }", "p.c:2: the program takes more"},
    {"int f(int x) {\n while (1) x++; }",
     "p.c:2: the circuit has more than 20000 gates"},
    {"int f(int x[4]) { return *(x + 1); }", "arithmetic with"},
    {"int f(int x) { int *p = &x; return *p; }", "no pointer variables"},
    {"float f(int x) { return x; }", "floating point"},
    {"int f(int x) { return 1.5 * x; }", "floating point"},
    {"int f(int x) { goto a; a: return x; }", "goto"},
    {"int f(int x) { int *p = malloc(4); return 0; }", "no pointer variables"},
    {"int f(int x) { malloc(x); return 0; }", "no malloc"},
    {"int f(int x) { return y; }", "'y' is not declared"},
    {"int f(int x) { int a[3] = {1, 2, 3}; return a[3]; }", "index 3 of an array of 3"},
    {"int f(int x) { return x << 32; }", "shift by 32"},
    {"int f(int x) { return x / 0; }", "division by zero"},
    {"int f(const int x[]) { return x[0]; }", "how many elements"},
    {"int f(int x) { return g(x); }", "no function of this file"},
    {"void f(int x) { }", "returns nothing"},
    {"int f(int x) { return x; } int f(int x) { return x; }", "defined twice"},
    {"int f(int x) { return x;", "the file ends"},
    {"#define A(x) x\nint f(int x) { return A(x); }", "no arguments"},
    {"#if 1\n#endif\nint f(int x) { return x; }", "preprocessor"},
    {"union u { int a; }; int f(int x) { return x; }", "union"},
    {"int f(const int x[2]) { x[0] = 1; return 0; }", "const is not written"},
    {"int f(int x) { \"s\"; return x; }", "no strings"},
    {"int f(int x) { break; return x; }", "nothing to break"},
    {"int f(int x) { return x }", "';' is wanted"},
    {"int f(int x) { /* return x; }", "no end"},
    {"int g(int x) { return x; }", "no function 'f'"},
};

static void refusals_say_where_and_what(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        sti_imported made;
        const sti_cc_options options = {
            .entry = "f", .max_steps = 10000, .max_gates = 20000};
        const stint_status st = sti_cc_compile(
            "p.c", refusals[i].text, strlen(refusals[i].text), &options, &made);
        if (st != STINT_E_INPUT || !strstr(stint_last_error(), refusals[i].words) ||
            !strstr(stint_last_error(), "p.c:"))
            fail_msg("'%s': status %d, '%s', wanted '%s'", refusals[i].text, st,
                     st ? stint_last_error() : "", refusals[i].words);
    }
}

/* Allocation 1, 2, 3, ... fails: a clean status, and nothing is kept. */
static void allocation_failures_are_clean(void **state)
{
    static const char text[] =
        "typedef struct q { char x; int y[2]; } q;\nstatic const char table[2] = {1, "
        "2};\n"
        "int f(signed char a, int out[2]) {\n q s = {a, {1, 2}};\n"
        " switch (a & 3) { case 0: s.x++; break; default: s.x--; }\n"
        " for (int i = 0; i < 2; i++) { if (table[i] == a) continue; if (a > 5) return "
        "i; }\n"
        " out[a & 1] = s.x / 3;\n return s.y[a & 1];\n}\n";
    const size_t before = sti_alloc_now_bytes();
    stint_status st = STINT_E_MEMORY;
    (void)state;
    for (int64_t n = 1; st != STINT_OK; n++) {
        const sti_cc_options options = {.entry = "f"};
        sti_imported made;
        sti_circuit circuit;
        sti_alloc_fail_nth(n);
        st = sti_cc_compile("p.c", text, sizeof text - 1, &options, &made);
        if (st == STINT_OK) {
            const sti_circuit_source source = {
                &made.netlist, made.input, made.output, made.inputs, made.outputs,
                made.result,   1};
            st = sti_circuit_map(&source, &circuit);
            sti_imported_fini(&made);
            if (st == STINT_OK)
                sti_circuit_fini(&circuit);
        }
        sti_alloc_fail_nth(0);
        assert_true(st == STINT_OK || st == STINT_E_MEMORY);
        assert_int_equal(sti_alloc_now_bytes(), before);
        assert_true(n < 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_are_as_gcc_has_them),
        cmocka_unit_test(refusals_say_where_and_what),
        cmocka_unit_test(allocation_failures_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
