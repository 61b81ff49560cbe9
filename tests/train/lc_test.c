/* L-C on separable quadratics beside a scalar program in double that follows the
 * published loop (momentum with the rate in its velocity), and closed forms. */
#include "train/lc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "train/optimizer_section.h"
#include "train/step_engine.h"

enum { N = 40 };

static double uniform(uint64_t seed, int i)
{
    uint32_t word[4];
    sti_random4(seed, STI_STREAM_TEST, (uint64_t)i, 2, word);
    return (double)sti_uniform(word[0]);
}

/* loss = 1/2 sum h (w - a)^2 */
typedef struct problem {
    double h[N], a[N];
    int kept;
    double lr, end, momentum, mu, factor;
    int steps, first, batches;
} problem;

static void make(problem *p, uint64_t seed)
{
    *p = (problem){.kept = 10,
                   .lr = 0.05,
                   .end = 0.005,
                   .momentum = 0.9,
                   .mu = 0.02,
                   .factor = 1.2,
                   .steps = 30,
                   .first = 60,
                   .batches = 40};
    for (int i = 0; i < N; i++) {
        p->h[i] = 0.3 + uniform(seed, 2 * i);
        p->a[i] = 2 * uniform(seed, 2 * i + 1) - 1;
    }
}

/* ---- the scalar program ---- */

static void keep_largest(double *x, int kept)
{
    for (int cut = N - kept; cut > 0; cut--) {
        int least = -1;
        for (int i = 0; i < N; i++)
            if (x[i] != 0 && (least < 0 || fabs(x[i]) < fabs(x[least])))
                least = i;
        x[least] = 0;
    }
}

static void scalar_program(const problem *p, double w[N], double theta[N],
                           double lambda[N])
{
    double mu = 0;
    memcpy(w, p->a, sizeof p->a);
    memset(lambda, 0, N * sizeof *lambda);
    for (int j = 0; j < p->steps; j++) {
        const int n = j == 0 ? 0 : j == 1 ? p->first : p->batches;
        double v[N] = {0}, lr = p->lr;
        for (int b = 0; b < n; b++) {
            for (int i = 0; i < N; i++) {
                const double g =
                    p->h[i] * (w[i] - p->a[i]) + mu * (w[i] - theta[i]) - lambda[i];
                const double next = w[i] - lr * g;
                v[i] = p->momentum * v[i] + next - w[i];
                w[i] = p->momentum * v[i] + next;
            }
            lr *= exp((log(p->end) - log(p->lr)) / n);
        }
        for (int i = 0; i < N; i++)
            theta[i] = mu > 0 ? w[i] - lambda[i] / mu : w[i];
        keep_largest(theta, p->kept);
        for (int i = 0; i < N && mu > 0; i++)
            lambda[i] -= mu * (w[i] - theta[i]);
        mu = mu == 0 ? p->mu : mu * p->factor;
    }
}

/* ---- the same by the room's functions, as a run calls them ---- */

typedef struct state {
    float w[N], theta[N], lambda[N], moment[N];
} state;

static void learn(const problem *p, const sti_lc_plan *plan, int64_t batch, state *s)
{
    const sti_optimizer_values o = {
        .name = STI_OPTIMIZER_SGD, .momentum = p->momentum, .nesterov = true};
    const sti_lc_place place = sti_lc_place_of(plan, batch);
    const double rate = sti_lc_rate(p->lr, p->end, place.index, place.count);
    float g[N];
    for (int i = 0; i < N; i++)
        g[i] = (float)p->h[i] * (s->w[i] - (float)p->a[i]);
    sti_lc_gradient(&sti_team_serial, N, sti_lc_mu(plan, place.step), 1, s->w, s->theta,
                    s->lambda, g);
    if (place.index > 0)
        sti_lc_scale(&sti_team_serial, N,
                     sti_lc_rate(p->lr, p->end, place.index - 1, place.count) / rate,
                     s->moment);
    sti_update_numbers(&o, rate, place.index, N, s->w, g, s->moment, NULL);
}

