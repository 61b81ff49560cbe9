/* A plan: every byte of one run has its place before anything runs. */
#include <string.h>

#include "base/fail.h"
#include "pass/pass.h"
#include "plan/plan_priv.h"

static stint_status check_kernels(const stint_graph *graph)
{
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        if (!(node->op->flags & STI_OP_VIEW) && !node->op->run[STI_CPU])
            return sti_fail(STINT_E_UNSUPPORTED, "%s%s%s has no kernel on the CPU",
                            node->op->name, *node->scope ? " in " : "", node->scope);
    }
    return STINT_OK;
}

/* Give `root` the next bytes of its region. */
static stint_status append(sti_plan *plan, stint_value root)
{
    sti_allocation *allocation = &plan->allocation[root];
    size_t *total = &plan->region_bytes[allocation->region];
    allocation->offset = *total;
    if (!sti_add_bytes(*total, allocation->bytes, total))
        return sti_fail(STINT_E_INPUT, "plan: %s: more bytes than can be addressed",
                        stint_value_name(plan->graph, root));
    return STINT_OK;
}

static stint_status place_leaves(sti_plan *plan)
{
    stint_status status = STINT_OK;
    for (int32_t v = 0; v < sti_graph_value_count(plan->graph) && !status; v++) {
        sti_role role = sti_graph_value(plan->graph, v)->role;
        if (role != STI_ROLE_NODE && role != STI_ROLE_INPUT &&
            role != STI_ROLE_CONSTANT)
            status = append(plan, v);
    }
    return status;
}

/* Results with gradients last, because sums over ranks begin at the end with what is
 * final: the backward pass makes gradients from the last to the first, but until it has
 * been at a normalisation it reads the statistics that are also a part of its state. */
static stint_status place_results(sti_plan *plan)
{
    static const sti_output_kind kinds[] = {STI_OUTPUT_STATE, STI_OUTPUT_METRIC,
                                            STI_OUTPUT_GRADIENT, STI_OUTPUT_FETCH};
    stint_status status = STINT_OK;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int32_t i = 0; i < sti_graph_output_count(plan->graph) && !status; i++) {
            const sti_output *output = &sti_graph_outputs(plan->graph)[i];
            if (output->kind == kinds[k])
                status = append(plan, plan->allocation[output->value].root);
        }
    return status;
}

/* Intervals of the arena: one a root, then one a node with scratch. */
static int64_t make_intervals(const sti_plan *plan, sti_interval *intervals)
{
    int64_t count = 0;
    for (int32_t v = 0; v < sti_graph_value_count(plan->graph); v++)
        if (sti_plan_is_root(plan, v, STI_REGION_ARENA))
            intervals[count++] = (sti_interval){.first = plan->allocation[v].first,
                                                .last = plan->allocation[v].last,
                                                .bytes = plan->allocation[v].bytes};
    for (int32_t n = 0; n < sti_graph_node_count(plan->graph); n++) {
        size_t bytes = sti_plan_scratch_bytes(plan, sti_graph_node(plan->graph, n));
        if (bytes)
            intervals[count++] = (sti_interval){.first = n, .last = n, .bytes = bytes};
    }
    return count;
}

/* Hand the offsets back, in the order in which make_intervals made the intervals. */
static void take_offsets(sti_plan *plan, const sti_interval *intervals)
{
    int64_t at = 0;
    for (int32_t v = 0; v < sti_graph_value_count(plan->graph); v++)
        if (sti_plan_is_root(plan, v, STI_REGION_ARENA))
            plan->allocation[v].offset = intervals[at++].offset;
    for (int32_t n = 0; n < sti_graph_node_count(plan->graph); n++)
        if (sti_plan_scratch_bytes(plan, sti_graph_node(plan->graph, n)))
            plan->scratch_offset[n] = intervals[at++].offset;
}

static stint_status place_arena(sti_plan *plan)
{
    const int64_t most =
        (int64_t)sti_graph_value_count(plan->graph) + sti_graph_node_count(plan->graph);
    sti_interval *intervals = sti_alloc_array(most, sizeof *intervals, "plan.arena");
    if (!intervals)
        return STINT_E_MEMORY;
    int64_t count = make_intervals(plan, intervals);
    stint_status status =
        count
            ? sti_plan_offsets(intervals, count, &plan->region_bytes[STI_REGION_ARENA])
            : STINT_OK;
    if (status == STINT_OK)
        take_offsets(plan, intervals);
    sti_free(intervals);
    return status;
}

/* What is made once: values that a run reads stay, others are there for those alone. */
static stint_status place_kept(sti_plan *plan)
{
    const int32_t values = sti_graph_value_count(plan->graph);
    int64_t count = 0;
    sti_interval *intervals;
    if (plan->once_nodes == 0)
        return STINT_OK;
    if (!(intervals = sti_alloc_array(values, sizeof *intervals, "plan.kept")))
        return STINT_E_MEMORY;
    for (int32_t v = 0; v < values; v++) {
        const sti_allocation *a = &plan->allocation[v];
        if (sti_plan_is_root(plan, v, STI_REGION_KEPT))
            intervals[count++] =
                (sti_interval){.first = a->first,
                               .last = a->last < plan->once_nodes ? a->last : INT32_MAX,
                               .bytes = a->bytes};
    }
    const stint_status st =
        count == 0
            ? STINT_OK
            : sti_plan_offsets(intervals, count, &plan->region_bytes[STI_REGION_KEPT]);
    for (int32_t v = 0, at = 0; v < values && st == STINT_OK; v++)
        if (sti_plan_is_root(plan, v, STI_REGION_KEPT))
            plan->allocation[v].offset = intervals[at++].offset;
    sti_free(intervals);
    return st;
}

