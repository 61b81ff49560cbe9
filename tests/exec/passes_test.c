/* Passes by their numbers: gradients against formulas and differences, rewritten graphs
 * against the ones they came from, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "exec/runner.h"
#include "op/op.h"
#include "pass/pass.h"

static const sti_step first_step = {.seed = 1};

static stint_graph *new_graph(void)
{
    stint_graph *g = NULL;
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    return g;
}

static void fetch(stint_graph *g, stint_value v, const char *name)
{
    sti_graph_output(
        g, &(sti_output){
               .kind = STI_OUTPUT_FETCH, .value = v, .target = -1, .name = name});
}

static uint64_t name_sum(const char *name)
{
    uint64_t sum = 0;
    for (; *name; name++)
        sum = sum * 31 + (uint8_t)*name;
    return sum;
}

/* Every leaf gets numbers in -1..1 that depend on its name only. */
static void fill_leaves(runner *r, const stint_graph *g)
{
    for (stint_value v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        float *x = sti_exec_address(r->exec, v);
        if (row->role == STI_ROLE_NODE)
            continue;
        for (int64_t i = 0; i < stint_shape_count(&row->shape); i++) {
            uint32_t w[4];
            sti_random4(9, STI_STREAM_TEST, name_sum(row->name), (uint64_t)i, w);
            x[i] = 2 * sti_uniform(w[0]) - 1;
        }
    }
}

static const float *fetched(const runner *r, const stint_graph *g, int i)
{
    return sti_exec_address(r->exec, sti_graph_outputs(g)[i].value);
}

/* loss = sum(relu(x w + b) * v): all four gradients by hand. */
static void small_net_by_hand(void **state)
{
    (void)state;
    enum { N = 3, K = 4, M = 2 };
    stint_graph *g = new_graph();
    runner r;
    stint_shape xs = STINT_SHAPE(N, K), ws = STINT_SHAPE(K, M), bs = STINT_SHAPE(M),
                vs = STINT_SHAPE(N, M);
    stint_value x = stint_input(g, "x", &xs), w = stint_param(g, "w", &ws, NULL);
    stint_value b = stint_param(g, "b", &bs, NULL), v = stint_input(g, "v", &vs);
    stint_value z = stint_bias(g, stint_matmul(g, x, w, false, false), b);
    stint_value loss = stint_sum(g, stint_mul(g, stint_relu(g, z), v), 3, false);
    stint_value of[] = {w, b, x, v}, d[4];
    assert_int_equal(sti_pass_prepare(g), STINT_OK);
    assert_int_equal(sti_pass_gradient(g, loss, of, 4, d), STINT_OK);
    for (int i = 0; i < 4; i++)
        fetch(g, d[i], "d");
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    runner_init(&r, g, 2);
    fill_leaves(&r, g);
    float X[N][K], W[K][M], B[M], V[N][M];
    memcpy(X, sti_exec_address(r.exec, x), sizeof X);
    memcpy(W, sti_exec_address(r.exec, w), sizeof W);
    memcpy(B, sti_exec_address(r.exec, b), sizeof B);
    memcpy(V, sti_exec_address(r.exec, v), sizeof V);
    sti_exec_run(r.exec, &(sti_team){.threads = 2}, &first_step);
    double dw[K * M] = {0}, db[M] = {0}, dx[N * K] = {0};
    for (int n = 0; n < N; n++)
        for (int m = 0; m < M; m++) {
            double pre = (double)B[m];
            for (int k = 0; k < K; k++)
                pre += (double)X[n][k] * (double)W[k][m];
            double dz = pre > 0 ? (double)V[n][m] : 0;
            assert_true(fabs((double)fetched(&r, g, 3)[n * M + m] - fmax(pre, 0)) <
                        1e-6);
            db[m] += dz;
            for (int k = 0; k < K; k++) {
                dw[k * M + m] += (double)X[n][k] * dz;
                dx[n * K + k] += (double)W[k][m] * dz;
            }
        }
    for (int i = 0; i < K * M; i++)
        assert_true(fabs((double)fetched(&r, g, 0)[i] - dw[i]) < 1e-6);
    for (int i = 0; i < M; i++)
        assert_true(fabs((double)fetched(&r, g, 1)[i] - db[i]) < 1e-6);
    for (int i = 0; i < N * K; i++)
        assert_true(fabs((double)fetched(&r, g, 2)[i] - dx[i]) < 1e-6);
    runner_fini(&r);
    stint_graph_destroy(g);
}

