/* What convolutions of float32 and of bfloat16 share (op_conv2d.c). */
#ifndef STI_OP_OP_CONV_PRIV_H
#define STI_OP_OP_CONV_PRIV_H

#include "kernel/conv/conv.h"
#include "op/op_priv.h"

/* Input i is f32 of rank 4, or STINT_E_INPUT with the layout that was wanted. */
stint_status sti_op_conv_check_f32(const stint_graph *graph, const sti_node *node,
                                   int i, const char *layout);

/* The shape y of x convolved with w, in f32; STINT_E_INPUT if they do not go together.
 */
stint_status sti_op_conv_out(const sti_node *node, const stint_shape *x,
                             const stint_shape *w, int64_t stride, int64_t pad,
                             int64_t groups, stint_shape *y);
/* Check for a gradient that x convolved with w gives the lengths of dy. */
stint_status sti_op_conv_check_dy(const sti_node *node, const stint_shape *x,
                                  const stint_shape *w, const stint_shape *dy);

/* The shape of a forward node (x, w -> y); and of a gradient: of x (dy, w -> dx) or of
 * the weights (x, dy -> dw). Not filled in: winograd. */
sti_conv_shape sti_op_conv_shape(const stint_graph *graph, const sti_node *node);
sti_conv_shape sti_op_conv_grad_shape(const stint_graph *graph, const sti_node *node,
                                      bool of_x);

/* Minimal filtering has 16 products where there are 36; its transforms do not count. */
sti_cost sti_op_conv_cost(const stint_graph *graph, const sti_node *node,
                          const sti_conv_shape *shape);

sti_epilogue sti_op_conv_epilogue(const sti_call *call);

/* Floats that such a convolution keeps of its weights; 0: nothing. Its shape. */
int64_t sti_op_conv_kept_floats(const sti_conv_kept_attr *attr);
sti_conv_shape sti_op_conv_kept_shape(const sti_conv_kept_attr *attr);
/* The attributes of a convolution of that shape without bias and ReLU. */
sti_conv_kept_attr sti_op_conv_kept_attr(const sti_conv_shape *s, bool winograd,
                                         bool data);

#endif
