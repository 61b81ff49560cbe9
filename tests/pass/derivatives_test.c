/* Derivatives of a graph by its points: both ways against closed forms and each other,
 * for operators and shapes that no field model has; what mixes points is refused. */
#include "pass/derivatives.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"
#include "op/op_harness.h"

enum { POINTS = 9 };

/* Appends y [POINTS, outputs] of points. */
typedef stint_value make_fn(stint_graph *g, stint_value points);

typedef struct asked {
    sti_derivative_list list;
    float *value; /* [count, POINTS] */
} asked;

static void fill_points(float *p, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        p[i] = 0.9f * (float)sin(1.7 * (double)i + 0.3);
}

static void ask(make_fn *make, int coordinates, const sti_derivative_list *list,
                bool jets, float *value)
{
    const stint_shape shape = STINT_SHAPE(POINTS, coordinates);
    sti_column *columns = sti_alloc_array(list->count, sizeof *columns, "test");
    stint_graph *g = NULL;
    op_values v;
    assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
    const stint_value points = stint_input(g, "points", &shape);
    const stint_value y = make(g, points);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    assert_int_equal(
        (jets ? sti_pass_jet : sti_pass_derivatives)(g, points, y, list, columns),
        STINT_OK);
    if (!jets)
        (void)sti_pass_symmetric(list, columns);
    sti_pass_fetch_columns(g, columns, list->count);
    assert_int_equal(sti_pass_common_subexpression(g, NULL), STINT_OK);
    assert_int_equal(jets ? sti_pass_fuse_jets(g, NULL) : sti_pass_simplify(g, NULL),
                     STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    sti_pass_find_columns(g, columns, list->count);
    op_values_init(&v, g);
    fill_points(v.data[points], (int64_t)POINTS * coordinates);
    op_run(&v, &sti_team_serial, OP_KEEP_ALL);
    for (int64_t c = 0; c < list->count; c++)
        for (int i = 0; i < POINTS; i++)
            value[c * POINTS + i] =
                columns[c].factor *
                ((float *)
                     v.data[columns[c].value])[columns[c].offset + i * columns[c].step];
    op_values_fini(&v);
    stint_graph_destroy(g);
    sti_free(columns);
}

static void close_to(float got, double want, double size)
{
    if (!(fabs((double)got - want) <= 3e-6 * (size + fabs(want))))
        printf("got %.9g, wanted %.9g\n", (double)got, want);
    assert_true(fabs((double)got - want) <= 3e-6 * (size + fabs(want)));
}

/* ---- sin(w x + b): the n-th derivative is w^n sin(w x + b + n pi / 2) ---- */

static const double wave[3] = {1.25, -2.5, 0.75};

static stint_value make_wave(stint_graph *g, stint_value points)
{
    stint_value sum = -1;
    for (int c = 0; c < 3; c++) {
        stint_value x = stint_slice(g, points, 1, c, c + 1, 1);
        x = stint_scale(g, x, (float)wave[c]);
        sum = sum < 0 ? x : stint_add(g, sum, x);
    }
    return stint_sin(g, sum);
}

static void waves_have_closed_forms(void **state)
{
    float p[POINTS * 3];
    sti_derivative_list list;
    (void)state;
    fill_points(p, POINTS * 3);
    assert_int_equal(sti_derivatives_all(1, 3, 4, 0, &list), STINT_OK);
    assert_int_equal(list.count, 1 + 3 + 9 + 27 + 81);
    float *value = sti_alloc_array(list.count * POINTS, sizeof *value, "test");
    for (int jets = 0; jets < 2; jets++) {
        ask(make_wave, 3, &list, jets, value);
        for (int64_t c = 0; c < list.count; c++)
            for (int i = 0; i < POINTS; i++) {
                double at = list.row[c].order * M_PI / 2, factor = 1;
                for (int k = 0; k < 3; k++)
                    at += wave[k] * (double)p[3 * i + k];
                for (int k = 0; k < list.row[c].order; k++)
                    factor *= wave[list.row[c].along[k]];
                close_to(value[c * POINTS + i], factor * sin(at), fabs(factor));
            }
    }
    sti_free(value);
    sti_derivatives_fini(&list);
}

/* ---- x^2 y - 3 x y^2: orders above the degree are zeros ---- */

static stint_value make_polynomial(stint_graph *g, stint_value points)
{
    const stint_value x = stint_slice(g, points, 1, 0, 1, 1);
    const stint_value y = stint_slice(g, points, 1, 1, 2, 1);
    const stint_value a = stint_mul(g, stint_square(g, x), y);
    return stint_sub(g, a, stint_scale(g, stint_mul(g, x, stint_mul(g, y, y)), 3));
}

static void polynomials_end(void **state)
{
    float p[POINTS * 2];
    sti_derivative_list list;
    (void)state;
    fill_points(p, POINTS * 2);
    assert_int_equal(sti_derivatives_distinct(1, 2, 5, &list), STINT_OK);
    assert_int_equal(list.count, 21);
    float value[21 * POINTS];
    for (int jets = 0; jets < 2; jets++) {
        ask(make_polynomial, 2, &list, jets, value);
        for (int i = 0; i < POINTS; i++) {
            const double x = (double)p[2 * i], y = (double)p[2 * i + 1];
            const double want[10] = {x * x * y - 3 * x * y * y,
                                     2 * x * y - 3 * y * y,
                                     x * x - 6 * x * y,
                                     2 * y,
                                     2 * x - 6 * y,
                                     -6 * x,
                                     0,
                                     2,
                                     -6,
                                     0};
            for (int c = 0; c < 21; c++)
                close_to(value[c * POINTS + i], c < 10 ? want[c] : 0, 1);
        }
    }
    sti_derivatives_fini(&list);
}

/* ---- everything at once: the two ways agree ---- */

/* Every operator with a rule, a skip, a product, several outputs. */
static stint_value make_tangle(stint_graph *g, stint_value points)
{
    const stint_shape w = STINT_SHAPE(2, 3), b = STINT_SHAPE(3);
    const stint_value weight =
        stint_broadcast(g, sti_op_fill(g, &(stint_shape){.rank = 0}, 0.375f), &w);
    const stint_value bias = sti_op_fill(g, &b, 0.25f);
    const stint_value h =
        stint_bias(g, stint_matmul(g, points, weight, false, false), bias);
    const stint_value t =
        stint_tanh(g, stint_concat(g, (stint_value[]){h, points}, 2, 1));
    const stint_value p =
        stint_exp(g, stint_scale(g, stint_gelu(g, t), 0.5f)); /* positive */
    const stint_value q =
        stint_div(g, stint_sqrt(g, p), stint_add(g, p, stint_square(g, t)));
    const stint_value r =
        stint_add(g, stint_log(g, p), stint_mul(g, q, stint_silu(g, t)));
    const stint_value s = stint_mul(g, stint_softplus(g, r), stint_reciprocal(g, p));
    return stint_slice(g, stint_sub(g, s, stint_sigmoid(g, stint_cos(g, t))), 1, 1, 5,
                       2);
}

static void both_ways_agree(void **state)
{
    sti_derivative_list list;
    (void)state;
    assert_int_equal(sti_derivatives_distinct(2, 2, 4, &list), STINT_OK);
    float *a = sti_alloc_array(list.count * POINTS, sizeof *a, "test");
    float *b = sti_alloc_array(list.count * POINTS, sizeof *b, "test");
    ask(make_tangle, 2, &list, false, a);
    ask(make_tangle, 2, &list, true, b);
    for (int64_t c = 0; c < list.count; c++) {
        double size = 0, error = 0;
        for (int i = 0; i < POINTS; i++) {
            const double d = (double)a[c * POINTS + i] - (double)b[c * POINTS + i];
            size += (double)b[c * POINTS + i] * (double)b[c * POINTS + i];
            error += d * d;
        }
        /* The second output depends on x alone. */
        assert_true(size > 1e-8 || error == 0);
        assert_true(size == 0 || sqrt(error / size) < 2e-5);
    }
    sti_free(a);
    sti_free(b);
    sti_derivatives_fini(&list);
}

static void laplacians_are_sums(void **state)
{
    sti_derivative_list few, whole;
    float a[5 * POINTS], b[5 * POINTS], c[10 * POINTS];
    (void)state;
    assert_int_equal(sti_derivatives_laplacian(1, 3, &few), STINT_OK);
    assert_int_equal(sti_derivatives_distinct(1, 3, 2, &whole), STINT_OK);
    assert_int_equal(few.count, 5);
    ask(make_wave, 3, &few, false, a);
    ask(make_wave, 3, &few, true, b);
    ask(make_wave, 3, &whole, true, c);
    for (int i = 0; i < POINTS; i++) {
        const double sum = (double)c[4 * POINTS + i] + (double)c[7 * POINTS + i] +
                           (double)c[9 * POINTS + i];
        close_to(a[4 * POINTS + i], sum, 8);
        close_to(b[4 * POINTS + i], sum, 8);
    }
    sti_derivatives_fini(&few);
    sti_derivatives_fini(&whole);
}

/* ---- refusals ---- */

static stint_value make_softmax(stint_graph *g, stint_value points)
{
    return stint_softmax(g, points);
}

static stint_value make_mean(stint_graph *g, stint_value points)
{
    return stint_sub(g, points, stint_mean(g, points, 1, true));
}

static void refused(make_fn *make, const char *word)
{
    const stint_shape shape = STINT_SHAPE(POINTS, 2);
    sti_derivative_list list;
    sti_column columns[8];
    assert_int_equal(sti_derivatives_distinct(2, 2, 1, &list), STINT_OK);
    for (int jets = 0; jets < 2; jets++) {
        stint_graph *g = NULL;
        assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
        const stint_value points = stint_input(g, "points", &shape);
        const stint_value y = make(g, points);
        assert_int_equal(
            (jets ? sti_pass_jet : sti_pass_derivatives)(g, points, y, &list, columns),
            STINT_E_UNSUPPORTED);
        assert_non_null(strstr(stint_last_error(), word));
        stint_graph_destroy(g);
    }
    sti_derivatives_fini(&list);
}

static void mixed_points_are_refused(void **state)
{
    (void)state;
    refused(make_softmax, "softmax");
    refused(make_mean, "mean");
}

static void orders_are_bounded(void **state)
{
    sti_derivative_list list;
    (void)state;
    assert_int_equal(sti_derivatives_distinct(1, 2, 11, &list), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "at most 10, which has 66"));
    assert_int_equal(sti_derivatives_distinct(1, 4, 7, &list), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "at most 6, which has 210"));
    assert_int_equal(sti_derivatives_all(16, 4, 6, 0, &list), STINT_E_USAGE);
    assert_int_equal(sti_derivatives_all(3, 2, 4, 65, &list), STINT_OK);
    assert_int_equal(list.count, 65);
    assert_int_equal(list.row[64].order, 4);
    sti_derivatives_fini(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waves_have_closed_forms),
        cmocka_unit_test(polynomials_end),
        cmocka_unit_test(both_ways_agree),
        cmocka_unit_test(laplacians_are_sums),
        cmocka_unit_test(mixed_points_are_refused),
        cmocka_unit_test(orders_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
