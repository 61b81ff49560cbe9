/* Weights of convolutions and dense layers pass through `quantise` before anything
 * reads them: what a network of integer weights computes, trainable. */
#include "pass/pass.h"
#include "stint/op.h"

/* The node reads the weight; everything else reads the node. */
static stint_status quantise_value(stint_graph *graph, stint_value weight, int bits)
{
    stint_value rounded = stint_quantise(graph, weight, bits);
    if (rounded < 0)
        return sti_graph_status(graph);
    sti_graph_replace(graph, weight, rounded);
    sti_graph_value(graph, rounded)->producer->in[0] = weight;
    return STINT_OK;
}

stint_status sti_pass_quantise(stint_graph *graph, sti_role role, int bits)
{
    const int32_t values = sti_graph_value_count(graph);
    stint_status status = STINT_OK;
    if (bits == 0)
        return STINT_OK;
    for (stint_value v = 0; v < values && status == STINT_OK; v++) {
        const sti_value_row *row = sti_graph_value(graph, v);
        if (row->role == role && sti_graph_is_weight(row))
            status = quantise_value(graph, v, bits);
    }
    return status == STINT_OK ? sti_graph_sort(graph) : status;
}
