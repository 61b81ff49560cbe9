/* Searches on curves whose answer is known. */
#include "base/search.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "stint/status.h"

/* A falling curve: 0.95 less a slope that begins at `knee`. */
typedef struct curve {
    double knee, slope, noise;
    double cheapest; /* argument of least cost */
    uint64_t seed;
    int looks;
    double at[64];
} curve;

static double truth(const curve *c, double s)
{
    const double over = s > c->knee ? s - c->knee : 0;
    return 0.95 - 0.02 * s - c->slope * over;
}

/* A cost that does not fall with the argument: least at `cheapest`, with a step where
 * another way of computing takes over. */
static double cost_at(const curve *c, double s)
{
    return 5 + 8 * (s - c->cheapest) * (s - c->cheapest) + (s < 0.33 ? 1.5 : 0);
}

static double normal(uint64_t seed, uint64_t i)
{
    uint32_t word[4];
    double sum = 0;
    for (uint64_t k = 0; k < 3; k++) {
        sti_random4(seed, STI_STREAM_TEST, i, k, word);
        for (int w = 0; w < 4; w++)
            sum += (double)sti_uniform(word[w]);
    }
    return sum - 6;
}

static stint_status look(void *user, double at, int repeat, sti_search_look *seen)
{
    curve *c = user;
    (void)repeat;
    seen->value = truth(c, at) + c->noise * normal(c->seed, (uint64_t)c->looks);
    seen->deviation = c->noise;
    seen->cost = cost_at(c, at);
    c->at[c->looks++] = at;
    return STINT_OK;
}

static double answer(const curve *c, double limit)
{
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) {
        const double middle = 0.5 * (low + high);
        if (truth(c, middle) >= limit)
            low = middle;
        else
            high = middle;
    }
    return low;
}

typedef stint_status way(const sti_search_desc *desc, sti_search_fn *fn, void *user,
                         sti_search_result *result);

static void search_noisy_curves(way *search)
{
    int near = 0, nearer = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        curve c = {.knee = 0.3 + 0.6 * (double)seed / 100,
                   .slope = 1 + (double)(seed % 5),
                   .noise = 0.002,
                   .seed = seed};
        const sti_search_desc desc = {
            .low = 0, .high = 1, .limit = 0.92, .width = 0.008, .samples = 10};
        sti_search_result r;
        assert_int_equal(search(&desc, look, &c, &r), STINT_OK);
        assert_true(r.samples <= 10 && r.samples == c.looks);
        const double off = fabs(r.at - answer(&c, 0.92));
        near += off <= 0.02;
        nearer += off <= 0.01;
    }
    print_message("%d within 0.01, %d within 0.02\n", nearer, near);
    assert_true(nearer >= 95);
    assert_true(near >= 97);
}

static void noisy_curves_by_halving(void **state)
{
    (void)state;
    search_noisy_curves(sti_search_bisect);
}

static void noisy_curves_by_a_process(void **state)
{
    (void)state;
    search_noisy_curves(sti_search_bayes);
}

/* The same looks at another limit would be a grid. */
static void a_shifted_curve_is_looked_at_elsewhere(void **state)
{
    const sti_search_desc desc = {
        .low = 0, .high = 1, .limit = 0.92, .width = 0.01, .samples = 10};
    curve a = {.knee = 0.4, .slope = 3}, b = {.knee = 0.7, .slope = 3};
    sti_search_result r;
    int same = 0;
    (void)state;
    sti_search_bisect(&desc, look, &a, &r);
    assert_true(fabs(r.at - answer(&a, 0.92)) <= 0.01);
    assert_true(r.low <= answer(&a, 0.92) && r.high >= answer(&a, 0.92));
    sti_search_bisect(&desc, look, &b, &r);
    assert_true(fabs(r.at - answer(&b, 0.92)) <= 0.01);
    for (int i = 0; i < a.looks && i < b.looks; i++)
        same += a.at[i] == b.at[i];
    assert_true(same <= 2);
}

