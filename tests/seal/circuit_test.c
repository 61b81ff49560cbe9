/* Cells against their sums, mapping against the netlist that was mapped, formats
 * against each other, and files that are damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "seal/circuit.h"
#include "seal/formats.h"
#include "seal/waves.h"

/* What a cell computes, in plain words, and its margin and weight from the table that
 * they were chosen by. */
static int answer(sti_cell_kind kind, const int *x)
{
    const int sum3 = x[0] + x[1] + x[2], equal3 = sum3 == 0 || sum3 == 3;
    switch (kind) {
    case STI_CELL_AND:
        return x[0] && x[1];
    case STI_CELL_XOR:
        return x[0] != x[1];
    case STI_CELL_MAJORITY:
        return sum3 >= 2;
    case STI_CELL_DIFFER:
        return !equal3;
    case STI_CELL_XOR3:
        return sum3 % 2;
    case STI_CELL_XOR4:
        return (sum3 + x[3]) % 2;
    case STI_CELL_AND_XOR:
        return (x[0] && x[1]) != x[2];
    case STI_CELL_AND_XOR2:
        return ((x[0] && x[1]) + x[2] + x[3]) % 2;
    case STI_CELL_MAJORITY_XOR:
        return (sum3 >= 2) != x[3];
    case STI_CELL_EQUAL_XOR:
        return equal3 != x[3];
    case STI_CELL_TWO_OR_THREE:
        return sum3 + x[3] == 2 || sum3 + x[3] == 3;
    case STI_CELL_KINDS:
        break;
    }
    return -1;
}

static const struct {
    int margin, squares;
} limits[STI_CELL_KINDS] = {{2, 2}, {4, 8},  {2, 3}, {2, 3}, {4, 12}, {4, 16},
                            {2, 6}, {2, 10}, {2, 7}, {2, 7}, {2, 4}};

static void cells_are_what_they_are_called(void **state)
{
    (void)state;
    for (int kind = 0; kind < STI_CELL_KINDS; kind++) {
        const sti_cell_row *row = sti_cell_row_of((sti_cell_kind)kind);
        const unsigned table = sti_cell_table((sti_cell_kind)kind);
        for (int r = 0; r < 1 << row->inputs; r++) {
            const int x[4] = {r & 1, r >> 1 & 1, r >> 2 & 1, r >> 3 & 1};
            double sum = row->offset / 16.0;
            assert_int_equal(table >> r & 1, answer((sti_cell_kind)kind, x));
            for (int i = 0; i < row->inputs; i++)
                sum += row->weight[i] * (x[i] ? 0.125 : -0.125);
            sum -= floor(sum);
            assert_int_equal(sum > 0 && sum < 0.5, answer((sti_cell_kind)kind, x));
            assert_true(fabs(fmod(sum, 0.5) - 0.25) <=
                        0.25 - limits[kind].margin / 16.0);
        }
        assert_int_equal(sti_cell_margin((sti_cell_kind)kind), limits[kind].margin);
        assert_int_equal(sti_cell_weight_squares((sti_cell_kind)kind),
                         limits[kind].squares);
    }
}

/* ---- random netlists ---- */

enum { INPUTS = 12, GATES = 300, OUTPUTS = 9 };

typedef struct random_net {
    sti_netlist netlist;
    sti_literal result[OUTPUTS];
    sti_port input[2], output[1];
} random_net;

