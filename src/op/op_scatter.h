/* Rows written to places by index. */
#ifndef STI_OP_OP_SCATTER_H
#define STI_OP_OP_SCATTER_H

#include "kernel/embedding/scatter.h"
#include "op/op.h"

/* x [rows, inner] with updates [count, inner] at index [count] i32, see
 * kernel/embedding/scatter.h. Of SET x may be i32, of the others it is f32. SET and ADD
 * have gradients: of what is written over none flows back, where SET writes a place
 * twice each of the two gets it all, and that of an index beyond the rows is NaN, as
 * stint_take's. */
stint_value sti_op_scatter_rows(stint_graph *g, stint_value x, stint_value index,
                                stint_value updates, sti_scatter_kind kind);

#endif