static void compress(const problem *p, double mu, state *s)
{
    double theta[N];
    sti_lc_target(&sti_team_serial, N, mu, s->w, s->lambda, s->theta);
    for (int i = 0; i < N; i++)
        theta[i] = (double)s->theta[i];
    keep_largest(theta, p->kept);
    for (int i = 0; i < N; i++)
        s->theta[i] = (float)theta[i];
    if (mu > 0)
        sti_lc_multipliers(&sti_team_serial, N, mu, s->w, s->theta, s->lambda);
    memset(s->moment, 0, sizeof s->moment);
}

static void run(const problem *p, state *s)
{
    const sti_shrink_values values = {.steps = p->steps,
                                      .first = p->first,
                                      .batches = p->batches,
                                      .mu = p->mu,
                                      .mu_factor = p->factor,
                                      .mu_cap = 1e4,
                                      .lr_end = p->end};
    const sti_lc_plan plan = sti_lc_plan_of(&values, 1000, p->lr, p->momentum);
    const int64_t batches = sti_lc_batches(&plan);
    assert_int_equal(batches, p->first + (p->steps - 2) * p->batches);
    *s = (state){.w = {0}};
    for (int i = 0; i < N; i++)
        s->w[i] = (float)p->a[i];
    compress(p, 0, s);
    for (int64_t b = 0; b < batches; b++) {
        const sti_lc_place place = sti_lc_place_of(&plan, b);
        learn(p, &plan, b, s);
        if (place.index + 1 == place.count)
            compress(p, sti_lc_mu(&plan, place.step), s);
    }
}

static void a_run_is_the_scalar_programs(void **unused)
{
    (void)unused;
    for (uint64_t seed = 0; seed < 20; seed++) {
        problem p;
        state s;
        double w[N], theta[N] = {0}, lambda[N];
        make(&p, seed);
        scalar_program(&p, w, theta, lambda);
        run(&p, &s);
        for (int i = 0; i < N; i++) {
            assert_true(fabs((double)s.w[i] - w[i]) < 1e-5);
            assert_true(fabs((double)s.theta[i] - theta[i]) < 1e-5);
            assert_true(fabs((double)s.lambda[i] - lambda[i]) < 1e-5);
        }
    }
}

static double loss(const problem *p, const float *x)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += 0.5 * p->h[i] * ((double)x[i] - p->a[i]) * ((double)x[i] - p->a[i]);
    return sum;
}

/* At the end w and theta agree, lambda is the gradient of the loss, and the compression
 * is no worse than the direct one; multipliers are what tells it from one. */
static void it_converges_and_beats_the_direct_one(void **unused)
{
    int better = 0, best = 0;
    (void)unused;
    for (uint64_t seed = 100; seed < 200; seed++) {
        problem p;
        state s;
        float direct[N];
        double optimum = 0, gap = 0, size = 0, multipliers = 0;
        make(&p, seed);
        double theta[N];
        memcpy(theta, p.a, sizeof theta);
        keep_largest(theta, p.kept);
        for (int i = 0; i < N; i++)
            direct[i] = (float)theta[i];
        run(&p, &s);
        for (int i = 0; i < N; i++) {
            const double gradient = p.h[i] * ((double)s.w[i] - p.a[i]);
            gap += pow((double)s.lambda[i] - gradient, 2);
            multipliers += pow((double)s.lambda[i], 2);
            size += pow((double)s.w[i] - (double)s.theta[i], 2);
        }
        assert_true(multipliers > 0 && sqrt(gap / multipliers) < 0.2);
        assert_true(sqrt(size) < 0.05);
        better += loss(&p, s.theta) <= loss(&p, direct) + 1e-6;
        /* The optimum keeps the largest h a^2. */
        double worth[N];
        for (int i = 0; i < N; i++)
            optimum += worth[i] = 0.5 * p.h[i] * p.a[i] * p.a[i];
        keep_largest(worth, p.kept);
        for (int i = 0; i < N; i++)
            optimum -= worth[i];
        best += loss(&p, s.theta) < optimum * 1.02;
    }
    assert_true(better >= 90);
    assert_true(best >= 60);
}