static void make_net(uint64_t seed, random_net *r)
{
    sti_literal literal[2 + INPUTS + GATES] = {STI_FALSE, STI_TRUE};
    int count = 2;
    *r = (random_net){.input = {{"a", 8, true, false, 1}, {"b", 2, false, true, 2}},
                      .output = {{"y", 9, false, false, 1}}};
    assert_int_equal(sti_netlist_init(&r->netlist), STINT_OK);
    for (int i = 0; i < INPUTS; i++)
        literal[count++] = sti_netlist_input(&r->netlist);
    for (int i = 0; i < GATES; i++) {
        uint32_t w[4];
        sti_random4(seed, STI_STREAM_TEST, (uint64_t)i, 0, w);
        const sti_literal a = literal[sti_below(w[0], (uint32_t)count)] ^ (w[3] & 1);
        const sti_literal b =
            literal[sti_below(w[1], (uint32_t)count)] ^ (w[3] >> 1 & 1);
        const sti_literal c = literal[sti_below(w[2], (uint32_t)count)];
        const int kind = w[3] >> 2 & 3;
        literal[count++] = kind == 0   ? sti_netlist_and(&r->netlist, a, b)
                           : kind == 1 ? sti_netlist_xor(&r->netlist, a, b)
                           : kind == 2 ? sti_netlist_mux(&r->netlist, c, a, b)
                                       : sti_netlist_majority(&r->netlist, a, b, c);
    }
    for (int i = 0; i < OUTPUTS; i++)
        r->result[i] = literal[count - 1 - 3 * i] ^ (sti_literal)(i & 1);
    assert_int_equal(r->netlist.status, STINT_OK);
}

/* The netlist itself, gate by gate. */
static void run_net(const sti_netlist *n, const sti_literal *result, const uint64_t *in,
                    uint64_t *out)
{
    uint64_t *value = sti_alloc_array(n->nodes, sizeof *value, "test");
    int k = 0;
    for (int64_t i = 1; i < n->nodes; i++) {
        const sti_gate *g = &n->gate[i];
        const uint64_t a = value[g->a >> 1] ^ (0 - (uint64_t)(g->a & 1));
        const uint64_t b = value[g->b >> 1] ^ (0 - (uint64_t)(g->b & 1));
        value[i] = g->kind == STI_GATE_INPUT ? in[k++]
                   : g->kind == STI_GATE_AND ? a & b
                                             : a ^ b;
    }
    for (int o = 0; o < OUTPUTS; o++)
        out[o] = value[result[o] >> 1] ^ (0 - (uint64_t)(result[o] & 1));
    sti_free(value);
}

static void map_net(const random_net *r, int effort, sti_circuit *c)
{
    const sti_circuit_source source = {&r->netlist, r->input,  r->output, 2,
                                       1,           r->result, effort};
    assert_int_equal(sti_circuit_map(&source, c), STINT_OK);
}

static void draw_inputs(uint64_t seed, uint64_t *in)
{
    for (int i = 0; i < INPUTS; i++) {
        uint32_t w[4];
        sti_random4(seed, STI_STREAM_TEST, 1000 + (uint64_t)i, 0, w);
        in[i] = (uint64_t)w[0] << 32 | w[1];
    }
}

static void assert_computes(const sti_circuit *c, const uint64_t *in,
                            const uint64_t *want)
{
    uint64_t out[OUTPUTS];
    assert_int_equal(c->input_bits, INPUTS);
    assert_int_equal(c->output_bits, OUTPUTS);
    assert_int_equal(sti_circuit_simulate(c, in, out), STINT_OK);
    assert_memory_equal(out, want, sizeof out);
}

static void mapping_keeps_the_function(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        random_net r;
        sti_circuit c, again;
        uint64_t in[INPUTS], want[OUTPUTS];
        int64_t first_cells = 0;
        make_net(seed, &r);
        draw_inputs(seed, in);
        run_net(&r.netlist, r.result, in, want);
        for (int effort = 0; effort <= 8; effort += 8) {
            map_net(&r, effort, &c);
            assert_computes(&c, in, want);
            assert_true(c.cells <= c.gates);
            if (effort == 0)
                first_cells = c.cells;
            assert_true(c.cells <= first_cells);
            if (effort == 0)
                sti_circuit_fini(&c);
        }
        /* As gates again, and mapped once more. */
        random_net back = r;
        assert_int_equal(sti_netlist_init(&back.netlist), STINT_OK);
        assert_int_equal(sti_circuit_unmap(&c, &back.netlist, back.result), STINT_OK);
        map_net(&back, 1, &again);
        assert_computes(&again, in, want);
        sti_netlist_fini(&back.netlist);
        sti_netlist_fini(&r.netlist);
        sti_circuit_fini(&c);
        sti_circuit_fini(&again);
    }
}

