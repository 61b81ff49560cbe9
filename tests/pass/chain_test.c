/* Chains of random graphs: results keep their bits, no element-wise node that could be
 * joined to another stays alone, and what cannot be joined is left. */
#include "pass/pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"
#include "op/op_harness.h"

enum { VALUES = 60, KEPT = 6, ROWS = 9, COLUMNS = 16 };

typedef struct drawing {
    stint_graph *g;
    stint_value value[VALUES + 8]; /* [ROWS, COLUMNS] */
    stint_value row, column, scalar, square;
    stint_value input[5];
    int count;
    op_draws d;
} drawing;

static stint_value pick(drawing *w)
{
    return w->value[op_word(&w->d) % (uint32_t)w->count];
}

static stint_value draw_node(drawing *w)
{
    const stint_value a = pick(w), b = pick(w);
    switch (op_word(&w->d) % 12) {
    case 0:
        return stint_sin(w->g, a);
    case 1:
        return stint_cos(w->g, a);
    case 2:
        return stint_scale(w->g, a, 0.625f);
    case 3:
        return stint_tanh(w->g, a);
    case 4:
        return stint_mul(w->g, a, w->column);
    case 5:
        return stint_sub(w->g, w->scalar, a);
    case 6:
        return stint_bias(w->g, a, w->row);
    case 7:
        return stint_tanh(w->g, stint_matmul(w->g, a, w->square, false, false));
    case 8:
        return stint_mul(w->g, stint_softmax(w->g, a), b);
    case 9:
        return stint_add(w->g, a, b);
    default:
        return stint_mul(w->g, a, stint_sigmoid(w->g, b));
    }
}

static void draw_graph(drawing *w, uint64_t seed)
{
    const stint_shape whole = STINT_SHAPE(ROWS, COLUMNS), row = STINT_SHAPE(COLUMNS);
    const stint_shape column = STINT_SHAPE(ROWS, 1), one = STINT_SHAPE(1);
    const stint_shape square = STINT_SHAPE(COLUMNS, COLUMNS);
    *w = (drawing){.d = {.seed = seed}};
    assert_int_equal(stint_graph_create(STINT_EVAL, &w->g), STINT_OK);
    w->input[0] = w->value[w->count++] = stint_input(w->g, "x", &whole);
    w->input[1] = w->row = stint_input(w->g, "row", &row);
    w->input[2] = w->column = stint_input(w->g, "column", &column);
    w->input[3] = w->scalar = stint_input(w->g, "scalar", &one);
    w->input[4] = w->square = stint_input(w->g, "square", &square);
    while (w->count < VALUES) {
        const stint_value next = draw_node(w);
        w->value[w->count++] = next;
    }
    for (int i = 0; i < KEPT; i++) {
        char name[16];
        snprintf(name, sizeof name, "kept%d", i);
        sti_graph_output(w->g, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                             .value = w->value[VALUES - 1 - 3 * i],
                                             .target = -1,
                                             .name = name});
    }
    assert_int_equal(stint_graph_check(w->g), STINT_OK);
}

/* The outputs of a run; kept [KEPT, ROWS * COLUMNS]. */
static void run_graph(const drawing *w, float *kept)
{
    op_values v;
    op_draws d = {.seed = 5};
    op_values_init(&v, w->g);
    for (int i = 0; i < 5; i++) {
        const stint_shape shape = stint_value_shape(w->g, w->input[i]);
        op_fill(&d, OP_NORMAL, 0, v.data[w->input[i]], stint_shape_count(&shape));
    }
    op_run(&v, &sti_team_serial, OP_KEEP_ALL);
    for (int i = 0; i < KEPT; i++)
        memcpy(kept + i * ROWS * COLUMNS, v.data[sti_graph_outputs(w->g)[i].value],
               ROWS * COLUMNS * sizeof *kept);
    op_values_fini(&v);
}

static int count_op(const stint_graph *g, const char *name)
{
    int count = 0;
    for (int32_t n = 0; n < sti_graph_node_count(g); n++)
        count += strcmp(sti_graph_node(g, n)->op->name, name) == 0;
    return count;
}

