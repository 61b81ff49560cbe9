/* Passes of networks for use: maps of channels folded into products (pass/affine),
 * element-wise operators in chains (pass/chain), normalisations behind convolutions
 * (pass/norm_behind), against loops in double precision and against the graphs that
 * they came from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "exec/runner.h"
#include "kernel/elementwise/chain_loops.h"
#include "op/op.h"
#include "pass/pass.h"

enum { N = 2, H = 5, W = 7, C = 6, D = 9 };

static stint_graph *new_graph(void)
{
    stint_graph *g = NULL;
    assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
    return g;
}

static void fetch(stint_graph *g, stint_value v)
{
    sti_graph_output(
        g,
        &(sti_output){.kind = STI_OUTPUT_FETCH, .value = v, .target = -1, .name = "y"});
}

static float number(uint64_t which, int64_t i)
{
    uint32_t w[4];
    sti_random4(5, STI_STREAM_TEST, which, (uint64_t)i, w);
    return 2 * sti_uniform(w[0]) - 1;
}

static stint_value constant(stint_graph *g, const stint_shape *s, uint64_t which,
                            float least, const float **data_out)
{
    float *x = sti_graph_room(g, stint_shape_bytes(s));
    char name[8] = {'c', (char)('a' + (int)which), 0};
    assert_non_null(x);
    for (int64_t i = 0; i < stint_shape_count(s); i++)
        x[i] = least > 0 ? least + fabsf(number(which, i)) : number(which, i);
    if (data_out)
        *data_out = x;
    return sti_graph_constant(g, name, s, x);
}

static void fill(runner *r, const stint_graph *g, stint_value v)
{
    float *x = sti_exec_address(r->exec, v);
    for (int64_t i = 0; x && i < stint_shape_count(&sti_graph_value(g, v)->shape); i++)
        x[i] = 3 * number(99, i);
}

static int nodes_of(const stint_graph *g, const char *op)
{
    int count = 0;
    for (int32_t i = 0; i < sti_graph_node_count(g); i++)
        count += strcmp(sti_graph_node(g, i)->op->name, op) == 0;
    return count;
}

/* One run; the first fetched value, copied. */
static float *run(const stint_graph *g, stint_value x, int threads)
{
    const sti_step step = {0};
    runner r;
    runner_init(&r, g, threads);
    fill(&r, g, x);
    sti_exec_run_kept(r.exec, &(sti_team){threads});
    sti_exec_run(r.exec, &(sti_team){threads}, &step);
    const stint_value y = sti_graph_outputs(g)[0].value;
    const size_t bytes = stint_shape_bytes(&sti_graph_value(g, y)->shape);
    float *out = malloc(bytes);
    assert_non_null(out);
    memcpy(out, sti_exec_address(r.exec, y), bytes);
    runner_fini(&r);
    return out;
}

/* ---- maps of channels ---- */

/* batch_norm(conv(x)) * f - s, once as it is and once folded into one convolution. */
static void convolution_takes_norm_product_and_sum(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape xs = STINT_SHAPE(N, H, W, C), ws = STINT_SHAPE(3, 3, C, D),
                row = STINT_SHAPE(D), f = STINT_SHAPE(1, 1, 1, D);
    stint_shape one = stint_shape_make(STINT_F32, 0, NULL);
    const stint_value x = stint_input(g, "x", &xs);
    const sti_conv2d_attr attr = {.stride = 1, .pad = 1, .groups = 1};
    stint_value y =
        sti_op_conv(g, x, constant(g, &ws, 0, 0, NULL), STI_NO_INPUT, &attr);
    const sti_batch_norm_attr norm = {.epsilon = 1e-3f, .eval = 1};
    const stint_value in[6] = {y,
                               constant(g, &row, 1, 0, NULL),
                               constant(g, &row, 2, 0, NULL),
                               STI_NO_INPUT,
                               constant(g, &row, 3, 0, NULL),
                               constant(g, &row, 4, 0.5f, NULL)};
    y = sti_graph_add(g, &sti_op_batch_norm, &norm, 6, in);
    y = stint_mul(g, constant(g, &f, 5, 0, NULL), y);
    y = stint_sub(g, y, constant(g, &one, 6, 0, NULL));
    fetch(g, y);
    assert_int_equal(sti_graph_status(g), STINT_OK);
    float *want = run(g, x, 1);
    assert_int_equal(sti_pass_affine(g, NULL), STINT_OK);
    assert_int_equal(sti_graph_node_count(g), 1);
    float *got = run(g, x, 2);
    for (int i = 0; i < N * H * W * D; i++)
        assert_float_equal(got[i], want[i], 2e-5);
    free(want);
    free(got);
    stint_graph_destroy(g);
}