/* Each kind of cell as gates. */
static void cells_are_gates_again(void **state)
{
    (void)state;
    for (int kind = 0; kind < STI_CELL_KINDS; kind++) {
        const int inputs = sti_cell_row_of((sti_cell_kind)kind)->inputs;
        sti_port in[1] = {{"x", inputs, false, false, 1}}, out[1] = {{"y", 1, 0, 0, 1}};
        sti_cell cell = {.kind = (uint8_t)kind, .in = {2, 4, 6, 8}};
        sti_literal y = (sti_literal)(2 * (1 + inputs)), back = STI_FALSE;
        sti_circuit c = {.input = in,
                         .output = out,
                         .inputs = 1,
                         .outputs = 1,
                         .input_bits = inputs,
                         .output_bits = 1,
                         .cell = &cell,
                         .cells = 1,
                         .result = &y};
        sti_netlist n;
        uint64_t word[4] = {0}, want = 0, got[OUTPUTS];
        sti_literal results[OUTPUTS] = {0};
        for (int r = 0; r < 1 << inputs; r++) {
            const int x[4] = {r & 1, r >> 1 & 1, r >> 2 & 1, r >> 3 & 1};
            want |= (uint64_t)answer((sti_cell_kind)kind, x) << r;
            for (int i = 0; i < 4; i++)
                word[i] |= (uint64_t)x[i] << r;
        }
        for (int i = inputs; i < 4; i++)
            cell.in[i] = 0;
        assert_int_equal(sti_netlist_init(&n), STINT_OK);
        assert_int_equal(sti_circuit_unmap(&c, &n, &back), STINT_OK);
        results[0] = back;
        run_net(&n, results, word, got);
        const uint64_t rows = (UINT64_C(1) << (1 << inputs)) - 1;
        assert_true((got[0] & rows) == want);
        sti_netlist_fini(&n);
    }
}

static void a_full_adder_takes_two(void **state)
{
    sti_netlist n;
    sti_circuit c;
    sti_port in[1] = {{"x", 3, false, false, 1}}, out[1] = {{"y", 2, false, false, 1}};
    sti_literal x[3], y[2];
    (void)state;
    assert_int_equal(sti_netlist_init(&n), STINT_OK);
    for (int i = 0; i < 3; i++)
        x[i] = sti_netlist_input(&n);
    y[0] = sti_netlist_xor(&n, sti_netlist_xor(&n, x[0], x[2]), x[1]);
    y[1] = sti_netlist_majority(&n, x[0], x[1], x[2]);
    const sti_circuit_source source = {&n, in, out, 1, 1, y, 4};
    assert_int_equal(sti_circuit_map(&source, &c), STINT_OK);
    assert_int_equal(c.gates, 5);
    assert_int_equal(c.cells, 2);
    sti_circuit_fini(&c);
    sti_netlist_fini(&n);
}

/* Sums that share no gate: the sum of both needs no gates of its own, nor does one with
 * a product whose factors are there. */
