/* Dead code, merging, results of their own, order, in place, fusion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/toy_ops.h"
#include "op/op.h"
#include "pass/pass.h"

static stint_graph *new_graph(stint_mode mode)
{
    stint_graph *g = NULL;
    assert_int_equal(stint_graph_create(mode, &g), STINT_OK);
    return g;
}

static const sti_node *maker(const stint_graph *g, stint_value v)
{
    return sti_graph_value(g, v)->producer;
}

static void dead_code_goes(void **state)
{
    (void)state;
    stint_graph *g = new_graph(STINT_EVAL);
    sti_pass_note note;
    stint_shape s = STINT_SHAPE(8);
    stint_value x = stint_input(g, "x", &s);
    stint_value a = toy_scaled(g, x, 2);
    toy_scaled(g, toy_scaled(g, a, 3), 4);
    stint_value split = toy1(g, &toy_split, a);
    toy_output(g, STI_OUTPUT_FETCH, split + 1, -1, "bits");
    assert_int_equal(sti_pass_dead_code(g, &note), STINT_OK);
    assert_string_equal(note.text, "2 of 4 nodes removed");
    assert_int_equal(sti_graph_node_count(g), 2);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    stint_graph_destroy(g);
}

static void equal_things_are_merged(void **state)
{
    (void)state;
    stint_graph *g = new_graph(STINT_EVAL);
    sti_pass_note note;
    stint_shape s = STINT_SHAPE(8), big = STINT_SHAPE(2000);
    stint_value x = stint_input(g, "x", &s), y = stint_input(g, "y", &s);
    stint_value a = toy_scaled(g, x, 2), b = toy_scaled(g, x, 2); /* equal */
    stint_value c = toy_scaled(g, x, 3), d = toy_scaled(g, y, 2); /* not */
    stint_value e = toy2(g, a, c), f = toy2(g, b, c), h = toy2(g, c, b);
    stint_value one = sti_op_fill(g, &s, 1), uno = sti_op_fill(g, &s, 1);
    stint_value two = sti_op_fill(g, &big, 1), due = sti_op_fill(g, &big, 1);
    stint_value all[] = {d, e, f, h, one, uno, two, due};
    for (int i = 0; i < 8; i++)
        toy_output(g, STI_OUTPUT_FETCH, all[i], -1, "y");
    assert_int_equal(sti_pass_common_subexpression(g, &note), STINT_OK);
    assert_string_equal(note.text, "3 of 11 nodes merged"); /* b, f and uno */
    assert_int_equal(stint_graph_check(g), STINT_OK);
    const sti_output *out = sti_graph_outputs(g);
    assert_int_equal(out[2].value, e);
    assert_int_equal(out[5].value, one);
    assert_int_equal(out[7].value, due); /* large constants are written again */
    assert_int_equal(sti_pass_own_outputs(g, &note), STINT_OK);
    assert_string_equal(note.text, "2 results copied into blocks of their own");
    assert_int_equal(stint_graph_check(g), STINT_OK);
    stint_graph_destroy(g);
}

static void leaves_and_shared_roots_are_copied(void **state)
{
    (void)state;
    stint_graph *g = new_graph(STINT_EVAL);
    stint_shape s = STINT_SHAPE(2, 4), flat = STINT_SHAPE(8);
    stint_value x = stint_input(g, "x", &s), a = toy_scaled(g, x, 2);
    stint_value view = stint_reshape(g, a, &flat);
    stint_value leaf_view = stint_reshape(g, x, &flat);
    toy_output(g, STI_OUTPUT_FETCH, x, -1, "leaf");
    toy_output(g, STI_OUTPUT_FETCH, leaf_view, -1, "view of a leaf");
    toy_output(g, STI_OUTPUT_FETCH, view, -1, "view");
    toy_output(g, STI_OUTPUT_FETCH, a, -1, "its root");
    assert_int_equal(sti_pass_own_outputs(g, NULL), STINT_OK);
    const sti_output *out = sti_graph_outputs(g);
    assert_string_equal(maker(g, out[0].value)->op->name, "copy");
    assert_string_equal(maker(g, out[1].value)->op->name, "copy");
    assert_int_equal(out[2].value, view);
    assert_string_equal(maker(g, out[3].value)->op->name, "copy");
    assert_int_equal(stint_graph_check(g), STINT_OK);
    stint_graph_destroy(g);
}

