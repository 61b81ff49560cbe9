/* What vtrace and gae share: sequences of `steps` steps side by side, one a column. */
#ifndef STI_OP_OP_RETURNS_H
#define STI_OP_OP_RETURNS_H

#include "op/op_priv.h"

/* Inputs first .. n_in - 2 are [steps, columns], the last, of values, [steps + 1,
 * columns]; both outputs are [steps, columns]. */
stint_status sti_op_returns_infer(const stint_graph *graph, const sti_node *node,
                                  int n_in, stint_shape *out);

#endif
