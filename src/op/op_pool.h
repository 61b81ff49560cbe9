/* What passes ask of pooling. */
#ifndef STI_OP_OP_POOL_H
#define STI_OP_OP_POOL_H

#include "op/op.h"

/* Is it max pooling of windows of 2 x 2 beside each other, without padding? */
bool sti_op_is_max_pool_by_two(const sti_node *node);
/* Window of a max_pool or avg_pool node: size, stride, padding. */
void sti_op_pool_window(const sti_node *node, int64_t window[3]);

#endif
