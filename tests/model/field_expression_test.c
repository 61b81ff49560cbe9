/* Expressions over fields: values beside C's, graphs beside values, refusals. */
#include "model/field_expression.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "model/field_terms.h"
#include "op/op_harness.h"

static sti_field_names names_of(const char *outputs)
{
    sti_field_names names;
    assert_int_equal(sti_field_names_parse("x,y", outputs, &names), STINT_OK);
    return names;
}

static double value_of(const char *text, double x, double y)
{
    const sti_field_names names = names_of("u,v");
    const double point[2] = {x, y};
    sti_expressions e;
    assert_int_equal(sti_expressions_parse("test", text, &names, &e), STINT_OK);
    assert_int_equal(e.count, 1);
    const double value = sti_expression_value(&e.expression[0], point);
    sti_expressions_fini(&e);
    return value;
}

static void values_are_those_of_c(void **state)
{
    const double x = 0.7, y = -1.3;
    (void)state;
    assert_true(value_of("1 + 2*3", x, y) == 7);
    assert_true(value_of("-x^2", x, y) == -(x * x));
    assert_true(value_of("2 - 3 - 4", x, y) == -5);
    assert_true(value_of("8/4/2", x, y) == 1);
    assert_true(value_of("--x", x, y) == x);
    assert_true(value_of("2e-1 * (x - y)", x, y) == 0.2 * (x - y));
    assert_true(fabs(value_of("sin(pi*x)*exp(-y^2)/(1+x^-2)", x, y) -
                     sin(3.141592653589793 * x) * exp(-y * y) / (1 + 1 / (x * x))) <
                1e-15);
    assert_true(fabs(value_of("x^0.5 + x^3 - log(2) + sqrt(x)", x, y) -
                     (2 * sqrt(x) + x * x * x - log(2))) < 1e-14);
}

static stint_value no_column(void *user, stint_graph *g,
                             const sti_expression_node *node)
{
    (void)user;
    (void)g;
    (void)node;
    return -1;
}

/* The graph of an expression at some points beside its value there. */
static void graphs_have_the_values(void **state)
{
    static const char *const text[] = {"x*y - 3 + x/2",
                                       "2/x - (y - 1)^4",
                                       "sigmoid(x) * tanh(y) + softplus(x*y)",
                                       "exp(-x^2) * (2 - cos(3*y)) - relu(y)",
                                       "5",
                                       "square(x)^-3 * y^0"};
    const sti_field_names names = names_of("u,v");
    const stint_shape shape = STINT_SHAPE(7, 2);
    (void)state;
    for (size_t k = 0; k < sizeof text / sizeof *text; k++) {
        sti_expressions e;
        stint_graph *g = NULL;
        op_values v;
        assert_int_equal(sti_expressions_parse("test", text[k], &names, &e), STINT_OK);
        assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
        const stint_value points = stint_input(g, "points", &shape);
        const sti_expression_scope scope = {points, no_column, no_column, NULL};
        const stint_value y = sti_expression_build(g, &e.expression[0], &scope);
        assert_int_equal(stint_graph_check(g), STINT_OK);
        op_values_init(&v, g);
        float *p = v.data[points];
        for (int i = 0; i < 14; i++)
            p[i] = 0.6f + 0.1f * (float)i;
        op_run(&v, &sti_team_serial, OP_KEEP_ALL);
        for (int i = 0; i < 7; i++) {
            const double point[2] = {(double)p[2 * i], (double)p[2 * i + 1]};
            const double want = sti_expression_value(&e.expression[0], point);
            assert_true(fabs((double)((float *)v.data[y])[i] - want) <=
                        2e-6 * (1 + fabs(want)));
        }
        op_values_fini(&v);
        stint_graph_destroy(g);
        sti_expressions_fini(&e);
    }
}

static void refused(const char *text, const char *words)
{
    const sti_field_names names = names_of("u,v");
    sti_expressions e;
    assert_int_equal(sti_expressions_parse("field.inside", text, &names, &e),
                     STINT_E_USAGE);
    if (!strstr(stint_last_error(), words))
        printf("'%s': %s\n", text, stint_last_error());
    assert_non_null(strstr(stint_last_error(), words));
}

static void faults_are_named(void **state)
{
    (void)state;
    refused("u + ", "column 5: it ends");
    refused("u + )", "column 5: a number or a name");
    refused("u + (x", "column 7: ')' is missing");
    refused("u x", "column 3: an operator or a comma");
    refused("u + sin x", "column 5: 'sin' is a function: write sin(...)");
    refused("u + siin(x)", "column 5: no 'siin'; did you mean 'sin'?");
    refused("u + speed", "column 5: no 'speed'");
    refused("u_xz", "column 1: a derivative along no coordinate");
    refused("u_", "a derivative along nothing");
    refused("u_xxxxxyyyyyx", "too high an order");
    refused("U_xxy", "too high an order");
    refused("u^x", "behind ^");
    refused("u^99", "behind ^");
    refused("((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((u",
            "too many brackets");
    refused("u,,v", "column 3");
}

static void derivatives_are_sorted(void **state)
{
    const sti_field_names names = names_of("u,v");
    sti_expressions e;
    (void)state;
    assert_int_equal(sti_expressions_parse("k", "v_yxy, V_x - u", &names, &e),
                     STINT_OK);
    assert_int_equal(e.count, 2);
    const sti_expression_node *n = &e.expression[0].node[0];
    assert_true(n->kind == STI_EXPRESSION_OUTPUT && n->index == 1 && n->order == 3);
    assert_true(n->along[0] == 0 && n->along[1] == 1 && n->along[2] == 1);
    assert_true(e.expression[1].has_target && e.expression[1].target_order == 1);
    sti_expressions_fini(&e);
}

static void sets_are_checked(void **state)
{
    const sti_field_names names = names_of("u");
    sti_field_values values = {.term = {"x^2"}};
    sti_field_terms terms;
    (void)state;
    assert_int_equal(sti_field_terms_parse(&values, &names, &terms), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "has no output"));
    values.term[0] = "u - U";
    assert_int_equal(sti_field_terms_parse(&values, &names, &terms), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "in capitals"));
    values.term[0] = "u_x";
    values.domain = "0:1";
    assert_int_equal(sti_field_terms_parse(&values, &names, &terms), STINT_E_USAGE);
    values.domain = "0:1,2:1";
    assert_int_equal(sti_field_terms_parse(&values, &names, &terms), STINT_E_USAGE);
    values.domain = "0:1,-2:1";
    values.exact = "x, y";
    assert_int_equal(sti_field_terms_parse(&values, &names, &terms), STINT_E_USAGE);
    values.exact = "x*y";
    assert_int_equal(sti_field_terms_parse(&values, &names, &terms), STINT_OK);
    assert_true(terms.any && terms.domain.low[1] == -2.0f && terms.exact.count == 1);
    sti_field_terms_fini(&terms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_c),
        cmocka_unit_test(graphs_have_the_values),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(derivatives_are_sorted),
        cmocka_unit_test(sets_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
