/* Results laid over operands.
 *
 * An element-wise operator may write over an operand that nobody reads afterwards: same
 * bytes, made by a node (never a param, state or input), no result of the graph, and
 * read by this node only once. A value that the backward half still reads has a later
 * reader and is therefore left alone. */
#include "pass/pass_priv.h"

typedef struct overlay {
    const stint_graph *graph;
    stint_value *content; /* [values], see sti_pass_contents */
    int32_t *last;        /* [values]: last node reading that content */
} overlay;

static void find_last_readers(overlay *o)
{
    for (int32_t n = 0; n < sti_graph_node_count(o->graph); n++) {
        const sti_node *node = sti_graph_node(o->graph, n);
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i] >= 0)
                o->last[o->content[node->in[i]]] = n;
    }
    for (int32_t i = 0; i < sti_graph_output_count(o->graph); i++)
        o->last[o->content[sti_graph_outputs(o->graph)[i].value]] = INT32_MAX;
}

static bool can_overlay(const overlay *o, const sti_node *node, int k)
{
    stint_value in = node->in[k];
    if (in < 0)
        return false;
    stint_value content = o->content[in];
    if (sti_graph_value(o->graph, content)->role != STI_ROLE_NODE ||
        o->last[content] != node->id)
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        if (i != k && node->in[i] >= 0 && o->content[node->in[i]] == content)
            return false;
    return stint_shape_bytes(&sti_graph_value(o->graph, in)->shape) ==
           stint_shape_bytes(&sti_graph_value(o->graph, node->out[0])->shape);
}

stint_status sti_pass_inplace(stint_graph *graph, sti_pass_note *note)
{
    int32_t values = sti_graph_value_count(graph), laid = 0;
    overlay o = {.graph = graph};
    stint_status status = STINT_E_MEMORY;

    o.content = sti_alloc_array(values, sizeof *o.content, "pass.inplace");
    o.last = sti_alloc_array(values, sizeof *o.last, "pass.inplace");
    if (!o.content || !o.last)
        goto done;
    sti_pass_clear_inplace(graph);
    sti_pass_contents(graph, o.content);
    find_last_readers(&o);
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        sti_node *node = sti_graph_node(graph, n);
        if ((node->op->flags & STI_OP_INPLACE_0) && node->n_in > 0 &&
            can_overlay(&o, node, 0))
            node->inplace = 0;
        else if ((node->op->flags & STI_OP_INPLACE_1) && node->n_in > 1 &&
                 can_overlay(&o, node, 1))
            node->inplace = 1;
        laid += node->inplace >= 0;
    }
    sti_pass_note_set(note, "%d results laid over operands", (int)laid);
    status = STINT_OK;
done:
    sti_free(o.content);
    sti_free(o.last);
    return status;
}
