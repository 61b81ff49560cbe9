/* Removes nodes that nothing leaving the graph depends on. */
#include "pass/pass_priv.h"

stint_status sti_pass_dead_code(stint_graph *graph, sti_pass_note *note)
{
    int32_t nodes = sti_graph_node_count(graph), removed = 0;
    uint8_t *live =
        sti_alloc_array(sti_graph_value_count(graph), sizeof *live, "pass.dead_code");
    if (!live)
        return STINT_E_MEMORY;
    for (int32_t i = 0; i < sti_graph_output_count(graph); i++)
        live[sti_graph_outputs(graph)[i].value] = 1;
    for (int32_t n = nodes - 1; n >= 0; n--) {
        sti_node *node = sti_graph_node(graph, n);
        uint8_t any = 0;
        for (int32_t i = 0; i < node->n_out; i++)
            any |= live[node->out[i]];
        if (!any) {
            sti_graph_kill(graph, node);
            removed++;
            continue;
        }
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i] >= 0)
                live[node->in[i]] = 1;
    }
    sti_free(live);
    sti_pass_note_set(note, "%d of %d nodes removed", (int)removed, (int)nodes);
    return sti_graph_sweep(graph);
}
