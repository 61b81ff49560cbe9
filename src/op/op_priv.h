/* What the operator families share: declarations of every row, small helpers for shape
 * rules, gradient rules and kernel calls. */
#ifndef STI_OP_OP_PRIV_H
#define STI_OP_OP_PRIV_H

#include "base/fail.h"
#include "op/op.h"

#define STI_OP(name) extern const sti_op sti_op_##name;
#include "op/op_list.h"
#undef STI_OP

/* Shape of input i of the node. STI_NO_INPUT must have been excluded. */
const stint_shape *sti_op_in_shape(const stint_graph *graph, const sti_node *node,
                                   int i);
const stint_shape *sti_op_out_shape(const stint_graph *graph, const sti_node *node,
                                    int i);
static inline bool sti_op_has_in(const sti_node *node, int i)
{
    return i < node->n_in && node->in[i] >= 0;
}

/* Number of elements of input or output i. */
int64_t sti_op_in_count(const sti_call *call, int i);
int64_t sti_op_out_count(const sti_call *call, int i);

/* STINT_E_INPUT "op: input i is ..., wanted ..." unless as said. */
stint_status sti_op_check_count(const sti_node *node, int n_in);
stint_status sti_op_check_f32(const stint_graph *graph, const sti_node *node, int i);
/* Elements of 4 bytes, f32 or i32. */
stint_status sti_op_check_words(const stint_graph *graph, const sti_node *node, int i);
/* f32 and exactly of this shape. */
stint_status sti_op_check_shape(const stint_graph *graph, const sti_node *node, int i,
                                const stint_shape *want);

/* Logits [n, classes] f32 at input i, with at least one class. */
stint_status sti_op_check_logits(const stint_graph *graph, const sti_node *node, int i);
/* Labels [n] i32 at input i, of the n rows of input 0. */
stint_status sti_op_check_labels(const stint_graph *graph, const sti_node *node, int i);

/* Packed bits of a tensor: U8 [ceil(count / 8)]. */
stint_shape sti_op_bits_shape(const stint_shape *of);

/* Does this node make a tensor of this value alone? */
bool sti_op_is_fill(const sti_node *node, float value);

/* Append a node with 1, 2 or 3 inputs. */
stint_value sti_op_add1(stint_graph *g, const sti_op *op, const void *attr,
                        stint_value a);
stint_value sti_op_add2(stint_graph *g, const sti_op *op, const void *attr,
                        stint_value a, stint_value b);

/* A gradient that was made with the loss, times the loss's own: itself where the loss
 * counts once, which is what that of a training run does. */
stint_value sti_op_times(stint_graph *g, stint_value dy, stint_value gradient);
/* The gradient of stint_logit_pairing by x. */
stint_value sti_op_pairing_slope(stint_graph *g, stint_value x, stint_value reference,
                                 stint_value labels, const stint_pairing_desc *desc);
/* The gradient by input 0 of the node that made y, by its rule, where dy is y's. */
stint_value sti_op_slope(stint_graph *g, stint_value y, stint_value dy);
/* Sum x down to `shape` (the inverse of broadcasting);
 * x itself if it has that shape. */
stint_value sti_op_reduce_to(stint_graph *g, stint_value x, const stint_shape *shape);

/* One f32 input, output of its shape. */
stint_status sti_op_infer_same(const stint_graph *graph, const sti_node *node,
                               stint_shape *out);

/* Strides in elements with which `from` is read under the axes of `to`: 0 where it is
 * repeated. */
void sti_op_broadcast_strides(const stint_shape *from, const stint_shape *to,
                              int64_t *stride);
/* Strides in elements of a dense tensor, last axis 1. */
void sti_op_row_strides(const stint_shape *shape, int64_t *stride);

/* Cost rules: every input read once, every output written once, and so many flop an
 * element of output 0; none at all; no flop. */
sti_cost sti_op_cost_bytes(const stint_graph *graph, const sti_node *node,
                           double flop_per_output);
sti_cost sti_op_cost_none(const stint_graph *graph, const sti_node *node);
sti_cost sti_op_cost_move(const stint_graph *graph, const sti_node *node);

/* Scratch rule: a float for each row of input 0, for losses that sum what rows have. */
size_t sti_op_scratch_rows(const stint_graph *graph, const sti_node *node, int threads);

#endif
