/* Frozen weights held in a byte an element (kernel/gemm/byte_matrix.h): a dense layer
 * widens one while its panels are packed, a convolution just before it reads it. A
 * table of tokens, which is looked up, too, stays float32, and so do depthwise
 * convolutions, which have few weights. */
#include "base/fail.h"
#include "op/op.h"
#include "pass/pass.h"

/* What reads such a weight in the place of a node, which has the same attributes; NULL:
 * nothing does. */
static const sti_op *reader_of_bytes(const sti_node *node, int32_t operand)
{
    const sti_matmul_attr *attr = node->attr;
    if (operand != 1)
        return NULL;
    if (node->op == &sti_op_conv2d)
        return &sti_op_conv2d_bytes;
    return node->op == &sti_op_matmul && !attr->trans_a && !attr->trans_b
               ? &sti_op_matmul_bytes
               : NULL;
}

/* Is it read, and by nodes that can read bytes alone? */
static bool can_be_bytes(const stint_graph *g, stint_value weight)
{
    int reads = 0;
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        for (int32_t i = 0; i < node->n_in; i++) {
            if (node->in[i] != weight)
                continue;
            if (!reader_of_bytes(node, i))
                return false;
            reads++;
        }
    }
    return reads > 0;
}

static void hold(stint_graph *g, stint_value weight)
{
    sti_graph_hold_in_bytes(g, weight);
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        sti_node *node = sti_graph_node(g, n);
        if (node->n_in > 1 && node->in[1] == weight)
            node->op = reader_of_bytes(node, 1);
    }
}

static bool takes(const sti_train_set *set, const sti_value_row *row)
{
    const int rank = row->shape.rank;
    sti_train_share share;
    return row->role == STI_ROLE_PARAM && !row->adapter && sti_graph_is_weight(row) &&
           (rank == 2 || (rank == 4 && row->shape.dim[2] > 1)) &&
           !set->trains(set->user, row, &share);
}

stint_status sti_pass_bytes(stint_graph *graph, const sti_train_set *set)
{
    int frozen = 0, held = 0;
    for (stint_value v = 0; v < sti_graph_value_count(graph); v++) {
        if (!takes(set, sti_graph_value(graph, v)))
            continue;
        frozen++;
        if (!can_be_bytes(graph, v))
            continue;
        hold(graph, v);
        held++;
    }
    if (held > 0 || frozen == 0)
        return STINT_OK;
    return sti_fail(STINT_E_UNSUPPORTED,
                    "update.frozen: int8 is for weights of dense layers and "
                    "convolutions, and what is frozen here is read otherwise; use f32");
}
