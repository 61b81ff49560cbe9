/* A graph once more, with the same handles: what is tried on the copy can be done to
 * the original afterwards. */
#include <string.h>

#include "base/fail.h"
#include "graph/graph_priv.h"

static void *copy_bytes(sti_arena *arena, const void *bytes, size_t size)
{
    void *copy = sti_arena_alloc(arena, size ? size : 1);
    if (copy && size)
        memcpy(copy, bytes, size);
    return copy;
}

/* Nodes of one layer stand together: the text of the last scope mostly serves again. */
static const char *copy_scope(stint_graph *to, const char *scope)
{
    const sti_node *last = to->node_count ? to->node[to->node_count - 1] : NULL;
    if (last && strcmp(last->scope, scope) == 0)
        return last->scope;
    return sti_arena_strdup(to->arena, scope);
}

static bool copy_node(stint_graph *to, const sti_node *from)
{
    size_t handles = (size_t)(from->n_in + from->n_out) * sizeof(stint_value);
    sti_node *node = copy_bytes(to->arena, from, sizeof *from);
    if (!node)
        return false;
    node->in = copy_bytes(to->arena, from->in, handles);
    node->attr = from->op->attr_bytes
                     ? copy_bytes(to->arena, from->attr, from->op->attr_bytes)
                     : NULL;
    node->scope = copy_scope(to, from->scope);
    if (!node->in || !node->scope || (from->op->attr_bytes && !node->attr))
        return false;
    node->out = node->in + from->n_in;
    to->node[to->node_count++] = node;
    return true;
}

/* Nodes have been copied. */
static bool copy_value(stint_graph *to, const sti_value_row *from)
{
    sti_value_row *row = copy_bytes(to->arena, from, sizeof *from);
    if (!row)
        return false;
    if (from->name)
        row->name = sti_arena_strdup(to->arena, from->name);
    if (from->producer)
        row->producer = sti_graph_node(to, from->producer->id);
    to->value[to->value_count++] = row;
    return !from->name || row->name;
}

static bool copy_rows(const stint_graph *from, stint_graph *to)
{
    to->node = sti_alloc_array(from->node_count, sizeof *to->node, "graph.nodes");
    to->value = sti_alloc_array(from->value_count, sizeof *to->value, "graph.values");
    to->output = sti_alloc_array(from->output_count, sizeof *to->output, "graph.out");
    if (!to->node || !to->value || !to->output)
        return false;
    to->node_capacity = from->node_count;
    to->value_capacity = from->value_count;
    to->output_capacity = from->output_count;
    for (int32_t n = 0; n < from->node_count; n++)
        if (!copy_node(to, from->node[n]))
            return false;
    for (int32_t v = 0; v < from->value_count; v++)
        if (!copy_value(to, from->value[v]))
            return false;
    for (int32_t i = 0; i < from->output_count; i++) {
        to->output[i] = from->output[i];
        to->output[i].name = sti_arena_strdup(to->arena, from->output[i].name);
        if (!to->output[i].name)
            return false;
        to->output_count++;
    }
    return true;
}

stint_status sti_graph_copy(const stint_graph *graph, stint_graph **copy_out)
{
    stint_graph *copy;
    stint_status status = sti_graph_status(graph);
    if (status == STINT_OK)
        status = stint_graph_create(graph->mode, &copy);
    if (status)
        return status;
    copy->inputs_kept = graph->inputs_kept;
    copy->update = graph->update;
    copy->keeps_constants = graph->keeps_constants;
    copy->look_ahead = graph->look_ahead;
    if (!copy_rows(graph, copy)) {
        stint_graph_destroy(copy);
        return STINT_E_MEMORY;
    }
    *copy_out = copy;
    return STINT_OK;
}
