/* What the reductions over axes share: sum and mean (op_reduce.c), maximum (op_max.c).
 */
#ifndef STI_OP_OP_REDUCE_PRIV_H
#define STI_OP_OP_REDUCE_PRIV_H

#include "kernel/reduce/reduce.h"
#include "op/op_priv.h"

typedef struct sti_reduce_attr {
    uint32_t axes; /* bit i: axis i */
    int32_t keep;  /* reduced axes stay, with length 1 */
} sti_reduce_attr;

/* The rules of a row, all alike but for the gradient. */
stint_status sti_op_reduce_infer(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out);
sti_cost sti_op_reduce_cost(const stint_graph *graph, const sti_node *node);
size_t sti_op_reduce_scratch(const stint_graph *graph, const sti_node *node,
                             int threads);
void sti_op_reduce_run(const sti_call *call, sti_reduce kind);
void sti_op_reduce_print(const sti_node *node, sti_text *out);

/* v has the result's shape; give it the input's shape with reduced axes as 1. */
stint_value sti_op_reduce_keep(stint_graph *g, const sti_node *node, stint_value v);

#endif
