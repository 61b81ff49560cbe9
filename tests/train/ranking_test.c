/* AUC against all pairs, with ties; log loss, accuracy and calibration against sums. */
#include "train/ranking.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/rng.h"

enum { COUNT = 700 };

static void agrees_with_all_pairs(void **state)
{
    float x[COUNT];
    uint8_t y[COUNT];
    (void)state;
    for (uint32_t seed = 1; seed <= 6; seed++) {
        double pairs = 0, all = 0, loss = 0, p = 0, positives = 0, right = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t w[4];
            sti_random4(seed, STI_STREAM_TEST, i, 0, w);
            /* Few different values for even seeds: ties; zeros of both signs. */
            x[i] = (sti_uniform(w[0]) - 0.5f) * 8;
            x[i] = seed % 2 ? x[i] : rintf(x[i]);
            y[i] = sti_uniform(w[1]) < 0.3f;
        }
        for (int i = 0; i < COUNT; i++) {
            const double q = 1 / (1 + exp(-(double)x[i]));
            loss -= y[i] ? log(q) : log(1 - q);
            p += q;
            positives += y[i];
            right += (q > 0.5) == (y[i] == 1);
            for (int k = 0; k < COUNT; k++)
                if (y[i] && !y[k]) {
                    pairs += x[i] > x[k] ? 1 : x[i] == x[k] ? 0.5 : 0;
                    all++;
                }
        }
        sti_ranking r;
        assert_int_equal(sti_rank_scores(x, y, COUNT, &r), STINT_OK);
        assert_true(fabs(r.auc - pairs / all) < 1e-15);
        assert_true(fabs(r.log_loss - loss / COUNT) < 1e-9);
        assert_true(fabs(r.accuracy - right / COUNT) < 1e-12);
        assert_true(fabs(r.calibration - p / positives) < 1e-12);
    }
}

static void one_class_has_no_area(void **state)
{
    const float x[3] = {1, 2, -1};
    const uint8_t ones[3] = {1, 1, 1}, zeros[3] = {0, 0, 0};
    sti_ranking r;
    (void)state;
    assert_int_equal(sti_rank_scores(x, ones, 3, &r), STINT_OK);
    assert_true(isnan(r.auc) && isfinite(r.log_loss));
    assert_int_equal(sti_rank_scores(x, zeros, 3, &r), STINT_OK);
    assert_true(isnan(r.auc) && isnan(r.calibration));
    assert_int_equal(sti_rank_scores(x, zeros, 0, &r), STINT_OK);
    assert_true(isnan(r.auc) && isnan(r.log_loss));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_all_pairs),
        cmocka_unit_test(one_class_has_no_area),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
