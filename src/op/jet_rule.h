/* Truncated Taylor series of a graph's values in its points (kernel/jet/jet.h): what an
 * operator's `jet` rule gets and gives.
 *
 * A value [n, ...] that depends on the points becomes one value [rows, n, ...] with the
 * leading coefficients of its series; the others are zero. A value that does not
 * depend on them stays as it is. */
#ifndef STI_OP_JET_RULE_H
#define STI_OP_JET_RULE_H

#include "graph/graph.h"
#include "kernel/jet/jet.h"

/* The operators that series are made of. */
typedef struct sti_jet_ops {
    const sti_op *unary, *mul, *sum, *bias;
} sti_jet_ops;
extern const sti_jet_ops sti_jet_series; /* op_jet.c */

typedef struct sti_jet_space {
    int variables, order; /* order: also STI_JET_LAPLACIAN */
    const sti_jet_ops *ops;
} sti_jet_space;

typedef struct sti_jet {
    stint_value value;
    int rows; /* 0: does not depend on the points */
} sti_jet;

typedef struct sti_jet_rule {
    sti_jet_space space;
    const sti_jet *in; /* [n_in] of the node; of STI_NO_INPUT value -1 */
    sti_jet *out;      /* of output 0, to be filled */
} sti_jet_rule;

/* Rows of a value that is a series, the length of its first axis; 0: it is left out.
 * And the value with them. */
int sti_jet_rows_of(stint_graph *g, stint_value value);
sti_jet sti_jet_of(stint_graph *g, stint_value value);

/* Appends f(factor (x + bias)); bias STI_NO_INPUT or a value [last axis of x]. */
sti_jet sti_jet_add_unary(stint_graph *g, const sti_jet_space *space, sti_jet_kind kind,
                          float factor, sti_jet x, stint_value bias);
sti_jet sti_jet_add_mul(stint_graph *g, const sti_jet_space *space, sti_jet a,
                        sti_jet b);
/* a + sign b, of one shape but for the rows. */
sti_jet sti_jet_add_sum(stint_graph *g, const sti_jet_space *space, sti_jet a,
                        sti_jet b, float sign);
/* x with zeros below, so that it has so many rows. */
sti_jet sti_jet_pad(stint_graph *g, const sti_jet_space *space, sti_jet x, int rows);
sti_jet sti_jet_add_bias(stint_graph *g, const sti_jet_space *space, sti_jet x,
                         stint_value bias);

/* The rule of an operator with one input that is linear and works element by element:
 * the same node over all rows. */
stint_status sti_jet_rule_linear(stint_graph *g, const sti_node *node,
                                 const sti_jet_rule *rule);
/* The rule of a function of one number. */
#define STI_JET_RULE(name, kind)                                                    \
    static stint_status jet_##name(stint_graph *g, const sti_node *node,            \
                                   const sti_jet_rule *rule)                        \
    {                                                                               \
        (void)node;                                                                 \
        *rule->out =                                                                \
            sti_jet_add_unary(g, &rule->space, kind, 1, rule->in[0], STI_NO_INPUT); \
        return sti_graph_status(g);                                                 \
    }

/* Attributes of jet_unary, for the pass that folds what stands before it. */
typedef struct sti_jet_unary_attr {
    int32_t variables, order, kind, has_bias;
    float factor;
} sti_jet_unary_attr;
/* Attributes of the others. */
typedef struct sti_jet_attr {
    int32_t variables, order;
    float sign;   /* of the second operand of a sum */
    int32_t rows; /* of a sum, and of a product's gradient */
} sti_jet_attr;
extern const sti_op sti_op_jet_unary, sti_op_jet_mul, sti_op_jet_mul_grad,
    sti_op_jet_sum, sti_op_jet_bias;

#endif
