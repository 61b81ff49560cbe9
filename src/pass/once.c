/* What depends on frozen values alone is computed once, before the first run, and kept
 * beside the parameters: factors of frozen normalisations, rounded and cast weights of
 * a part that is not trained, and, made here, frozen weights as convolutions and
 * products read them: transformed filters, packed panels, turned matrices. What is kept
 * is decided by shapes, and bits stay.
 *
 * Trained weights change from step to step, so nothing that they reach is kept. In a
 * graph for use all parameters are as frozen. */
#include <string.h>

#include "base/fail.h"
#include "op/op.h"
#include "pass/pass_priv.h"

/* Rows of a product up to which turning its weight anew in each run would be felt. */
enum { FEW_ROWS = 4096 };

typedef struct once_pass {
    stint_graph *graph;
    uint8_t *fixed;  /* [values]: never changes */
    uint8_t *result; /* [values]: leaves the graph */
    int32_t values;
    int marked, made;
} once_pass;

/* ---- what never changes ---- */

static bool leaf_is_fixed(const stint_graph *g, const sti_value_row *row)
{
    switch (row->role) {
    case STI_ROLE_CONSTANT:
    case STI_ROLE_FIXED:
        return true;
    case STI_ROLE_PARAM:
        return row->frozen || stint_graph_mode(g) == STINT_EVAL;
    case STI_ROLE_STATE: /* unless an output says otherwise */
        return true;
    case STI_ROLE_INPUT:
    case STI_ROLE_NODE:
        return false;
    }
    return false;
}

static void find_leaves(once_pass *p)
{
    for (stint_value v = 0; v < p->values; v++)
        p->fixed[v] = leaf_is_fixed(p->graph, sti_graph_value(p->graph, v));
    for (int32_t i = 0; i < sti_graph_output_count(p->graph); i++) {
        const sti_output *output = &sti_graph_outputs(p->graph)[i];
        p->result[output->value] = 1;
        if (output->kind == STI_OUTPUT_STATE)
            p->fixed[output->target] = 0;
    }
}

static bool runs_once(const once_pass *p, const sti_node *node)
{
    if (node->op->flags & STI_OP_RANDOM || node->n_in == 0)
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        if (node->in[i] >= 0 && !p->fixed[node->in[i]])
            return false;
    for (int32_t i = 0; i < node->n_out; i++)
        if (p->result[node->out[i]])
            return false;
    return true;
}

static void mark(once_pass *p, sti_node *node)
{
    node->once = true;
    node->inplace = -1;
    for (int32_t i = 0; i < node->n_out; i++)
        p->fixed[node->out[i]] = 1;
    p->marked++;
}

static void mark_nodes(once_pass *p)
{
    for (int32_t n = 0; n < sti_graph_node_count(p->graph); n++) {
        sti_node *node = sti_graph_node(p->graph, n);
        if (runs_once(p, node))
            mark(p, node);
        else if (node->inplace >= 0 && p->fixed[node->in[node->inplace]])
            node->inplace = -1; /* it must outlive the run */
    }
}

static bool is_same(const sti_node *a, const sti_node *b)
{
    return a->op == b->op && a->n_in == b->n_in && a->n_out == b->n_out &&
           memcmp(a->in, b->in, (size_t)a->n_in * sizeof *a->in) == 0 &&
           (a->op->attr_bytes == 0 || memcmp(a->attr, b->attr, a->op->attr_bytes) == 0);
}

/* Copies that save memory in a run would be kept twice. */
static void merge_nodes(once_pass *p)
{
    for (int32_t n = 0; n < sti_graph_node_count(p->graph); n++) {
        sti_node *node = sti_graph_node(p->graph, n);
        for (int32_t k = 0; k < n && node->once; k++) {
            const sti_node *first = sti_graph_node(p->graph, k);
            if (first->id < 0 || !first->once || !is_same(first, node))
                continue;
            for (int32_t i = 0; i < node->n_out; i++)
                sti_graph_replace(p->graph, node->out[i], first->out[i]);
            sti_graph_kill(p->graph, node);
            break;
        }
    }
}

/* ---- weights made ready ---- */

/* The weight as such convolutions read it; by an earlier node where there is one. */
static stint_value kept(once_pass *p, const sti_conv_kept_attr *attr,
                        stint_value weight)
{
    const int32_t before = sti_graph_node_count(p->graph);
    for (int32_t n = 0; n < before; n++) {
        const sti_node *node = sti_graph_node(p->graph, n);
        if (node->op == &sti_op_conv2d_keep && node->in[0] == weight &&
            memcmp(node->attr, attr, sizeof *attr) == 0)
            return node->out[0];
    }
    const stint_value ready =
        sti_graph_add(p->graph, &sti_op_conv2d_keep, attr, 1, &weight);
    if (ready < 0)
        return -1;
    sti_graph_node(p->graph, before)->once = true;
    p->made++;
    return ready;
}

