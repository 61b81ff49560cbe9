/* Learning rates against closed forms, and the maths under them against libm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "kernel/maths/smooth.h"
#include "train/lr_schedule.h"
#include "train/schedule_section.h"

#define PI 3.14159265358979323846

static sti_schedule_values base(int name)
{
    sti_schedule_values v = {0};
    v.name = name;
    v.start_factor = 0.1;
    v.final_factor = 0.01;
    v.gamma = 0.5;
    return v;
}

static void expect(double got, double want)
{
    if (fabs(got - want) > 1e-13 * (1 + fabs(want)))
        fail_msg("%.17g, wanted %.17g", got, want);
}

static void test_constant(void **state)
{
    (void)state;
    sti_schedule s;
    sti_schedule_values v = base(STI_SCHEDULE_CONSTANT);
    v.warmup = 2;
    sti_schedule_init(&s, &v, 0.2, 10, 100);
    expect(sti_schedule_lr(&s, 0), 0.02);
    expect(sti_schedule_lr(&s, 10), 0.2 * (0.1 + 0.9 * 0.5));
    for (int i = 20; i < 100; i++)
        assert_true(sti_schedule_lr(&s, i) == 0.2);
}

static void test_step(void **state)
{
    (void)state;
    sti_schedule s;
    sti_schedule_values v = base(STI_SCHEDULE_STEP);
    v.milestones = "2, 3.5,7";
    sti_schedule_init(&s, &v, 0.2, 10, 100);
    for (int i = 0; i < 100; i++)
        expect(sti_schedule_lr(&s, i),
               0.2 * pow(0.5, (i >= 20) + (i >= 35) + (i >= 70)));
}

static void test_cosine(void **state)
{
    (void)state;
    sti_schedule s;
    sti_schedule_values v = base(STI_SCHEDULE_COSINE);
    v.warmup = 1;
    sti_schedule_init(&s, &v, 0.2, 7, 77);
    for (int i = 7; i < 77; i++) {
        double p = (i - 7) / 70.0;
        expect(sti_schedule_lr(&s, i), 0.2 * (0.01 + 0.99 * 0.5 * (1 + cos(PI * p))));
    }
}

/* Cycles of 20, 30 and 45 steps after the warm-up, the next one cut off. */
static void test_restarts(void **state)
{
    (void)state;
    sti_schedule s;
    sti_schedule_values v = base(STI_SCHEDULE_COSINE);
    v.warmup = 1;
    v.period = 2;
    v.period_factor = 1.5;
    sti_schedule_init(&s, &v, 0.2, 10, 120);
    for (int i = 10; i < 120; i++) {
        const int t = i - 10;
        const double p = t < 20   ? t / 20.0
                         : t < 50 ? (t - 20) / 30.0
                         : t < 95 ? (t - 50) / 45.0
                                  : (t - 95) / 68.0;
        expect(sti_schedule_lr(&s, i), 0.2 * (0.01 + 0.99 * 0.5 * (1 + cos(PI * p))));
    }
    v.warmup = 0;
    v.period = 0.01; /* less than a step */
    v.period_factor = 1;
    sti_schedule_init(&s, &v, 0.2, 10, 20);
    expect(sti_schedule_lr(&s, 7), 0.2);
}

static void test_one_cycle(void **state)
{
    (void)state;
    sti_schedule s;
    sti_schedule_values v = base(STI_SCHEDULE_ONE_CYCLE);
    sti_schedule_init(&s, &v, 0.2, 10, 200); /* no warm-up named: 60 steps */
    for (int i = 0; i < 200; i++) {
        double want = i < 60 ? 0.1 + 0.9 * i / 60.0 : 0.01 + 0.99 * (200 - i) / 140.0;
        expect(sti_schedule_lr(&s, i), 0.2 * want);
    }
    assert_true(sti_schedule_lr(&s, 60) == 0.2);
}

static void test_one_step_run(void **state)
{
    (void)state;
    for (int name = STI_SCHEDULE_CONSTANT; name <= STI_SCHEDULE_ONE_CYCLE; name++) {
        sti_schedule s;
        sti_schedule_values v = base(name);
        sti_schedule_init(&s, &v, 0.2, 1, 1);
        assert_true(isfinite(sti_schedule_lr(&s, 0)));
        assert_true(sti_schedule_lr(&s, 0) > 0);
    }
}

static void test_smooth(void **state)
{
    (void)state;
    for (int i = 0; i <= 4000; i++) {
        double t = i / 4000.0, x = pow(10, -300 + 600 * t);
        expect(sti_smooth_sin_turn(t), sin(2 * PI * t));
        expect(sti_smooth_cos_turn(t), cos(2 * PI * t));
        expect(sti_smooth_log(x), log(x));
        if (i > 0)
            expect(sti_smooth_log(t), log(t));
        const double e = 1400 * t - 700;
        expect(sti_smooth_exp(e) / exp(e), 1);
    }
    assert_true(sti_smooth_log(1) == 0 && sti_smooth_exp(0) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),  cmocka_unit_test(test_step),
        cmocka_unit_test(test_cosine),    cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_one_cycle), cmocka_unit_test(test_one_step_run),
        cmocka_unit_test(test_smooth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
