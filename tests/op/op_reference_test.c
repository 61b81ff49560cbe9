/* The result of every operator against a plain loop in double, and the same bits for
 * any instruction set and number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "kernel/elementwise/elementwise.h"
#include "op/op_harness.h"

#define SEEDS 4

static double tolerance_of(const op_case *c)
{
    return 4e-6 * (c->loose > 0 ? c->loose : 1.0);
}

static bool case_matches(const op_case *c, uint64_t seed)
{
    op_run_case run;
    bool ok = op_case_build(&run, c, seed, false) == STINT_OK;
    if (!ok) {
        printf("%s, seed %" PRIu64 ": %s\n", c->name, seed, stint_last_error());
        op_case_fini(&run);
        return false;
    }
    op_case_fill(&run, false);
    op_run(&run.values, &sti_team_serial, run.y);
    op_reference(&run);
    const float *y = run.values.data[run.y];
    double *got = calloc((size_t)run.out.count + 1, sizeof *got);
    for (int64_t i = 0; i < run.out.count; i++)
        got[i] = (double)y[i];
    ok = op_close(c->name, "result", seed, run.out.count, got, run.out.data,
                  tolerance_of(c), 1e-9);
    free(got);
    op_case_fini(&run);
    return ok;
}

static void every_operator_matches_its_reference(void **state)
{
    int bad = 0;
    (void)state;
    for (int l = 0; l < OP_CASE_LISTS; l++)
        for (int k = 0; k < op_case_lists[l].count; k++)
            for (uint64_t seed = 1; seed <= SEEDS; seed++)
                bad += !case_matches(&op_case_lists[l].cases[k], seed);
    assert_int_equal(bad, 0);
}

/* Bits of the result under one instruction set and team, in a fresh copy. */
static float *bits_of(const op_case *c, uint64_t seed, sti_isa isa, int threads,
                      int64_t *count)
{
    op_run_case run;
    sti_team team = {.threads = threads};
    sti_isa_force(isa);
    assert_int_equal(op_case_build(&run, c, seed, false), STINT_OK);
    op_case_fill(&run, false);
    op_run(&run.values, &team, run.y);
    *count = run.out.count;
    float *copy = malloc((size_t)run.out.count * sizeof *copy + 1);
    memcpy(copy, run.values.data[run.y], (size_t)run.out.count * sizeof *copy);
    op_case_fini(&run);
    return copy;
}

static void bits_do_not_depend_on_the_machine(void **state)
{
    sti_isa best = sti_isa_now();
    int bad = 0;
    (void)state;
    for (int l = 0; l < OP_CASE_LISTS; l++)
        for (int k = 0; k < op_case_lists[l].count; k++) {
            const op_case *c = &op_case_lists[l].cases[k];
            int64_t n;
            float *first = bits_of(c, 2, STI_ISA_REF, 1, &n);
            for (int isa = 0; isa <= (int)best; isa++)
                for (int threads = 1; threads <= 3; threads += 2) {
                    float *again = bits_of(c, 2, (sti_isa)isa, threads, &n);
                    if (memcmp(first, again, (size_t)n * sizeof *first) != 0) {
                        printf("%s: %s with %d threads differs from ref\n", c->name,
                               sti_isa_name((sti_isa)isa), threads);
                        bad++;
                    }
                    free(again);
                }
            free(first);
        }
    sti_isa_force(best);
    assert_int_equal(bad, 0);
}

static void rows_are_complete_and_found_by_name(void **state)
{
    (void)state;
    for (int i = 0; sti_ops[i]; i++) {
        assert_ptr_equal(sti_op_find(sti_ops[i]->name), sti_ops[i]);
        assert_non_null(sti_ops[i]->infer);
        assert_non_null(sti_ops[i]->run[STI_CPU]);
        assert_true(sti_ops[i]->n_out >= 1);
    }
    assert_null(sti_op_find("no such operator"));
}

/* What a refused case is built from: x [2, 3], y [4, 3], words i [2, 3]. */
typedef struct misfit {
    stint_graph *g;
    stint_value x, y, i;
    stint_shape of_y;
} misfit;

static stint_value misfit_add(const misfit *m)
{
    return stint_add(m->g, m->x, m->y);
}

static stint_value misfit_matmul(const misfit *m)
{
    return stint_matmul(m->g, m->x, m->y, false, false);
}

static stint_value misfit_bias(const misfit *m)
{
    return stint_bias(m->g, m->x, m->y);
}

