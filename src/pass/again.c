/* Cheap results made again. Of the result of a cheap element-wise operator (GELU) and
 * its operand, which its gradient reads, the backward half would keep both; it keeps
 * the operand, and one pass over it gives the result a second time, to the same bits.
 */
#include "pass/pass_priv.h"

static bool read_backward(const stint_graph *graph, stint_value value)
{
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; i < node->n_in && node->backward; i++)
            if (node->in[i] == value)
                return true;
    }
    return false;
}

stint_status sti_pass_again(stint_graph *graph, sti_pass_note *note)
{
    const int32_t values = sti_graph_value_count(graph);
    uint8_t *form = sti_alloc((size_t)values, "pass.again");
    if (!form)
        return STINT_E_MEMORY;
    int made = 0;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        if (!(node->op->flags & STI_OP_CHEAP) || node->backward ||
            !read_backward(graph, node->in[0]) || !read_backward(graph, node->out[0]))
            continue;
        form[node->out[0]] = STI_FORM_RECOMPUTE;
        made++;
    }
    stint_status status =
        made > 0 ? sti_pass_recompute(graph, form, values, NULL) : STINT_OK;
    sti_pass_note_set(note, "%d results made again in the backward half", made);
    sti_free(form);
    return status;
}