static void rates_and_mu(void **unused)
{
    const sti_shrink_values values = {
        .steps = 5, .mu_factor = 2, .mu_cap = 0.3, .lr_end = 1e-4};
    const sti_lc_plan plan = sti_lc_plan_of(&values, 101, 0.1, 0.9);
    double reach = 0;
    (void)unused;
    assert_int_equal(plan.first, 101);
    assert_int_equal(plan.batches, 51);
    for (int i = 0; i < 51; i++)
        reach += 0.1 * pow(1e-3, i / 51.0) / 0.1;
    assert_true(fabs(plan.mu * reach - 0.1) < 1e-9);
    assert_true(fabs(sti_lc_rate(0.1, 1e-4, 17, 51) - 0.01) < 1e-12);
    assert_true(sti_lc_rate(0.1, 0, 17, 51) == 0.1);
    assert_true(sti_lc_mu(&plan, 1) == plan.mu);
    assert_true(sti_lc_mu(&plan, 2) == 2 * plan.mu);
    /* It grows until it is above the cap, and no further. */
    const double last = sti_lc_mu(&plan, 1000);
    assert_true(last > 0.3 && last <= 0.6);
    const sti_lc_place place = sti_lc_place_of(&plan, 101 + 51 + 3);
    assert_int_equal(place.step, 3);
    assert_int_equal(place.index, 3);
    assert_int_equal(place.count, 51);
}

/* The last steps train what is left, at one rate that falls over all of them. */
static void what_is_left_has_the_last_steps(void **unused)
{
    const sti_shrink_values values = {
        .steps = 9, .first = 10, .batches = 4, .mu = 1, .mu_cap = 1, .finish = 0.4};
    const sti_lc_plan plan = sti_lc_plan_of(&values, 101, 0.1, 0.9);
    (void)unused;
    assert_int_equal(plan.last, 5);
    assert_int_equal(sti_lc_batches(&plan), 10 + 7 * 4);
    for (int64_t b = 0; b < sti_lc_batches(&plan); b++) {
        const sti_lc_place place = sti_lc_place_of(&plan, b);
        const sti_lc_place fall = sti_lc_fall_of(&plan, b);
        const bool left = b >= 10 + 4 * 4;
        assert_true(sti_lc_finishes(&plan, place.step) == left);
        assert_int_equal(fall.step, place.step);
        assert_int_equal(fall.index, left ? b - 26 : place.index);
        assert_int_equal(fall.count, left ? 12 : place.count);
    }
    const sti_lc_plan whole = sti_lc_plan_of(
        &(sti_shrink_values){.steps = 9, .mu = 1, .mu_cap = 1}, 101, 0.1, 0.9);
    assert_false(sti_lc_finishes(&whole, 8));
}

/* Any number of threads gives the same bits. */
static void threads_change_nothing(void **unused)
{
    enum { MANY = 100000 };
    float *x = malloc(MANY * 4 * sizeof *x), *g[2];
    (void)unused;
    for (int i = 0; i < MANY * 4; i++)
        x[i] = (float)uniform(5, i) - 0.5f;
    for (int t = 0; t < 2; t++) {
        const sti_team team = {.threads = t ? 3 : 1};
        g[t] = malloc(MANY * sizeof **g);
        memcpy(g[t], x + 3 * MANY, MANY * sizeof **g);
        sti_lc_gradient(&team, MANY, 0.3, 4, x, x + MANY, x + 2 * MANY, g[t]);
        sti_lc_multipliers(&team, MANY, 0.7, x, x + MANY, g[t]);
        sti_lc_scale(&team, MANY, 1.01, g[t]);
    }
    assert_memory_equal(g[0], g[1], MANY * sizeof **g);
    free(g[0]);
    free(g[1]);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_the_scalar_programs),
        cmocka_unit_test(it_converges_and_beats_the_direct_one),
        cmocka_unit_test(rates_and_mu),
        cmocka_unit_test(what_is_left_has_the_last_steps),
        cmocka_unit_test(threads_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
