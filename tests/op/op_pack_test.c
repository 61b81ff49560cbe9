/* Packed tensors: what comes back, what is said about it, what happens when a block is
 * too small, and the gain of an error against plain loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "kernel/lane/bf16.h"
#include "op/op_harness.h"

enum { N = 4, H = 9, W = 7, C = 16, COUNT = N * H * W * C };

/* x, its bounds and statistics, packed and unpacked. */
typedef struct fixture {
    stint_graph *graph;
    op_values values;
    stint_value x, bounds, mean, inverse, scale, shift, bits, residual, pack, unpack;
} fixture;

static fixture build_of(stint_dtype type, bool norm, bool bits, bool sum,
                        int64_t capacity)
{
    fixture f = {.bits = STI_NO_INPUT, .residual = STI_NO_INPUT};
    const stint_shape x = stint_shape_make(type, 4, (int64_t[]){N, H, W, C});
    const stint_shape row = STINT_SHAPE(C), table = STINT_SHAPE(3, STI_BOUND_FIELDS);
    const stint_shape set = stint_shape_make(STINT_U8, 1, (int64_t[]){COUNT / 8});
    const sti_pack_attr attr = {capacity, 1, norm, sum};
    assert_int_equal(stint_graph_create(STINT_TRAIN, &f.graph), STINT_OK);
    f.x = stint_input(f.graph, "x", &x);
    f.bounds = stint_input(f.graph, "bounds", &table);
    f.mean = stint_input(f.graph, "mean", &row);
    f.inverse = stint_input(f.graph, "inverse", &row);
    f.scale = stint_input(f.graph, "scale", &row);
    f.shift = stint_input(f.graph, "shift", &row);
    if (bits)
        f.bits = stint_input(f.graph, "bits", &set);
    if (sum)
        f.residual = stint_input(f.graph, "residual", &x);
    f.pack = sti_op_add_pack(f.graph, &attr, f.x, f.bounds, f.mean, f.inverse, f.bits);
    const sti_node *pack = sti_graph_value(f.graph, f.pack)->producer;
    f.unpack = sti_op_add_unpack(f.graph, pack, f.scale, f.shift, f.residual);
    assert_int_equal(stint_graph_check(f.graph), STINT_OK);
    op_values_init(&f.values, f.graph);
    return f;
}

static fixture build_ways(bool norm, bool bits, bool sum, int64_t capacity)
{
    return build_of(STINT_F32, norm, bits, sum, capacity);
}

static fixture build(bool norm, bool bits, int64_t capacity)
{
    return build_ways(norm, bits, false, capacity);
}

static float *data(const fixture *f, stint_value v)
{
    return f->values.data[v];
}

static bool is_set(const fixture *f, int64_t i)
{
    const uint8_t *bits = f->bits >= 0 ? f->values.data[f->bits] : NULL;
    return !bits || (bits[i / 8] >> (i % 8) & 1);
}

/* Positive where a bit is set, zero elsewhere; with norm: anything. */
static void fill(fixture *f, bool norm, float wanted, float limit)
{
    op_draws d = {.seed = 11};
    uint8_t *bits = f->bits >= 0 ? f->values.data[f->bits] : NULL;
    op_fill(&d, OP_NORMAL, 0, data(f, f->x), COUNT);
    op_fill(&d, OP_NORMAL, 0, data(f, f->mean), C);
    op_fill(&d, OP_POSITIVE, 0, data(f, f->inverse), C);
    op_fill(&d, OP_NORMAL, 0, data(f, f->scale), C);
    op_fill(&d, OP_NORMAL, 0, data(f, f->shift), C);
    if (f->residual >= 0)
        op_fill(&d, OP_NORMAL, 0, data(f, f->residual), COUNT);
    for (int64_t i = 0; i < COUNT; i++) {
        float *x = &data(f, f->x)[i];
        bool pass = op_uniform(&d) < 0.6;
        if (bits && pass)
            bits[i / 8] |= (uint8_t)(1u << (i % 8));
        if (!norm)
            *x = pass ? fabsf(*x) + 0.01f : 0.0f;
    }
    float *row = data(f, f->bounds) + STI_BOUND_FIELDS;
    row[STI_BOUND_WANTED] = wanted;
    row[STI_BOUND_LIMIT] = limit;
    row[STI_BOUND_DITHER] = 1;
    row[STI_BOUND_COLLECT] = 1;
}

