/* Reverse-mode differentiation, graph to graph.
 *
 * Nodes are walked from the last to the first. `slot[v]` holds the gradient of the loss
 * for value v as far as it is known; since every reader of v comes after its producer,
 * it is complete when the producer is reached. Contributions are added as they arrive,
 * in the order of the walk, so the sum's order is a property of the graph alone.
 *
 * A rule appends ordinary nodes, hence the pass can be applied to its own result. An
 * operator without a rule but with an expansion is differentiated through it: the
 * expansion is appended to the graph and walked like any other piece of it. So are
 * outputs that a rule knows nothing of, such as gradients made along with a loss. */
#include <string.h>

#include "base/fail.h"
#include "op/op.h"
#include "pass/pass_priv.h"

enum { MAX_OUT = 8 }; /* of any operator: sti_graph_add sees to it */

typedef struct tape {
    stint_graph *graph;
    stint_value *slot; /* [capacity]: gradient so far, -1: none */
    uint8_t *reaches;  /* [capacity]: depends on one of the values asked for */
    int32_t capacity;
} tape;

/* The rules append values while the walk is on. */
static stint_status tape_grow(tape *t)
{
    int32_t values = sti_graph_value_count(t->graph), old = t->capacity;
    if (values <= old)
        return STINT_OK;
    int32_t wanted = values + values / 2 + 64;
    stint_value *slot =
        sti_realloc(t->slot, (size_t)wanted * sizeof *slot, "pass.gradient");
    if (slot)
        t->slot = slot;
    uint8_t *reaches = sti_realloc(t->reaches, (size_t)wanted, "pass.gradient");
    if (reaches)
        t->reaches = reaches;
    if (!slot || !reaches)
        return STINT_E_MEMORY;
    for (int32_t i = old; i < wanted; i++) {
        t->slot[i] = -1;
        t->reaches[i] = 0;
    }
    t->capacity = wanted;
    return STINT_OK;
}

/* Mark the outputs of nodes first..end-1 that depend on a marked value. */
static void mark(tape *t, int32_t first, int32_t end)
{
    for (int32_t n = first; n < end; n++) {
        const sti_node *node = sti_graph_node(t->graph, n);
        uint8_t any = 0;
        if (node->op->flags & STI_OP_NO_GRAD)
            continue;
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i] >= 0)
                any |= t->reaches[node->in[i]];
        for (int32_t i = 0; i < node->n_out && any; i++)
            if (sti_graph_value(t->graph, node->out[i])->shape.dtype == STINT_F32)
                t->reaches[node->out[i]] = 1;
    }
}

/* Add a contribution to the gradient of `value`. */
static stint_status contribute(tape *t, const sti_node *from, stint_value value,
                               stint_value dx)
{
    stint_shape want = stint_value_shape(t->graph, value);
    stint_shape seen = stint_value_shape(t->graph, dx);
    if (!sti_shape_equal(&want, &seen))
        return sti_fail(
            STINT_E_BUG, "gradient of %s in %s: shape %s for an input of %s",
            from->op->name, from->scope, sti_shape_text(&seen), sti_shape_text(&want));
    if (t->slot[value] == -1)
        t->slot[value] = dx;
    else
        t->slot[value] = stint_add(t->graph, t->slot[value], dx);
    return t->slot[value] < 0 ? sti_graph_status(t->graph) : tape_grow(t);
}

static stint_status walk(tape *t, int32_t first, int32_t end);

static stint_status apply_rule(tape *t, sti_node *node, const stint_value *dy)
{
    stint_status status = STINT_OK;
    size_t count = (size_t)node->n_in;
    bool *need = sti_alloc(count, "pass.gradient");
    stint_value *dx = sti_alloc(count * sizeof *dx, "pass.gradient");

    if (!need || !dx) {
        status = STINT_E_MEMORY;
        goto done;
    }
    for (int32_t i = 0; i < node->n_in; i++) {
        need[i] = node->in[i] >= 0 && t->reaches[node->in[i]];
        dx[i] = -1;
    }
    status = node->op->grad(t->graph, node, dy, need, dx);
    if (status)
        goto done;
    if ((status = sti_graph_status(t->graph)) || (status = tape_grow(t)))
        goto done;
    for (int32_t i = 0; i < node->n_in && status == STINT_OK; i++)
        if (need[i] && dx[i] >= 0)
            status = contribute(t, node, node->in[i], dx[i]);
done:
    sti_free(need);
    sti_free(dx);
    return status;
}

/* Nodes appended since `first` read `to` instead of `from`. */
static void read_instead(const stint_graph *graph, int32_t first, stint_value from,
                         stint_value to)
{
    for (int32_t n = first; n < sti_graph_node_count(graph); n++) {
        sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i] == from)
                node->in[i] = to;
    }
}

