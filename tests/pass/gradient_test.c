/* What the gradient pass appends; the numbers are checked where graphs can run, in
 * tests/exec. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/toy_ops.h"
#include "op/op.h"
#include "pass/pass.h"

static stint_graph *new_graph(void)
{
    stint_graph *g = NULL;
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    return g;
}

static int count_op(const stint_graph *g, const char *name)
{
    int count = 0;
    for (int32_t n = 0; n < sti_graph_node_count(g); n++)
        count += strcmp(sti_graph_node(g, n)->op->name, name) == 0;
    return count;
}

/* loss = sum((x w)^2): dw needs x and 2 x w; nothing is appended for x. */
static void only_what_is_asked_for(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape xs = STINT_SHAPE(4, 3), ws = STINT_SHAPE(3, 2);
    stint_value x = stint_input(g, "x", &xs);
    stint_scope_begin(g, "fc");
    stint_value w = stint_param(g, "w", &ws, NULL);
    stint_value y = stint_matmul(g, x, w, false, false);
    stint_scope_end(g);
    stint_value loss = stint_sum(g, stint_square(g, y), 3, false), dw = -1;
    int32_t forward = sti_graph_node_count(g);
    assert_int_equal(sti_pass_gradient(g, loss, &w, 1, &dw), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    stint_shape shape = stint_value_shape(g, dw);
    assert_true(sti_shape_equal(&shape, &ws));
    assert_int_equal(count_op(g, "matmul"), 2);
    for (int32_t n = 0; n < sti_graph_node_count(g); n++)
        assert_true(sti_graph_node(g, n)->backward == (n >= forward));
    assert_string_equal(sti_graph_value(g, dw)->producer->scope, "fc");
    stint_value after = stint_square(g, x); /* the mark ends with the pass */
    assert_false(sti_graph_value(g, after)->producer->backward);
    stint_graph_destroy(g);
}

static void no_path_gives_none(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape s = STINT_SHAPE(3);
    stint_value x = stint_input(g, "x", &s), p = stint_param(g, "p", &s, NULL);
    stint_value loss = stint_sum(g, x, 1, false);
    int32_t nodes = sti_graph_node_count(g);
    stint_value of[] = {p, x, -1}, d[] = {7, 7, 7};
    assert_int_equal(sti_pass_gradient(g, loss, of, 1, d), STINT_OK);
    assert_int_equal(d[0], -1);
    assert_int_equal(sti_graph_node_count(g), nodes);
    assert_int_equal(sti_pass_gradient(g, loss, of, 3, d), STINT_OK);
    assert_int_equal(d[0], -1);
    assert_true(d[1] >= 0);
    assert_int_equal(d[2], -1);
    stint_graph_destroy(g);
}

static void the_loss_is_one_number(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape s = STINT_SHAPE(3);
    stint_value x = stint_input(g, "x", &s), d;
    assert_int_equal(sti_pass_gradient(g, x, &x, 1, &d), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "[3] f32"));
    assert_int_equal(sti_pass_gradient(g, -1, &x, 1, &d), STINT_E_INPUT);
    stint_graph_destroy(g);
}

static void a_missing_rule_names_the_operator(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape s = STINT_SHAPE(3);
    stint_value x = stint_input(g, "x", &s), d;
    stint_scope_begin(g, "layer2");
    stint_value loss = stint_sum(g, toy1(g, &toy_reverse, x), 1, false);
    stint_scope_end(g);
    assert_int_equal(sti_pass_gradient(g, loss, &x, 1, &d), STINT_E_UNSUPPORTED);
    assert_string_equal(stint_last_error(), "toy_reverse in layer2 is not "
                                            "differentiable: there is no gradient rule "
                                            "for it");
    stint_graph_destroy(g);
}

/* f(x) = x^3 known only by its expansion, two outputs:
 * x^2 (used inside too) and x^3. */
static stint_status infer_two(const stint_graph *g, const sti_node *n, stint_shape *out)
{
    out[0] = out[1] = sti_graph_value(g, n->in[0])->shape;
    return STINT_OK;
}

static stint_status expand_powers(stint_graph *g, const sti_node *n, stint_value *out)
{
    out[0] = stint_mul(g, n->in[0], n->in[0]);
    out[1] = stint_mul(g, out[0], n->in[0]);
    return STINT_OK;
}

static void nothing(const sti_call *call)
{
    (void)call;
}

