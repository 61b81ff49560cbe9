/* A run of element-wise nodes as one node (pass/chain). */
#ifndef STI_OP_OP_CHAIN_H
#define STI_OP_OP_CHAIN_H

#include "kernel/elementwise/chain_loops.h"
#include "op/op.h"

/* Outputs 0 .. program.outputs - 1 are of this shape, and so, unread, are the others.
 * An input is of this shape or repeats as of broadcasting. */
typedef struct sti_chain_attr {
    stint_shape shape;
    sti_chain_program program;
} sti_chain_attr;

/* Neither gradients nor series: chains are made when those are. */
extern const sti_op sti_op_chain;

/* How an operand is read under the axes of `to`; false: in a way that a chain cannot,
 * such as an axis repeated between two others. */
bool sti_chain_fits(const stint_shape *from, const stint_shape *to,
                    sti_chain_input *input_out);

#endif
