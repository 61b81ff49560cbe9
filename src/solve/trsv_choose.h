/* The choice among strategies of one process, and the one that is asked for, made. */
#ifndef STI_SOLVE_TRSV_CHOOSE_H
#define STI_SOLVE_TRSV_CHOOSE_H

#include "solve/trsv_cost.h"

typedef struct sti_trsv_choice {
    sti_trsv *plan;
    const sti_trsv_costs *costs;
    double solves;
    double pass_s;            /* of the natural order */
    double level_s;           /* predicted, one thread */
    double best_s;            /* of one solve */
    int32_t *by_level;        /* [n] rows in the order of levels */
    sti_trsv_cutting serial;  /* the stretches that level_s is of */
    sti_trsv_cutting ordered; /* those that the plan's order has; period 0: others */
    void *trial;              /* [n] to try plans with; NULL: they are predicted */
} sti_trsv_choice;

/* Many solves are planned and memory is not short: what a model has wrong of a matrix
 * shows by doing two. A vector of zeros for that, or NULL. */
void *sti_trsv_trial_vector(const sti_trsv *plan, double solves);
/* Seconds of a solve, the least of a few; of one, if that is about what is expected. */
double sti_trsv_time(sti_trsv *plan, void *x, double expected_s);
double sti_trsv_time_natural(const sti_trsv *plan, void *x, double expected_s);

/* Fills plan->info.strategy, what the strategy wants, and best_s, as the description
 * asks; pass_s is there. Errors as sti_trsv_analyse. */
stint_status sti_trsv_choose(sti_trsv_choice *choice);
/* The level strategy in the place of another one, where by_level is there. */
stint_status sti_trsv_choose_level(sti_trsv_choice *choice);
/* Likewise the pool. */
stint_status sti_trsv_choose_pool(sti_trsv_choice *choice);
void sti_trsv_choice_fini(sti_trsv_choice *choice);

#endif