/* sin has the derivatives cos, -sin, -cos, sin. */
static void four_orders_of_sine(void **state)
{
    (void)state;
    enum { N = 17, ORDERS = 4 };
    stint_graph *g = new_graph();
    runner r;
    stint_shape s = STINT_SHAPE(N);
    stint_value x = stint_input(g, "x", &s), d = -1;
    stint_value loss = stint_sum(g, stint_sin(g, x), 1, false);
    for (int order = 0; order < ORDERS; order++) {
        assert_int_equal(sti_pass_gradient(g, loss, &x, 1, &d), STINT_OK);
        fetch(g, d, "d");
        loss = stint_sum(g, d, 1, false);
    }
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    runner_init(&r, g, 1);
    fill_leaves(&r, g);
    float at[N];
    memcpy(at, sti_exec_address(r.exec, x), sizeof at);
    sti_exec_run(r.exec, &sti_team_serial, &first_step);
    for (int i = 0; i < N; i++) {
        double a = (double)at[i];
        const double want[] = {cos(a), -sin(a), -cos(a), sin(a)};
        for (int order = 0; order < ORDERS; order++)
            assert_true(fabs((double)fetched(&r, g, order)[i] - want[order]) < 2e-7);
    }
    runner_fini(&r);
    stint_graph_destroy(g);
}

/* ---- random graphs ---- */

enum { ROWS = 6, COLS = 8 };

static stint_value random_node(stint_graph *g, const uint32_t *w, stint_value a,
                               stint_value b)
{
    stint_shape flat = STINT_SHAPE(ROWS * COLS), back = STINT_SHAPE(ROWS, COLS);
    switch (w[2] % 9) {
    case 0:
        return stint_add(g, a, b);
    case 1:
        return stint_sub(g, a, b);
    case 2:
        return stint_mul(g, stint_tanh(g, a), b);
    case 3:
        return stint_sin(g, a);
    case 4:
        return stint_relu(g, a);
    case 5:
        return stint_scale(g, a, 0.5f);
    case 6:
        return stint_sigmoid(g, stint_add(g, a, b));
    case 7:
        return stint_reshape(g, stint_cos(g, stint_reshape(g, a, &flat)), &back);
    default:
        return stint_matmul(g, stint_matmul(g, a, b, false, true), a, false, false);
    }
}