/* (x W^T + b) * f + s through a reshape, against double precision. */
static void product_takes_rows_through_a_reshape(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    const float *w, *b, *f, *s;
    stint_shape xs = STINT_SHAPE(8, C), ws = STINT_SHAPE(D, C), row = STINT_SHAPE(D),
                cube = STINT_SHAPE(2, 4, D);
    const stint_value x = stint_input(g, "x", &xs);
    stint_value y = stint_matmul(g, x, constant(g, &ws, 0, 0, &w), false, true);
    y = stint_bias(g, y, constant(g, &row, 1, 0, &b));
    y = stint_reshape(g, y, &cube);
    y = stint_mul(g, y, constant(g, &row, 2, 0, &f));
    y = stint_add(g, constant(g, &row, 3, 0, &s), y);
    fetch(g, y);
    assert_int_equal(sti_pass_affine(g, NULL), STINT_OK);
    assert_int_equal(nodes_of(g, "mul") + nodes_of(g, "add") + nodes_of(g, "bias"), 0);
    float *got = run(g, x, 1);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < D; j++) {
            double sum = (double)b[j];
            for (int k = 0; k < C; k++)
                sum += 3.0 * (double)number(99, i * C + k) * (double)w[j * C + k];
            assert_float_equal(got[i * D + j],
                               (float)(sum * (double)f[j] + (double)s[j]), 1e-5);
        }
    free(got);
    stint_graph_destroy(g);
}

/* What two nodes read, what is no row of channels and what is not finite stays. */
static void other_maps_stay(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape xs = STINT_SHAPE(N, C), ws = STINT_SHAPE(C, D),
                column = STINT_SHAPE(N, 1), row = STINT_SHAPE(D);
    const stint_value x = stint_input(g, "x", &xs);
    const stint_value w = constant(g, &ws, 0, 0, NULL);
    const float *zeros;
    const stint_value r = constant(g, &row, 2, 0, &zeros);
    memset((void *)(uintptr_t)zeros, 0, D * sizeof *zeros);
    const stint_value twice = stint_matmul(g, x, w, false, false);
    const stint_value first = stint_mul(g, twice, constant(g, &row, 1, 0, NULL));
    fetch(g, stint_add(g, first, twice));
    fetch(g, stint_mul(g, stint_matmul(g, stint_exp(g, x), w, false, false),
                       constant(g, &column, 3, 0, NULL)));
    fetch(g, stint_div(g, stint_matmul(g, stint_sin(g, x), w, false, false), r));
    const int nodes = sti_graph_node_count(g);
    assert_int_equal(sti_pass_affine(g, NULL), STINT_OK);
    assert_int_equal(sti_graph_node_count(g), nodes);
    stint_graph_destroy(g);
}

/* ---- chains ---- */

/* x is [rows, columns]; hard-swish of x + row, times its sigmoid, as it is written out.
 */
static stint_value build_chain(stint_graph *g, stint_value x, const stint_shape *row)
{
    stint_shape one = STINT_SHAPE(1, 1);
    const stint_value three = constant(g, &one, 1, 3, NULL);
    const stint_value six = constant(g, &one, 2, 6, NULL);
    const stint_value zero = stint_scale(g, three, 0);
    const stint_value y = stint_add(g, x, constant(g, row, 3, 0, NULL));
    stint_value h = stint_maximum(g, stint_add(g, y, three), zero);
    h = stint_div(g, stint_mul(g, y, stint_minimum(g, h, six)), six);
    return stint_relu(g, stint_mul(g, h, stint_sigmoid(g, h)));
}

static void chain_of_shape(int64_t rows, int64_t columns)
{
    stint_graph *g = new_graph();
    stint_shape xs = STINT_SHAPE(rows, columns), row = STINT_SHAPE(columns);
    const stint_value x = stint_input(g, "x", &xs);
    fetch(g, build_chain(g, x, &row));
    assert_int_equal(sti_pass_constant(g, NULL), STINT_OK);
    float *want = run(g, x, 1);
    assert_int_equal(sti_pass_chain(g, NULL), STINT_OK);
    assert_int_equal(sti_graph_node_count(g), 1);
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    for (int threads = 1; threads <= 3; threads++) {
        float *got = run(g, x, threads);
        assert_memory_equal(got, want, (size_t)(rows * columns) * sizeof *got);
        free(got);
    }
    free(want);
    stint_graph_destroy(g);
}

static void chains_keep_bits(void **state)
{
    (void)state;
    chain_of_shape(3, 5);
    chain_of_shape(1, 1000);
    chain_of_shape(700, 24);
    chain_of_shape(5, STI_CHAIN_TILE + 77);
    chain_of_shape(4, STI_CHAIN_TILE / 2 + 1);
}