/* Views and in-place results get their root's offset. */
static void spread_offsets(sti_plan *plan)
{
    for (int32_t v = 0; v < sti_graph_value_count(plan->graph); v++)
        plan->allocation[v].offset = plan->allocation[plan->allocation[v].root].offset;
}

static void count_live(sti_plan *plan)
{
    int32_t nodes = sti_graph_node_count(plan->graph);
    for (int32_t v = 0; v < sti_graph_value_count(plan->graph); v++) {
        const sti_allocation *allocation = &plan->allocation[v];
        if (!sti_plan_is_root(plan, v, STI_REGION_ARENA))
            continue;
        for (int32_t n = allocation->first < 0 ? 0 : allocation->first;
             n <= allocation->last; n++)
            plan->live_bytes[n] += allocation->bytes;
    }
    for (int32_t n = 0; n < nodes; n++) {
        plan->live_bytes[n] +=
            sti_plan_scratch_bytes(plan, sti_graph_node(plan->graph, n));
        if (plan->live_bytes[n] > plan->live_bytes[plan->peak_node])
            plan->peak_node = n;
    }
}

static void split_peak(sti_plan *plan)
{
    int32_t peak = plan->peak_node;
    size_t *part[] = {&plan->input_bytes, &plan->saved_bytes, &plan->transient_bytes};

    if (sti_graph_node_count(plan->graph) == 0)
        return;
    for (int32_t v = 0; v < sti_graph_value_count(plan->graph); v++) {
        const sti_allocation *allocation = &plan->allocation[v];
        if (sti_plan_is_root(plan, v, STI_REGION_ARENA) && allocation->first <= peak &&
            allocation->last >= peak)
            *part[sti_plan_share(plan, v)] += allocation->bytes;
    }
    plan->scratch_bytes =
        sti_plan_scratch_bytes(plan, sti_graph_node(plan->graph, peak));
}

static int32_t count_once(const stint_graph *graph)
{
    int32_t count = 0;
    while (count < sti_graph_node_count(graph) && sti_graph_node(graph, count)->once)
        count++;
    return count;
}

/* A plan with lifetimes and live bytes, and no addresses yet. */
stint_status sti_plan_measure(const stint_graph *graph, int threads,
                              sti_plan **plan_out)
{
    int32_t nodes = sti_graph_node_count(graph);
    sti_plan *plan = sti_alloc(sizeof *plan, "plan");
    if (!plan)
        return STINT_E_MEMORY;
    plan->graph = graph;
    plan->threads = threads < 1 ? 1 : threads;
    plan->once_nodes = count_once(graph);
    plan->allocation =
        sti_alloc_array(sti_graph_value_count(graph), sizeof *plan->allocation, "plan");
    plan->scratch_offset = sti_alloc_array(nodes, sizeof(size_t), "plan");
    plan->live_bytes = sti_alloc_array(nodes, sizeof(size_t), "plan");
    stint_status status = plan->allocation && plan->scratch_offset && plan->live_bytes
                              ? sti_plan_lifetimes(plan)
                              : STINT_E_MEMORY;
    if (status) {
        sti_plan_destroy(plan);
        return status;
    }
    count_live(plan);
    *plan_out = plan;
    return STINT_OK;
}

/* The plan's copy of a graph that asks for nodes of its own; NULL: it does not. */
static stint_status own_graph(const stint_graph *graph, stint_graph **own)
{
    const bool keeps = sti_graph_keeps_constants(graph);
    const bool updates = sti_graph_update_rule(graph) != NULL;
    sti_pass_note note;
    if (!keeps && !updates)
        return STINT_OK;
    stint_status st = sti_graph_copy(graph, own);
    if (st == STINT_OK && keeps) {
        st = sti_pass_once(*own, &note);
        sti_log(STINT_LOG_DEBUG, "once: %s", note.text);
    }
    return st == STINT_OK && updates ? sti_plan_update_nodes(*own) : st;
}

stint_status sti_plan_create(const stint_graph *graph, int threads, sti_plan **plan_out)
{
    sti_plan *plan;
    stint_graph *own = NULL;
    stint_status status = check_kernels(graph);

    if (status == STINT_OK)
        status = own_graph(graph, &own);
    if (status || (status = sti_plan_measure(own ? own : graph, threads, &plan))) {
        stint_graph_destroy(own);
        return status;
    }
    plan->own = own;
    if ((status = place_leaves(plan)) || (status = place_results(plan)) ||
        (status = place_kept(plan)) || (status = place_arena(plan))) {
        sti_plan_destroy(plan);
        return status;
    }
    spread_offsets(plan);
    split_peak(plan);
    *plan_out = plan;
    return STINT_OK;
}

void sti_plan_destroy(sti_plan *plan)
{
    if (!plan)
        return;
    sti_free(plan->allocation);
    sti_free(plan->scratch_offset);
    sti_free(plan->live_bytes);
    stint_graph_destroy(plan->own);
    sti_free(plan);
}
