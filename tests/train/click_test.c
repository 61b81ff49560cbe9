/* The lasso beside differences of its own formula, and rank correlations. */
#include "train/click.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "train/click_priv.h"

enum { KERNELS = 6, TAPS = 9, COUNT = KERNELS * TAPS };

static double uniform(uint64_t seed, int i)
{
    uint32_t word[4];
    sti_random4(seed, STI_STREAM_TEST, (uint64_t)i, 3, word);
    return (double)sti_uniform(word[0]);
}

static double penalty(const double *w, const float *in_shape, const float *stays)
{
    double sum = 0;
    for (int k = 0; k < KERNELS; k++) {
        double outside = 0, all = 0;
        for (int t = 0; t < TAPS; t++) {
            const int i = t * KERNELS + k;
            outside += in_shape[i] == 0 ? w[i] * w[i] : 0;
            all += w[i] * w[i];
        }
        sum += sqrt(outside + 1e-8);
        sum += stays[k] == 0 ? sqrt(all + 1e-8) : 0;
    }
    return sum;
}

static void the_lasso_is_its_formulas_gradient(void **state)
{
    float w[COUNT], in_shape[COUNT], stays[COUNT], g[COUNT];
    double x[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        x[i] = (double)(w[i] = (float)uniform(1, i) - 0.5f);
        in_shape[i] = (float)((i / KERNELS + i) % 2);
        stays[i] = (float)(i % KERNELS != 2);
        g[i] = 0.25f;
    }
    sti_click_lasso(KERNELS, TAPS, 0.01, 4, w, in_shape, stays, g);
    for (int i = 0; i < COUNT; i++) {
        const double h = 1e-6, at = x[i];
        x[i] = at + h;
        const double above = penalty(x, in_shape, stays);
        x[i] = at - h;
        const double below = penalty(x, in_shape, stays);
        x[i] = at;
        const double want = 4 * 0.01 * (above - below) / (2 * h);
        assert_true(fabs((double)g[i] - 0.25 - want) < 1e-6);
        if (in_shape[i] != 0 && stays[i] != 0)
            assert_true(g[i] == 0.25f); /* to the bit */
    }
}

static void importance_is_a_sum_of_squares(void **state)
{
    const float w[] = {2, -3, 0.5f}, g[] = {1, 2, -4};
    float sum[] = {1, 0, 0};
    (void)state;
    sti_click_gather(3, 0.5f, w, g, sum);
    assert_true(sum[0] == 2 && sum[1] == 9 && sum[2] == 1);
}

static double correlate(int n, const float *a, const float *b)
{
    float scratch[6 * 8];
    return sti_click_correlation(n, a, b, scratch);
}

static void correlations_of_ranks(void **state)
{
    const float up[] = {1, 2, 3, 4, 5}, also[] = {1, 10, 11, 50, 90};
    const float down[] = {9, 8, 7, 6, 5}, same[] = {3, 3, 3, 3, 3};
    const float mixed[] = {2, 1, 4, 3, 5}, ties[] = {1, 1, 2, 2, 3};
    (void)state;
    assert_true(correlate(5, up, also) == 1);
    assert_true(correlate(5, up, down) == -1);
    assert_true(correlate(5, up, same) == 1);
    /* 1 - 6 sum d^2 / (n (n^2 - 1)) without ties: d^2 = 4 */
    assert_true(fabs(correlate(5, up, mixed) - 0.8) < 1e-12);
    /* ranks 0.5 0.5 2.5 2.5 4: by hand 9 / sqrt(10 * 9) */
    assert_true(fabs(correlate(5, up, ties) - 9 / sqrt(90)) < 1e-6);
}

/* Kernels are ranked over the layer: of an output that matters little all go before one
 * of another does; ranked by output, half of each would. */
static void a_useless_filter_loses_all(void **state)
{
    enum { CHANNELS = 4, FILTERS = 2, ALL = CHANNELS * FILTERS, USELESS = 1 };
    float importance[TAPS * ALL], stays[TAPS * ALL], score[ALL];
    sti_projection p = {.score = score, .score_count = ALL};
    const sti_target t = {
        .count = TAPS * ALL,
        .filters = true,
        .form = {.taps = TAPS, .channels = CHANNELS, .columns = FILTERS}};
    (void)state;
    for (int i = 0; i < TAPS * ALL; i++)
        importance[i] =
            (float)(uniform(3, i) + 0.1) * (i % FILTERS == USELESS ? 0.001f : 1.0f);
    sti_click_rank_kernels(&p, &t, 0.5, importance, stays);
    for (int i = 0; i < TAPS * ALL; i++)
        assert_true(stays[i] == (i % FILTERS == USELESS ? 0.0f : 1.0f));
    /* Half of a kernel is a whole one, and the best one always stays. */
    sti_click_rank_kernels(&p, &t, 0.51, importance, stays);
    int left = 0;
    for (int k = 0; k < ALL; k++)
        left += stays[k] != 0;
    assert_int_equal(left, 3);
    sti_click_rank_kernels(&p, &t, 0.999, importance, stays);
    left = 0;
    for (int k = 0; k < ALL; k++)
        left += stays[k] != 0;
    assert_int_equal(left, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lasso_is_its_formulas_gradient),
        cmocka_unit_test(importance_is_a_sum_of_squares),
        cmocka_unit_test(correlations_of_ranks),
        cmocka_unit_test(a_useless_filter_loses_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