/* A loss over a random graph with a dense layer in front; gradients as results. */
static stint_graph *random_graph(uint64_t seed, int size, bool prepare)
{
    stint_graph *g = new_graph();
    stint_value pool[64];
    int count = 0;
    stint_shape s = STINT_SHAPE(ROWS, COLS);
    stint_value x = stint_input(g, "x", &s);
    stint_scope_begin(g, "dense");
    pool[count++] =
        stint_relu(g, stint_dense(g, x, &(stint_dense_desc){.units = COLS}));
    stint_scope_end(g);
    pool[count++] = stint_param(g, "q", &s, NULL);
    pool[count++] = x;
    for (int i = 0; i < size; i++) {
        uint32_t w[4];
        sti_random4(seed, STI_STREAM_TEST, (uint64_t)i, 7, w);
        stint_value a = pool[sti_below(w[0], (uint32_t)count)];
        stint_value b = pool[sti_below(w[1], (uint32_t)count)];
        pool[count++] = random_node(g, w, a, b);
    }
    stint_value sum = pool[count - 1];
    for (int i = 0; i < count - 1; i += 2)
        sum = stint_add(g, sum, pool[i]);
    stint_value loss = stint_mean(g, stint_tanh(g, sum), 3, false);
    fetch(g, sum, "sum");
    sti_graph_output(
        g, &(sti_output){
               .kind = STI_OUTPUT_METRIC, .value = loss, .target = -1, .name = "loss"});
    if (prepare)
        assert_int_equal(sti_pass_prepare(g), STINT_OK);
    for (int32_t i = 0; i < sti_graph_output_count(g); i++)
        if (sti_graph_outputs(g)[i].kind == STI_OUTPUT_METRIC)
            loss = sti_graph_outputs(g)[i].value;
    assert_int_equal(sti_pass_train(g, loss, NULL), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    return g;
}

static void assert_same_results(const runner *ra, const stint_graph *a,
                                const runner *rb, const stint_graph *b)
{
    assert_int_equal(sti_graph_output_count(a), sti_graph_output_count(b));
    for (int32_t i = 0; i < sti_graph_output_count(a); i++) {
        stint_shape s = stint_value_shape(a, sti_graph_outputs(a)[i].value);
        assert_string_equal(sti_graph_outputs(a)[i].name, sti_graph_outputs(b)[i].name);
        assert_memory_equal(fetched(ra, a, i), fetched(rb, b, i),
                            stint_shape_bytes(&s));
    }
}

static void rewriting_keeps_the_bits(void **state)
{
    (void)state;
    size_t plain = 0, rewritten = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        int size = (int)(seed % 12) + 1;
        stint_graph *a = random_graph(seed, size, seed % 2);
        stint_graph *b = random_graph(seed, size, seed % 2);
        runner ra, rb;
        assert_int_equal(sti_pass_standard(b), STINT_OK);
        runner_init(&ra, a, 3);
        runner_init(&rb, b, 3);
        fill_leaves(&ra, a);
        fill_leaves(&rb, b);
        sti_exec_run(ra.exec, &sti_team_serial, &first_step);
        sti_exec_run(rb.exec, &(sti_team){.threads = 3}, &first_step);
        assert_same_results(&ra, a, &rb, b);
        plain += ra.plan->region_bytes[STI_REGION_ARENA];
        rewritten += rb.plan->region_bytes[STI_REGION_ARENA];
        runner_fini(&ra);
        runner_fini(&rb);
        stint_graph_destroy(a);
        stint_graph_destroy(b);
    }
    printf("arenas: %zu bytes as built, %zu rewritten\n", plain, rewritten);
    assert_true(rewritten < plain);
}

/* d loss / d q along a random direction against a central difference of the loss. */
static void gradients_match_differences(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 130; seed++) {
        stint_graph *g = random_graph(seed, 6, true);
        runner r;
        float base[ROWS * COLS];
        double loss[2], slope = 0, step = 1.0 / 1024;
        assert_int_equal(sti_pass_standard(g), STINT_OK);
        runner_init(&r, g, 2);
        const sti_output *out = sti_graph_outputs(g);
        int q = 0, metric = 0;
        for (int i = 0; i < sti_graph_output_count(g); i++) {
            q = strcmp(out[i].name, "q") == 0 ? i : q;
            metric = out[i].kind == STI_OUTPUT_METRIC ? i : metric;
        }
        for (int side = 0; side < 3; side++) {
            fill_leaves(&r, g);
            float *x = sti_exec_address(r.exec, out[q].target);
            memcpy(base, x, sizeof base);
            for (int i = 0; i < ROWS * COLS; i++)
                x[i] += (float)((side - 1) * step * (i % 3 - 1));
            sti_exec_run(r.exec, &sti_team_serial, &first_step);
            if (side != 1)
                loss[side / 2] = (double)*fetched(&r, g, metric);
            else
                for (int i = 0; i < ROWS * COLS; i++)
                    slope += (double)fetched(&r, g, q)[i] * (i % 3 - 1);
        }
        double seen = (loss[1] - loss[0]) / (2 * step);
        if (fabs(seen - slope) > 2e-3 + 2e-2 * fabs(slope))
            fail_msg("seed %d: difference %g, gradient %g", (int)seed, seen, slope);
        runner_fini(&r);
        stint_graph_destroy(g);
    }
}

