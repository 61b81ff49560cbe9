/* Lift, partial lift, AUROC, rank correlation and permutations by small tables, and by
 * a recount of another shape on random inputs. */
#include "trust/long_tail.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "trust/statistics.h"

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%.12g, wanted %.12g", got, want);
}

static double uniform(uint64_t i)
{
    uint32_t w[4];
    sti_random4(5, STI_STREAM_TEST, 9, i, w);
    return ((double)w[0] + 0.5) * 0x1p-32;
}

static void by_hand(void **state)
{
    /* One left out; of five, two are marked and three changed, both marked among them.
     */
    const double value[] = {0.9, 0.1, (double)NAN, 0.5, 0.1, 0.0};
    const uint8_t changed[] = {1, 1, 1, 1, 0, 0};
    const float margin[] = {1, 1, 1, 1, 1, 1};
    stint_tail_side s;
    (void)state;
    assert_int_equal(sti_tail_side(6, value, changed, margin, 0.25, &s), STINT_OK);
    assert_int_equal(s.count, 5);
    assert_int_equal(s.marked, 2);
    assert_int_equal(s.changed, 3);
    assert_int_equal(s.changed_marked, 2);
    near(s.lift, 2.0 / 3 / (2.0 / 5), 1e-12);
    near(s.partial_lift, s.lift, 1e-12); /* one margin: one bin */
    near(s.auroc, (2 + 2 + 1.5) / 6, 1e-12);
    /* Ranks of the value 5 2.5 4 2.5 1, of changed 4 4 4 1.5 1.5. */
    near(s.spearman, 6.25 / sqrt(9.5 * 7.5), 1e-12);
    assert_true(s.p > 0.05 && s.p < 0.5);
    /* Nothing changed, nothing marked: not a number, no division. */
    const uint8_t none[6] = {0};
    assert_int_equal(sti_tail_side(6, value, none, margin, (double)NAN, &s), STINT_OK);
    assert_int_equal(s.marked, 0);
    assert_true(isnan(s.lift) && isnan(s.partial_lift) && isnan(s.auroc) && isnan(s.p));
    assert_int_equal(sti_tail_side(0, value, none, margin, 0.25, &s), STINT_OK);
    assert_int_equal(s.count, 0);
    assert_true(isnan(s.lift));
}

/* Changes that hang on the margin alone, as memorisation does: a lift that the margin
 * explains whole. */
static void the_margin_explains(void **state)
{
    enum { N = 4000 };
    static double value[N];
    static uint8_t changed[N];
    static float margin[N];
    stint_tail_side s;
    (void)state;
    for (int i = 0; i < N; i++) {
        const bool low = i % 10 == 0; /* the lowest tenth of the margins */
        margin[i] = (float)(low ? uniform((uint64_t)i) : 1 + uniform((uint64_t)i));
        value[i] = uniform((uint64_t)(N + i)) < (low ? 0.6 : 0.05) ? 0.8 : 0.0;
        changed[i] = uniform((uint64_t)(2 * N + i)) < (low ? 0.5 : 0.02);
    }
    assert_int_equal(sti_tail_side(N, value, changed, margin, 0.25, &s), STINT_OK);
    assert_true(s.lift > 3);
    near(s.partial_lift, 1, 0.15);
    assert_true(s.p < 0.002 && s.auroc > 0.6 && s.spearman > 0.2);
    double pairs = 0, above = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; changed[i] && j < N; j++)
            if (!changed[j]) {
                pairs++;
                above += value[i] > value[j] ? 1 : value[i] == value[j] ? 0.5 : 0;
            }
    near(s.auroc, above / pairs, 1e-12);
    /* With changes anywhere there is nothing to tell. */
    for (int i = 0; i < N; i++)
        changed[i] = uniform((uint64_t)(3 * N + i)) < 0.1;
    assert_int_equal(sti_tail_side(N, value, changed, margin, 0.25, &s), STINT_OK);
    near(s.lift, 1, 0.25);
    near(s.auroc, 0.5, 0.04);
    assert_true(s.p > 0.01);
}

static void ranks(void **state)
{
    const double a[] = {3, 1, 2, 2, 5}, want[] = {4, 1, 2.5, 2.5, 5};
    const double b[] = {-3, -1, -2, -2, -5}, flat[] = {3, 3, 3, 3, 3};
    double ra[5], rb[5], rf[5];
    (void)state;
    assert_int_equal(sti_midranks(5, a, ra), STINT_OK);
    assert_int_equal(sti_midranks(5, b, rb), STINT_OK);
    assert_int_equal(sti_midranks(5, flat, rf), STINT_OK);
    for (int i = 0; i < 5; i++) {
        near(ra[i], want[i], 0);
        near(rf[i], 3, 0);
    }
    near(sti_spearman(5, ra, ra), 1, 1e-15);
    near(sti_spearman(5, ra, rb), -1, 1e-15);
    assert_true(isnan(sti_spearman(5, ra, rf)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(the_margin_explains),
        cmocka_unit_test(ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
