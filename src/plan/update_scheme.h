/* Which layers a fine-tuning trains: a depth, and a share of each weight above it, so
 * that the sum of gains is largest within a memory and a time.
 *
 * After "On-device training under 256KB memory" (arXiv 2206.15472): the biases of the
 * last k layers are trained, and of some of these layers a share of the weight. For
 * each k that is a multiple-choice knapsack, and since the layers of k are those of k -
 * 1 and one more, one dynamic programme answers for all of them. */
#ifndef STI_PLAN_UPDATE_SCHEME_H
#define STI_PLAN_UPDATE_SCHEME_H

#include "stint/status.h"

enum { STI_SCHEME_PARTS = 256 }; /* of either budget, which costs are rounded up to */

/* What something adds to a step. */
typedef struct sti_scheme_cost {
    double gain, bytes, flop;
} sti_scheme_cost;

typedef struct sti_scheme_problem {
    int layers, shares;
    /* [layers, shares]: weights, the last layer of the network first; share 0 is none
     * and costs nothing. */
    const sti_scheme_cost *weight;
    /* [layers + 1]: all else of a step whose last k layers are trained. */
    const sti_scheme_cost *depth;
    double bytes, flop; /* budgets, at least 0; infinite: none */
} sti_scheme_problem;

/* The best depth and, into share_out [layers], a share of each layer, 0 below the
 * depth; of equals the least depth. *gain_out: their sum. STINT_E_BUDGET: not even
 * depth 0 fits. Takes (layers + 8) 257^2 bytes at most. */
stint_status sti_scheme_solve(const sti_scheme_problem *problem, int *depth_out,
                              int *share_out, double *gain_out);

#endif
