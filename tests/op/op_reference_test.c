/* The result of every operator against a plain loop in double, and the same bits for
 * any instruction set and number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cpu.h"
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

/* Builders refuse what does not fit, with words, and later ones pass it on. */
static void shapes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    stint_shape a = STINT_SHAPE(2, 3), b = STINT_SHAPE(4, 3), label = a;
    label.dtype = STINT_I32;
    for (int which = 0; which < 10; which++) {
        stint_graph *g = NULL;
        assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
        stint_value x = stint_input(g, "x", &a), y = stint_input(g, "y", &b);
        stint_value i = stint_input(g, "i", &label), both[2] = {x, y};
        int twice[2] = {1, 1};
        stint_value made = which == 0   ? stint_add(g, x, y)
                           : which == 1 ? stint_matmul(g, x, y, false, false)
                           : which == 2 ? stint_bias(g, x, y)
                           : which == 3 ? stint_reshape(g, x, &b)
                           : which == 4 ? stint_transpose(g, x, twice)
                           : which == 5 ? stint_concat(g, both, 2, 1)
                           : which == 6 ? stint_slice(g, x, 1, 1, 4, 1)
                           : which == 7 ? stint_broadcast(g, x, &b)
                           : which == 8 ? stint_sum(g, x, 1u << 2, false)
                                        : stint_exp(g, i);
        assert_int_equal(made, -1);
        assert_int_equal(stint_relu(g, made), -1);
        assert_int_equal(stint_graph_check(g), STINT_E_INPUT);
        assert_true(strlen(stint_last_error()) > 10);
        stint_graph_destroy(g);
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
        cmocka_unit_test(epilogue_equals_the_operators),
        cmocka_unit_test(dense_has_its_parameters),
        cmocka_unit_test(batch_norm_applies_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
