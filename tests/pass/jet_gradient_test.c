/* Gradients of weights through series: a loss of derivatives up to an order, by jets
 * and by reverse over reverse, which share neither kernels nor rules beyond coefficient
 * 0, for every function that has a series. */
#include "pass/derivatives.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"
#include "op/op_harness.h"

enum { POINTS = 7, COORDINATES = 2, WIDTH = 19, PARAMS = 3 };

typedef stint_value make_fn(stint_graph *g, stint_value x);

/* What is taken of a network, and by which way. */
typedef struct question {
    make_fn *make;
    int order; /* 0: the Laplacian */
    bool jets, folds;
    bool twice; /* the gradient of the gradient's squares, in its place */
} question;

typedef struct answer {
    float loss, gradient[PARAMS][WIDTH * COORDINATES];
} answer;

static const int64_t sizes[PARAMS] = {COORDINATES * WIDTH, WIDTH, WIDTH};

static stint_value column_of(stint_graph *g, const sti_column *c, bool jets)
{
    const stint_shape shape = stint_value_shape(g, c->value);
    const stint_shape column = STINT_SHAPE(POINTS, 1);
    if (!jets)
        return stint_slice(g, c->value, 1, c->offset, c->offset + 1, 1);
    const int64_t row = c->offset / (shape.dim[1] * shape.dim[2]);
    const stint_value v = stint_slice(g, c->value, 0, row, row + 1, 1);
    return stint_scale(g, stint_reshape(g, v, &column), c->factor);
}

/* y = make(1.5 (x W + b)) V, and the sum of squares of its derivatives, each times a
 * number of its own, so that no two are alike. */
static stint_value append_loss(stint_graph *g, const question *q, stint_value points,
                               stint_value *param)
{
    const stint_param_desc start = {.init = STINT_INIT_ONE};
    sti_derivative_list list;
    sti_column columns[32];
    const stint_shape shape[PARAMS] = {STINT_SHAPE(COORDINATES, WIDTH),
                                       STINT_SHAPE(WIDTH), STINT_SHAPE(WIDTH, 1)};
    stint_value sum = -1;
    param[0] = stint_param(g, "w", &shape[0], &start);
    param[1] = stint_param(g, "b", &shape[1], &start);
    param[2] = stint_param(g, "v", &shape[2], &start);
    stint_value x = stint_matmul(g, points, param[0], false, false);
    x = q->make(g, stint_scale(g, stint_bias(g, x, param[1]), 1.5f));
    x = stint_matmul(g, x, param[2], false, false);
    assert_int_equal(q->order
                         ? sti_derivatives_distinct(1, COORDINATES, q->order, &list)
                         : sti_derivatives_laplacian(1, COORDINATES, &list),
                     STINT_OK);
    assert_true(list.count <= 32);
    assert_int_equal(
        (q->jets ? sti_pass_jet : sti_pass_derivatives)(g, points, x, &list, columns),
        STINT_OK);
    for (int64_t i = 0; i < list.count; i++) {
        const stint_value c = stint_square(g, column_of(g, &columns[i], q->jets));
        const stint_value part =
            stint_scale(g, stint_mean(g, c, 3u, false), 1.0f / (float)(1 + i));
        sum = sum < 0 ? part : stint_add(g, sum, part);
    }
    sti_derivatives_fini(&list);
    sti_graph_output(
        g, &(sti_output){
               .kind = STI_OUTPUT_METRIC, .value = sum, .target = -1, .name = "loss"});
    return sum;
}

/* The gradients that are there give way to those of the sum of their squares. */
static stint_status once_more(stint_graph *g, const stint_value *param,
                              stint_value *gradient)
{
    stint_value sum = -1;
    for (int p = 0; p < PARAMS; p++) {
        const stint_value part = stint_squares(g, gradient[p]);
        sum = sum < 0 ? part : stint_add(g, sum, part);
    }
    return sti_pass_gradient(g, sum, param, PARAMS, gradient);
}

