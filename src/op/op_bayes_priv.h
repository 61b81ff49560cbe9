/* What the operators of op_bayes.h share. */
#ifndef STI_OP_OP_BAYES_PRIV_H
#define STI_OP_OP_BAYES_PRIV_H

#include "op/op_bayes.h"
#include "op/op_priv.h"

/* Whose numbers a call draws, and the prior of its node. */
sti_normal_key sti_op_noise_key(const sti_call *call);
sti_prior sti_op_noise_prior(const sti_node *node);
/* Inputs 0 and 1 are f32 of one shape, and there are so many. */
stint_status sti_op_check_pair(const stint_graph *graph, const sti_node *node,
                               int n_in);
/* The gradients by mu and rho, where dw or dkl may be -1, and w, in primitive
 * operators. */
void sti_op_noise_expand(stint_graph *g, const sti_noise_attr *attr, stint_value mu,
                         stint_value rho, stint_value eps, stint_value dw,
                         stint_value dkl, stint_value out[3]);
/* A spread whose softplus is itself and that is a power of two: weights of mean 0 drawn
 * with it are eps times it, exactly. */
#define STI_NOISE_SPREAD 32.0f
/* The numbers eps themselves. */
stint_value sti_op_noise_numbers(stint_graph *g, const sti_noise_attr *attr,
                                 const stint_shape *shape);
void sti_op_print_noise(const sti_node *node, sti_text *out);

#endif