static void random_graphs_keep_their_bits(void **state)
{
    static float before[KEPT * ROWS * COLUMNS], after[KEPT * ROWS * COLUMNS];
    int chains = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        drawing w;
        sti_pass_note note;
        draw_graph(&w, seed);
        assert_int_equal(sti_pass_dead_code(w.g, NULL), STINT_OK);
        run_graph(&w, before);
        const int32_t nodes = sti_graph_node_count(w.g);
        assert_int_equal(sti_pass_chain(w.g, &note), STINT_OK);
        assert_int_equal(stint_graph_check(w.g), STINT_OK);
        assert_true(sti_graph_node_count(w.g) < nodes);
        run_graph(&w, after);
        assert_memory_equal(before, after, sizeof before);
        chains += count_op(w.g, "chain");
        stint_graph_destroy(w.g);
    }
    assert_true(chains > 100);
}

/* A value of an input that goes round by softmax: two runs, not one. */
static void what_mixes_parts_a_run(void **state)
{
    const stint_shape whole = STINT_SHAPE(ROWS, COLUMNS);
    stint_graph *g = NULL;
    (void)state;
    assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
    const stint_value x = stint_input(g, "x", &whole);
    const stint_value a = stint_sin(g, stint_scale(g, x, 2));
    const stint_value b = stint_softmax(g, a);
    const stint_value c = stint_mul(g, stint_tanh(g, b), stint_cos(g, a));
    sti_graph_output(
        g,
        &(sti_output){.kind = STI_OUTPUT_FETCH, .value = c, .target = -1, .name = "c"});
    assert_int_equal(sti_pass_chain(g, NULL), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    assert_int_equal(sti_graph_node_count(g), 3);
    assert_int_equal(count_op(g, "chain"), 2);
    stint_graph_destroy(g);
}

/* sin(k (x W + b)) becomes one node; the bits are those of four. */
static void sines_go_into_products(void **state)
{
    const stint_shape whole = STINT_SHAPE(ROWS, COLUMNS), row = STINT_SHAPE(COLUMNS);
    const stint_shape square = STINT_SHAPE(COLUMNS, COLUMNS);
    static float before[ROWS * COLUMNS], after[ROWS * COLUMNS];
    (void)state;
    for (int fused = 0; fused < 2; fused++) {
        stint_graph *g = NULL;
        op_values v;
        op_draws d = {.seed = 3};
        assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
        const stint_value in[3] = {stint_input(g, "x", &whole),
                                   stint_input(g, "w", &square),
                                   stint_input(g, "b", &row)};
        stint_value y =
            stint_bias(g, stint_matmul(g, in[0], in[1], false, false), in[2]);
        y = stint_sin(g, stint_scale(g, y, 1.5f));
        sti_graph_output(
            g, &(sti_output){
                   .kind = STI_OUTPUT_FETCH, .value = y, .target = -1, .name = "y"});
        if (fused) {
            assert_int_equal(sti_pass_fuse(g, NULL), STINT_OK);
            assert_int_equal(sti_pass_chain(g, NULL), STINT_OK);
            assert_int_equal(stint_graph_check(g), STINT_OK);
        }
        assert_int_equal(sti_graph_node_count(g), fused ? 1 : 4);
        op_values_init(&v, g);
        for (int i = 0; i < 3; i++) {
            const stint_shape shape = stint_value_shape(g, in[i]);
            op_fill(&d, OP_NORMAL, 0, v.data[in[i]], stint_shape_count(&shape));
        }
        op_run(&v, &sti_team_serial, OP_KEEP_ALL);
        memcpy(fused ? after : before, v.data[sti_graph_outputs(g)[0].value],
               sizeof before);
        op_values_fini(&v);
        stint_graph_destroy(g);
    }
    assert_memory_equal(before, after, sizeof before);
}

/* A hundred functions in a row: four programs. */
static void long_runs_are_cut(void **state)
{
    const stint_shape whole = STINT_SHAPE(ROWS, COLUMNS);
    stint_graph *g = NULL;
    (void)state;
    assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
    stint_value x = stint_input(g, "x", &whole);
    for (int i = 0; i < 100; i++)
        x = i % 2 ? stint_sin(g, x) : stint_scale(g, x, 3);
    sti_graph_output(
        g,
        &(sti_output){.kind = STI_OUTPUT_FETCH, .value = x, .target = -1, .name = "x"});
    assert_int_equal(sti_pass_chain(g, NULL), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    assert_int_equal(sti_graph_node_count(g), 4);
    stint_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_keep_their_bits),
        cmocka_unit_test(what_mixes_parts_a_run),
        cmocka_unit_test(long_runs_are_cut),
        cmocka_unit_test(sines_go_into_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