static void drop(fixture *f)
{
    op_values_fini(&f->values);
    stint_graph_destroy(f->graph);
}

static const float *stats(const fixture *f)
{
    return data(f, f->pack + 1);
}

static void values_come_back_within_the_bound(void **state)
{
    (void)state;
    for (int bits = 0; bits < 2; bits++) {
        fixture f = build(false, bits, 4 * COUNT);
        fill(&f, false, 0.01f, 0.01f);
        op_run(&f.values, &sti_team_serial, OP_KEEP_ALL);
        const float *x = data(&f, f.x), *y = data(&f, f.unpack);
        int64_t zeros = 0;
        float range = 0;
        for (int64_t i = 0; i < COUNT; i++) {
            assert_true(fabs((double)x[i] - (double)y[i]) <= 0.01);
            assert_true(x[i] != 0.0f || y[i] == 0.0f);
            zeros += x[i] == 0.0f;
            range = x[i] > range ? x[i] : range;
        }
        assert_true(stats(&f)[STI_PACK_OVERFLOW] == 0);
        assert_true(stats(&f)[STI_PACK_COARSENED] == 0);
        assert_true(stats(&f)[STI_PACK_BYTES] < 1.5f * COUNT);
        assert_true(stats(&f)[STI_PACK_BOUND] == 0.01f);
        assert_true(stats(&f)[STI_PACK_ERROR] > 0.9f);
        assert_true(stats(&f)[STI_PACK_ERROR] <= 1);
        assert_true(stats(&f)[STI_PACK_RANGE] == range);
        assert_true(fabs((double)stats(&f)[STI_PACK_NONZERO] * COUNT -
                         (double)(COUNT - zeros)) < 1);
        drop(&f);
    }
}

static void normalised_ones_give_x_and_y(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        fixture f = build_ways(true, way & 1, way & 2, 4 * COUNT);
        fill(&f, true, 0.05f, 0.05f);
        op_run(&f.values, &sti_team_serial, OP_KEEP_ALL);
        for (int64_t i = 0; i < COUNT; i++) {
            double inverse = (double)data(&f, f.inverse)[i % C];
            double scale = (double)data(&f, f.scale)[i % C];
            double x = (double)data(&f, f.x)[i];
            double n = (x - (double)data(&f, f.mean)[i % C]) * inverse;
            double y = n * scale + (double)data(&f, f.shift)[i % C];
            y += way & 2 ? (double)data(&f, f.residual)[i] : 0;
            double bound = 0.05 * (is_set(&f, i) ? 1 : 8) * 1.0001;
            assert_true(fabs((double)data(&f, f.unpack)[i] - x) <=
                        bound / inverse + 1e-5);
            assert_true(fabs((double)data(&f, f.unpack + 1)[i] -
                             (is_set(&f, i) ? y : 0)) <= bound * fabs(scale) + 1e-5);
        }
        drop(&f);
    }
}

/* Blocks and results for any team and instruction set. */
static void bits_do_not_depend_on_the_machine(void **state)
{
    sti_isa best = sti_isa_now();
    (void)state;
    for (int norm = 0; norm < 2; norm++) {
        fixture first = build(norm, true, 4 * COUNT);
        fill(&first, norm, 0.02f, 0.02f);
        op_run(&first.values, &sti_team_serial, OP_KEEP_ALL);
        for (int isa = 0; isa <= (int)best; isa++)
            for (int threads = 1; threads <= 3; threads++) {
                sti_team team = {.threads = threads};
                fixture f = build(norm, true, 4 * COUNT);
                fill(&f, norm, 0.02f, 0.02f);
                sti_isa_force((sti_isa)isa);
                op_run(&f.values, &team, OP_KEEP_ALL);
                assert_memory_equal(data(&f, f.pack), data(&first, first.pack),
                                    (size_t)stats(&f)[STI_PACK_BYTES]);
                assert_memory_equal(stats(&f), stats(&first), 32);
                assert_memory_equal(data(&f, f.unpack), data(&first, first.unpack),
                                    4 * COUNT);
                drop(&f);
            }
        sti_isa_force(best);
        drop(&first);
    }
}

