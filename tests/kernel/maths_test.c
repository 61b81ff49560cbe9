/* Elementary functions: error in ulp against libm in double over every 211th float
 * (with STINT_TEST_ALL_FLOATS=1: all of them), special values, and the element-wise
 * kernels giving the bits of the scalar forms on every instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "kernel/elementwise/elementwise.h"
#include "kernel/maths/maths.h"

typedef struct function {
    const char *name;
    sti_unary kind;
    float (*f)(float);
    double (*wanted)(double);
    double ulp;      /* allowed */
    float low, high; /* where */
} function;

static double wanted_sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double wanted_silu(double x)
{
    return x / (1.0 + exp(-x));
}

static double wanted_softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double wanted_gelu(double x)
{
    return x / (1.0 + exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
}

/* GELU far below zero is e to a power whose rounding is magnified: bounded where it
 * counts. */
static const function functions[] = {
    {"exp", STI_UNARY_EXP, sti_exp_f32, exp, 1.0, -FLT_MAX, FLT_MAX},
    {"log", STI_UNARY_LOG, sti_log_f32, log, 1.0, 0, FLT_MAX},
    {"sin", STI_UNARY_SIN, sti_sin_f32, sin, 0.51, -FLT_MAX, FLT_MAX},
    {"cos", STI_UNARY_COS, sti_cos_f32, cos, 0.51, -FLT_MAX, FLT_MAX},
    {"tanh", STI_UNARY_TANH, sti_tanh_f32, tanh, 2.0, -FLT_MAX, FLT_MAX},
    {"sigmoid", STI_UNARY_SIGMOID, sti_sigmoid_f32, wanted_sigmoid, 2.0, -FLT_MAX,
     FLT_MAX},
    {"softplus", STI_UNARY_SOFTPLUS, sti_softplus_f32, wanted_softplus, 2.5, -FLT_MAX,
     FLT_MAX},
    {"silu", STI_UNARY_SILU, sti_silu_f32, wanted_silu, 3.0, -80.0f, FLT_MAX},
    {"gelu", STI_UNARY_GELU, sti_gelu_f32, wanted_gelu, 24.0, -4.0f, 1e12f},
};
#define FUNCTIONS ((int)(sizeof functions / sizeof *functions))

/* Error in units of the last place of the wanted value; results below the normal range
 * may be 0 or the smallest normal number. */
static double ulp_error(double got, double wanted)
{
    int exponent;
    if (fabs(wanted) > (double)FLT_MAX)
        return isinf(got) || got == copysign((double)FLT_MAX, wanted) ? 0.0 : HUGE_VAL;
    if (fabs(wanted) < 0x1p-126)
        return fabs(got) <= 0x1p-126 ? 0.0 : HUGE_VAL;
    frexp(wanted, &exponent);
    return fabs(got - wanted) / ldexp(1.0, exponent - 24);
}

static void errors_are_bounded(void **state)
{
    uint64_t step = getenv("STINT_TEST_ALL_FLOATS") ? 1 : 2111;
    (void)state;
    for (int k = 0; k < FUNCTIONS; k++) {
        const function *fn = &functions[k];
        double worst = 0;
        float at = 0;
        for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += step) {
            float x = sti_f32_of_bits((uint32_t)bits);
            if (!(x >= fn->low && x <= fn->high) || fabsf(x) < FLT_MIN)
                continue;
            double error = ulp_error((double)fn->f(x), fn->wanted((double)x));
            if (!(error <= worst)) {
                worst = error;
                at = x;
            }
        }
        printf("%-8s largest error %.3f ulp, at %a\n", fn->name, worst, (double)at);
        assert_true(worst <= fn->ulp);
    }
}