static stint_value misfit_reshape(const misfit *m)
{
    return stint_reshape(m->g, m->x, &m->of_y);
}

static stint_value misfit_transpose(const misfit *m)
{
    return stint_transpose(m->g, m->x, (int[]){1, 1});
}

static stint_value misfit_concat(const misfit *m)
{
    return stint_concat(m->g, (stint_value[]){m->x, m->y}, 2, 1);
}

static stint_value misfit_slice(const misfit *m)
{
    return stint_slice(m->g, m->x, 1, 1, 4, 1);
}

static stint_value misfit_broadcast(const misfit *m)
{
    return stint_broadcast(m->g, m->x, &m->of_y);
}

static stint_value misfit_sum(const misfit *m)
{
    return stint_sum(m->g, m->x, 1u << 2, false);
}

static stint_value misfit_exp(const misfit *m)
{
    return stint_exp(m->g, m->i);
}

/* What is refused, and the words about it: the operator, the shape seen, what is wrong.
 */
static const struct {
    stint_value (*build)(const misfit *m);
    const char *words;
} misfits[] = {
    {misfit_add, "add: [2, 3] f32 and [4, 3] f32 do not go together"},
    {misfit_matmul, "matmul: [2, 3] f32 and [4, 3] f32 do not go together"},
    {misfit_bias, "bias: input 1 is [4, 3] f32, wanted [3] f32"},
    {misfit_reshape, "reshape: [2, 3] f32 to [4, 3] f32 changes the count"},
    {misfit_transpose, "transpose: axis 1 twice"},
    {misfit_concat,
     "concat: input 1 is [4, 3] f32, unlike those before it away from axis 1"},
    {misfit_slice, "slice: [1, 4) by 1 of axis 1 of [2, 3] f32"},
    {misfit_broadcast, "broadcast: [2, 3] f32 does not repeat to [4, 3] f32"},
    {misfit_sum, "sum: axes 0x4 of [2, 3] f32, which has 2"},
    {misfit_exp, "exp: input 0 is [2, 3] i32, wanted f32"},
};

/* Builders refuse what does not fit, with these words, and later ones pass it on. */
static void shapes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    const stint_shape a = STINT_SHAPE(2, 3), b = STINT_SHAPE(4, 3);
    stint_shape label = a;
    label.dtype = STINT_I32;
    for (size_t which = 0; which < sizeof misfits / sizeof *misfits; which++) {
        misfit m = {.of_y = b};
        assert_int_equal(stint_graph_create(STINT_TRAIN, &m.g), STINT_OK);
        m.x = stint_input(m.g, "x", &a);
        m.y = stint_input(m.g, "y", &b);
        m.i = stint_input(m.g, "i", &label);
        const stint_value made = misfits[which].build(&m);
        assert_int_equal(made, -1);
        assert_int_equal(stint_relu(m.g, made), -1);
        assert_int_equal(stint_graph_check(m.g), STINT_E_INPUT);
        if (!strstr(stint_last_error(), misfits[which].words))
            fail_msg("'%s' is not in: %s", misfits[which].words, stint_last_error());
        stint_graph_destroy(m.g);
    }
}

/* The operator of every element-wise kernel: a kernel without one fails the test. That
 * each operator has a case in op_cases_*.h is asked by tests/pass/op_gradient_test.c.
 */
static const char *const unary_ops[STI_UNARY_COUNT] = {
    [STI_UNARY_COPY] = "copy",
    [STI_UNARY_NEG] = "neg",
    [STI_UNARY_SCALE] = "scale",
    [STI_UNARY_ADD_SCALAR] = "add_scalar",
    [STI_UNARY_SQUARE] = "square",
    [STI_UNARY_SQRT] = "sqrt",
    [STI_UNARY_RECIPROCAL] = "reciprocal",
    [STI_UNARY_EXP] = "exp",
    [STI_UNARY_LOG] = "log",
    [STI_UNARY_SIN] = "sin",
    [STI_UNARY_COS] = "cos",
    [STI_UNARY_TANH] = "tanh",
    [STI_UNARY_SIGMOID] = "sigmoid",
    [STI_UNARY_SILU] = "silu",
    [STI_UNARY_GELU] = "gelu",
    [STI_UNARY_SOFTPLUS] = "softplus",
    [STI_UNARY_SIGN] = "sign",
    [STI_UNARY_ABS] = "abs",
    [STI_UNARY_FLOOR] = "floor",
    [STI_UNARY_CEIL] = "ceil",
    [STI_UNARY_ROUND] = "round",
    [STI_UNARY_ERF] = "erf",
};
static const char *const binary_ops[STI_BINARY_COUNT] = {
    [STI_BINARY_ADD] = "add",
    [STI_BINARY_SUB] = "sub",
    [STI_BINARY_MUL] = "mul",
    [STI_BINARY_DIV] = "div",
    [STI_BINARY_EQUAL] = "equal",
    [STI_BINARY_SILU_GRAD] = "silu_grad",
    [STI_BINARY_GELU_GRAD] = "gelu_grad",
    [STI_BINARY_MAXIMUM] = "maximum",
    [STI_BINARY_MINIMUM] = "minimum",
    [STI_BINARY_LESS] = "less",
    [STI_BINARY_LESS_EQUAL] = "less_equal",
    [STI_BINARY_POWER] = "power",
};