static const sti_op toy_powers = {.name = "toy_powers",
                                  .n_out = 2,
                                  .infer = infer_two,
                                  .expand = expand_powers,
                                  .run = {nothing}};

static void expansions_are_differentiated(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape s = STINT_SHAPE(3);
    stint_value x = stint_input(g, "x", &s), d = -1;
    stint_value square = toy1(g, &toy_powers, x);
    stint_value both = stint_add(g, square, square + 1);
    stint_value loss = stint_sum(g, both, 1, false);
    assert_int_equal(sti_pass_gradient(g, loss, &x, 1, &d), STINT_OK);
    toy_output(g, STI_OUTPUT_FETCH, d, -1, "d");
    assert_int_equal(sti_pass_dead_code(g, NULL), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    /* d(x^2 x) = d x dy and x^2 dy, then 2 x (...) by the product rule: the square that
     * the second rule reads is the node's own, so the expansion is dead and gone. */
    assert_int_equal(count_op(g, "toy_powers"), 1);
    assert_int_equal(count_op(g, "mul"), 4);
    assert_int_equal(count_op(g, "add"), 3);
    stint_graph_destroy(g);
}

static void training_outputs_are_complete(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape s = STINT_SHAPE(4);
    stint_value x = stint_input(g, "x", &s);
    stint_value a = stint_param(g, "a", &s, NULL), b = stint_param(g, "b", &s, NULL);
    stint_param(g, "unused", &s, NULL);
    stint_value loss = stint_sum(g, stint_add(g, stint_add(g, x, a), b), 1, false);
    toy_output(g, STI_OUTPUT_METRIC, loss, -1, "loss");
    assert_int_equal(sti_pass_train(g, loss, NULL), STINT_OK);
    assert_int_equal(sti_graph_output_count(g), 4);
    for (int standard = 0; standard < 2; standard++) {
        for (int32_t i = 0; i < 4; i++)
            for (int32_t k = 0; k < i; k++)
                assert_int_not_equal(sti_graph_outputs(g)[i].value,
                                     sti_graph_outputs(g)[k].value);
        assert_int_equal(sti_graph_outputs(g)[1].target, a);
        assert_string_equal(sti_graph_outputs(g)[3].name, "unused");
        assert_int_equal(sti_pass_standard(g), STINT_OK);
    }
    stint_graph_destroy(g);
}

static void gradients_of_gradients(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape s = STINT_SHAPE(3);
    stint_value x = stint_input(g, "x", &s), y = x;
    stint_value loss = stint_sum(g, stint_sin(g, x), 1, false);
    for (int order = 0; order < 4; order++) {
        assert_int_equal(sti_pass_gradient(g, loss, &x, 1, &y), STINT_OK);
        assert_true(y >= 0);
        loss = stint_sum(g, y, 1, false);
        assert_int_equal(stint_graph_check(g), STINT_OK);
    }
    stint_graph_destroy(g);
}

static stint_status build(void)
{
    stint_graph *g = NULL;
    stint_shape s = STINT_SHAPE(4, 4);
    stint_status status = stint_graph_create(STINT_TRAIN, &g);
    if (status)
        return status;
    stint_value x = stint_input(g, "x", &s), w = stint_param(g, "w", &s, NULL);
    stint_value y = stint_relu(g, stint_matmul(g, x, w, false, false));
    stint_value loss = stint_sum(g, toy1(g, &toy_powers, y), 3, false);
    status = sti_pass_prepare(g);
    if (status == STINT_OK)
        status = sti_pass_train(g, loss, NULL);
    if (status == STINT_OK)
        status = sti_pass_standard(g);
    stint_graph_destroy(g);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    size_t before = sti_alloc_now_bytes();
    for (int64_t n = 1;; n++) {
        sti_alloc_fail_nth(n);
        stint_status status = build();
        sti_alloc_fail_nth(0);
        assert_int_equal(sti_alloc_now_bytes(), before);
        if (status == STINT_OK)
            break;
        assert_int_equal(status, STINT_E_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_asked_for),
        cmocka_unit_test(no_path_gives_none),
        cmocka_unit_test(the_loss_is_one_number),
        cmocka_unit_test(a_missing_rule_names_the_operator),
        cmocka_unit_test(expansions_are_differentiated),
        cmocka_unit_test(training_outputs_are_complete),
        cmocka_unit_test(gradients_of_gradients),
        cmocka_unit_test(every_allocation_may_fail),
    };
    (void)toy_any;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