/* Numbers only, no row: any shape is one run of tiles; against the formula. */
static void silu_is_one_node(void **state)
{
    (void)state;
    stint_graph *g = new_graph();
    stint_shape xs = STINT_SHAPE(3, 50, 70);
    const stint_value x = stint_input(g, "x", &xs);
    fetch(g, stint_mul(g, stint_sigmoid(g, x), x));
    assert_int_equal(sti_pass_chain(g, NULL), STINT_OK);
    assert_int_equal(nodes_of(g, "chain"), 1);
    assert_int_equal(sti_graph_node_count(g), 1);
    float *got = run(g, x, 2);
    for (int i = 0; i < 3 * 50 * 70; i++) {
        const double v = 3.0 * (double)number(99, i);
        assert_float_equal(got[i], (float)(v / (1 + exp(-v))), 1e-6);
    }
    free(got);
    stint_graph_destroy(g);
}

/* ---- normalisation behind a convolution ---- */

typedef struct window {
    int64_t n, h, w, ci, co, side, stride, pad, groups;
    bool winograd, bias, residual, relu;
} window;

/* Convolution, normalisation, perhaps with a residual and a ReLU. apart: what is in
 * between leaves the graph, too, so that the two stay two nodes. */
static stint_graph *conv_norm(const window *c, bool apart, stint_value *x_out)
{
    stint_graph *g = new_graph();
    const stint_shape xs = STINT_SHAPE(c->n, c->h, c->w, c->ci);
    const stint_shape ws = STINT_SHAPE(c->side, c->side, c->ci / c->groups, c->co);
    const stint_shape row = STINT_SHAPE(c->co);
    const sti_conv2d_attr attr = {.stride = c->stride,
                                  .pad = c->pad,
                                  .groups = c->groups,
                                  .has_bias = c->bias,
                                  .winograd = c->winograd};
    const stint_value x = stint_input(g, "x", &xs);
    const stint_value bias = c->bias ? constant(g, &row, 5, 0, NULL) : STI_NO_INPUT;
    const stint_value z = sti_op_conv(g, x, constant(g, &ws, 0, 0, NULL), bias, &attr);
    const stint_shape ys = stint_value_shape(g, z);
    const sti_batch_norm_attr norm = {.epsilon = 1e-5f, .eval = 1};
    const stint_value in[6] = {z,
                               constant(g, &row, 1, 0, NULL),
                               constant(g, &row, 2, 0, NULL),
                               STI_NO_INPUT,
                               constant(g, &row, 3, 0, NULL),
                               constant(g, &row, 4, 0.5f, NULL)};
    stint_value y = sti_graph_add(g, &sti_op_batch_norm, &norm, 6, in);
    if (c->residual)
        y = stint_add(g, y, constant(g, &ys, 6, 0, NULL));
    if (c->relu)
        y = stint_relu(g, y);
    fetch(g, y);
    if (apart)
        fetch(g, z);
    *x_out = x;
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    assert_int_equal(nodes_of(g, "conv2d_norm"), !apart);
    assert_int_equal(nodes_of(g, "batch_norm"), apart);
    assert_int_equal(sti_graph_node_count(g), apart ? 2 : 1);
    return g;
}

static size_t first_bytes(const stint_graph *g)
{
    const stint_shape s = stint_value_shape(g, sti_graph_outputs(g)[0].value);
    return stint_shape_bytes(&s);
}

/* The bits of the two operators, by any number of threads and instruction set, with
 * weights as they are and made ready once. */
static void norm_behind_convolution_has_the_bits(void **state)
{
    static const window windows[] = {
        {3, 12, 12, 16, 32, 3, 1, 1, 1, .winograd = true, .relu = true},
        {1, 33, 21, 32, 48, 3, 1, 1, 1, .winograd = true, .residual = true},
        {2, 8, 8, 16, 16, 3, 1, 1, 1, .winograd = true, .residual = true, .relu = true},
        {2, 13, 11, 5, 9, 3, 1, 1, 1, .bias = true, .relu = true},
        {3, 30, 22, 3, 24, 7, 2, 3, 1, .relu = true},
        {2, 16, 16, 16, 40, 1, 2, 0, 1, .relu = false},
        {1, 9, 10, 12, 24, 3, 1, 1, 3, .residual = true, .relu = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++)
        for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
            if (!sti_isa_force((sti_isa)isa))
                continue;
            stint_value x, u;
            stint_graph *two = conv_norm(&windows[i], true, &x);
            stint_graph *one = conv_norm(&windows[i], false, &u);
            float *want = run(two, x, 1);
            for (int keep = 0; keep < 2; keep++) {
                sti_graph_keep_constants(one, keep);
                float *got = run(one, u, 1 + isa % 3);
                assert_memory_equal(got, want, first_bytes(two));
                free(got);
            }
            free(want);
            stint_graph_destroy(two);
            stint_graph_destroy(one);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolution_takes_norm_product_and_sum),
        cmocka_unit_test(norm_behind_convolution_has_the_bits),
        cmocka_unit_test(product_takes_rows_through_a_reshape),
        cmocka_unit_test(other_maps_stay),
        cmocka_unit_test(chains_keep_bits),
        cmocka_unit_test(silu_is_one_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
