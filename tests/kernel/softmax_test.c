/* Softmax and cross-entropy against float64;
 * bit-equal over instruction sets, threads. */
#include "kernel/softmax/softmax.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"

typedef struct outputs {
    float *softmax, *loss, *grad, *target, *mask;
} outputs;

static float *floats(int64_t n)
{
    float *p = sti_alloc_array(n, sizeof *p, "test");
    assert_non_null(p);
    return p;
}

static float *logits(int64_t count, float deviation)
{
    float *x = floats(count);
    for (int64_t i = 0; i < count; i++) {
        uint32_t w[4];
        sti_random4(9, STI_STREAM_TEST, 1, (uint64_t)i, w);
        x[i] = deviation * (sti_uniform(w[0]) * 2.0f - 1.0f);
    }
    return x;
}

static int32_t *labels(int64_t rows, int64_t n)
{
    int32_t *label = sti_alloc_array(rows, sizeof *label, "test");
    for (int64_t i = 0; i < rows; i++) {
        uint32_t w[4];
        sti_random4(9, STI_STREAM_TEST, 2, (uint64_t)i, w);
        label[i] = w[1] % 7 == 0 ? -1 : (int32_t)sti_below(w[0], (uint32_t)n);
    }
    return label;
}

static outputs run(const sti_cross_entropy *args, float factor, int threads)
{
    const sti_team team = {.threads = threads};
    const int64_t count = args->rows * args->n;
    outputs o = {floats(count), floats(args->rows), floats(count), floats(count),
                 floats(args->rows)};
    sti_softmax_f32(&team, args->rows, args->n, args->x, o.softmax);
    sti_cross_entropy_f32(&team, args, o.loss);
    sti_cross_entropy_grad_f32(&team, args, factor, o.grad);
    sti_cross_entropy_target_f32(&team, args, o.target, o.mask);
    return o;
}

static void free_outputs(outputs *o)
{
    sti_free(o->softmax);
    sti_free(o->loss);
    sti_free(o->grad);
    sti_free(o->target);
    sti_free(o->mask);
}

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%.9g, wanted %.9g +- %.2g", got, want, tolerance);
}

static void check_row(const sti_cross_entropy *a, const outputs *o, float factor,
                      int64_t row)
{
    const float *x = a->x + row * a->n;
    const double s = (double)a->smoothing, n = (double)a->n;
    double m = (double)x[0], sum = 0.0, loss = 0.0;
    for (int64_t j = 1; j < a->n; j++)
        m = fmax(m, (double)x[j]);
    for (int64_t j = 0; j < a->n; j++)
        sum += exp((double)x[j] - m);
    for (int64_t j = 0; j < a->n; j++) {
        const int64_t at = row * a->n + j;
        const double p = exp((double)x[j] - m) / sum;
        const double q = s / n + (j == a->label[row] ? 1.0 - s : 0.0);
        const bool padding = a->label[row] == -1;
        near((double)o->softmax[at], p,
             p * (4e-7 + 1.2e-7 * fabs((double)x[j] - m)) + 1e-12);
        near((double)o->target[at], padding ? 0.0 : q, 1e-7);
        near((double)o->grad[at], padding ? 0.0 : (double)factor * (p - q),
             4e-6 * (double)factor);
        loss -= q * ((double)x[j] - m - log(sum));
    }
    if (a->label[row] == -1)
        assert_true(o->loss[row] == 0.0f && o->mask[row] == 0.0f);
    else
        near((double)o->loss[row], loss, 1e-6 * (1.0 + fabs(loss) + fabs(m)));
}

static void compare(const sti_cross_entropy *a, const outputs *x, const outputs *y)
{
    const size_t all = (size_t)(a->rows * a->n) * 4, row = (size_t)a->rows * 4;
    assert_memory_equal(x->softmax, y->softmax, all);
    assert_memory_equal(x->loss, y->loss, row);
    assert_memory_equal(x->grad, y->grad, all);
    assert_memory_equal(x->target, y->target, all);
}

static void check_shape(int64_t rows, int64_t n, float deviation, float smoothing)
{
    const sti_isa saved = sti_isa_now();
    sti_cross_entropy args = {.rows = rows, .n = n, .smoothing = smoothing};
    float *x = logits(rows * n, deviation);
    int32_t *label = labels(rows, n);
    args.x = x;
    args.label = label;
    sti_isa_force(STI_ISA_REF);
    outputs want = run(&args, 0.25f, 1);
    for (int64_t row = 0; row < rows; row++)
        check_row(&args, &want, 0.25f, row);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        for (int threads = 1; threads <= 3 && sti_isa_force((sti_isa)isa); threads++) {
            outputs got = run(&args, 0.25f, threads);
            compare(&args, &want, &got);
            free_outputs(&got);
        }
    /* In place. */
    sti_cross_entropy_grad_f32(&sti_team_serial, &args, 0.25f, x);
    assert_memory_equal(x, want.grad, rows * n * 4);
    sti_isa_force(saved);
    free_outputs(&want);
    sti_free(x);
    sti_free(label);
}

static void against_float64(void **state)
{
    (void)state;
    static const int64_t width[] = {1, 2, 3, 7, 10, 16, 17, 64, 100, 1000};
    for (size_t i = 0; i < sizeof width / sizeof *width; i++) {
        check_shape(37, width[i], 3.0f, 0.0f);
        check_shape(5, width[i], 30.0f, 0.1f);
        check_shape(1, width[i], 0.0f, 1.0f);
        check_shape(2049, width[i] < 20 ? width[i] : 5, 1.0f, 0.2f);
    }
}

static void huge_and_infinite(void **state)
{
    (void)state;
    const float x[3] = {1e30f, -1e30f, -INFINITY};
    const float bad[3] = {1.0f, NAN, 2.0f};
    float y[3];
    sti_softmax_f32(&sti_team_serial, 1, 3, x, y);
    assert_true(y[0] == 1.0f && y[1] == 0.0f && y[2] == 0.0f);
    sti_softmax_f32(&sti_team_serial, 1, 3, bad, y);
    assert_true(isnan(y[0]) && isnan(y[1]) && isnan(y[2]));
}

static void impossible_label_is_nan(void **state)
{
    (void)state;
    const float x[3] = {1.0f, 2.0f, 3.0f};
    const int32_t label = 3;
    const sti_cross_entropy args = {.rows = 1, .n = 3, .x = x, .label = &label};
    float loss, grad[3];
    sti_cross_entropy_f32(&sti_team_serial, &args, &loss);
    sti_cross_entropy_grad_f32(&sti_team_serial, &args, 1.0f, grad);
    assert_true(isnan(loss) && isnan(grad[0]) && isnan(grad[2]));
}

static void counting(void **state)
{
    (void)state;
    const float x[6][3] = {{1, 2, 0},   {2, 2, 1}, {2, 2, 1},
                           {NAN, 1, 0}, {0, 0, 5}, {0, 5, 0}};
    const int32_t label[6] = {1, 0, 1, 1, -1, 7};
    assert_int_equal(sti_count_correct_f32(6, 3, x[0], label), 2);
    const float many[4] = {1.0f, 1e8f, -1e8f, 0.5f};
    assert_true(sti_sum_short_f32(4, many) == 1.5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_float64),
        cmocka_unit_test(huge_and_infinite),
        cmocka_unit_test(impossible_label_is_nan),
        cmocka_unit_test(counting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