/* A step of a real graph: nothing allocates, and a second run gives the same bits. */
static void a_step_allocates_nothing(void **state)
{
    (void)state;
    stint_graph *g = random_graph(3, 12, true);
    runner r;
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    runner_init(&r, g, 2);
    sti_team team = {.threads = 2};
    size_t bytes = r.plan->region_bytes[STI_REGION_RESULT];
    void *first = sti_alloc(bytes, "test");
    fill_leaves(&r, g);
    sti_exec_run(r.exec, &team, &first_step);
    memcpy(first, r.memory.region[STI_REGION_RESULT], bytes);
    int64_t before = sti_alloc_count();
    for (int i = 0; i < 20; i++) {
        fill_leaves(&r, g);
        sti_exec_run(r.exec, &team, &first_step);
        assert_memory_equal(r.memory.region[STI_REGION_RESULT], first, bytes);
    }
    assert_int_equal(sti_alloc_count(), before);
    sti_free(first);
    runner_fini(&r);
    stint_graph_destroy(g);
}

/* ---- fusion ---- */

static stint_value unit(stint_graph *g, const char *name, stint_value x, int64_t stride,
                        bool bias)
{
    stint_scope_begin(g, "%s", name);
    stint_value y = stint_conv2d(
        g, x,
        &(stint_conv2d_desc){
            .filters = 16, .size = 3, .stride = stride, .pad = 1, .bias = bias});
    if (!bias)
        y = stint_batch_norm(g, y, &(stint_batch_norm_desc){0});
    stint_scope_end(g);
    return y;
}

/* Conv, bias, ReLU; a plain and a projecting residual block; dense. */
static stint_graph *image_graph(bool fuse)
{
    stint_graph *g = new_graph();
    stint_shape s = STINT_SHAPE(4, 9, 7, 3);
    stint_value x = stint_input(g, "x", &s);
    stint_value h = stint_relu(g, unit(g, "stem", x, 1, true));
    stint_value y = stint_relu(g, unit(g, "a1", h, 1, false));
    h = stint_relu(g, stint_add(g, unit(g, "a2", y, 1, false), h));
    y = stint_relu(g, unit(g, "b1", h, 2, false));
    y = unit(g, "b2", y, 1, false);
    h = stint_relu(g, stint_add(g, y, unit(g, "b3", h, 2, false)));
    h = stint_relu(
        g, stint_dense(g, stint_flatten(g, h), &(stint_dense_desc){.units = 10}));
    stint_value loss = stint_mean(g, stint_square(g, h), 3, false);
    fetch(g, h, "logits");
    if (fuse)
        assert_int_equal(sti_pass_prepare(g), STINT_OK);
    assert_int_equal(sti_pass_train(g, loss, NULL), STINT_OK);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    return g;
}

static void fusion_keeps_the_bits(void **state)
{
    (void)state;
    stint_graph *a = image_graph(false), *b = image_graph(true);
    runner ra, rb;
    assert_int_equal(sti_pass_standard(b), STINT_OK);
    assert_true(sti_graph_node_count(b) < sti_graph_node_count(a));
    runner_init(&ra, a, 2);
    runner_init(&rb, b, 2);
    fill_leaves(&ra, a);
    fill_leaves(&rb, b);
    sti_exec_run(ra.exec, &sti_team_serial, &first_step);
    sti_exec_run(rb.exec, &(sti_team){.threads = 2}, &first_step);
    assert_same_results(&ra, a, &rb, b);
    printf("arena: %zu bytes as built, %zu rewritten\n",
           ra.plan->region_bytes[STI_REGION_ARENA],
           rb.plan->region_bytes[STI_REGION_ARENA]);
    runner_fini(&ra);
    runner_fini(&rb);
    stint_graph_destroy(a);
    stint_graph_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_net_by_hand),
        cmocka_unit_test(four_orders_of_sine),
        cmocka_unit_test(rewriting_keeps_the_bits),
        cmocka_unit_test(gradients_match_differences),
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(fusion_keeps_the_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