static void sums_are_found_across(void **state)
{
    sti_netlist n;
    sti_circuit c;
    sti_port in = {.name = "x", .bits = 8, .count = 1};
    sti_port out = {.name = "y", .bits = 4, .count = 1};
    sti_literal x[8], y[4];
    (void)state;
    sti_netlist_init(&n);
    for (int i = 0; i < 8; i++)
        x[i] = sti_netlist_input(&n);
    y[0] = sti_netlist_xor(&n, sti_netlist_xor(&n, x[0], x[1]), x[2]);
    y[1] = sti_netlist_xor(&n, sti_netlist_xor(&n, x[3], x[4]), x[5]);
    const sti_literal ad = sti_netlist_xor(&n, x[0], x[3]);
    const sti_literal be = sti_netlist_xor(&n, x[1], x[4]);
    const sti_literal cf = sti_netlist_xor(&n, x[2], x[5]);
    y[2] = sti_not(sti_netlist_xor(&n, sti_netlist_xor(&n, ad, be), cf));
    const sti_literal product = sti_netlist_and(&n, x[6], sti_not(x[7]));
    y[3] = sti_netlist_xor(&n, sti_netlist_xor(&n, product, x[0]),
                           sti_netlist_xor(&n, x[1], x[2]));
    for (int effort = 0; effort <= 8; effort += 8) {
        const sti_circuit_source source = {&n, &in, &out, 1, 1, y, effort};
        assert_int_equal(sti_circuit_map(&source, &c), STINT_OK);
        if (effort)
            assert_int_equal(c.cells, 4);
        for (uint64_t r = 0; r < 256; r++) {
            uint64_t word[8], got[4];
            for (int i = 0; i < 8; i++)
                word[i] = r >> i & 1;
            assert_int_equal(sti_circuit_simulate(&c, word, got), STINT_OK);
            const uint64_t u = word[0] ^ word[1] ^ word[2];
            const uint64_t v = word[3] ^ word[4] ^ word[5];
            assert_int_equal(got[0] & 1, u);
            assert_int_equal(got[1] & 1, v);
            assert_int_equal(got[2] & 1, u ^ v ^ 1);
            assert_int_equal(got[3] & 1, (word[6] & (word[7] ^ 1)) ^ u);
        }
        sti_circuit_fini(&c);
    }
    sti_netlist_fini(&n);
}

/* ---- formats ---- */

static void formats_carry_the_function(void **state)
{
    (void)state;
    for (uint64_t seed = 40; seed < 50; seed++)
        for (int blif = 0; blif < 2; blif++) {
            random_net r;
            sti_circuit c, back;
            sti_imported made;
            sti_text text = {0};
            uint64_t in[INPUTS], want[OUTPUTS];
            make_net(seed, &r);
            draw_inputs(seed, in);
            run_net(&r.netlist, r.result, in, want);
            map_net(&r, 2, &c);
            assert_int_equal(blif ? sti_blif_write(&c, &text)
                                  : sti_bristol_write(&c, &text),
                             STINT_OK);
            if ((blif ? sti_blif_read("x.blif", text.data, text.length, 0, &made)
                      : sti_bristol_read("x.txt", text.data, text.length, &made)) !=
                STINT_OK)
                fail_msg("%s", stint_last_error());
            assert_int_equal(made.inputs, 2);
            assert_string_equal(made.output[0].name, blif ? "y" : "out0");
            const sti_circuit_source source = {
                &made.netlist, made.input, made.output, made.inputs, made.outputs,
                made.result,   1};
            assert_int_equal(sti_circuit_map(&source, &back), STINT_OK);
            assert_computes(&back, in, want);
            sti_imported_fini(&made);
            sti_text_fini(&text);
            sti_circuit_fini(&c);
            sti_circuit_fini(&back);
            sti_netlist_fini(&r.netlist);
        }
}

