/* What depends on constants alone is computed once, when the graph is built, in place
 * of in every run: of a graph whose weights are constants (sti_graph_make_constant),
 * rounded weights, and the factors that a normalisation by running statistics comes to.
 * The kernels are those that the run would call, so bits stay. Nodes that are results
 * of the graph themselves, and what is drawn at random, are left to the run. */
#include "base/fail.h"
#include "pass/pass_priv.h"

static bool is_constant(const stint_graph *graph, stint_value value)
{
    return value < 0 || sti_graph_value(graph, value)->role == STI_ROLE_CONSTANT;
}

static bool is_result(const stint_graph *graph, const sti_node *node)
{
    for (int32_t i = 0; i < sti_graph_output_count(graph); i++)
        for (int32_t k = 0; k < node->n_out; k++)
            if (sti_graph_outputs(graph)[i].value == node->out[k])
                return true;
    return false;
}

static bool can_fold(const stint_graph *graph, const sti_node *node)
{
    if (node->op->flags & STI_OP_RANDOM || node->n_in == 0 || node->backward ||
        (!(node->op->flags & STI_OP_VIEW) && !node->op->run[STI_CPU]))
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        if (!is_constant(graph, node->in[i]))
            return false;
    return !is_result(graph, node);
}

/* Addresses of a node's operands and results. */
typedef struct operands {
    const void **in;
    void **out;
    void *scratch;
} operands;

static stint_status find_operands(stint_graph *graph, const sti_node *node, operands *o)
{
    for (int32_t i = 0; i < node->n_in; i++)
        o->in[i] = node->in[i] < 0 ? NULL : sti_graph_value(graph, node->in[i])->data;
    for (int32_t i = 0; i < node->n_out; i++) {
        const stint_shape *shape = &sti_graph_value(graph, node->out[i])->shape;
        if (!(o->out[i] = sti_graph_room(graph, stint_shape_bytes(shape))))
            return STINT_E_MEMORY;
    }
    return STINT_OK;
}

static stint_status run_node(stint_graph *graph, const sti_node *node,
                             const operands *o)
{
    const size_t bytes =
        node->op->scratch_bytes ? node->op->scratch_bytes(graph, node, 1) : 0;
    const sti_step step = {0};
    void *scratch = sti_alloc(bytes, "constant");
    if (!scratch)
        return STINT_E_MEMORY;
    const sti_call call = {.graph = graph,
                           .node = node,
                           .team = &sti_team_serial,
                           .step = &step,
                           .in = o->in,
                           .out = o->out,
                           .scratch = scratch,
                           .scratch_bytes = bytes};
    const unsigned mode = sti_float_mode_enter();
    node->op->run[STI_CPU](&call);
    sti_float_mode_leave(mode);
    sti_free(scratch);
    return STINT_OK;
}

static stint_status fold(stint_graph *graph, sti_node *node)
{
    const bool view = node->op->flags & STI_OP_VIEW;
    operands o = {.in = sti_alloc_array(node->n_in, sizeof(void *), "constant"),
                  .out = sti_alloc_array(node->n_out, sizeof(void *), "constant")};
    stint_status st = o.in && o.out ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK && view)
        o.out[0] = (void *)(uintptr_t)sti_graph_value(graph, node->in[0])->data;
    if (st == STINT_OK && !view)
        st = find_operands(graph, node, &o);
    if (st == STINT_OK && !view)
        st = run_node(graph, node, &o);
    for (int32_t i = 0; i < node->n_out && st == STINT_OK; i++)
        st = sti_graph_make_constant(graph, node->out[i], o.out[i]);
    for (int32_t i = 0; i < node->n_in && st == STINT_OK && !view; i++)
        sti_graph_rest(graph, node->in[i]);
    sti_free(o.in);
    sti_free(o.out);
    if (st == STINT_OK)
        sti_graph_kill(graph, node);
    return st;
}

stint_status sti_pass_constant(stint_graph *graph, sti_pass_note *note)
{
    const int32_t nodes = sti_graph_node_count(graph);
    stint_status st = stint_graph_mode(graph) == STINT_EVAL
                          ? sti_graph_sort(graph)
                          : sti_fail(STINT_E_BUG, "constants are for EVAL graphs");
    int folded = 0;
    for (int32_t n = 0; n < nodes && st == STINT_OK; n++) {
        sti_node *node = sti_graph_node(graph, n);
        if (!can_fold(graph, node))
            continue;
        st = fold(graph, node);
        folded++;
    }
    sti_pass_note_set(note, "%d of %d nodes computed once", folded, nodes);
    return st == STINT_OK ? sti_graph_sweep(graph) : st;
}
