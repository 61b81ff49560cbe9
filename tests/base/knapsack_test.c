/* The multiple-choice knapsack against brute force. */
#include "base/knapsack.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

enum { LAYERS = 6, WIDTHS = 7 };

static double best_value;

static void brute(int layers, const double *weight, const double *value, double budget,
                  int layer, double heavy, double sum)
{
    if (heavy > budget)
        return;
    if (layer == layers) {
        best_value = fmin(best_value, sum);
        return;
    }
    for (int c = 0; c < WIDTHS; c++)
        brute(layers, weight, value, budget, layer + 1,
              heavy + weight[layer * WIDTHS + c], sum + value[layer * WIDTHS + c]);
}

/* Weights that are whole parts of the budget: the exact optimum. Others: never over the
 * budget, and no worse than the optimum of a budget smaller by a part a layer. */
static void equals_brute_force(void **state)
{
    (void)state;
    for (uint64_t trial = 0; trial < 30; trial++) {
        double weight[LAYERS * WIDTHS], value[LAYERS * WIDTHS], sum = 0, heavy = 0;
        int choice[LAYERS];
        const int layers = 1 + (int)(trial % LAYERS);
        const bool whole = trial % 2 == 0;
        const double budget = whole ? STI_KNAPSACK_PARTS : 1234.5;
        for (int i = 0; i < layers * WIDTHS; i++) {
            uint32_t w[4];
            sti_random4(5, STI_STREAM_TEST, trial, (uint64_t)i, w);
            weight[i] =
                whole ? (double)sti_below(w[0], 5000) : (double)sti_uniform(w[0]) * 600;
            value[i] = (double)sti_uniform(w[1]);
        }
        for (int l = 0; l < layers; l++)
            weight[l * WIDTHS] = 1; /* something fits */
        assert_int_equal(
            sti_knapsack_choose(layers, WIDTHS, weight, value, budget, choice),
            STINT_OK);
        for (int l = 0; l < layers; l++) {
            sum += value[l * WIDTHS + choice[l]];
            heavy += weight[l * WIDTHS + choice[l]];
        }
        assert_true(heavy <= budget * (1 + 1e-12));
        best_value = INFINITY;
        brute(layers, weight, value,
              whole ? budget : budget * (1 - (double)layers / STI_KNAPSACK_PARTS), 0, 0,
              0);
        if (whole)
            assert_true(fabs(sum - best_value) < 1e-9);
        else
            assert_true(sum <= best_value + 1e-9);
    }
}

static void nothing_fits(void **state)
{
    (void)state;
    const double weight[] = {3, 4, 5, 6}, value[] = {1, 2, 3, 4};
    int choice[2];
    assert_int_equal(sti_knapsack_choose(2, 2, weight, value, 7.9, choice),
                     STINT_E_BUDGET);
    assert_int_equal(sti_knapsack_choose(2, 2, weight, value, 8.1, choice), STINT_OK);
    assert_true(choice[0] == 0 && choice[1] == 0);
    assert_int_equal(sti_knapsack_choose(2, 2, weight, value, 0, choice),
                     STINT_E_BUDGET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_brute_force),
        cmocka_unit_test(nothing_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