static void solve(const question *q, answer *out)
{
    stint_graph *g = NULL;
    op_values v;
    stint_value param[PARAMS], gradient[PARAMS];
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    const stint_shape shape = STINT_SHAPE(POINTS, COORDINATES);
    const stint_value points = stint_input(g, "points", &shape);
    stint_value loss = append_loss(g, q, points, param);
    if (q->folds)
        assert_int_equal(sti_pass_fuse_jets(g, NULL), STINT_OK);
    loss = sti_graph_outputs(g)[0].value;
    assert_int_equal(sti_pass_gradient(g, loss, param, PARAMS, gradient), STINT_OK);
    if (q->twice)
        assert_int_equal(once_more(g, param, gradient), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    op_values_init(&v, g);
    for (int i = 0; i < POINTS * COORDINATES; i++)
        ((float *)v.data[points])[i] = 0.6f * (float)sin(1.7 * i + 0.3);
    for (int p = 0; p < PARAMS; p++)
        for (int64_t i = 0; i < sizes[p]; i++)
            ((float *)v.data[param[p]])[i] =
                (p == 1 ? 0.9f : 0.3f) * (float)(1.2 + sin(2.3 * (double)i + p));
    op_run(&v, &(sti_team){2}, OP_KEEP_ALL);
    out->loss = *(float *)v.data[loss];
    for (int p = 0; p < PARAMS; p++)
        memcpy(out->gradient[p], v.data[gradient[p]], (size_t)sizes[p] * sizeof(float));
    op_values_fini(&v);
    stint_graph_destroy(g);
}

static double distance(const float *a, const float *b, int64_t n)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        error += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(error / size);
}

static stint_value relu_of(stint_graph *g, stint_value x)
{
    return stint_relu(g, stint_add_scalar(g, x, -2.5f));
}

/* Above one, where these have no poles. */
static stint_value raised(stint_graph *g, stint_value x)
{
    return stint_add_scalar(g, stint_square(g, x), 1);
}

static stint_value log_of(stint_graph *g, stint_value x)
{
    return stint_log(g, raised(g, x));
}

static stint_value sqrt_of(stint_graph *g, stint_value x)
{
    return stint_sqrt(g, raised(g, x));
}

static stint_value reciprocal_of(stint_graph *g, stint_value x)
{
    return stint_reciprocal(g, raised(g, x));
}

/* Products, sums, a quotient, of series with and without a bias. */
static stint_value mix_of(stint_graph *g, stint_value x)
{
    const stint_value a = stint_mul(g, stint_sin(g, x), stint_exp(g, x));
    const stint_value b = stint_add_scalar(g, stint_square(g, x), 2);
    return stint_div(g, stint_sub(g, a, x), stint_add(g, b, stint_cos(g, x)));
}

static stint_value skip_of(stint_graph *g, stint_value x)
{
    const stint_value half = stint_slice(g, stint_tanh(g, x), 1, 0, 12, 1);
    const stint_value rest = stint_slice(g, x, 1, 12, WIDTH, 1);
    return stint_concat(g, (stint_value[]){half, rest}, 2, 1);
}

static const struct {
    const char *name;
    make_fn *make;
} functions[] = {{"sin", stint_sin},
                 {"cos", stint_cos},
                 {"exp", stint_exp},
                 {"log", log_of},
                 {"tanh", stint_tanh},
                 {"sigmoid", stint_sigmoid},
                 {"softplus", stint_softplus},
                 {"silu", stint_silu},
                 {"gelu", stint_gelu},
                 {"sqrt", sqrt_of},
                 {"square", stint_square},
                 {"reciprocal", reciprocal_of},
                 {"relu", relu_of},
                 {"mix", mix_of},
                 {"skip", skip_of}};

static void compare(int f, int order, bool twice)
{
    answer want, got;
    solve(&(question){functions[f].make, order, .jets = false, .twice = twice}, &want);
    for (int folds = 0; folds < 2; folds++) {
        solve(&(question){functions[f].make, order, .jets = true, .folds = folds,
                          .twice = twice},
              &got);
        const double error = fabs((double)(got.loss - want.loss)) / (double)want.loss;
        if (!(error < 1e-5))
            print_error("%s, order %d: loss %.8g, wanted %.8g\n", functions[f].name,
                        order, (double)got.loss, (double)want.loss);
        assert_true(error < 1e-5);
        for (int p = 0; p < PARAMS; p++) {
            const double d = distance(got.gradient[p], want.gradient[p], sizes[p]);
            if (!(d < 1e-5))
                print_error("%s, order %d, parameter %d: error %.3g\n",
                            functions[f].name, order, p, d);
            assert_true(d < 1e-5);
        }
    }
}

static void both_ways_give_one_gradient(void **state)
{
    (void)state;
    for (int f = 0; f < (int)(sizeof functions / sizeof *functions); f++)
        for (int order = 0; order <= 3; order++)
            compare(f, order, false);
}

/* Second gradients, too: the product's gradient is differentiated. */
static void both_ways_give_one_second_gradient(void **state)
{
    (void)state;
    for (int f = 0; f < (int)(sizeof functions / sizeof *functions); f++)
        for (int order = 0; order <= 2; order++)
            compare(f, order, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_give_one_gradient),
        cmocka_unit_test(both_ways_give_one_second_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