/* Append the expansion, hand it the gradients, and walk it. Its results equal the
 * node's, so the rules' nodes read the node's instead: one saved copy is enough. The
 * expansion itself stays as it is, or gradients inside it would be lost. */
static stint_status walk_expansion(tape *t, sti_node *node, const stint_value *dy)
{
    stint_value out[MAX_OUT];
    int32_t first = sti_graph_node_count(t->graph), end;
    stint_status status;

    for (int i = 0; i < MAX_OUT; i++)
        out[i] = -1;
    status = node->op->expand(t->graph, node, out);
    if (status || (status = sti_graph_status(t->graph)) || (status = tape_grow(t)))
        return status;
    end = sti_graph_node_count(t->graph);
    mark(t, first, end);
    for (int32_t i = 0; i < node->n_out; i++)
        if (out[i] >= 0 && dy[i] >= 0 && t->reaches[out[i]] &&
            (status = contribute(t, node, out[i], dy[i])))
            return status;
    status = walk(t, first, end);
    for (int32_t i = 0; i < node->n_out && status == STINT_OK; i++) {
        const sti_value_row *row = sti_graph_value(t->graph, out[i]);
        if (row && row->producer && row->producer->id >= first)
            read_instead(t->graph, end, out[i], node->out[i]);
    }
    return status;
}

/* The rule, and the expansion for the outputs that it knows nothing of. */
static stint_status apply_rules(tape *t, sti_node *node, const stint_value *dy)
{
    stint_value ruled[MAX_OUT], expanded[MAX_OUT];
    bool rule = false, expansion = false;
    stint_status status = STINT_OK;
    for (int32_t i = 0; i < node->n_out; i++) {
        const bool by_expansion = node->op->expand_out >> i & 1;
        ruled[i] = by_expansion ? -1 : dy[i];
        expanded[i] = by_expansion ? dy[i] : -1;
        rule |= ruled[i] >= 0;
        expansion |= expanded[i] >= 0;
    }
    if (rule)
        status = apply_rule(t, node, ruled);
    return status == STINT_OK && expansion ? walk_expansion(t, node, expanded) : status;
}

static stint_status walk_node(tape *t, sti_node *node)
{
    stint_value dy[MAX_OUT];
    bool any = false, reach = false;

    for (int32_t i = 0; i < node->n_out; i++) {
        dy[i] = t->slot[node->out[i]];
        any |= dy[i] >= 0;
    }
    for (int32_t i = 0; i < node->n_in; i++)
        reach |= node->in[i] >= 0 && t->reaches[node->in[i]];
    if (!any || !reach || (node->op->flags & STI_OP_NO_GRAD))
        return STINT_OK;
    sti_graph_set_backward(t->graph, node);
    if (node->op->grad)
        return apply_rules(t, node, dy);
    if (node->op->expand)
        return walk_expansion(t, node, dy);
    return sti_fail(STINT_E_UNSUPPORTED,
                    "%s%s%s is not %sdifferentiable: there is no gradient rule for it",
                    node->op->name, *node->scope ? " in " : "", node->scope,
                    node->backward ? "twice " : "");
}

static stint_status walk(tape *t, int32_t first, int32_t end)
{
    stint_status status = STINT_OK;
    for (int32_t n = end - 1; n >= first && status == STINT_OK; n--)
        status = walk_node(t, sti_graph_node(t->graph, n));
    return status;
}

stint_status sti_pass_gradient(stint_graph *graph, stint_value loss,
                               const stint_value *of, int count,
                               stint_value *gradients_out)
{
    tape t = {.graph = graph};
    int32_t nodes = sti_graph_node_count(graph);
    const sti_value_row *row = sti_graph_value(graph, loss);
    stint_status status = sti_graph_status(graph);

    if (status)
        return status;
    if (!row || stint_shape_count(&row->shape) != 1 || row->shape.dtype != STINT_F32)
        return sti_fail(STINT_E_INPUT, "gradient: the loss must be one f32 number%s%s",
                        row ? ", not " : "", row ? sti_shape_text(&row->shape) : "");
    if ((status = tape_grow(&t)))
        goto done;
    sti_pass_clear_inplace(graph);
    for (int i = 0; i < count; i++)
        if (of[i] >= 0)
            t.reaches[of[i]] = 1;
    mark(&t, 0, nodes);
    if (t.reaches[loss]) {
        sti_graph_set_backward(graph, row->producer);
        t.slot[loss] = sti_op_fill(graph, &row->shape, 1.0f);
        status = t.slot[loss] < 0 ? sti_graph_status(graph) : tape_grow(&t);
        if (status == STINT_OK)
            status = walk(&t, 0, nodes);
    }
    for (int i = 0; i < count && status == STINT_OK; i++)
        gradients_out[i] = of[i] >= 0 ? t.slot[of[i]] : -1;
done:
    sti_graph_set_backward(graph, NULL);
    sti_free(t.slot);
    sti_free(t.reaches);
    return status;
}
