/* One choice for each of several layers under a common budget, by dynamic programming.
 *
 * After L-GreCo (arXiv 2210.17357), which minimises size under a budget of error; the
 * same programme minimises error under a budget of size. Weights are rounded up to
 * parts of the budget, so the budget always holds; what the rounding costs is less than
 * one part a layer. */
#ifndef STI_NET_BITS_CHOICE_H
#define STI_NET_BITS_CHOICE_H

#include "stint/status.h"

enum { STI_BITS_PARTS = 10000 }; /* of the budget */

/* The choices with the least sum of value [layers, choices] whose weights [layers,
 * choices] sum to at most budget; the first one of equals. STINT_E_BUDGET: even the
 * lightest are too heavy. Weights are not negative. */
stint_status sti_bits_choose(int layers, int choices, const double *weight,
                             const double *value, double budget, int *choice_out);

#endif
