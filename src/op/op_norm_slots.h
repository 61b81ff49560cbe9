/* Where the inputs and outputs of batch-norm and of its gradient stand. The names are
 * short: for .c files alone. */
#ifndef STI_OP_OP_NORM_SLOTS_H
#define STI_OP_OP_NORM_SLOTS_H

enum { X, SCALE, SHIFT, RESIDUAL, RUN_MEAN, RUN_VARIANCE }; /* inputs */
enum { Y, MEAN, INVERSE, UNBIASED, BITS };                  /* outputs */
enum {
    DY,
    GRAD_X,
    GRAD_SCALE,
    GRAD_MEAN,
    GRAD_INVERSE,
    GRAD_BITS
}; /* of the gradient, whose outputs are those for X to RESIDUAL */

#endif
