/* Whether two plans keep the same (sti_graph_keep_constants), so that one block serves
 * both: networks of one model for several batches do, but where a shape decides that
 * more images are not worth it. */
#include <string.h>

#include "op/op.h"
#include "plan/plan.h"

/* The operand of both: a leaf of that name, or what was kept at that place. */
static bool reads_alike(const sti_plan *a, stint_value u, const sti_plan *b,
                        stint_value v)
{
    if (u < 0 || v < 0)
        return u == v;
    const sti_value_row *x = sti_graph_value(a->graph, u);
    const sti_value_row *y = sti_graph_value(b->graph, v);
    if (x->role != y->role || !sti_shape_equal(&x->shape, &y->shape))
        return false;
    if (x->role == STI_ROLE_NODE)
        return a->allocation[u].offset == b->allocation[v].offset;
    return x->role == STI_ROLE_CONSTANT ? x->data == y->data
                                        : strcmp(x->name, y->name) == 0;
}

/* (What is kept of a convolution's weights does not depend on the number of images.) */
static bool does_alike(const sti_node *a, const sti_node *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out)
        return false;
    if (a->op == &sti_op_conv2d_keep) {
        sti_conv_kept_attr x = *(const sti_conv_kept_attr *)a->attr;
        x.n = ((const sti_conv_kept_attr *)b->attr)->n;
        return memcmp(&x, b->attr, sizeof x) == 0;
    }
    return a->op->attr_bytes == 0 || memcmp(a->attr, b->attr, a->op->attr_bytes) == 0;
}

bool sti_plan_keeps_alike(const sti_plan *a, const sti_plan *b)
{
    if (a->once_nodes != b->once_nodes ||
        a->region_bytes[STI_REGION_KEPT] != b->region_bytes[STI_REGION_KEPT])
        return false;
    for (int32_t n = 0; n < a->once_nodes; n++) {
        const sti_node *x = sti_graph_node(a->graph, n),
                       *y = sti_graph_node(b->graph, n);
        if (!does_alike(x, y))
            return false;
        for (int32_t i = 0; i < x->n_in; i++)
            if (!reads_alike(a, x->in[i], b, y->in[i]))
                return false;
        for (int32_t i = 0; i < x->n_out; i++)
            if (a->allocation[x->out[i]].offset != b->allocation[y->out[i]].offset ||
                a->allocation[x->out[i]].bytes != b->allocation[y->out[i]].bytes)
                return false;
    }
    return true;
}
