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
    bool lossy;         /* packs something */
    size_t arena_bytes; /* as planned for the threads asked for */
    double seconds;     /* expected of one run on one thread */
    int32_t made_again; /* nodes that run again */
} sti_budget_option;

typedef struct sti_budget {
    sti_budget_option *options; /* [count]; the first changes nothing */
    int32_t count, values;
    sti_pack_choice *blocks; /* [values]: by value, capacity 0: cannot be packed */
} sti_budget;

typedef struct sti_budget_desc {
    const stint_graph *graph; /* after the standard passes; borrowed */
    int threads;              /* of the team that will run it */
    bool lossy;               /* tensors may be packed */
    /* Blocks whose capacity is known better than by expectation (0: not to be packed).
     */
    const sti_pack_choice *sizes;
    int size_count;
} sti_budget_desc;

/* STINT_E_MEMORY, or a failure of a pass. */
stint_status sti_budget_create(const sti_budget_desc *desc, sti_budget **budget_out);
void sti_budget_destroy(sti_budget *budget); /* NULL is fine */

/* The packs that a form asks for; choices_out has room for `values`. The capacity is
 * what the budget reckoned with. */
void sti_budget_choices(const sti_budget *budget, const uint8_t *form,
                        sti_pack_choice *choices_out, int *count_out);

/* Fill blocks (for the caller to free) and values of a budget without options, for
 * sti_budget_choices on a graph that was not explored; sizes as in the desc.
 * STINT_E_MEMORY. */
stint_status sti_budget_blocks(const stint_graph *graph, const sti_pack_choice *sizes,
                               int size_count, sti_budget *budget);

/* Bytes of values and scratch at the height of a run by one thread of the graph
 * rewritten as `form` [values] says, in blocks of the budget's sizes. STINT_E_MEMORY,
 * or a failure of a pass. */
stint_status sti_budget_height(const stint_graph *graph, const sti_budget *budget,
                               const uint8_t *form, size_t *bytes_out);

/* form_out [values of the graph]: whatever is saved and can be packed is, in blocks of
 * the budget's sizes (sti_budget_blocks), but for what takes less time to make again
 * from the graph's leaves than to pack and unpack, which is dropped, and sums that are
 * made with a block that is there anyway, where that does not raise the height of a
 * run. The same for any number of threads. STINT_E_MEMORY, or a failure of a pass. */
stint_status sti_budget_pack_all(const stint_graph *graph, const sti_budget *budget,
                                 uint8_t *form_out);

/* Drop and make again what `form` [values] says in a graph in which the packs are
 * already (sti_pass_pack and the standard passes, if there are any): the one explored,
 * or one of the same network with another number of images, which has the same handles.
 * Then it is ready to be planned. */
stint_status sti_budget_apply(stint_graph *graph, const uint8_t *form, int32_t values);

/* saved_out [values]: 1 for what the forward half makes and the backward half reads
 * (itself, not a view of it). STINT_E_MEMORY. */
stint_status sti_budget_saved(const stint_graph *graph, uint8_t *saved_out);

/* Expected time of one run of the graph, on one thread, from the operators' own costs:
 * for comparing graphs of one network. */
double sti_budget_seconds(const stint_graph *graph);

#endif
