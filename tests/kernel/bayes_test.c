/* Drawn weights: the divergence beside its integral, spreads far out, the same bits on
 * every instruction set and number of threads. (Gradients are held against differences
 * in tests/pass/op_gradient_test.c.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "kernel/bayes/bayes.h"

static const sti_normal_key key = {
    .generator = STI_NORMAL_ARS, .seed = 3, .step = 5, .layer = 2};

static double density(double x, double deviation)
{
    return exp(-x * x / (2 * deviation * deviation)) / (deviation * 2.5066282746310002);
}

/* Integral of q log(q / p) by Simpson's rule over eight deviations to either side. */
static double divergence(const sti_prior *prior, double mu, double sigma)
{
    enum { STEPS = 20000 };
    const double s = (double)prior->deviation, t = (double)prior->narrow;
    const double share = (double)prior->wide_share;
    double sum = 0;
    for (int i = 0; i <= STEPS; i++) {
        const double w = mu + sigma * 16 * ((double)i / STEPS - 0.5);
        const double q = density(w - mu, sigma);
        const double p = prior->kind == STI_PRIOR_GAUSS
                             ? density(w, s)
                             : share * density(w, s) + (1 - share) * density(w, t);
        sum += (i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2) * q * log(q / p);
    }
    return sum * 16 * sigma / STEPS / 3;
}

/* KL of n equal weights, over n. */
static double mean_kl(const sti_prior *prior, double mu, double sigma, int64_t n)
{
    float *m = malloc((size_t)n * sizeof *m), *r = malloc((size_t)n * sizeof *r);
    double *partial = malloc((size_t)sti_kl_pieces(n) * sizeof *partial);
    for (int64_t i = 0; i < n; i++) {
        m[i] = (float)mu;
        r[i] = sti_spread_of_deviation(sigma);
    }
    const double kl = sti_kl_f32(&sti_team_serial, &key, prior, n, m, r, partial);
    free(m);
    free(r);
    free(partial);
    return kl / (double)n;
}

static void divergence_is_the_integral(void **state)
{
    static const double means[] = {0, 0.3, -1.5}, sigmas[] = {0.01, 0.2, 1.2};
    static const sti_prior gauss = {STI_PRIOR_GAUSS, 0.7f, 0, 0};
    static const sti_prior mixture = {STI_PRIOR_MIXTURE, 1.0f, 0.05f, 0.3f};
    enum { DRAWS = 100000 };
    (void)state;
    for (int i = 0; i < 9; i++) {
        const double mu = means[i / 3], sigma = sigmas[i % 3];
        double want = divergence(&gauss, mu, sigma);
        assert_true(fabs(mean_kl(&gauss, mu, sigma, 5) - want) < 2e-5 * (1 + want));
        want = divergence(&mixture, mu, sigma);
        /* A draw's deviation is a few nats where the narrow part is left. */
        const double got = mean_kl(&mixture, mu, sigma, DRAWS);
        assert_true(fabs(got - want) < 4 * (1 + 0.5 * want) / sqrt(DRAWS));
    }
}

static void spreads_invert_softplus(void **state)
{
    (void)state;
    for (double sigma = 1e-6; sigma < 60; sigma *= 1.7) {
        const double rho = (double)sti_spread_of_deviation(sigma);
        assert_true(fabs(log1p(exp(rho)) / sigma - 1) < 2e-6);
    }
}

/* Deviations below the least float and far above 1 have finite gradients: those that
 * the formulas tend to. */
static void far_spreads_have_gradients(void **state)
{
    static const sti_prior prior = {STI_PRIOR_GAUSS, 1.0f, 0, 0};
    static const float rho[] = {-1e30f, -200, -100, -40, -29.9f, 50, 1000};
    enum { N = sizeof rho / sizeof rho[0] };
    const float mu[N] = {0}, dw[N] = {0};
    float dmu[N], drho[N], w[N];
    double partial[1];
    const sti_draw_grad grad = {
        .mu = mu, .rho = rho, .dw = dw, .dkl = 2, .dmu = dmu, .drho = drho, .w = w};
    (void)state;
    sti_draw_grad_f32(&sti_team_serial, &key, &prior, N, &grad);
    for (int i = 0; i < N; i++) {
        const double sigma = log1p(exp((double)rho[i]));
        const double want = rho[i] < -20 ? -2 : 2 * (sigma - 1 / sigma);
        assert_true(fabs((double)drho[i] - want) <= 1e-5 * fabs(want));
        assert_true(isfinite(w[i]) && dmu[i] == 0);
    }
    assert_true(isfinite(
        sti_kl_f32(&sti_team_serial, &key, &prior, N - 1, mu + 1, rho + 1, partial)));
}

