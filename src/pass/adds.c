/* Results of runs that are added up. The runs of a shard leave their sum in one block:
 * each adds to what is there, and no second block is needed to add from. */
#include "op/op_bayes.h"
#include "pass/pass_priv.h"

static stint_value append_add_up(stint_graph *graph, stint_value value)
{
    const sti_node *producer = sti_graph_value(graph, value)->producer;
    sti_graph_set_backward(graph, producer);
    const stint_value sum = sti_graph_add(graph, &sti_op_add_up, NULL, 1, &value);
    sti_graph_set_backward(graph, NULL);
    if (sum >= 0 && producer)
        sti_graph_node(graph, sti_graph_node_count(graph) - 1)->backward =
            producer->backward;
    return sum;
}

static bool adds(const stint_graph *graph, stint_value value)
{
    const sti_node *producer = sti_graph_value(graph, value)->producer;
    return producer && (producer->op->flags & STI_OP_ADDS);
}

stint_status sti_pass_adds(stint_graph *graph, sti_pass_note *note)
{
    const int32_t count = sti_graph_output_count(graph);
    int32_t made = 0;
    for (int32_t i = 0; i < count; i++) {
        const sti_output output = sti_graph_outputs(graph)[i];
        if (output.kind == STI_OUTPUT_FETCH || adds(graph, output.value))
            continue;
        const stint_value sum = append_add_up(graph, output.value);
        if (sum < 0)
            return sti_graph_status(graph);
        sti_graph_outputs(graph)[i].value = sum;
        made++;
    }
    sti_pass_note_set(note, "%d results added up", (int)made);
    return STINT_OK;
}
