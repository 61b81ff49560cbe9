/* Rewriting a graph: replace, kill, sweep, sort. */
#include <string.h>

#include "base/fail.h"
#include "graph/graph_priv.h"
#include "kernel/gemm/byte_matrix.h"

void sti_graph_replace(stint_graph *graph, stint_value from, stint_value to)
{
    for (int32_t n = 0; n < graph->node_count; n++) {
        sti_node *node = graph->node[n];
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i] == from)
                node->in[i] = to;
    }
    for (int32_t i = 0; i < graph->output_count; i++)
        if (graph->output[i].value == from)
            graph->output[i].value = to;
}

void sti_graph_kill(stint_graph *graph, sti_node *node)
{
    (void)graph;
    node->id = STI_NODE_DEAD;
}

static void renumber(stint_graph *graph)
{
    for (int32_t i = 0; i < graph->node_count; i++)
        graph->node[i]->id = i;
}

stint_status sti_graph_sweep(stint_graph *graph)
{
    int32_t kept = 0;
    for (int32_t n = 0; n < graph->node_count; n++) {
        sti_node *node = graph->node[n];
        if (node->id != STI_NODE_DEAD) {
            graph->node[kept++] = node;
            continue;
        }
        for (int32_t i = 0; i < node->n_out; i++)
            graph->value[node->out[i]]->producer = NULL;
    }
    graph->node_count = kept;
    renumber(graph);
    return STINT_OK;
}

/* Depth-first emission with a stack of our own: a chain of nodes can be as long as the
 * graph. */
typedef struct sort_frame {
    sti_node *node;
    int32_t next; /* input to look at */
} sort_frame;

enum { UNSEEN, OPEN, DONE };

/* Emit `root` after everything it needs; false when it needs itself. */
static bool emit(const stint_graph *graph, sti_node *root, sort_frame *stack,
                 uint8_t *state, sti_node **order, int32_t *count)
{
    int32_t depth = 0;
    stack[depth++] = (sort_frame){root, 0};
    state[root->id] = OPEN;
    while (depth > 0) {
        sort_frame *top = &stack[depth - 1];
        if (top->next == top->node->n_in) {
            state[top->node->id] = DONE;
            order[(*count)++] = top->node;
            depth--;
            continue;
        }
        const sti_value_row *row = sti_graph_value(graph, top->node->in[top->next++]);
        sti_node *maker = row ? row->producer : NULL;
        if (!maker || maker->id < 0 || state[maker->id] == DONE)
            continue;
        if (state[maker->id] == OPEN)
            return false;
        state[maker->id] = OPEN;
        stack[depth++] = (sort_frame){maker, 0};
    }
    return true;
}

stint_status sti_graph_sort(stint_graph *graph)
{
    int32_t nodes = graph->node_count, count = 0;
    stint_status status = STINT_OK;
    sort_frame *stack = sti_alloc_array(nodes, sizeof *stack, "graph.sort");
    uint8_t *state = sti_alloc_array(nodes, sizeof *state, "graph.sort");
    sti_node **order = sti_alloc_array(nodes, sizeof *order, "graph.sort");

    if (!stack || !state || !order) {
        status = STINT_E_MEMORY;
        goto done;
    }
    renumber(graph);
    for (int32_t n = 0; n < nodes; n++) {
        sti_node *node = graph->node[n];
        if (state[n] == UNSEEN && !emit(graph, node, stack, state, order, &count)) {
            status = sti_fail(STINT_E_BUG, "graph: %s in %s depends on itself",
                              node->op->name, node->scope);
            goto done;
        }
    }
    for (int32_t n = 0; n < nodes; n++)
        graph->node[n] = order[n];
    renumber(graph);
done:
    sti_free(stack);
    sti_free(state);
    sti_free(order);
    return status;
}

stint_status sti_graph_reorder(stint_graph *graph, const int32_t *order)
{
    int32_t nodes = graph->node_count;
    sti_node **fresh = sti_alloc_array(nodes, sizeof *fresh, "graph.reorder");
    if (!fresh)
        return STINT_E_MEMORY;
    for (int32_t n = 0; n < nodes; n++)
        fresh[n] = graph->node[order[n]];
    for (int32_t n = 0; n < nodes; n++)
        graph->node[n] = fresh[n];
    renumber(graph);
    sti_free(fresh);
    return STINT_OK;
}

stint_status sti_graph_set_attr(stint_graph *graph, sti_node *node, const void *attr)
{
    void *copy = sti_arena_alloc(graph->arena, node->op->attr_bytes);
    if (!copy)
        return STINT_E_MEMORY;
    memcpy(copy, attr, node->op->attr_bytes);
    node->attr = copy;
    return STINT_OK;
}

void sti_graph_hold_in_bytes(stint_graph *graph, stint_value param)
{
    graph->value[param]->in_bytes = true;
}

size_t sti_graph_value_bytes(const sti_value_row *row)
{
    if (!row->in_bytes)
        return stint_shape_bytes(&row->shape);
    const int64_t columns = row->shape.dim[row->shape.rank - 1];
    return sti_byte_matrix_bytes(stint_shape_count(&row->shape) / columns, columns);
}

void sti_graph_update_at_once(stint_graph *graph, const sti_update_rule *rule)
{
    graph->update = *rule;
}

const sti_update_rule *sti_graph_update_rule(const stint_graph *graph)
{
    return graph->update.op ? &graph->update : NULL;
}

void sti_graph_keep_constants(stint_graph *graph, bool keep)
{
    graph->keeps_constants = keep;
}

bool sti_graph_keeps_constants(const stint_graph *graph)
{
    return graph->keeps_constants;
}

void sti_graph_set_look_ahead(stint_graph *graph, int nodes)
{
    graph->look_ahead = nodes;
}

int sti_graph_look_ahead(const stint_graph *graph)
{
    return graph->look_ahead;
}

void sti_graph_drop_outputs(stint_graph *graph, sti_output_kind kind)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < graph->output_count; i++)
        if (graph->output[i].kind != kind)
            graph->output[kept++] = graph->output[i];
    graph->output_count = kept;
}
