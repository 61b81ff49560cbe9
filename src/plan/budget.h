/* Ways to run a graph in less memory, cheapest first.
 *
 * The budget solver looks for sets of rewrites (pass/recompute) that lower the peak of
 * a training graph for the least time, each judged by planning the rewritten graph. The
 * result is one sequence in which memory falls and time rises, made without looking at
 * any budget: who takes the first that fits gets less memory, never more, for a smaller
 * budget. Deterministic: a function of the graph and the number of threads. */
#ifndef STI_PLAN_BUDGET_H
#define STI_PLAN_BUDGET_H

#include "pass/pass.h"
#include "plan/plan.h"

typedef struct sti_budget_option {
    uint8_t *form;      /* [values of the graph]: sti_form */
    size_t arena_bytes; /* as planned for the threads asked for */
    double seconds;     /* expected of one run on one thread */
    int32_t made_again; /* nodes that run again */
} sti_budget_option;

typedef struct sti_budget {
    sti_budget_option *options; /* [count]; the first changes nothing */
    int32_t count, values;
} sti_budget;

/* graph: after the standard passes. STINT_E_MEMORY, or a failure of a pass. */
stint_status sti_budget_create(const stint_graph *graph, int threads,
                               sti_budget **budget_out);
void sti_budget_destroy(sti_budget *budget); /* NULL is fine */

/* Rewrite a graph (the one explored, or one of the same network with another number of
 * images: handles are the same) as `form` says; ready to be planned. */
stint_status sti_budget_apply(stint_graph *graph, const uint8_t *form);

/* saved_out [values]: 1 for what the forward half makes and the backward half reads
 * (itself, not a view of it). STINT_E_MEMORY. */
stint_status sti_budget_saved(const stint_graph *graph, uint8_t *saved_out);

/* Expected time of one run of the graph, on one thread, from the operators' own costs:
 * for comparing graphs of one network. */
double sti_budget_seconds(const stint_graph *graph);

#endif