static void limits_that_all_or_none_keep(void **state)
{
    sti_search_desc desc = {
        .low = 0, .high = 0.999, .limit = 0, .width = 0.01, .samples = 10};
    curve c = {.knee = 0.5, .slope = 1};
    sti_search_result r;
    (void)state;
    sti_search_bisect(&desc, look, &c, &r);
    assert_true(r.found && r.at > 0.98);
    desc.limit = 2;
    c.looks = 0;
    sti_search_bisect(&desc, look, &c, &r);
    assert_false(r.found);
    assert_true(r.high < 0.02);
    desc.limit = 0.92;
    c.looks = 0;
    sti_search_grid(&desc, look, &c, &r);
    assert_int_equal(r.samples, 10);
    assert_true(r.found && r.at <= answer(&c, 0.92));
}

/* With costs the search ends at the cheapest argument that keeps the limit, wherever
 * that lies; by the crossing alone it would end at the largest. */
static void the_cheapest_that_keeps_the_limit(void **state)
{
    int near = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        curve c = {.knee = 0.5 + 0.4 * (double)seed / 100,
                   .slope = 2,
                   .noise = 0.002,
                   .cheapest = 0.35 + 0.6 * (double)(seed * 37 % 100) / 100,
                   .seed = seed};
        const sti_search_desc desc = {.low = 0,
                                      .high = 1,
                                      .limit = 0.92,
                                      .width = 0.008,
                                      .samples = 10,
                                      .costs = true};
        sti_search_result r;
        double least = INFINITY;
        assert_int_equal(sti_search_bayes(&desc, look, &c, &r), STINT_OK);
        assert_true(r.samples <= 10 && r.found);
        for (int i = 0; i <= 1000; i++)
            if (truth(&c, i * 1e-3) >= 0.92 && cost_at(&c, i * 1e-3) < least)
                least = cost_at(&c, i * 1e-3);
        near += cost_at(&c, r.at) <= 1.02 * least;
    }
    print_message("%d of 100 within 2 %% of the least cost\n", near);
    assert_true(near >= 95);
}

static stint_status no_number(void *user, double at, int repeat, sti_search_look *seen)
{
    (void)user, (void)at, (void)repeat;
    seen->value = (double)NAN;
    return STINT_OK;
}

static stint_status no_cost(void *user, double at, int repeat, sti_search_look *seen)
{
    (void)user, (void)at, (void)repeat;
    seen->cost = (double)NAN;
    return STINT_OK;
}

static void a_cost_that_is_no_number_is_refused(void **state)
{
    const sti_search_desc desc = {
        .low = 0, .high = 1, .limit = 0, .width = 0.01, .samples = 10, .costs = true};
    sti_search_result r;
    (void)state;
    assert_int_equal(sti_search_bayes(&desc, no_cost, NULL, &r), STINT_E_FAILED);
    assert_non_null(strstr(stint_last_error(), "objective at 0.5"));
    assert_int_equal(sti_search_bisect(&desc, no_cost, NULL, &r), STINT_E_FAILED);
    assert_int_equal(r.samples, 1);
}

static stint_status stopped(void *user, double at, int repeat, sti_search_look *seen)
{
    (void)user, (void)at, (void)repeat, (void)seen;
    return STINT_E_INTERRUPTED;
}

static void failures_are_handed_on(void **state)
{
    const sti_search_desc desc = {
        .low = 0, .high = 1, .limit = 0, .width = 0.01, .samples = 10};
    sti_search_result r;
    (void)state;
    assert_int_equal(sti_search_bisect(&desc, no_number, NULL, &r), STINT_E_FAILED);
    assert_non_null(strstr(stint_last_error(), "0.5"));
    assert_int_equal(sti_search_bisect(&desc, stopped, NULL, &r), STINT_E_INTERRUPTED);
    assert_int_equal(sti_search_bayes(&desc, no_number, NULL, &r), STINT_E_FAILED);
    assert_int_equal(sti_search_bayes(&desc, stopped, NULL, &r), STINT_E_INTERRUPTED);
    assert_int_equal(sti_search_grid(&desc, stopped, NULL, &r), STINT_E_INTERRUPTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noisy_curves_by_halving),
        cmocka_unit_test(noisy_curves_by_a_process),
        cmocka_unit_test(a_shifted_curve_is_looked_at_elsewhere),
        cmocka_unit_test(limits_that_all_or_none_keep),
        cmocka_unit_test(the_cheapest_that_keeps_the_limit),
        cmocka_unit_test(a_cost_that_is_no_number_is_refused),
        cmocka_unit_test(failures_are_handed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
