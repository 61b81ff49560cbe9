/* What matrix products of float32 and of bfloat16 share (op_matmul.c). */
#ifndef STI_OP_OP_MATMUL_PRIV_H
#define STI_OP_OP_MATMUL_PRIV_H

#include "op/op_priv.h"

/* Sizes of one product of inputs 0 and 1, and how many there are. */
typedef struct sti_product {
    int64_t count, m, n, k;
} sti_product;
sti_product sti_op_product(const stint_graph *graph, const sti_node *node,
                           const sti_matmul_attr *attr);

/* out: y of that type and its sign bits. Types of the operands have been checked.
 * STINT_E_INPUT: lengths do not go together. */
stint_status sti_op_product_out(const stint_graph *graph, const sti_node *node,
                                const sti_matmul_attr *attr, stint_dtype type,
                                stint_shape *out);

#endif
