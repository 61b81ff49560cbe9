/* Fidelity and its statistics: tables counted by hand, closed forms, identities on
 * random scores against a recount of another shape. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "trust/fidelity.h"
#include "trust/statistics.h"

static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%.12g, wanted %.12g", got, want);
}

/* Four inputs of three classes, by hand:
 *   label      a b c a
 *   reference  a b a b     2 right
 *   changed    a c c b     2 right: b lost, c won */
static void by_hand(void **state)
{
    static const float r[] = {2, 0, 0, 0, 2, 0, 2, 0, 1, 0, 1, 0};
    static const float c[] = {2, 0, 0, 0, 1, 2, 1, 0, 2, 0, 1, 0};
    static const int32_t label[] = {0, 1, 2, 0}, group[] = {0, 0, 1, 1};
    static const char *const group_name[] = {"x", "y"};
    const sti_fidelity_data d = {.count = 4,
                                 .classes = 3,
                                 .reference = r,
                                 .changed = c,
                                 .label = label,
                                 .class_name = names,
                                 .group = group,
                                 .group_name = group_name,
                                 .groups = 2};
    stint_fidelity f = {0};
    (void)state;
    assert_int_equal(sti_fidelity_find(&d, &f), STINT_OK);
    near(f.reference_accuracy, 0.5, 0);
    near(f.changed_accuracy, 0.5, 0);
    assert_int_equal(f.mismatch.count,
                     2); /* equal accuracy, half of the answers other */
    assert_int_equal(f.mismatch_right.count, 1);
    assert_int_equal(f.nfr.count, 1);
    assert_int_equal(f.pfr.count, 1);
    near(f.mcnemar_p, 1, 0);
    near(f.logit_max, 2, 0);
    near(f.top5_same, 1, 0); /* there are only three classes */
    assert_int_equal(f.class_part[0].count, 2);
    near(f.class_part[0].reference_tpr, 0.5, 0);
    near(f.class_part[0].reference_fpr, 0.5, 0); /* c was taken for a */
    near(f.class_part[0].changed_fpr, 0, 0);
    near(f.class_part[1].changed_tpr, 0, 0);
    near(f.class_part[2].changed_fpr, 1.0 / 3, 1e-15);
    assert_int_equal(f.class_part[1].mismatch.count, 1);
    near(f.worst_recall_change, -1, 0);
    near(f.mismatch_spread, sqrt(2.0 / 3 - 4.0 / 9), 1e-12); /* of 0, 1, 1 */
    assert_int_equal(f.group_part[0].count, 2);
    near(f.group_part[0].changed_tpr, 0.5, 0); /* a found, b not */
    near(f.group_part[1].changed_tpr, 0.5, 0); /* c found, a not */
    /* Group x: a 0/1, b 0/1, c 1/2. All: a 0/2, b 1/3, c 1/3; recalls 1/2, 0, 1. */
    near(f.group_part[0].changed_fpr, (0 + 0 + 0.5) / 3, 1e-12);
    stint_fidelity_fini(&f);
}

/* p of an input: softmax in double. */
static double softmax_at(const float *z, int n, int k)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += exp((double)z[i]);
    return exp((double)z[k]) / sum;
}

static void scores(void **state)
{
    enum { N = 500, C = 7 };
    static float r[N * C], c[N * C];
    static int32_t label[N];
    double kl = 0, largest = 0, kls[N];
    (void)state;
    for (int64_t i = 0; i < N; i++) {
        uint32_t w[4];
        for (int64_t k = 0; k < C; k++) {
            sti_random4(5, STI_STREAM_TEST, (uint64_t)i, (uint64_t)k, w);
            r[i * C + k] = 4 * sti_uniform(w[0]);
            c[i * C + k] = r[i * C + k] + sti_uniform(w[1]) - 0.5f;
        }
        label[i] = (int32_t)sti_below(w[2], C);
    }
    int64_t other = 0;
    for (int i = 0; i < N; i++) {
        const float *a = r + i * C, *b = c + i * C;
        int best_a = 0, best_b = 0;
        kls[i] = 0;
        for (int k = 0; k < C; k++) {
            const double p = softmax_at(a, C, k), q = softmax_at(b, C, k);
            kls[i] += p * log(p / q);
            best_a = a[k] > a[best_a] ? k : best_a;
            best_b = b[k] > b[best_b] ? k : best_b;
        }
        kl += kls[i] / N;
        largest = kls[i] > largest ? kls[i] : largest;
        other += best_a != best_b;
    }
    const sti_fidelity_data d = {.count = N,
                                 .classes = C,
                                 .reference = r,
                                 .changed = c,
                                 .label = label,
                                 .class_name = names};
    stint_fidelity f = {0};
    assert_int_equal(sti_fidelity_find(&d, &f), STINT_OK);
    assert_int_equal(f.mismatch.count, other);
    near(f.kl_mean, kl, 2e-6);
    near(f.kl_999, largest, 2e-6); /* rank 500 of 500 */
    near(f.changed_accuracy, f.reference_accuracy - f.nfr.rate + f.pfr.rate, 1e-12);
    stint_fidelity_fini(&f);
}