/* In bfloat16: the block of the same numbers in float32, and its results rounded. */
static void bfloat16_is_packed_as_it_lies(void **state)
{
    sti_isa best = sti_isa_now();
    (void)state;
    for (int way = 0; way < 4; way++) {
        const bool norm = way & 1, bits = way & 2;
        fixture wide = build(norm, bits, 4 * COUNT);
        fill(&wide, norm, 0.02f, -0.02f);
        sti_bf16 x16[COUNT];
        for (int64_t i = 0; i < COUNT; i++) {
            x16[i] = sti_bf16_from_f32(data(&wide, wide.x)[i]);
            data(&wide, wide.x)[i] = sti_bf16_to_f32(x16[i]);
        }
        op_run(&wide.values, &sti_team_serial, OP_KEEP_ALL);
        for (int isa = 0; isa <= (int)best; isa++) {
            sti_team team = {.threads = isa + 1};
            fixture f = build_of(STINT_BF16, norm, bits, false, 4 * COUNT);
            float *own = f.values.data[f.x]; /* (what fills it writes float32) */
            f.values.data[f.x] = data(&wide, wide.x);
            fill(&f, norm, 0.02f, -0.02f);
            f.values.data[f.x] = own;
            memcpy(own, x16, sizeof x16);
            for (int64_t i = 0; i < COUNT; i++)
                data(&wide, wide.x)[i] = sti_bf16_to_f32(x16[i]);
            sti_isa_force((sti_isa)isa);
            op_run(&f.values, &team, OP_KEEP_ALL);
            assert_memory_equal(stats(&f), stats(&wide), 32);
            assert_memory_equal(data(&f, f.pack), data(&wide, wide.pack),
                                (size_t)stats(&f)[STI_PACK_BYTES]);
            for (int k = 0; k <= norm; k++)
                for (int64_t i = 0; i < COUNT; i++) {
                    const sti_bf16 *half = f.values.data[f.unpack + k];
                    assert_int_equal(
                        half[i], sti_bf16_from_f32(data(&wide, wide.unpack + k)[i]));
                }
            drop(&f);
        }
        sti_isa_force(best);
        drop(&wide);
    }
}

static void a_small_block_gets_a_coarser_bound(void **state)
{
    (void)state;
    fixture f = build(false, true, COUNT * 5 / 8);
    fill(&f, false, 0.0005f, 0.5f);
    op_run(&f.values, &sti_team_serial, OP_KEEP_ALL);
    float bound = stats(&f)[STI_PACK_BOUND];
    assert_true(stats(&f)[STI_PACK_OVERFLOW] == 0);
    assert_true(stats(&f)[STI_PACK_COARSENED] == 1);
    assert_true(bound > 0.0005f && bound <= 0.5f);
    for (int64_t i = 0; i < COUNT; i++)
        assert_true(fabs((double)data(&f, f.x)[i] - (double)data(&f, f.unpack)[i]) <=
                    (double)bound);
    drop(&f);
}

static void what_does_not_fit_is_said(void **state)
{
    (void)state;
    fixture f = build(false, true, 512);
    fill(&f, false, 0.001f, 0.002f);
    op_run(&f.values, &sti_team_serial, OP_KEEP_ALL);
    assert_true(stats(&f)[STI_PACK_OVERFLOW] == 1);
    assert_true(stats(&f)[STI_PACK_BYTES] > 512);
    for (int64_t i = 0; i < COUNT; i++)
        assert_true(data(&f, f.unpack)[i] == 0.0f);
    drop(&f);
}

static void relative_bounds_are_shares_of_the_range(void **state)
{
    (void)state;
    fixture f = build(false, true, 4 * COUNT);
    fill(&f, false, -0.01f, -0.25f);
    op_run(&f.values, &sti_team_serial, OP_KEEP_ALL);
    assert_true(fabs((double)(stats(&f)[STI_PACK_BOUND] / stats(&f)[STI_PACK_RANGE]) -
                     0.01) < 1e-6);
    drop(&f);
    f = build(false, true, 4 * COUNT);
    fill(&f, false, -0.01f, -0.25f);
    memset(data(&f, f.x), 0, 4 * COUNT);
    op_run(&f.values, &sti_team_serial, OP_KEEP_ALL);
    assert_true(stats(&f)[STI_PACK_OVERFLOW] == 0);
    drop(&f);
}

/* ---- gains ---- */

typedef struct window {
    int64_t size, stride, pad, groups, co;
} window;

