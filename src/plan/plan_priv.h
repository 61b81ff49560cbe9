/* Inside the plan room. */
#ifndef STI_PLAN_PRIV_H
#define STI_PLAN_PRIV_H

#include "plan/budget.h"
#include "plan/plan.h"

#define STI_PLAN_ALIGN 64

/* Fill allocation[].root, first, last, region (leaves, results, arena or none) and
 * bytes. */
stint_status sti_plan_lifetimes(sti_plan *plan);

/* update_nodes.c: the nodes that the graph's update rule asks for, in a plan's own copy
 * of it; its gradients no longer leave it. */
stint_status sti_plan_update_nodes(stint_graph *own);

/* A plan without addresses: lifetimes, live_bytes and peak_node only, for comparing
 * many graphs. */
stint_status sti_plan_measure(const stint_graph *graph, int threads,
                              sti_plan **plan_out);

/* Is this value made of bytes of its own in that region? */
bool sti_plan_is_root(const sti_plan *plan, stint_value value, sti_region region);

/* What a root in the arena is, for listings. */
typedef enum sti_share {
    STI_SHARE_INPUT,
    STI_SHARE_SAVED, /* from the forward half to the backward half */
    STI_SHARE_TRANSIENT
} sti_share;
sti_share sti_plan_share(const sti_plan *plan, stint_value root);

/* A node's part of sti_budget_seconds. */
double sti_budget_node_seconds(const stint_graph *graph, const sti_node *node);

/* The node of a value made by the forward half that a form can be given, or NULL. */
const sti_node *sti_budget_maker(const stint_graph *graph, stint_value value);

/* blocks [values]: those that can be packed, of the sizes expected of them; by_value
 * [values] (or NULL): what is known of them. STINT_E_MEMORY. */
stint_status sti_budget_list(const stint_graph *graph, sti_pack_candidate *by_value,
                             sti_pack_choice *blocks);

/* Blocks whose capacity is known, in place of what is expected of them. */
stint_status sti_budget_use_sizes(sti_budget *b, const sti_pack_choice *sizes,
                                  int count);

/* Scratch bytes of a node, rounded up. */
size_t sti_plan_scratch_bytes(const sti_plan *plan, const sti_node *node);

#endif