static void floor_of_equal_models(void **state)
{
    static const float r[] = {1, 0, 0, 1, 1, 0, 0, 1}, c[] = {0, 1, 0, 1, 1, 0, 0, 1};
    static const int32_t label[] = {0, 1, 0, 1};
    static const int32_t same[] = {0, 1, 0, 1}, other[] = {1, 1, 0, 1};
    const int32_t *const floors[] = {same, other};
    const sti_fidelity_data d = {.count = 4,
                                 .classes = 2,
                                 .reference = r,
                                 .changed = c,
                                 .label = label,
                                 .class_name = names};
    stint_fidelity f = {0};
    (void)state;
    assert_int_equal(sti_fidelity_find(&d, &f), STINT_OK);
    assert_true(isnan(f.excess));
    assert_int_equal(sti_fidelity_floor(&d, floors, 2, &f), STINT_OK);
    near(f.floor_mismatch, 1.0 / 8, 0);
    near(f.floor_nfr, 1.0 / 8, 0);
    near(f.excess, 1.0 / 4 - 1.0 / 8, 0);
    assert_true(f.excess_low <= f.excess && f.excess <= f.excess_high);
    stint_fidelity_fini(&f);
}

static void refuses_what_is_not_finite(void **state)
{
    static const float r[] = {1, 0, 0, 1}, c[] = {1, 0, NAN, 1};
    static const int32_t label[] = {0, 1};
    sti_fidelity_data d = {.count = 2,
                           .classes = 2,
                           .reference = r,
                           .changed = c,
                           .label = label,
                           .class_name = names};
    stint_fidelity f = {0};
    (void)state;
    assert_int_equal(sti_fidelity_find(&d, &f), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "input 1"));
    stint_fidelity_fini(&f);
    d.count = 0;
    assert_int_equal(sti_fidelity_find(&d, &f), STINT_E_INPUT);
    stint_fidelity_fini(&f);
}

/* 2 sum_{i <= k} C(n, i) / 2^n, from log-gamma. */
static double mcnemar_by_lgamma(int64_t b, int64_t c)
{
    const int64_t n = b + c, k = b < c ? b : c;
    double sum = 0;
    for (int64_t i = 0; i <= k; i++)
        sum += exp(lgamma((double)n + 1) - lgamma((double)i + 1) -
                   lgamma((double)(n - i) + 1) - (double)n * log(2));
    return 2 * sum < 1 && b != c ? 2 * sum : 1;
}

static void mcnemar(void **state)
{
    static const int64_t cases[][2] = {{0, 0},       {1, 0},    {0, 5},      {3, 9},
                                       {10, 10},     {40, 70},  {500, 620},  {7, 900},
                                       {5000, 5200}, {1, 3000}, {2000, 2001}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double want = mcnemar_by_lgamma(cases[i][0], cases[i][1]);
        near(sti_mcnemar_exact(cases[i][0], cases[i][1]), want, 1e-9 * want + 1e-300);
        near(sti_mcnemar_exact(cases[i][1], cases[i][0]), want, 1e-9 * want + 1e-300);
    }
}

static void wilson(void **state)
{
    const stint_share none = sti_share(0, 0), zero = sti_share(0, 10);
    const stint_share s = sti_share(81, 263); /* Newcombe 1998: 0.2553 to 0.3662 */
    (void)state;
    assert_true(isnan(none.rate) && isnan(none.low));
    near(s.low, 0.2553, 5e-5);
    near(s.high, 0.3662, 5e-5);
    near(zero.low, 0, 0);
    near(zero.high, 0.2775, 5e-5); /* the same paper, 0 of 10 */
}

/* The bootstrap's interval of a mean is near that of the normal. */
static void bootstrap(void **state)
{
    enum { N = 2000 };
    static float x[N];
    double mean = 0, square = 0, low, high;
    (void)state;
    for (int64_t i = 0; i < N; i++) {
        uint32_t w[4];
        sti_random4(9, STI_STREAM_TEST, (uint64_t)i, 0, w);
        x[i] = sti_uniform(w[0]);
        mean += (double)x[i] / N;
        square += (double)x[i] * (double)x[i] / N;
    }
    const double half = 1.96 * sqrt((square - mean * mean) / N);
    sti_bootstrap_mean(N, x, 1, &low, &high);
    near(low, mean - half, 0.15 * half);
    near(high, mean + half, 0.15 * half);
    sti_bootstrap_mean(0, x, 1, &low, &high);
    assert_true(isnan(low));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(scores),
        cmocka_unit_test(floor_of_equal_models),
        cmocka_unit_test(refuses_what_is_not_finite),
        cmocka_unit_test(mcnemar),
        cmocka_unit_test(wilson),
        cmocka_unit_test(bootstrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