/* A counter of two bits that counts while `up` is 1, four cycles from 1. */
static void latches_run_for_cycles(void **state)
{
    static const char text[] = ".model counter\n.inputs clk up\n.outputs q[0] q[1]\n"
                               ".latch d0 s0 re clk 1\n.latch d1 s1 re clk 0\n"
                               ".names s0 up d0\n01 1\n10 1\n"
                               ".names s0 up carry # both\n11 1\n"
                               ".names s1 carry d1\n01 1\n10 1\n"
                               ".names s0 q[0]\n1 1\n.names s1 \\\nq[1]\n1 1\n.end\n";
    sti_imported made;
    sti_circuit c;
    (void)state;
    assert_int_equal(sti_blif_read("c.blif", text, sizeof text - 1, 0, &made),
                     STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "--cycles"));
    assert_int_equal(sti_blif_read("c.blif", text, sizeof text - 1, 4, &made),
                     STINT_OK);
    assert_int_equal(made.inputs, 1);
    assert_int_equal(made.input[0].count, 4);
    assert_int_equal(made.output[0].bits, 2);
    const sti_circuit_source source = {
        &made.netlist, made.input, made.output, made.inputs, made.outputs,
        made.result,   1};
    assert_int_equal(sti_circuit_map(&source, &c), STINT_OK);
    for (unsigned ups = 0; ups < 16; ups++) {
        uint64_t in[4], out[8];
        unsigned count = 1;
        for (int i = 0; i < 4; i++)
            in[i] = ups >> i & 1;
        assert_int_equal(sti_circuit_simulate(&c, in, out), STINT_OK);
        for (int i = 0; i < 4; i++) {
            assert_int_equal((out[2 * i] & 1) + 2 * (out[2 * i + 1] & 1), count & 3);
            count += ups >> i & 1;
        }
    }
    sti_circuit_fini(&c);
    sti_imported_fini(&made);
}

static const struct {
    const char *text, *words;
} wrong_bristol[] =
    {
        {"", "ends before"},
        {"1 3\n1 2\n1 1\n2 1 0 1 2 NAND\n", "AND, XOR or MAND"},
        {"1 3\n1 2\n1 1\n2 1 0 2 2 AND\n", "wire 2 is used before"},
        {"2 3\n1 2\n1 1\n2 1 0 1 2 AND\n2 1 0 1 2 XOR\n", "driven twice"},
        {"2 4\n1 2\n1 1\n2 1 0 1 2 AND\n", "ends before its last gate"},
        {"1 3\n1 2\n1 1\n2 1 0 9 2 AND\n", "wire 9"},
        {"1 3\n1 0\n1 1\n", "no bits"},
        {"1 4\n1 2\n1 1\n2 1 0 1 2 AND\n", "wire 3 is used before"},
        {"1 3\n1 2\n1 1\n2 1 0 1 2 AND x\n", "goes on behind"},
        {"1 3\n1 2\n1 1\n2 1 0 1 2 AND\n2 1 0 1 2 AND\n", "more gates"},
        {"1 99999999\n1 2\n1 1\n", "do not go with"},
},
  wrong_blif[] = {
      {".inputs a\n.names a y\n1 1\n.end\n", "no .outputs"},
      {".inputs a\n.outputs y\n.end\n", "'y' is used and nothing drives it"},
      {".inputs a\n.outputs y\n.names y a y2\n11 1\n.names y2 y\n1 1\n.end\n",
       "a loop"},
      {".inputs a\n.outputs y\n.names a y\n1 1\n.names a y\n0 1\n", "driven twice"},
      {".inputs a\n.outputs y\n.names a y\n11 1\n", "another length"},
      {".inputs a\n.outputs y\n.names a y\n2 1\n", "made of 0, 1"},
      {".inputs a\n.outputs y\n.names a y\n1 1\n0 0\n", "one and the same"},
      {".inputs a\n.outputs y\n.subckt z a=a y=y\n", "flatten"},
};

static void damaged_texts_are_refused(void **state)
{
    sti_imported made;
    (void)state;
    for (size_t i = 0; i < sizeof wrong_bristol / sizeof wrong_bristol[0]; i++)
        if (sti_bristol_read("x.txt", wrong_bristol[i].text,
                             strlen(wrong_bristol[i].text), &made) != STINT_E_INPUT ||
            !strstr(stint_last_error(), wrong_bristol[i].words))
            fail_msg("%s: '%s'", wrong_bristol[i].text, stint_last_error());
    for (size_t i = 0; i < sizeof wrong_blif / sizeof wrong_blif[0]; i++)
        if (sti_blif_read("x.blif", wrong_blif[i].text, strlen(wrong_blif[i].text), 0,
                          &made) != STINT_E_INPUT ||
            !strstr(stint_last_error(), wrong_blif[i].words))
            fail_msg("%s: '%s'", wrong_blif[i].text, stint_last_error());
}

