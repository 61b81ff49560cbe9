/* Values of the node that stint_linear_distillation appends, for those who log parts.
 */
#ifndef STI_OP_LINEAR_DISTILLATION_H
#define STI_OP_LINEAR_DISTILLATION_H

#include "op/op.h"

/* Outputs. A part is not weighed, and is 0 where its factor is; the two gradients are
 * those of this very loss. */
enum {
    STI_DISTILLATION_LOSS,
    STI_DISTILLATION_HARD,
    STI_DISTILLATION_PAIRING,
    STI_DISTILLATION_SOFT,
    STI_DISTILLATION_DX,
    STI_DISTILLATION_DTABLE,
    STI_DISTILLATION_OUTPUTS
};

#endif
