/* Posterior and likelihood beside an elimination of the whole covariance, without any
 * root of it. */
#include "base/gaussian_process.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/rng.h"

enum { MOST = 9 };

static double matern(const sti_gp *gp, double a, double b)
{
    const double r = fabs(a - b), l = gp->length;
    return gp->variance * (1 + sqrt(5) * r / l + 5 * r * r / (3 * l * l)) *
           exp(-sqrt(5) * r / l);
}

/* Solves a z = b by elimination with pivots; returns log |det a|. */
static double eliminate(int n, double a[MOST][MOST], double *b)
{
    double log_det = 0;
    for (int c = 0; c < n; c++) {
        int pivot = c;
        for (int r = c; r < n; r++)
            pivot = fabs(a[r][c]) > fabs(a[pivot][c]) ? r : pivot;
        for (int k = 0; k < n; k++) {
            const double x = a[c][k];
            a[c][k] = a[pivot][k];
            a[pivot][k] = x;
        }
        const double y = b[c];
        b[c] = b[pivot];
        b[pivot] = y;
        log_det += log(fabs(a[c][c]));
        for (int r = 0; r < n; r++) {
            const double f = r == c ? 0 : a[r][c] / a[c][c];
            for (int k = 0; k < n; k++)
                a[r][k] -= f * a[c][k];
            b[r] -= f * b[c];
        }
    }
    for (int i = 0; i < n; i++)
        b[i] /= a[i][i];
    return log_det;
}

static void fill(const sti_gp *gp, double a[MOST][MOST])
{
    for (int i = 0; i < gp->count; i++)
        for (int k = 0; k < gp->count; k++)
            a[i][k] =
                matern(gp, gp->x[i], gp->x[k]) + (i == k ? gp->noise[i] + 1e-10 : 0);
}

static void check(const sti_gp *gp)
{
    double a[MOST][MOST], z[MOST], mean, variance;
    const int n = gp->count;
    fill(gp, a);
    for (int i = 0; i < n; i++)
        z[i] = gp->y[i];
    double likelihood = -0.5 * eliminate(n, a, z) - 0.5 * n * log(2 * acos(-1));
    for (int i = 0; i < n; i++)
        likelihood -= 0.5 * gp->y[i] * z[i];
    assert_true(fabs(likelihood - gp->log_likelihood) < 1e-8);
    for (int q = 0; q <= 20; q++) {
        const double x = 0.05 * q;
        double want = 0, left = gp->variance, k[MOST];
        fill(gp, a);
        for (int i = 0; i < n; i++) {
            k[i] = matern(gp, x, gp->x[i]);
            want += k[i] * z[i];
        }
        eliminate(n, a, k);
        for (int i = 0; i < n; i++)
            left -= k[i] * matern(gp, x, gp->x[i]);
        sti_gp_at(gp, x, &mean, &variance);
        assert_true(fabs(mean - want) < 1e-8);
        assert_true(fabs(variance - (left > 0 ? left : 0)) < 1e-8);
    }
}

static void posterior_and_likelihood(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        sti_gp gp = {.length = 0.1 + 0.02 * (double)seed,
                     .variance = 0.5 + 0.1 * (double)(seed % 7),
                     .count = 1 + (int)(seed % MOST)};
        for (int i = 0; i < gp.count; i++) {
            uint32_t word[4];
            sti_random4(seed, STI_STREAM_TEST, (uint64_t)i, 4, word);
            gp.x[i] = (double)sti_uniform(word[0]);
            gp.y[i] = (double)sti_uniform(word[1]) - 0.5;
            gp.noise[i] = 1e-3 * (double)sti_uniform(word[2]) + 1e-4;
        }
        assert_int_equal(sti_gp_fit(&gp), STINT_OK);
        check(&gp);
        const double before = gp.log_likelihood;
        assert_int_equal(sti_gp_learn(&gp), STINT_OK);
        check(&gp);
        if (gp.count > 2)
            assert_true(gp.log_likelihood > before - 1);
        assert_true(gp.length >= 0.05 - 1e-12 && gp.length <= 1 + 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posterior_and_likelihood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