/* Every cut and every flipped byte of a circuit file is refused. */
static void damaged_files_are_refused(void **state)
{
    char path[] = "/tmp/stint-circuit-XXXXXX";
    random_net r;
    sti_circuit c, back;
    void *data;
    size_t n_bytes;
    (void)state;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    make_net(3, &r);
    map_net(&r, 1, &c);
    assert_int_equal(sti_circuit_write(&c, path), STINT_OK);
    assert_int_equal(sti_circuit_read(path, &back), STINT_OK);
    assert_memory_equal(back.id, c.id, sizeof c.id);
    assert_int_equal(back.cells, c.cells);
    assert_memory_equal(back.cell, c.cell, (size_t)c.cells * sizeof *c.cell);
    sti_circuit_fini(&back);
    assert_int_equal(sti_file_read(path, 1 << 20, &data, &n_bytes), STINT_OK);
    for (size_t i = 0; i < n_bytes; i += 37) {
        ((uint8_t *)data)[i] ^= 0x10;
        assert_int_equal(sti_file_write(path, data, n_bytes), STINT_OK);
        assert_int_equal(sti_circuit_read(path, &back), STINT_E_INPUT);
        ((uint8_t *)data)[i] ^= 0x10;
        assert_int_equal(sti_file_write(path, data, i), STINT_OK);
        assert_int_equal(sti_circuit_read(path, &back), STINT_E_INPUT);
    }
    sti_free(data);
    unlink(path);
    sti_circuit_fini(&c);
    sti_netlist_fini(&r.netlist);
}

/* A wave's slots are no one else's until the last use of what is in them. */
static void slots_are_never_shared(void **state)
{
    (void)state;
    for (uint64_t seed = 60; seed < 64; seed++)
        for (int by_levels = 0; by_levels < 2; by_levels++) {
            random_net r;
            sti_circuit c;
            sti_waves w;
            int64_t done = 0;
            make_net(seed, &r);
            map_net(&r, 1, &c);
            assert_int_equal(sti_waves_begin(&c, 8, by_levels, &w), STINT_OK);
            const int64_t base = 1 + c.input_bits;
            int64_t *holds = sti_alloc_array(base + c.cells, sizeof *holds, "test");
            for (int64_t i = 0; i < base; i++)
                holds[i] = i;
            while (sti_waves_next(&w)) {
                for (int64_t i = 0; i < w.cells; i++)
                    holds[w.slot[base + w.cell[i]]] = base + w.cell[i];
                for (int64_t i = 0; i < w.cells; i++) {
                    const sti_cell *cell = &c.cell[w.cell[i]];
                    const int n = sti_cell_row_of((sti_cell_kind)cell->kind)->inputs;
                    for (int k = 0; k < n; k++)
                        assert_int_equal(holds[w.slot[cell->in[k] >> 1]],
                                         cell->in[k] >> 1);
                }
                done += w.cells;
                sti_waves_done(&w);
            }
            assert_int_equal(done, c.cells);
            for (int64_t o = 0; o < c.output_bits; o++)
                assert_int_equal(holds[w.slot[c.result[o] >> 1]], c.result[o] >> 1);
            assert_true(w.slots <= base + c.cells);
            sti_free(holds);
            sti_waves_fini(&w);
            sti_circuit_fini(&c);
            sti_netlist_fini(&r.netlist);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_what_they_are_called),
        cmocka_unit_test(mapping_keeps_the_function),
        cmocka_unit_test(cells_are_gates_again),
        cmocka_unit_test(a_full_adder_takes_two),
        cmocka_unit_test(sums_are_found_across),
        cmocka_unit_test(formats_carry_the_function),
        cmocka_unit_test(latches_run_for_cycles),
        cmocka_unit_test(damaged_texts_are_refused),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(slots_are_never_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
