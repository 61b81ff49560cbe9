/* Non-maximum suppression of boxes. */
#ifndef STI_OP_OP_SUPPRESS_H
#define STI_OP_OP_SUPPRESS_H

#include "kernel/boxes/suppress.h"
#include "op/op.h"

typedef struct sti_suppress_attr {
    int64_t most;
    float overlap, score;
    int32_t any_score, centre;
} sti_suppress_attr;

/* Boxes [n, count, 4] that are chosen by scores [n, classes, count], i32 [n classes
 * min(most, count), 3] as kernel/boxes/suppress.h has them: (image, class, box), rows
 * that are left are -1. most from 1. It has no gradient. */
stint_value sti_op_suppress_boxes(stint_graph *g, stint_value boxes, stint_value scores,
                                  const sti_suppress_attr *attr);

#endif
