/* Shared by the files of the bfloat16 operators. */
#ifndef STI_OP_OP_BF16_PRIV_H
#define STI_OP_OP_BF16_PRIV_H

#include "op/op_bf16.h"
#include "op/op_priv.h"

/* bf16 of that rank (0: any), or STINT_E_INPUT. */
stint_status sti_op_check_bf16(const stint_graph *graph, const sti_node *node, int i,
                               int rank);

#endif
