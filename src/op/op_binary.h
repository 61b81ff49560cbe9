/* What functions of two numbers share: the shape by broadcasting, and the run. */
#ifndef STI_OP_OP_BINARY_H
#define STI_OP_OP_BINARY_H

#include "kernel/elementwise/elementwise.h"
#include "op/op_priv.h"

/* Axes are aligned at the last; 1 repeats. STINT_E_INPUT: the shapes do not go
 * together.
 */
stint_status sti_op_infer_binary(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out);
void sti_op_run_binary(const sti_call *call, sti_binary kind);

#endif
