/* What batch normalisation of float32 and of bfloat16 activations share. */
#ifndef STI_OP_OP_NORM_PRIV_H
#define STI_OP_OP_NORM_PRIV_H

#include "op/op_norm_slots.h"
#include "op/op_priv.h"

/* x [rows, c]. */
static inline int64_t sti_norm_channels(const stint_shape *x)
{
    return x->dim[x->rank - 1];
}

static inline int64_t sti_norm_rows(const stint_shape *x)
{
    return stint_shape_count(x) / sti_norm_channels(x);
}

/* Input i is [..., channels] of type, or STINT_E_INPUT. */
stint_status sti_norm_check_x(const stint_graph *graph, const sti_node *node, int i,
                              stint_dtype type);

/* Shapes of forward and gradient whose activations have type. */
stint_status sti_norm_infer(const stint_graph *graph, const sti_node *node,
                            stint_dtype type, stint_shape *out);
stint_status sti_norm_infer_grad(const stint_graph *graph, const sti_node *node,
                                 stint_dtype type, stint_shape *out);

sti_cost sti_norm_cost(const stint_graph *graph, const sti_node *node);
sti_cost sti_norm_grad_cost(const stint_graph *graph, const sti_node *node);
void sti_norm_print(const sti_node *node, sti_text *out);

/* Statistics of a forward call: where they are written, and the mean that is used. */
typedef struct sti_norm_places {
    float *mean, *inverse;  /* outputs, or scratch where nobody reads them */
    const float *used_mean; /* running in evaluation */
} sti_norm_places;

/* Scratch holds kernel_bytes for the kernel, then mean and inverse. In evaluation the
 * running statistics stand in for the batch's, and the outputs repeat them. */
size_t sti_norm_forward_scratch(const stint_graph *graph, const sti_node *node,
                                size_t kernel_bytes);
sti_norm_places sti_norm_place(const sti_call *call, size_t kernel_bytes);

#endif
