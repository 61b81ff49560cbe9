/* When results are final. */
#include "plan/plan.h"

/* The last node that writes or reads the bytes of an output: views, results laid over
 * others, whoever goes on with it. */
static int32_t last_touch(const sti_plan *plan, stint_value value)
{
    const stint_graph *graph = plan->graph;
    const stint_value root = plan->allocation[value].root;
    for (int32_t n = sti_graph_node_count(graph) - 1; n >= 0; n--) {
        const sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i] >= 0 && plan->allocation[node->in[i]].root == root)
                return n;
        for (int32_t i = 0; i < node->n_out; i++)
            if (plan->allocation[node->out[i]].root == root)
                return n;
    }
    return -1;
}

/* The result with the largest offset below `below`, or -1. */
static int32_t result_before(const sti_plan *plan, size_t below)
{
    int32_t best = -1;
    size_t at = 0;
    for (int32_t i = 0; i < sti_graph_output_count(plan->graph); i++) {
        const sti_output *output = &sti_graph_outputs(plan->graph)[i];
        const sti_allocation *allocation = &plan->allocation[output->value];
        if (allocation->region == STI_REGION_RESULT && allocation->offset < below &&
            (best < 0 || allocation->offset >= at)) {
            best = output->value;
            at = allocation->offset;
        }
    }
    return best;
}

int sti_plan_final_points(const sti_plan *plan, sti_final_point *points_out)
{
    size_t below = plan->region_bytes[STI_REGION_RESULT];
    int32_t last = -1;
    int count = 0;
    for (stint_value v; (v = result_before(plan, below)) >= 0;) {
        const int32_t node = last_touch(plan, v);
        below = plan->allocation[v].offset;
        if (count > 0 && node <= last)
            count--; /* it was final before those behind it */
        last = node > last ? node : last;
        points_out[count++] = (sti_final_point){.node = last, .from = below};
    }
    return count;
}