static stint_status ready_convolution(once_pass *p, sti_node *node,
                                      sti_conv_kept_attr attr)
{
    sti_conv_kept_attr keep = attr;
    keep.has_bias = keep.relu = 0;
    const stint_value ready = kept(p, &keep, node->in[1]);
    if (ready < 0)
        return sti_graph_status(p->graph);
    if (node->op == &sti_op_conv2d_norm) {
        sti_conv_norm_attr norm = *(const sti_conv_norm_attr *)node->attr;
        norm.kept = 1;
        node->in[1] = ready;
        return sti_graph_set_attr(p->graph, node, &norm);
    }
    node->op = attr.data ? &sti_op_conv2d_grad_x_kept : &sti_op_conv2d_kept;
    node->in[1] = ready;
    return sti_graph_set_attr(p->graph, node, &attr);
}

/* Is it a product with few rows, whose columns of B are rows of a weight? */
static bool turns(const stint_graph *graph, const sti_node *node)
{
    const sti_matmul_attr *attr = node->attr;
    if (node->op != &sti_op_matmul || !attr->trans_b || attr->loops[0][0] ||
        attr->loops[1][0])
        return false;
    const stint_shape a = stint_value_shape(graph, node->in[0]);
    return a.rank == 2 && a.dim[attr->trans_a ? 1 : 0] <= FEW_ROWS;
}

/* The weight turned; by an earlier node where there is one. */
static stint_value turned(once_pass *p, stint_value weight)
{
    static const int swapped[] = {1, 0};
    const int32_t before = sti_graph_node_count(p->graph);
    for (int32_t n = 0; n < before; n++) {
        const sti_node *node = sti_graph_node(p->graph, n);
        if (node->once && node->op == &sti_op_transpose && node->in[0] == weight)
            return node->out[0];
    }
    const stint_value ready = stint_transpose(p->graph, weight, swapped);
    if (ready < 0)
        return -1;
    sti_graph_node(p->graph, before)->once = true;
    p->made++;
    return ready;
}

static stint_status turn(once_pass *p, sti_node *node)
{
    sti_matmul_attr attr = *(const sti_matmul_attr *)node->attr;
    const stint_value ready = turned(p, node->in[1]);
    if (ready < 0)
        return sti_graph_status(p->graph);
    attr.trans_b = 0;
    node->in[1] = ready;
    return sti_graph_set_attr(p->graph, node, &attr);
}

static stint_status ready_weights(once_pass *p)
{
    const int32_t nodes = sti_graph_node_count(p->graph);
    stint_status st = STINT_OK;
    for (int32_t n = 0; n < nodes && st == STINT_OK; n++) {
        sti_node *node = sti_graph_node(p->graph, n);
        sti_conv_kept_attr attr;
        if (node->once || node->n_in < 2 || node->in[1] < 0 || !p->fixed[node->in[1]])
            continue;
        if (sti_op_conv_kept(p->graph, node, &attr) ||
            sti_op_conv_norm_kept(node, &attr))
            st = ready_convolution(p, node, attr);
        else if (turns(p->graph, node))
            st = turn(p, node);
    }
    return st;
}

/* ---- */

/* Nodes that run once first, all else as it stands. */
static stint_status put_first(stint_graph *graph)
{
    const int32_t nodes = sti_graph_node_count(graph);
    int32_t *order = sti_alloc_array(nodes, sizeof *order, "pass.once");
    int32_t at = 0;
    if (!order)
        return STINT_E_MEMORY;
    for (int once = 1; once >= 0; once--)
        for (int32_t n = 0; n < nodes; n++)
            if (sti_graph_node(graph, n)->once == once)
                order[at++] = n;
    const stint_status st = sti_graph_reorder(graph, order);
    sti_free(order);
    return st;
}

stint_status sti_pass_once(stint_graph *graph, sti_pass_note *note)
{
    once_pass p = {.graph = graph, .values = sti_graph_value_count(graph)};
    p.fixed = sti_alloc_array(p.values, sizeof *p.fixed, "pass.once");
    p.result = sti_alloc_array(p.values, sizeof *p.result, "pass.once");
    stint_status st = p.fixed && p.result ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        find_leaves(&p);
        mark_nodes(&p);
        merge_nodes(&p);
        st = sti_graph_sweep(graph);
    }
    if (st == STINT_OK)
        st = ready_weights(&p);
    if (st == STINT_OK)
        st = put_first(graph);
    sti_pass_note_set(note, "%d nodes run once, %d weights made ready", p.marked,
                      p.made);
    sti_free(p.fixed);
    sti_free(p.result);
    return st;
}
