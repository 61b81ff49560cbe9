#include "base/knapsack.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

enum { ROW = STI_KNAPSACK_PARTS + 1 };

/* Parts of the budget, rounded up; more than all of them: too heavy. */
static int parts_of(double weight, double budget)
{
    const double parts = budget > 0   ? ceil(weight / budget * STI_KNAPSACK_PARTS)
                         : weight > 0 ? ROW
                                      : 0;
    return parts < ROW ? (int)parts : ROW;
}

/* best[k]: least value of the layers so far with k parts or fewer. */
static void add_layer(int choices, const double *weight, const double *value,
                      double budget, const double *before, double *best, int8_t *pick)
{
    for (int k = 0; k < ROW; k++) {
        best[k] = INFINITY;
        pick[k] = -1;
    }
    for (int c = 0; c < choices; c++)
        for (int k = parts_of(weight[c], budget), from = 0; k < ROW; k++, from++)
            if (before[from] + value[c] < best[k]) {
                best[k] = before[from] + value[c];
                pick[k] = (int8_t)c;
            }
}

stint_status sti_knapsack_choose(int layers, int choices, const double *weight,
                                 const double *value, double budget, int *choice_out)
{
    stint_status st = STINT_OK;
    double *best = sti_alloc_array(2 * ROW, sizeof *best, "knapsack");
    int8_t *pick = sti_alloc_array((int64_t)layers * ROW, sizeof *pick, "knapsack");
    if (!best || !pick) {
        st = STINT_E_MEMORY;
        goto out;
    }
    for (int l = 0; l < layers; l++)
        add_layer(choices, weight + l * choices, value + l * choices, budget,
                  best + l % 2 * ROW, best + (l + 1) % 2 * ROW,
                  pick + (int64_t)l * ROW);
    int k = STI_KNAPSACK_PARTS;
    for (int l = layers - 1; l >= 0 && st == STINT_OK; l--) {
        const int c = pick[(int64_t)l * ROW + k];
        if (c < 0) {
            st = sti_fail(STINT_E_BUDGET,
                          "no choice for %d layers fits the budget of %g", layers,
                          budget);
            break;
        }
        choice_out[l] = c;
        k -= parts_of(weight[l * choices + c], budget);
    }
out:
    sti_free(best);
    sti_free(pick);
    return st;
}
