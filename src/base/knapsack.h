/* One choice for each of several layers under a common budget, by dynamic programming:
 * the multiple-choice knapsack.
 *
 * After L-GreCo (arXiv 2210.17357), which minimises size under a budget of error; the
 * same programme minimises error under a budget of size, and importance lost under one
 * of weights kept. Weights are rounded up to
 * parts of the budget, so the budget always holds; what the rounding costs is less than
 * one part a layer. */
#ifndef STI_BASE_KNAPSACK_H
#define STI_BASE_KNAPSACK_H

#include "stint/status.h"

enum { STI_KNAPSACK_PARTS = 10000 }; /* of the budget */

/* The choices with the least sum of value [layers, choices] whose weights [layers,
 * choices] sum to at most budget; the first one of equals. STINT_E_BUDGET: even the
 * lightest are too heavy. Weights are not negative. */
stint_status sti_knapsack_choose(int layers, int choices, const double *weight,
                                 const double *value, double budget, int *choice_out);

#endif
