#include "op/op_returns.h"

stint_status sti_op_returns_infer(const stint_graph *graph, const sti_node *node,
                                  int n_in, stint_shape *out)
{
    stint_status st = sti_op_check_count(node, n_in);
    for (int i = 0; i < n_in && st == STINT_OK; i++)
        st = sti_op_check_f32(graph, node, i);
    if (st != STINT_OK)
        return st;
    const stint_shape *first = sti_op_in_shape(graph, node, 0);
    if (first->rank != 2)
        return sti_fail(STINT_E_INPUT, "%s: input 0 is %s, wanted [steps, sequences]",
                        node->op->name, sti_shape_text(first));
    const stint_shape values = STINT_SHAPE(first->dim[0] + 1, first->dim[1]);
    for (int i = 0; i < n_in && st == STINT_OK; i++)
        st = sti_op_check_shape(graph, node, i, i < n_in - 1 ? first : &values);
    out[0] = out[1] = *first;
    return st;
}
