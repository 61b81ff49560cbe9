/* The verifier: whatever a builder or a pass did, these hold afterwards.
 *
 * - Handles are in range; every value read was made by an earlier node or is a leaf.
 * - Rows and nodes point at each other; shapes are what the operator infers.
 * - A value laid over another (in place) leaves nobody who still reads the old one. */
#include <inttypes.h>

#include "base/fail.h"
#include "graph/graph_priv.h"

/* What the bytes of a value hold, for the in-place rule: `root` names the bytes,
 * `content` the last value written there. Views share both. */
typedef struct sti_alias {
    stint_value root, content;
} sti_alias;

typedef struct verifier {
    const stint_graph *graph;
    sti_alias *alias;     /* [values] */
    stint_value *current; /* [values]: content now in the bytes of a root */
    uint8_t *made;        /* [values] */
} verifier;

static stint_status wrong(const sti_node *node, const char *what, int index)
{
    return sti_fail(STINT_E_BUG, "graph: node %d, %s%s%s: %s %d", (int)node->id,
                    node->op->name, *node->scope ? " in " : "", node->scope, what,
                    index);
}

static stint_status verify_inputs(verifier *v, const sti_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        stint_value in = node->in[i];
        if (in == STI_NO_INPUT)
            continue;
        if (in < 0 || in >= v->graph->value_count)
            return wrong(node, "no such value at input", i);
        if (!v->made[in])
            return wrong(node, "a value is read before it is made, at input", i);
        if (v->current[v->alias[in].root] != v->alias[in].content)
            return wrong(node, "a value is read after another was laid over it, input",
                         i);
    }
    return STINT_OK;
}

static stint_status verify_outputs(verifier *v, const sti_node *node)
{
    for (int32_t i = 0; i < node->n_out; i++) {
        stint_value out = node->out[i];
        if (out < 0 || out >= v->graph->value_count)
            return wrong(node, "no such value at output", i);
        const sti_value_row *row = v->graph->value[out];
        if (v->made[out] || row->role != STI_ROLE_NODE)
            return wrong(node, "a value is made twice, at output", i);
        if (row->producer != node || row->producer_out != i)
            return wrong(node, "the value's row names another producer, output", i);
        v->made[out] = 1;
        v->alias[out] = (sti_alias){out, out};
        v->current[out] = out;
    }
    return STINT_OK;
}

static stint_status verify_shapes(const stint_graph *graph, const sti_node *node)
{
    stint_shape shape[STI_GRAPH_MAX_OUT] = {{0}};
    stint_status status = node->op->infer(graph, node, shape);
    if (status)
        return sti_fail_context(status, "graph: node %d, %s in %s", (int)node->id,
                                node->op->name, node->scope);
    for (int32_t i = 0; i < node->n_out; i++)
        if (!sti_shape_equal(&shape[i], &graph->value[node->out[i]]->shape))
            return wrong(node, "the shape is not what the operator infers, output", i);
    return STINT_OK;
}

static stint_status verify_inplace(verifier *v, const sti_node *node)
{
    int k = node->inplace;
    bool view = (node->op->flags & STI_OP_VIEW) != 0;

    if (!view && k < 0)
        return STINT_OK;
    if (view && (k >= 0 || node->n_in < 1 || node->n_out != 1))
        return wrong(node, "a view has one output and is not in place, but got", k);
    if (!view && (k > 1 || k >= node->n_in ||
                  !(node->op->flags & (unsigned)(STI_OP_INPLACE_0 << k))))
        return wrong(node, "the operator cannot be laid over input", k);
    stint_value in = node->in[view ? 0 : k], out = node->out[0];
    const sti_value_row *root = in >= 0 ? v->graph->value[v->alias[in].root] : NULL;
    if (!root || stint_shape_bytes(&v->graph->value[in]->shape) !=
                     stint_shape_bytes(&v->graph->value[out]->shape))
        return wrong(node, "sizes differ between output 0 and input", view ? 0 : k);
    v->alias[out].root = v->alias[in].root;
    if (view) {
        v->alias[out].content = v->alias[in].content;
        return STINT_OK;
    }
    if (root->role != STI_ROLE_NODE)
        return wrong(node, "a param, state or input is overwritten, input", k);
    v->current[v->alias[in].root] = out;
    return STINT_OK;
}

static stint_status verify_node(verifier *v, int32_t n)
{
    const sti_node *node = v->graph->node[n];
    stint_status status;

    if (node->id != n)
        return wrong(node, "the node stands in row", n);
    if (node->n_out != node->op->n_out)
        return wrong(node, "wrong number of outputs,", node->n_out);
    if ((status = verify_inputs(v, node)) || (status = verify_outputs(v, node)) ||
        (status = verify_shapes(v->graph, node)) || (status = verify_inplace(v, node)))
        return status;
    return STINT_OK;
}

/* What leaves the graph must exist and still be there at the end. */
static stint_status verify_results(const verifier *v)
{
    for (int32_t i = 0; i < v->graph->output_count; i++) {
        const sti_output *output = &v->graph->output[i];
        if (output->value < 0 || output->value >= v->graph->value_count ||
            !v->made[output->value])
            return sti_fail(STINT_E_BUG, "graph: output %s is made by no node",
                            output->name);
        const sti_alias *alias = &v->alias[output->value];
        if (v->current[alias->root] != alias->content)
            return sti_fail(STINT_E_BUG, "graph: output %s is overwritten in place",
                            output->name);
        if (output->kind != STI_OUTPUT_GRADIENT && output->kind != STI_OUTPUT_STATE)
            continue;
        const sti_value_row *target = sti_graph_value(v->graph, output->target);
        const stint_shape wants = target ? sti_graph_output_shape(v->graph, output)
                                         : (stint_shape){.rank = 0};
        if (!target || !sti_shape_equal(&wants, &v->graph->value[output->value]->shape))
            return sti_fail(STINT_E_BUG, "graph: output %s and its target differ",
                            output->name);
    }
    return STINT_OK;
}

stint_status sti_graph_verify(const stint_graph *graph)
{
    verifier v = {.graph = graph};
    int32_t values = graph->value_count;
    stint_status status = STINT_OK;

    v.alias = sti_alloc_array(values, sizeof *v.alias, "graph.verify");
    v.current = sti_alloc_array(values, sizeof *v.current, "graph.verify");
    v.made = sti_alloc_array(values, sizeof *v.made, "graph.verify");
    if (!v.alias || !v.current || !v.made) {
        status = STINT_E_MEMORY;
        goto done;
    }
    for (int32_t i = 0; i < values; i++) {
        v.alias[i] = (sti_alias){i, i};
        v.current[i] = i;
        v.made[i] = graph->value[i]->role != STI_ROLE_NODE;
    }
    for (int32_t n = 0; n < graph->node_count && status == STINT_OK; n++)
        status = verify_node(&v, n);
    if (status == STINT_OK)
        status = verify_results(&v);
done:
    sti_free(v.alias);
    sti_free(v.current);
    sti_free(v.made);
    return status;
}

stint_status stint_graph_check(stint_graph *graph)
{
    stint_status status = sti_graph_status(graph);
    return status ? status : sti_graph_verify(graph);
}