/* 1/3 of the mean over weights of sum dy^2 [x != 0] f^2, by its definition. */
static double gain_by_loops(const window *w, const float *x, const float *dy,
                            const float *f, int64_t oh, int64_t ow)
{
    const int64_t ci = C / w->groups, co = w->co / w->groups;
    double sum = 0;
    for (int64_t k = 0; k < w->co; k++)
        for (int64_t c = 0; c < ci; c++)
            for (int64_t r = 0; r < w->size; r++)
                for (int64_t s = 0; s < w->size; s++)
                    for (int64_t at = 0; at < N * oh * ow; at++) {
                        int64_t n = at / (oh * ow), p = at / ow % oh, q = at % ow;
                        int64_t y = p * w->stride + r - w->pad;
                        int64_t z = q * w->stride + s - w->pad;
                        int64_t in = k / co * ci + c;
                        if (y < 0 || z < 0 || y >= H || z >= W)
                            continue;
                        double d = (double)dy[at * w->co + k];
                        if (x[((n * H + y) * W + z) * C + in] != 0.0f)
                            sum += d * d * (double)f[in] * (double)f[in];
                    }
    return sum / (3.0 * (double)(w->co * ci * w->size * w->size));
}

static void gains_of_convolutions(void **state)
{
    static const window windows[] = {{3, 1, 1, 1, 5},
                                     {1, 1, 0, 1, 8},
                                     {3, 2, 1, 1, 3},
                                     {3, 1, 1, 4, 8},
                                     {2, 1, 0, 16, 16}};
    (void)state;
    for (int i = 0; i < 5; i++) {
        const window *w = &windows[i];
        const int64_t oh = (H + 2 * w->pad - w->size) / w->stride + 1;
        const int64_t ow = (W + 2 * w->pad - w->size) / w->stride + 1;
        fixture f = build(false, true, 4 * COUNT);
        const stint_shape dy = STINT_SHAPE(N, oh, ow, w->co);
        const sti_conv2d_grad_attr attr = {w->stride, w->pad,  w->groups,
                                           w->size,   w->size, 0};
        const stint_value d = stint_input(f.graph, "dy", &dy);
        const stint_value in[2] = {f.unpack, d};
        const stint_value dw =
            sti_graph_add(f.graph, &sti_op_conv2d_grad_w, &attr, 2, in);
        const stint_value gain =
            sti_op_add_error_gain(f.graph, sti_graph_value(f.graph, dw)->producer, 0,
                                  sti_graph_value(f.graph, f.pack)->producer, f.scale);
        assert_int_equal(stint_graph_check(f.graph), STINT_OK);
        op_values_fini(&f.values);
        op_values_init(&f.values, f.graph);
        fill(&f, false, 0.01f, 0.01f);
        op_draws draws = {.seed = 12};
        op_fill(&draws, OP_NORMAL, 0, data(&f, d), stint_shape_count(&dy));
        op_run(&f.values, &(sti_team){.threads = 1 + i % 3}, OP_KEEP_ALL);
        double want = gain_by_loops(w, data(&f, f.unpack), data(&f, d),
                                    data(&f, f.scale), oh, ow);
        assert_true(fabs((double)data(&f, gain)[0] / want - 1) < 1e-6);
        assert_true(fabs((double)data(&f, gain)[STI_GAIN_SQUARE] / (want * 1e-4) - 1) <
                    1e-5);
        data(&f, f.bounds)[STI_BOUND_FIELDS + STI_BOUND_COLLECT] = 0;
        op_run(&f.values, &sti_team_serial, OP_KEEP_ALL);
        assert_true(data(&f, gain)[0] == 0 && data(&f, gain)[STI_GAIN_SQUARE] == 0);
        drop(&f);
    }
}

