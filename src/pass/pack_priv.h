/* For pack.c and pack_candidates.c: a graph whose saved activations are to be packed,
 * and what is known of them. */
#ifndef STI_PASS_PACK_PRIV_H
#define STI_PASS_PACK_PRIV_H

#include "pass/pass_priv.h"

typedef enum reader_kind {
    READER_OTHER,
    READER_WEIGHT, /* makes a weight gradient of it */
    READER_NORM    /* batch_norm_grad, as x */
} reader_kind;

/* What is known of each content (sti_pass_contents). */
typedef struct usage {
    int32_t last_forward, first_backward; /* nodes that read it, -1: none */
    int32_t weight, norm, other;          /* backward reads of each kind */
    const sti_node *norm_grad;
    bool leaves;   /* is a result of the graph */
    bool reshaped; /* read backward under another shape */
} usage;

typedef struct packer {
    stint_graph *graph;
    int32_t nodes, values; /* before anything was appended */
    stint_value *content;  /* [values] */
    usage *use;            /* [values], of contents */
    int32_t *key;          /* [capacity]: where a node belongs; appended ones too */
    int32_t key_capacity;
    stint_value bounds;
} packer;

static inline const sti_value_row *row_of(const packer *p, stint_value value)
{
    return sti_graph_value(p->graph, value);
}

/* The content of a value that was there before the pass; of others the value itself. */
static inline stint_value content_of(const packer *p, stint_value value)
{
    return value >= 0 && value < p->values ? p->content[value] : value;
}

const sti_output *sti_pack_gradient_of(const packer *p, stint_value value);
/* How a node of the backward half uses its input k. */
reader_kind sti_pack_kind_of(const packer *p, const sti_node *node, int32_t k);
bool sti_pack_only_weights(const packer *p, stint_value value);
/* The batch-norm whose gradient this node is, when x is its input. */
const sti_node *sti_pack_norm_of(const packer *p, const sti_node *grad);
bool sti_pack_is_norm_input(const packer *p, stint_value value);
bool sti_pack_has_residual(const sti_node *norm);
/* The ReLU's result that the block of a batch-norm's input can stand for, or -1. */
stint_value sti_pack_also_of(const packer *p, const sti_node *norm);
/* The sum that it can be made with. */
stint_value sti_pack_sum_of(const packer *p, const sti_node *norm);
/* Sign bits that are there anyway: of the ReLU in the node that made the value. */
stint_value sti_pack_bits_of(const packer *p, stint_value value);
stint_status sti_packer_init(packer *p);
void sti_packer_fini(packer *p);

#endif
