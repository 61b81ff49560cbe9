/* Marks the convolutions that minimal filtering takes, before they are differentiated.
 * By shape alone, as it is part of the numerics; a recipe may ask for direct sums. */
#include "op/op.h"
#include "pass/pass_priv.h"

stint_status sti_pass_winograd(stint_graph *graph, sti_pass_note *note)
{
    int convolutions = 0, marked = 0;
    stint_status status = STINT_OK;
    for (int32_t n = 0; n < sti_graph_node_count(graph) && status == STINT_OK; n++) {
        sti_node *node = sti_graph_node(graph, n);
        if (node->id < 0 || node->op != &sti_op_conv2d)
            continue;
        convolutions++;
        if (!sti_op_conv2d_fits_winograd(graph, node))
            continue;
        sti_conv2d_attr attr = *(const sti_conv2d_attr *)node->attr;
        attr.winograd = 1;
        marked++;
        status = sti_graph_set_attr(graph, node, &attr);
    }
    sti_pass_note_set(note, "%d of %d convolutions by minimal filtering", marked,
                      convolutions);
    return status;
}
