#include "train/plan_picture.h"

#include <stdio.h>

#include "base/text.h"

/* All lanes' arenas, and what the process takes beside them. */
static size_t beside_arenas(const sti_plan *plan, int lanes, size_t peak_bytes)
{
    const size_t arenas = plan->region_bytes[STI_REGION_ARENA] * (size_t)lanes;
    return peak_bytes > arenas ? peak_bytes - arenas : 0;
}

static void fill_timeline(const sti_plan *plan, int lanes, stint_plan_result *out)
{
    const int slices = (int)(sizeof out->timeline_bytes / sizeof *out->timeline_bytes);
    const int32_t nodes = sti_graph_node_count(plan->graph);
    const size_t base = beside_arenas(plan, lanes, out->peak_bytes);
    out->timeline_count = nodes < slices ? nodes : slices;
    for (int32_t n = 0; n < nodes; n++) {
        size_t *slice = &out->timeline_bytes[(int64_t)n * out->timeline_count / nodes];
        const size_t bytes = base + (size_t)lanes * plan->live_bytes[n];
        if (bytes > *slice)
            *slice = bytes;
    }
}

/* The bytes of this operand's root, if it is in the arena and not seen among the first
 * `count`. */
static size_t fresh_bytes(const sti_plan *plan, const stint_value *seen, int32_t count,
                          stint_value value)
{
    const sti_allocation *allocation = value >= 0 ? &plan->allocation[value] : NULL;
    if (!allocation || allocation->region != STI_REGION_ARENA)
        return 0;
    for (int32_t i = 0; i < count; i++)
        if (seen[i] >= 0 && plan->allocation[seen[i]].root == allocation->root)
            return 0;
    return plan->allocation[allocation->root].bytes;
}

/* The operator at which a step is highest. Handles of inputs and outputs lie in a row
 * (sti_graph_add). */
static void describe_peak(const sti_plan *plan, int lanes, stint_plan_result *out)
{
    const sti_node *node = sti_graph_node(plan->graph, plan->peak_node);
    if (!node)
        return;
    snprintf(out->peak_at, sizeof out->peak_at, "%s%s%s%s", node->op->name,
             node->backward ? " (backward)" : "", *node->scope ? " in " : "",
             node->scope);
    out->peak_at_bytes = plan->scratch_bytes;
    for (int32_t i = 0; i < node->n_in + node->n_out; i++)
        out->peak_at_bytes += fresh_bytes(plan, node->in, i, node->in[i]);
    out->peak_at_bytes *= (size_t)lanes;
}

void sti_plan_describe_step(const sti_network *train, int lanes,
                            stint_plan_result *result)
{
    fill_timeline(train->plan, lanes, result);
    describe_peak(train->plan, lanes, result);
}

stint_status sti_plan_draw(const sti_network *train, int lanes,
                           stint_plan_result *result)
{
    sti_text text = {0};
    const size_t extra = beside_arenas(train->plan, lanes, result->peak_bytes);
    const stint_status st =
        sti_plan_timeline_svg(train->plan, lanes, extra, result->budget_bytes, &text);
    if (st == STINT_OK)
        result->svg = text.data; /* NUL-terminated, from sti_alloc */
    else
        sti_text_fini(&text);
    return st;
}
