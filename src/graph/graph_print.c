/* Printers: one line a node, and Graphviz. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "graph/graph_priv.h"

/* Leaves by name, everything else by number: numbers are what passes talk about. */
static void print_value(const stint_graph *graph, stint_value value, sti_text *out)
{
    const sti_value_row *row = sti_graph_value(graph, value);
    if (!row)
        sti_text_add(out, "-");
    else if (row->role != STI_ROLE_NODE)
        sti_text_add(out, row->name);
    else
        sti_text_printf(out, "%%%d", (int)value);
}

static const char *leaf_word(sti_role role)
{
    return role == STI_ROLE_INPUT      ? "input"
           : role == STI_ROLE_PARAM    ? "param"
           : role == STI_ROLE_FIXED    ? "fixed"
           : role == STI_ROLE_CONSTANT ? "constant"
                                       : "state";
}

static const char *kind_word(sti_output_kind kind)
{
    static const char *const words[] = {"gradient", "state", "metric", "fetch"};
    return words[kind];
}

static void print_node(const stint_graph *graph, const sti_node *node, sti_text *out)
{
    for (int32_t i = 0; i < node->n_out; i++) {
        sti_text_add(out, i ? ", " : "");
        print_value(graph, node->out[i], out);
    }
    sti_text_printf(out, " = %s(", node->op->name);
    for (int32_t i = 0; i < node->n_in; i++) {
        sti_text_add(out, i ? ", " : "");
        print_value(graph, node->in[i], out);
    }
    sti_text_add(out, ")");
    if (node->op->print) {
        sti_text_add(out, " {");
        node->op->print(node, out);
        sti_text_add(out, "}");
    }
    for (int32_t i = 0; i < node->n_out; i++)
        sti_text_printf(out, "%s%s", i ? ", " : " : ",
                        sti_shape_text(&graph->value[node->out[i]]->shape));
    if (node->inplace >= 0)
        sti_text_printf(out, " over input %d", (int)node->inplace);
    if (*node->scope || node->backward)
        sti_text_printf(out, "  # %s%s%s", node->scope,
                        *node->scope && node->backward ? " " : "",
                        node->backward ? "backward" : "");
    sti_text_add(out, "\n");
}

static stint_status text_status(const sti_text *out)
{
    return out->failed ? STINT_E_MEMORY : STINT_OK;
}

stint_status sti_graph_print(const stint_graph *graph, sti_text *out)
{
    sti_text_printf(out, "graph %s\n", graph->mode == STINT_TRAIN ? "train" : "eval");
    for (int32_t i = 0; i < graph->value_count; i++) {
        const sti_value_row *row = graph->value[i];
        if (row->role != STI_ROLE_NODE)
            sti_text_printf(out, "%s %s : %s\n", leaf_word(row->role), row->name,
                            sti_shape_text(&row->shape));
    }
    for (int32_t n = 0; n < graph->node_count; n++)
        print_node(graph, graph->node[n], out);
    for (int32_t i = 0; i < graph->output_count; i++) {
        const sti_output *output = &graph->output[i];
        sti_text_printf(out, "%s %s = ", kind_word(output->kind), output->name);
        print_value(graph, output->value, out);
        sti_text_add(out, "\n");
    }
    return text_status(out);
}

/* ---- Graphviz ---- */

/* Inside a quoted DOT string. */
static void add_quoted(sti_text *out, const char *words)
{
    for (const char *c = words; *c; c++) {
        if (*c == '"' || *c == '\\')
            sti_text_add(out, "\\");
        sti_text_add_bytes(out, c, 1);
    }
}

/* Clusters are opened along the components of `scope`, as nested subgraphs; DOT merges
 * subgraphs of one name, so each node may name its whole path. */
static void dot_node(const stint_graph *graph, const sti_node *node, sti_text *out)
{
    int depth = 0;
    (void)graph;
    for (const char *at = node->scope; *at;) {
        const char *dot = strchr(at, '.');
        size_t part = dot ? (size_t)(dot - at) : strlen(at);
        sti_text_add(out, "subgraph \"cluster_");
        sti_text_add_bytes(out, node->scope, (size_t)(at - node->scope) + part);
        sti_text_add(out, "\" { label=\"");
        sti_text_add_bytes(out, at, part);
        sti_text_add(out, "\"; ");
        depth++;
        at += part + (dot ? 1 : 0);
    }
    sti_text_printf(out, "n%d [label=\"%s", (int)node->id, node->op->name);
    if (node->op->print) {
        sti_text attr = {0};
        node->op->print(node, &attr);
        sti_text_add(out, "\\n");
        add_quoted(out, attr.data ? attr.data : "");
        out->failed |= attr.failed;
        sti_text_fini(&attr);
    }
    sti_text_printf(out, "\"%s];",
                    node->backward ? ", style=filled, fillcolor=lightgrey" : "");
    while (depth-- > 0)
        sti_text_add(out, " }");
    sti_text_add(out, "\n");
}

static void dot_edge(const stint_graph *graph, stint_value value, const char *to,
                     int to_id, sti_text *out)
{
    const sti_value_row *row = sti_graph_value(graph, value);
    if (!row)
        return;
    if (row->producer)
        sti_text_printf(out, "n%d -> ", (int)row->producer->id);
    else
        sti_text_printf(out, "v%d -> ", (int)value);
    sti_text_printf(out, "%s%d [label=\"%s\"%s];\n", to, to_id,
                    sti_shape_text(&row->shape),
                    row->producer && row->producer_out ? ", style=dashed" : "");
}

stint_status sti_graph_print_dot(const stint_graph *graph, sti_text *out)
{
    sti_text_add(out, "digraph stint {\nnode [shape=box, fontname=\"sans-serif\"];\n"
                      "edge [fontname=\"sans-serif\", fontsize=9];\n");
    for (int32_t i = 0; i < graph->value_count; i++) {
        const sti_value_row *row = graph->value[i];
        if (row->role == STI_ROLE_NODE)
            continue;
        sti_text_printf(out, "v%d [shape=%s, label=\"", (int)i,
                        row->role == STI_ROLE_INPUT ? "oval" : "note");
        add_quoted(out, row->name);
        sti_text_add(out, "\"];\n");
    }
    for (int32_t n = 0; n < graph->node_count; n++)
        dot_node(graph, graph->node[n], out);
    for (int32_t n = 0; n < graph->node_count; n++)
        for (int32_t i = 0; i < graph->node[n]->n_in; i++)
            dot_edge(graph, graph->node[n]->in[i], "n", (int)n, out);
    for (int32_t i = 0; i < graph->output_count; i++) {
        const sti_output *output = &graph->output[i];
        sti_text_printf(out, "o%d [shape=oval, style=bold, label=\"%s ", (int)i,
                        kind_word(output->kind));
        add_quoted(out, output->name);
        sti_text_add(out, "\"];\n");
        dot_edge(graph, output->value, "o", (int)i, out);
    }
    sti_text_add(out, "}\n");
    return text_status(out);
}
