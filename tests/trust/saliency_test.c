/* Agreement of maps against closed forms; saliency of models in tests/cli/saliency. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "trust/saliency.h"

static void near(double a, double b, double most)
{
    if (!(fabs(a - b) <= most))
        fail_msg("%.12g, wanted %.12g", a, b);
}

static float draw(uint64_t i)
{
    uint32_t word[4];
    sti_random4(7, STI_STREAM_TEST, i, 0, word);
    return sti_uniform(word[0]);
}

/* 1 - 6 sum d^2 / (n (n^2 - 1)) without ties; counted pairs of ranks with them. */
static void test_rank_correlation(void **state)
{
    enum { N = 40 };
    float a[N], b[N];
    double scratch[6 * N], squares = 0;
    (void)state;
    for (int i = 0; i < N; i++) {
        a[i] = draw((uint64_t)i);
        b[i] = draw((uint64_t)(100 + i)) + a[i];
    }
    for (int i = 0; i < N; i++) {
        int below_a = 0, below_b = 0;
        for (int k = 0; k < N; k++) {
            below_a += a[k] < a[i];
            below_b += b[k] < b[i];
        }
        squares += (double)(below_a - below_b) * (below_a - below_b);
    }
    near(sti_rank_correlation(a, b, N, scratch),
         1 - 6 * squares / ((double)N * ((double)N * N - 1)), 1e-12);
    near(sti_rank_correlation(a, a, N, scratch), 1, 1e-12);
    for (int i = 0; i < N; i++)
        b[i] = -a[i] * 3 + 1;
    near(sti_rank_correlation(a, b, N, scratch), -1, 1e-12);
    /* Ties, by hand: ranks 0.5 0.5 2 3 against 0 1 2.5 2.5. */
    const float c[4] = {1, 1, 2, 3}, d[4] = {4, 5, 6, 6}, flat[4] = {2, 2, 2, 2};
    near(sti_rank_correlation(c, d, 4, scratch), 4.0 / 4.5, 1e-12);
    assert_true(isnan(sti_rank_correlation(c, flat, 4, scratch)));
}

static void test_ssim(void **state)
{
    enum { SIDE = 9 };
    float a[SIDE * SIDE], b[SIDE * SIDE];
    (void)state;
    for (int i = 0; i < SIDE * SIDE; i++)
        a[i] = draw((uint64_t)i);
    near(sti_ssim(a, a, SIDE, SIDE), 1, 1e-12);
    for (int i = 0; i < SIDE * SIDE; i++)
        b[i] = 5 * a[i] + 2; /* the same once scaled */
    near(sti_ssim(a, b, SIDE, SIDE), 1, 1e-6);
    assert_true(isnan(sti_ssim(a, a, 6, 9)));
    /* A window with one bright pixel against one with another: means 1/49, variances
     * (1 - 1/49) / 48, covariance -1/49/48. */
    float c[49] = {1}, d[49] = {0, 1};
    const double mean = 1.0 / 49, var = (1 - mean) / 48, both = -mean / 48;
    near(sti_ssim(c, d, 7, 7),
         (2 * mean * mean + 1e-4) * (2 * both + 9e-4) /
             ((2 * mean * mean + 1e-4) * (2 * var + 9e-4)),
         1e-12);
}

static void test_agreement(void **state)
{
    double values[] = {4, (double)NAN, 1, 3, 0, 2, (double)NAN};
    (void)state;
    const stint_agreement a = sti_agreement(values, 7);
    assert_int_equal(a.count, 5);
    near(a.mean, 2, 1e-12);
    near(a.low, 0.4, 1e-12);
    near(a.median, 2, 1e-12);
    near(a.high, 3.6, 1e-12);
    double none[] = {(double)NAN};
    assert_int_equal(sti_agreement(none, 1).count, 0);
    assert_true(isnan(sti_agreement(none, 1).mean));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_correlation),
        cmocka_unit_test(test_ssim),
        cmocka_unit_test(test_agreement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