static void outputs_without_variance_are_themselves(void **state)
{
    const float m[] = {1, 2, 3, 4}, v[] = {0, -1e-9f, 4, -0.0f}, dy[] = {1, 1, 1, 1};
    float y[4], dv[4], eps[4];
    (void)state;
    sti_normal_fill(&key, 0, 4, eps);
    sti_draw_output_f32(&sti_team_serial, &key, 4, m, v, y);
    sti_draw_output_grad_f32(&sti_team_serial, &key, 4, v, dy, dv);
    for (int i = 0; i < 4; i++) {
        assert_true(i == 2 || (y[i] == m[i] && dv[i] == 0));
        assert_true(i != 2 || (y[i] == 3 + 2 * eps[2] && dv[i] == eps[2] / 4));
    }
}

/* ---- bits ---- */

enum { MOST = 40000 };

typedef struct results {
    float w[MOST], dmu[MOST], drho[MOST], again[MOST], y[MOST];
    double kl;
} results;

static void compute(const sti_team *team, const sti_prior *prior, int64_t n,
                    const float *mu, const float *rho, results *r)
{
    double partial[16];
    const sti_draw_grad grad = {.mu = mu,
                                .rho = rho,
                                .dw = mu,
                                .dkl = 0.25f,
                                .add = true,
                                .dmu = r->dmu,
                                .drho = r->drho,
                                .w = r->again};
    memset(r, 0, sizeof *r);
    for (int64_t i = 0; i < n; i++)
        r->dmu[i] = r->drho[i] = 0.5f;
    sti_draw_f32(team, &key, n, mu, rho, r->w);
    sti_draw_grad_f32(team, &key, prior, n, &grad);
    sti_draw_output_f32(team, &key, n, mu, rho, r->y);
    r->kl = sti_kl_f32(team, &key, prior, n, mu, rho, partial);
}

static void bits_hang_on_nothing(void **state)
{
    static const int64_t sizes[] = {1, 511, 512, 513, 16385, MOST};
    static const sti_prior priors[] = {{STI_PRIOR_GAUSS, 0.7f, 0, 0},
                                       {STI_PRIOR_MIXTURE, 1.0f, 0.05f, 0.3f}};
    const sti_isa saved = sti_isa_now();
    float *mu = malloc(MOST * sizeof *mu), *rho = malloc(MOST * sizeof *rho);
    results *want = malloc(sizeof *want), *got = malloc(sizeof *got);
    (void)state;
    sti_normal_fill(&(sti_normal_key){.generator = STI_NORMAL_PHILOX}, 0, MOST, mu);
    for (int64_t i = 0; i < MOST; i++)
        rho[i] = 4 * mu[MOST - 1 - i] - 2;
    for (int k = 0; k < 12; k++) {
        sti_isa_force(STI_ISA_REF);
        compute(&sti_team_serial, &priors[k / 6], sizes[k % 6], mu, rho, want);
        assert_memory_equal(want->w, want->again, sizeof want->w);
        for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
            const sti_team team = {.threads = 1 + isa};
            if (!sti_isa_force((sti_isa)isa))
                continue;
            compute(&team, &priors[k / 6], sizes[k % 6], mu, rho, got);
            assert_memory_equal(want, got, sizeof *want);
        }
    }
    sti_isa_force(saved);
    free(mu);
    free(rho);
    free(want);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divergence_is_the_integral),
        cmocka_unit_test(spreads_invert_softplus),
        cmocka_unit_test(far_spreads_have_gradients),
        cmocka_unit_test(outputs_without_variance_are_themselves),
        cmocka_unit_test(bits_hang_on_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
