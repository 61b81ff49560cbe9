/* What base/search.h and base/gaussian_process.h come to, as JSON for
 * bench/shrink_search.py: posteriors of random points, to be held against another
 * program's; searches on falling curves with noise, whose answers are known; cheapest
 * arguments beside a fine grid. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/gaussian_process.h"
#include "base/rng.h"
#include "base/search.h"

enum { CASES = 40, CURVES = 100, PLACES = 21 };

static double uniform(uint64_t seed, uint64_t a, uint64_t b)
{
    uint32_t word[4];
    sti_random4(seed, STI_STREAM_TEST, a, b, word);
    return (double)sti_uniform(word[0]);
}

/* Sums of twelve uniform numbers, of variance 1. */
static double normal(uint64_t seed, uint64_t i)
{
    double sum = -6;
    for (uint64_t k = 0; k < 12; k++)
        sum += uniform(seed, i, 100 + k);
    return sum;
}

/* ---- processes ---- */

static void print_list(const char *name, const double *x, int count, const char *end)
{
    printf("\"%s\": [", name);
    for (int i = 0; i < count; i++)
        printf("%s%.17g", i ? ", " : "", x[i]);
    printf("]%s", end);
}

static void print_case(uint64_t seed)
{
    static sti_gp gp;
    double at[PLACES], mean[PLACES], variance[PLACES];
    gp = (sti_gp){.length = 0.05 + 0.95 * uniform(seed, 0, 1),
                  .variance = 0.2 + 2 * uniform(seed, 0, 2),
                  .count = 1 + (int)(seed % 12)};
    for (int i = 0; i < gp.count; i++) {
        gp.x[i] = uniform(seed, 1 + (uint64_t)i, 3);
        gp.y[i] = uniform(seed, 1 + (uint64_t)i, 4) - 0.5;
        gp.noise[i] = 1e-5 + 1e-2 * uniform(seed, 1 + (uint64_t)i, 5);
    }
    if (sti_gp_fit(&gp) != STINT_OK)
        exit(1);
    for (int i = 0; i < PLACES; i++) {
        at[i] = (double)i / (PLACES - 1);
        sti_gp_at(&gp, at[i], &mean[i], &variance[i]);
    }
    printf("{\"length\": %.17g, \"variance\": %.17g, \"log_likelihood\": %.17g, ",
           gp.length, gp.variance, gp.log_likelihood);
    print_list("x", gp.x, gp.count, ", ");
    print_list("y", gp.y, gp.count, ", ");
    print_list("noise", gp.noise, gp.count, ", ");
    print_list("at", at, PLACES, ", ");
    print_list("mean", mean, PLACES, ", ");
    print_list("posterior", variance, PLACES, "}");
}

/* ---- searches ---- */

typedef struct curve {
    double knee, slope, noise, cheapest;
    uint64_t seed, looks;
} curve;

static double truth(const curve *c, double s)
{
    return 0.95 - 0.02 * s - c->slope * (s > c->knee ? s - c->knee : 0);
}

static double cost(const curve *c, double s)
{
    return 5 + 8 * (s - c->cheapest) * (s - c->cheapest) + (s < 0.33 ? 1.5 : 0);
}

static stint_status look(void *user, double at, int repeat, sti_search_look *seen)
{
    curve *c = user;
    (void)repeat;
    seen->value = truth(c, at) + c->noise * normal(c->seed, c->looks++);
    seen->deviation = c->noise;
    seen->cost = cost(c, at);
    return STINT_OK;
}

#define LIMIT 0.92

/* The largest argument that keeps the limit, and the least cost of those. */
static double crossing(const curve *c, double *least_cost)
{
    double at = 0;
    *least_cost = INFINITY;
    for (int i = 0; i <= 100000; i++) {
        const double s = i * 1e-5;
        if (truth(c, s) < LIMIT)
            continue;
        at = s;
        *least_cost = fmin(*least_cost, cost(c, s));
    }
    return at;
}

typedef stint_status search(const sti_search_desc *desc, sti_search_fn *fn, void *user,
                            sti_search_result *result);

static void print_searches(const char *name, search *way, double noise, bool costs)
{
    int near = 0, cheap = 0, most = 0;
    double sum = 0;
    for (uint64_t seed = 0; seed < CURVES; seed++) {
        curve c = {.knee = 0.3 + 0.6 * (double)seed / CURVES,
                   .slope = 1 + (double)(seed % 5),
                   .noise = noise,
                   .cheapest = 0.35 + 0.6 * (double)(seed * 37 % 100) / 100,
                   .seed = seed};
        const sti_search_desc desc = {
            .high = 1, .limit = LIMIT, .width = 0.008, .samples = 10, .costs = costs};
        sti_search_result r;
        double least;
        if (way(&desc, look, &c, &r) != STINT_OK)
            exit(1);
        near += fabs(r.at - crossing(&c, &least)) <= 0.01;
        cheap += r.found && cost(&c, r.at) <= 1.02 * least;
        most = r.samples > most ? r.samples : most;
        sum += r.samples;
    }
    printf("{\"search\": \"%s\", \"noise\": %g, \"costs\": %s, \"within_0.01\": %d, "
           "\"within_2_percent_of_least_cost\": %d, \"most_samples\": %d, "
           "\"mean_samples\": %.2f}",
           name, noise, costs ? "true" : "false", near, cheap, most, sum / CURVES);
}

int main(void)
{
    static const double noises[] = {0, 0.002, 0.005, 0.01};
    printf("{\"cases\": [");
    for (uint64_t i = 0; i < CASES; i++) {
        printf("%s", i ? ",\n" : "\n");
        print_case(i);
    }
    printf("],\n\"searches\": [\n");
    for (int i = 0; i < 4; i++) {
        print_searches("bisect", sti_search_bisect, noises[i], false);
        printf(",\n");
        print_searches("bayes", sti_search_bayes, noises[i], false);
        printf(",\n");
        print_searches("grid", sti_search_grid, noises[i], false);
        printf(",\n");
    }
    print_searches("bayes", sti_search_bayes, 0.002, true);
    printf("]}\n");
    return 0;
}