static void operands_that_die_are_overwritten(void **state)
{
    (void)state;
    stint_graph *g = new_graph(STINT_EVAL);
    sti_pass_note note;
    stint_shape s = STINT_SHAPE(2, 4), flat = STINT_SHAPE(8);
    stint_value x = stint_input(g, "x", &s);
    stint_value a = toy_scaled(g, x, 2);        /* x is an input: no */
    stint_value b = toy_scaled(g, a, 3);        /* a is read below: no */
    stint_value c = toy2(g, a, b);              /* over a: both die here */
    stint_value d = toy2(g, c, c);              /* twice the same: no */
    stint_value e = stint_reshape(g, d, &flat); /* a view is not in place */
    stint_value f = toy_scaled(g, e, 4);        /* d is a result: no */
    stint_value h = toy_scaled(g, f, 5);        /* over f */
    toy_output(g, STI_OUTPUT_FETCH, d, -1, "d");
    toy_output(g, STI_OUTPUT_FETCH, h, -1, "h");
    assert_int_equal(sti_pass_inplace(g, &note), STINT_OK);
    assert_int_equal(maker(g, a)->inplace, -1);
    assert_int_equal(maker(g, b)->inplace, -1);
    assert_int_equal(maker(g, c)->inplace, 0);
    assert_int_equal(maker(g, d)->inplace, -1);
    assert_int_equal(maker(g, f)->inplace, -1);
    assert_int_equal(maker(g, h)->inplace, 0);
    assert_string_equal(note.text, "2 results laid over operands");
    assert_int_equal(stint_graph_check(g), STINT_OK);
    /* Every pass that moves nodes forgets the marks. */
    assert_int_equal(sti_pass_schedule(g, NULL), STINT_OK);
    assert_int_equal(maker(g, h)->inplace, -1);
    stint_graph_destroy(g);
}

/* dx before dw in the rule's order; dw reads the saved x for the last time and writes a
 * result, so it goes first. */
static void savers_go_first(void **state)
{
    (void)state;
    stint_graph *g = new_graph(STINT_TRAIN);
    sti_pass_note note;
    stint_shape s = STINT_SHAPE(64);
    stint_value x = stint_input(g, "x", &s), w = stint_param(g, "w", &s, NULL);
    stint_value h = toy_scaled(g, x, 2), dy = toy_scaled(g, h, 3);
    stint_value dx = toy1(g, &toy_reverse, dy), more = toy1(g, &toy_reverse, dx);
    stint_value dw = toy2(g, dy, h);
    toy_output(g, STI_OUTPUT_GRADIENT, dw, w, "w");
    toy_output(g, STI_OUTPUT_METRIC, toy1(g, &toy_sum, more), -1, "sum");
    assert_int_equal(sti_pass_schedule(g, &note), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    assert_string_equal(note.text, "peak 1280 -> 768 bytes");
    assert_int_equal(maker(g, dw)->id, 2);
    assert_int_equal(sti_pass_schedule(g, &note), STINT_OK);
    assert_string_equal(note.text, "peak 768 -> 768 bytes");
    stint_graph_destroy(g);
}

static void the_table_is_complete(void **state)
{
    (void)state;
    int rows = 0;
    for (; sti_passes[rows].name; rows++) {
        assert_non_null(sti_passes[rows].help);
        assert_non_null(sti_passes[rows].run);
    }
    assert_int_equal(rows, 9);
}

static void a_failed_graph_stays_failed(void **state)
{
    (void)state;
    stint_graph *g = new_graph(STINT_EVAL);
    stint_shape bad = STINT_SHAPE(0);
    stint_input(g, "x", &bad);
    assert_int_equal(sti_pass_standard(g), STINT_E_INPUT);
    assert_int_equal(sti_pass_prepare(g), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "not positive"));
    stint_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dead_code_goes),
        cmocka_unit_test(equal_things_are_merged),
        cmocka_unit_test(leaves_and_shared_roots_are_copied),
        cmocka_unit_test(operands_that_die_are_overwritten),
        cmocka_unit_test(savers_go_first),
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(a_failed_graph_stays_failed),
    };
    (void)toy_any;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