static void gains_of_dense_layers(void **state)
{
    (void)state;
    fixture f = build(false, true, 4 * COUNT);
    const stint_shape flat = STINT_SHAPE(N, H * W * C), dy = STINT_SHAPE(N, 6);
    const stint_value d = stint_input(f.graph, "dy", &dy);
    const stint_value x = stint_reshape(f.graph, f.unpack, &flat);
    const stint_value dw = stint_matmul(f.graph, x, d, true, false);
    const stint_value gain =
        sti_op_add_error_gain(f.graph, sti_graph_value(f.graph, dw)->producer, 0,
                              sti_graph_value(f.graph, f.pack)->producer, STI_NO_INPUT);
    assert_int_equal(stint_graph_check(f.graph), STINT_OK);
    op_values_fini(&f.values);
    op_values_init(&f.values, f.graph);
    sti_free(f.values.data[x]); /* a view */
    f.values.data[x] = NULL;
    fill(&f, false, 0.01f, 0.01f);
    op_draws draws = {.seed = 13};
    op_fill(&draws, OP_NORMAL, 0, data(&f, d), N * 6);
    f.values.data[x] = f.values.data[f.unpack];
    for (int32_t n = 0; n < sti_graph_node_count(f.graph); n++) {
        const sti_node *node = sti_graph_node(f.graph, n);
        if (!(node->op->flags & STI_OP_VIEW))
            op_run_node(&f.values, node, &sti_team_serial, OP_KEEP_ALL);
    }
    double sum = 0;
    for (int64_t i = 0; i < N * H * W * C; i++)
        for (int64_t u = 0; u < 6; u++) {
            double v = (double)data(&f, d)[i / (H * W * C) * 6 + u];
            sum += data(&f, f.unpack)[i] != 0.0f ? v * v : 0;
        }
    sum /= 3.0 * 6 * H * W * C;
    assert_true(fabs((double)data(&f, gain)[0] / sum - 1) < 1e-6);
    f.values.data[x] = NULL;
    drop(&f);
}

static void gains_of_batch_norm(void **state)
{
    (void)state;
    for (int bits = 0; bits < 2; bits++) {
        fixture f = build(true, bits, 4 * COUNT);
        const stint_shape dy = STINT_SHAPE(N, H, W, C);
        const stint_value d = stint_input(f.graph, "dy", &dy);
        const stint_value in[6] = {d, f.unpack, f.scale, f.mean, f.inverse, f.bits};
        const sti_batch_norm_attr attr = {.epsilon = 1e-5f, .relu = bits};
        const stint_value dx =
            sti_graph_add(f.graph, &sti_op_batch_norm_grad, &attr, 6, in);
        const stint_value gain = sti_op_add_error_gain(
            f.graph, sti_graph_value(f.graph, dx)->producer, 1,
            sti_graph_value(f.graph, f.pack)->producer, STI_NO_INPUT);
        assert_int_equal(stint_graph_check(f.graph), STINT_OK);
        op_values_fini(&f.values);
        op_values_init(&f.values, f.graph);
        fill(&f, true, 0.01f, 0.01f);
        op_draws draws = {.seed = 14};
        op_fill(&draws, OP_NORMAL, 0, data(&f, d), COUNT);
        op_run(&f.values, &(sti_team){.threads = 2}, OP_KEEP_ALL);
        double sum = 0;
        for (int64_t i = 0; i < COUNT; i++)
            if (is_set(&f, i))
                sum += (double)data(&f, d)[i] * (double)data(&f, d)[i];
        sum /= 3.0 * C;
        assert_true(fabs((double)data(&f, gain)[0] / sum - 1) < 1e-6);
        drop(&f);
    }
}

static void wrong_shapes_are_refused(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        stint_graph *g = NULL;
        assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
        const stint_shape shape = STINT_SHAPE(8, 16), row = STINT_SHAPE(15);
        const stint_shape table = STINT_SHAPE(2, STI_BOUND_FIELDS);
        const stint_value x = stint_input(g, "x", &shape);
        const stint_value bounds = stint_input(g, "bounds", &table);
        const stint_value mean = stint_input(g, "mean", &row);
        const sti_pack_attr attr = {which == 0 ? 10 : 4096, which == 1 ? 2 : 0,
                                    which == 2, 0};
        assert_int_equal(sti_op_add_pack(g, &attr, x, bounds, mean, mean, STI_NO_INPUT),
                         -1);
        assert_int_equal(stint_graph_check(g), STINT_E_INPUT);
        stint_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_back_within_the_bound),
        cmocka_unit_test(normalised_ones_give_x_and_y),
        cmocka_unit_test(bits_do_not_depend_on_the_machine),
        cmocka_unit_test(bfloat16_is_packed_as_it_lies),
        cmocka_unit_test(a_small_block_gets_a_coarser_bound),
        cmocka_unit_test(what_does_not_fit_is_said),
        cmocka_unit_test(relative_bounds_are_shares_of_the_range),
        cmocka_unit_test(gains_of_convolutions),
        cmocka_unit_test(gains_of_dense_layers),
        cmocka_unit_test(gains_of_batch_norm),
        cmocka_unit_test(wrong_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
