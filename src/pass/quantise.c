/* Weights of convolutions and dense layers, not tables of embeddings or classes, pass
 * through `quantise` before anything reads them: what a network of integer weights
 * computes, trainable. */
#include <string.h>

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

/* A table that tokens are looked up in, or that is a classifier's over them: a row of
 * it is a token, so that its columns are no channels. */
static bool is_table(const stint_graph *graph, stint_value weight)
{
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i] == weight &&
                (strcmp(node->op->name, "linear_cross_entropy") == 0 ||
                 strcmp(node->op->name, "linear_distillation") == 0))
                return true;
    }
    return false;
}

stint_status sti_pass_quantise(stint_graph *graph, sti_role role, int bits)
{
    const int32_t values = sti_graph_value_count(graph);
    stint_status status = STINT_OK;
    if (bits == 0)
        return STINT_OK;
    for (stint_value v = 0; v < values && status == STINT_OK; v++) {
        const sti_value_row *row = sti_graph_value(graph, v);
        if (row->role == role && sti_graph_is_weight(row) && !is_table(graph, v))
            status = quantise_value(graph, v, bits);
    }
    return status == STINT_OK ? sti_graph_sort(graph) : status;
}