enum { KERNEL_N = 257 };
static const float kernel_parameter = 1.375f;

/* What the operator makes of two inputs, of which a unary one takes the first. */
static void run_operator(const char *name, int n_in, const float *const *x, float *y)
{
    stint_graph *g = NULL;
    op_values v;
    const stint_shape shape = STINT_SHAPE(KERNEL_N);
    const sti_op *op = sti_op_find(name);
    if (!op)
        fail_msg("no operator '%s'", name);
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    stint_value in[2] = {stint_input(g, "a", &shape), stint_input(g, "b", &shape)};
    assert_true(op->attr_bytes == 0 || op->attr_bytes == sizeof kernel_parameter);
    const stint_value made = sti_graph_add(g, op, &kernel_parameter, n_in, in);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    op_values_init(&v, g);
    for (int i = 0; i < 2; i++)
        memcpy(v.data[in[i]], x[i], KERNEL_N * sizeof *y);
    op_run(&v, &sti_team_serial, OP_KEEP_ALL);
    memcpy(y, v.data[made], KERNEL_N * sizeof *y);
    op_values_fini(&v);
    stint_graph_destroy(g);
}

static void every_kernel_has_an_operator_of_its_bits(void **state)
{
    (void)state;
    static float a[KERNEL_N], b[KERNEL_N], want[KERNEL_N], got[KERNEL_N];
    const float *const x[2] = {a, b};
    op_draws draws = {.seed = 9};
    op_fill(&draws, OP_NORMAL, 0, a, KERNEL_N);
    op_fill(&draws, OP_NORMAL, 0, b, KERNEL_N);
    for (int kind = 0; kind < STI_UNARY_COUNT; kind++) {
        if (!unary_ops[kind])
            fail_msg("unary kernel %d has no operator here", kind);
        const bool has = sti_op_find(unary_ops[kind])->attr_bytes > 0;
        sti_unary_f32(&sti_team_serial, (sti_unary)kind, KERNEL_N,
                      has ? kernel_parameter : 0.0f, a, want);
        run_operator(unary_ops[kind], 1, x, got);
        assert_memory_equal(want, got, sizeof want);
    }
    for (int kind = 0; kind < STI_BINARY_COUNT; kind++) {
        if (!binary_ops[kind])
            fail_msg("binary kernel %d has no operator here", kind);
        sti_binary_f32(&sti_team_serial, (sti_binary)kind, KERNEL_N, a, b, want);
        run_operator(binary_ops[kind], 2, x, got);
        assert_memory_equal(want, got, sizeof want);
    }
}

/* The fused epilogue and the operators one by one: the same bits, NaN and -0 included,
 * which is what lets the fusion pass call itself exact. */
static void epilogue_equals_the_operators(void **state)
{
    (void)state;
    stint_graph *g = NULL;
    stint_shape a = STINT_SHAPE(37, 19), b = STINT_SHAPE(19, 21), c = STINT_SHAPE(21);
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    stint_value in[3] = {stint_input(g, "a", &a), stint_input(g, "b", &b),
                         stint_input(g, "c", &c)};
    sti_matmul_attr attr = {.has_bias = 1, .relu = 1};
    stint_value fused = sti_graph_add(g, &sti_op_matmul, &attr, 3, in);
    stint_value plain =
        stint_bias(g, stint_matmul(g, in[0], in[1], false, false), in[2]);
    plain = stint_relu(g, plain);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    op_values v;
    op_values_init(&v, g);
    op_draws d = {.seed = 5};
    for (int i = 0; i < 3; i++) {
        stint_shape shape = stint_value_shape(g, in[i]);
        op_fill(&d, OP_NORMAL, 0, v.data[in[i]], stint_shape_count(&shape));
    }
    float *first = v.data[in[0]];
    first[3] = NAN;
    memset(first + 19, 0, 19 * sizeof *first); /* a row of zeros, with bias -0 */
    ((float *)v.data[in[2]])[4] = -0.0f;
    op_run(&v, &sti_team_serial, OP_KEEP_ALL);
    stint_shape y = stint_value_shape(g, fused), bits = stint_value_shape(g, fused + 1);
    assert_memory_equal(v.data[fused], v.data[plain], stint_shape_bytes(&y));
    assert_memory_equal(v.data[fused + 1], v.data[plain + 1], stint_shape_bytes(&bits));
    op_values_fini(&v);
    stint_graph_destroy(g);
}

