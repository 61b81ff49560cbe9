/* Fusion into the epilogues of kernels.
 *
 *   conv2d or matmul, then bias              -> has_bias
 *   conv2d, matmul or batch_norm, then relu  -> relu, the sign bits an output of it
 *   batch_norm, then add                     -> has_residual
 *
 * Each only where nobody else reads the value in between. The kernels do the same
 * arithmetic in the same order, so results keep their bits. A match is rewritten as one
 * new node; the rounds repeat until nothing matches, which chains them (conv, bias,
 * relu). */
#include <string.h>

#include "op/op.h"
#include "op/op_norm_slots.h"
#include "pass/pass_priv.h"

typedef struct fuser {
    stint_graph *graph;
    sti_uses uses;  /* of the graph at the start of the round */
    int32_t values; /* covered by uses */
    int fused;
} fuser;

/* The node that makes `value` as its output 0 and whose result only one node reads. */
static sti_node *sole_producer(const fuser *f, stint_value value)
{
    if (value < 0 || value >= f->values || f->uses.count[value] != 1)
        return NULL;
    const sti_value_row *row = sti_graph_value(f->graph, value);
    return row->producer && row->producer_out == 0 ? row->producer : NULL;
}

/* Append `op` in place of `first` and `second`, which it does both of. */
static sti_node *append_fused(fuser *f, sti_node *first, sti_node *second,
                              const void *attr, int n_in, const stint_value *in)
{
    stint_value y = sti_graph_add(f->graph, first->op, attr, n_in, in);
    if (y < 0)
        return NULL;
    sti_node *node = sti_graph_value(f->graph, y)->producer;
    node->scope = first->scope;
    node->backward = second->backward;
    for (int32_t i = 1; i < first->n_out; i++)
        sti_graph_replace(f->graph, first->out[i], node->out[i]);
    const char *name = sti_graph_value(f->graph, second->out[0])->name;
    if (name)
        sti_graph_set_name(f->graph, y, name);
    sti_graph_replace(f->graph, second->out[0], y);
    sti_graph_kill(f->graph, first);
    sti_graph_kill(f->graph, second);
    f->fused++;
    return node;
}

static bool fuse_bias(fuser *f, sti_node *bias)
{
    sti_node *first = sole_producer(f, bias->in[0]);
    if (!first)
        return false;
    stint_value in[3] = {first->in[0], first->in[1], bias->in[1]};
    if (first->op == &sti_op_conv2d) {
        sti_conv2d_attr attr = *(const sti_conv2d_attr *)first->attr;
        if (attr.has_bias || attr.relu)
            return false;
        attr.has_bias = 1;
        return append_fused(f, first, bias, &attr, 3, in) != NULL;
    }
    if (first->op == &sti_op_matmul) {
        sti_matmul_attr attr = *(const sti_matmul_attr *)first->attr;
        if (attr.has_bias || attr.relu)
            return false;
        attr.has_bias = 1;
        return append_fused(f, first, bias, &attr, 3, in) != NULL;
    }
    return false;
}

/* The sign bits move with the ReLU; both operators give them the same shape. */
static bool fuse_relu_into(fuser *f, sti_node *first, sti_node *relu, const void *attr,
                           int bits_out)
{
    const stint_value *bits = &first->out[bits_out];
    if (f->uses.count[relu->out[1]] > 0 &&
        stint_shape_bytes(&sti_graph_value(f->graph, relu->out[1])->shape) !=
            stint_shape_bytes(&sti_graph_value(f->graph, *bits)->shape))
        return false;
    sti_node *node = append_fused(f, first, relu, attr, first->n_in, first->in);
    if (!node)
        return false;
    sti_graph_replace(f->graph, relu->out[1], node->out[bits_out]);
    return true;
}

static bool fuse_relu(fuser *f, sti_node *relu)
{
    sti_node *first = sole_producer(f, relu->in[0]);
    if (!first)
        return false;
    if (first->op == &sti_op_conv2d) {
        sti_conv2d_attr attr = *(const sti_conv2d_attr *)first->attr;
        bool already = attr.relu;
        attr.relu = 1;
        return !already && fuse_relu_into(f, first, relu, &attr, 1);
    }
    if (first->op == &sti_op_matmul) {
        sti_matmul_attr attr = *(const sti_matmul_attr *)first->attr;
        bool already = attr.relu;
        attr.relu = 1;
        return !already && fuse_relu_into(f, first, relu, &attr, 1);
    }
    if (first->op == &sti_op_batch_norm) {
        sti_batch_norm_attr attr = *(const sti_batch_norm_attr *)first->attr;
        bool already = attr.relu;
        attr.relu = 1;
        return !already && fuse_relu_into(f, first, relu, &attr, BITS);
    }
    return false;
}

/* batch_norm and what it is added to. Of two, the first operand's is taken. */
static bool fuse_residual(fuser *f, sti_node *add)
{
    for (int k = 0; k < 2; k++) {
        sti_node *norm = sole_producer(f, add->in[k]);
        stint_value other = add->in[1 - k];
        stint_value in[8];
        if (!norm || norm->op != &sti_op_batch_norm || norm->n_in > 8 || other < 0 ||
            !sti_shape_equal(&sti_graph_value(f->graph, other)->shape,
                             &sti_graph_value(f->graph, add->in[k])->shape))
            continue;
        sti_batch_norm_attr attr = *(const sti_batch_norm_attr *)norm->attr;
        if (attr.has_residual || attr.relu || norm->n_in <= RESIDUAL)
            continue;
        memcpy(in, norm->in, (size_t)norm->n_in * sizeof *in);
        in[RESIDUAL] = other;
        attr.has_residual = 1;
        return append_fused(f, norm, add, &attr, norm->n_in, in) != NULL;
    }
    return false;
}

/* One look at every node that was there at the start of the round. */
static int fuse_round(fuser *f)
{
    int32_t nodes = sti_graph_node_count(f->graph);
    int before = f->fused;
    for (int32_t n = 0; n < nodes; n++) {
        sti_node *node = sti_graph_node(f->graph, n);
        if (node->id < 0)
            continue;
        if (node->op == &sti_op_bias)
            fuse_bias(f, node);
        else if (node->op == &sti_op_relu)
            fuse_relu(f, node);
        else if (node->op == &sti_op_add)
            fuse_residual(f, node);
    }
    return f->fused - before;
}

stint_status sti_pass_fuse(stint_graph *graph, sti_pass_note *note)
{
    fuser f = {.graph = graph};
    int before = sti_graph_node_count(graph), changed = 1;
    stint_status status = STINT_OK;

    sti_pass_clear_inplace(graph);
    while (changed && status == STINT_OK) {
        status = sti_uses_create(graph, &f.uses);
        if (status)
            break;
        f.values = sti_graph_value_count(graph);
        changed = fuse_round(&f);
        sti_uses_destroy(&f.uses);
        status = sti_graph_status(graph);
        if (status == STINT_OK && changed && !(status = sti_graph_sweep(graph)))
            status = sti_graph_sort(graph);
    }
    sti_pass_note_set(note, "%d of %d nodes fused into others", f.fused, before);
    return status;
}