/* Bounds on the error of erf, absolute, and of powers, in units of the last place. */
static void erf_and_powers(void **state)
{
    uint32_t bits = 12345;
    double worst = 0, last = 0;
    (void)state;
    for (int i = -60000; i <= 60000; i++) {
        const float x = (float)i * 1e-4f;
        const double error = fabs((double)sti_erf_f32(x) - erf((double)x));
        worst = error > worst ? error : worst;
        assert_true(sti_erf_f32(-x) == -sti_erf_f32(x));
    }
    printf("erf      largest error %.3g\n", worst);
    assert_true(worst <= 2.5e-7);
    assert_true(sti_erf_f32(INFINITY) == 1.0f && isnan(sti_erf_f32(NAN)));
    for (int i = 0; i < 200000; i++) {
        bits = bits * 1664525u + 1013904223u;
        const float x = ldexpf((float)(bits >> 8) + 1.0f, (int)(bits % 64) - 56);
        bits = bits * 1664525u + 1013904223u;
        const float y = (float)(int32_t)bits * 0x1p-27f;
        const double error =
            ulp_error((double)sti_power_f32(x, y), pow((double)x, (double)y));
        last = error > last ? error : last;
    }
    printf("power    largest error %.3f ulp\n", last);
    assert_true(last <= 1.0);
    static const float base[] = {0.0f,  -0.0f, 1.0f,     -1.0f,     2.0f,
                                 -2.0f, 0.5f,  INFINITY, -INFINITY, NAN},
                       exponent[] = {0.0f, 1.0f,  -1.0f,    2.0f,      3.0f, -3.0f,
                                     0.5f, -0.5f, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof base / sizeof *base; i++)
        for (size_t k = 0; k < sizeof exponent / sizeof *exponent; k++) {
            const float got = sti_power_f32(base[i], exponent[k]),
                        want = (float)pow((double)base[i], (double)exponent[k]);
            if (!(got == want && signbit(got) == signbit(want)) &&
                !(isnan(got) && isnan(want)))
                fail_msg("%a to the power %a: %a, wanted %a", (double)base[i],
                         (double)exponent[k], (double)got, (double)want);
        }
}

static void special_values(void **state)
{
    (void)state;
    assert_true(sti_exp_f32(0.0f) == 1.0f && sti_exp_f32(-INFINITY) == 0.0f);
    assert_true(isinf(sti_exp_f32(INFINITY)) && sti_exp_f32(-88.0f) == 0.0f);
    assert_true(isinf(sti_exp_f32(89.0f)) && sti_exp_f32(88.7f) < INFINITY);
    assert_true(sti_log_f32(1.0f) == 0.0f && isinf(sti_log_f32(INFINITY)));
    assert_true(sti_log_f32(0.0f) == -INFINITY && sti_log_f32(-0.0f) == -INFINITY);
    assert_true(isnan(sti_log_f32(-1.0f)) && isnan(sti_log_f32(-INFINITY)));
    assert_true(sti_log_f32(0x1p-140f) == -INFINITY);
    assert_true(sti_tanh_f32(INFINITY) == 1.0f && sti_tanh_f32(-INFINITY) == -1.0f);
    assert_true(sti_tanh_f32(0x1p-140f) == 0.0f && signbit(sti_tanh_f32(-0.0f)));
    assert_true(sti_sigmoid_f32(-INFINITY) == 0.0f);
    assert_true(sti_sigmoid_f32(INFINITY) == 1.0f && sti_sigmoid_f32(0.0f) == 0.5f);
    assert_true(isnan(sti_sin_f32(INFINITY)) && isnan(sti_cos_f32(-INFINITY)));
    assert_true(sti_cos_f32(0.0f) == 1.0f && signbit(sti_sin_f32(-0.0f)));
    assert_true(sti_silu_f32(-INFINITY) == 0.0f && isinf(sti_silu_f32(INFINITY)));
    assert_true(sti_gelu_f32(-INFINITY) == 0.0f && sti_gelu_f32(1e30f) == 1e30f);
    for (int k = 0; k < FUNCTIONS; k++) /* one NaN, whatever came in */
        for (uint32_t bits = 0x7f800001u; bits < 0x80000000u; bits += 0x12345u)
            assert_int_equal(sti_f32_bits(functions[k].f(sti_f32_of_bits(bits))),
                             sti_f32_bits(NAN));
}

/* Every 40009th float, among them NaN, infinities, denormals and far arguments. */
static void kernels_give_the_bits_of_the_scalar_forms(void **state)
{
    enum { COUNT = 107351 };
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    sti_isa best = sti_isa_now();
    int bad = 0;
    (void)state;
    for (int i = 0; i < COUNT; i++)
        x[i] = sti_f32_of_bits((uint32_t)i * 40009u);
    for (int isa = 0; isa <= (int)best; isa++)
        for (int k = 0; k < FUNCTIONS; k++) {
            sti_isa_force((sti_isa)isa);
            sti_unary_f32(&(sti_team){.threads = 2}, functions[k].kind, COUNT, 0, x, y);
            for (int i = 0; i < COUNT; i++)
                if (sti_f32_bits(y[i]) != sti_f32_bits(functions[k].f(x[i])) &&
                    ++bad < 10)
                    printf("%s %s(%a): %a, scalar %a\n", sti_isa_name((sti_isa)isa),
                           functions[k].name, (double)x[i], (double)y[i],
                           (double)functions[k].f(x[i]));
        }
    sti_isa_force(best);
    free(x);
    free(y);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_bounded),
        cmocka_unit_test(special_values),
        cmocka_unit_test(erf_and_powers),
        cmocka_unit_test(kernels_give_the_bits_of_the_scalar_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