static void dense_has_its_parameters(void **state)
{
    (void)state;
    stint_graph *g = NULL;
    stint_shape shape = STINT_SHAPE(5, 7);
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    stint_scope_begin(g, "fc");
    stint_value y =
        stint_dense(g, stint_input(g, "x", &shape), &(stint_dense_desc){.units = 3});
    stint_scope_end(g);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    stint_shape out = stint_value_shape(g, y);
    assert_int_equal(out.dim[0], 5);
    assert_int_equal(out.dim[1], 3);
    int params = 0;
    for (int32_t v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role != STI_ROLE_PARAM)
            continue;
        bool weight = row->shape.rank == 2;
        assert_string_equal(row->name, weight ? "fc.weight" : "fc.bias");
        assert_int_equal(row->param.init, STINT_INIT_FAN_IN_UNIFORM);
        assert_int_equal(row->param.fan_in, 7);
        assert_int_equal(row->param.no_decay, !weight);
        params++;
    }
    assert_int_equal(params, 2);
    stint_graph_destroy(g);
}

/* batch_norm_apply on batch_norm's own statistics gives batch_norm's y and sign bits,
 * to the last bit. */
static void batch_norm_applies_again(void **state)
{
    (void)state;
    static const int64_t channels[] = {1, 3, 16, 37, 64, 70};
    for (int i = 0; i < 6 * 4; i++) {
        stint_graph *g = NULL;
        assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
        const stint_shape row = STINT_SHAPE(channels[i / 4]);
        const stint_shape wide = STINT_SHAPE(3, 7, 5, channels[i / 4]);
        const sti_batch_norm_attr attr = {
            .epsilon = 1e-5f, .has_residual = i & 1, .relu = i >> 1 & 1};
        const stint_value x = stint_input(g, "x", &wide);
        const stint_value residual =
            i & 1 ? stint_input(g, "residual", &wide) : STI_NO_INPUT;
        const stint_value scale = stint_input(g, "scale", &row);
        const stint_value shift = stint_input(g, "shift", &row);
        const stint_value in[4] = {x, scale, shift, residual};
        const stint_value y = sti_graph_add(g, &sti_op_batch_norm, &attr, 4, in);
        const stint_value more[6] = {x, scale, shift, residual, y + 1, y + 2};
        const stint_value z =
            sti_graph_add(g, &sti_op_batch_norm_apply, &attr, 6, more);
        assert_int_equal(stint_graph_check(g), STINT_OK);

        op_values values;
        op_draws draws = {.seed = 5 + (uint64_t)i};
        op_values_init(&values, g);
        for (stint_value v = 0; v < y; v++)
            op_fill(&draws, OP_NORMAL, 0, values.data[v],
                    stint_shape_count(&sti_graph_value(g, v)->shape));
        op_run(&values, &sti_team_serial, OP_KEEP_ALL);
        const stint_shape shape = stint_value_shape(g, y);
        assert_memory_equal(values.data[y], values.data[z], stint_shape_bytes(&shape));
        if (attr.relu)
            assert_memory_equal(values.data[y + 4], values.data[z + 1],
                                (size_t)(stint_shape_count(&shape) + 7) / 8);
        op_values_fini(&values);
        stint_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_matches_its_reference),
        cmocka_unit_test(bits_do_not_depend_on_the_machine),
        cmocka_unit_test(rows_are_complete_and_found_by_name),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused),
        cmocka_unit_test(every_kernel_has_an_operator_of_its_bits),
        cmocka_unit_test(epilogue_equals_the_operators),
        cmocka_unit_test(dense_has_its_parameters),
        cmocka_unit_test(batch_norm_applies_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
