/* Shares of a weight: its gradient for some of its channels alone.
 *
 * The gradient of a convolution's or dense layer's weight is a product of the layer's
 * input and dy, or a sum of such products where the weight is used more than once. For
 * some of the input channels it reads only those of the input, which are copied in the
 * forward half, behind the layer: so that slice is saved, and not the input. Of a
 * weight with one input channel a filter (depthwise) output channels are shared, by a
 * slice of dy; what is saved is then the slice of the input of the same channels. Sums
 * are those of the whole gradient, element by element.
 *
 * After "On-device training under 256KB memory" (arXiv 2206.15472). */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "op/op.h"
#include "pass/pass_priv.h"

int sti_share_axis(const stint_shape *weight)
{
    if (weight->rank == 2)
        return 0;
    return weight->rank == 4 ? (weight->dim[2] == 1 ? 3 : 2) : -1;
}

typedef struct slicer {
    stint_graph *graph;
    const sti_train_share *share;
    stint_value param, channels;
    int axis;
} slicer;

static stint_status refuse(const slicer *s)
{
    return sti_fail(STINT_E_UNSUPPORTED,
                    "%s: a share of it cannot be trained; shares are for weights of "
                    "convolutions and dense layers",
                    stint_value_name(s->graph, s->param));
}

/* The node appended last, as one of the half that `like` is of. */
static void place_node(stint_graph *g, const sti_node *like, bool backward)
{
    sti_node *node = sti_graph_node(g, sti_graph_node_count(g) - 1);
    node->scope = like->scope;
    node->backward = backward;
}

static stint_value take(const slicer *s, const sti_node *like, stint_value x,
                        bool backward)
{
    const stint_value in[2] = {x, s->channels};
    const stint_value out = sti_graph_add(s->graph, &sti_op_take_channels, NULL, 2, in);
    if (out >= 0)
        place_node(s->graph, like, backward);
    return out;
}

/* x^T dy for some rows of the result. */
static stint_value slice_matmul(const slicer *s, const sti_node *node)
{
    const stint_value in[2] = {take(s, node, node->in[0], false), node->in[1]};
    const stint_value out = sti_graph_add(s->graph, &sti_op_matmul, node->attr, 2, in);
    if (out >= 0)
        place_node(s->graph, node, true);
    return out;
}

static stint_value slice_conv(const slicer *s, const sti_node *node)
{
    sti_conv2d_grad_attr attr = *(const sti_conv2d_grad_attr *)node->attr;
    stint_value in[2] = {node->in[0], node->in[1]};
    if (s->axis == 2 || attr.groups > 1)
        in[0] = take(s, node, in[0], false);
    if (s->axis == 3)
        in[1] = take(s, node, in[1], true);
    if (attr.groups > 1)
        attr.groups = s->share->count;
    const stint_value out =
        sti_graph_add(s->graph, &sti_op_conv2d_grad_w, &attr, 2, in);
    if (out >= 0)
        place_node(s->graph, node, true);
    return out;
}

static stint_value slice(const slicer *s, stint_value gradient);

static stint_value slice_sum(const slicer *s, const sti_node *node)
{
    const stint_value a = slice(s, node->in[0]), b = slice(s, node->in[1]);
    const stint_value out = stint_add(s->graph, a, b);
    if (out >= 0)
        place_node(s->graph, node, true);
    return out;
}

/* The slice of a gradient; -1: recorded. */
static stint_value slice(const slicer *s, stint_value gradient)
{
    const sti_node *node = sti_graph_value(s->graph, gradient)->producer;
    const sti_matmul_attr *product = NULL;
    if (!node || node->out[0] != gradient)
        return sti_graph_fail(s->graph, refuse(s));
    if (strcmp(node->op->name, "add") == 0)
        return slice_sum(s, node);
    if (node->op == &sti_op_conv2d_grad_w) {
        const sti_conv2d_grad_attr *attr = node->attr;
        const stint_shape w = stint_value_shape(s->graph, gradient);
        if (attr->groups == 1 || (s->axis == 3 && attr->groups == w.dim[3]))
            return slice_conv(s, node);
    }
    if (node->op == &sti_op_matmul)
        product = node->attr;
    if (product && s->axis == 0 && product->trans_a && !product->trans_b &&
        !product->has_bias && !product->relu)
        return slice_matmul(s, node);
    return sti_graph_fail(s->graph, refuse(s));
}

stint_status sti_pass_share(stint_graph *graph, stint_value param, stint_value gradient,
                            const sti_train_share *share, stint_value *slice_out)
{
    const stint_shape weight = stint_value_shape(graph, param);
    const stint_shape list = stint_shape_make(STINT_I32, 1, &share->count);
    slicer s = {graph, share, param, -1, sti_share_axis(&weight)};
    char name[160];
    if (s.axis < 0)
        return refuse(&s);
    snprintf(name, sizeof name, "%s.channels", stint_value_name(graph, param));
    s.channels = sti_graph_constant(graph, name, &list, share->channels);
    if (s.channels >= 0)
        *slice_out = slice(&s, gradient);
    return sti_graph_status(graph);
}

/* Where each slice of the forward half belongs: behind the last node of that half that
 * reads what it is a slice of, which dies there. */
static int32_t last_reader(const stint_graph *g, stint_value x)
{
    const sti_value_row *row = sti_graph_value(g, x);
    int32_t last = row->producer ? row->producer->id : -1;
    for (int32_t n = last + 1; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        for (int32_t i = 0; i < node->n_in && !node->backward; i++)
            if (node->in[i] == x && node->op != &sti_op_take_channels)
                last = n;
    }
    return last;
}

static bool is_slice(const sti_node *node)
{
    return node->op == &sti_op_take_channels && !node->backward;
}

stint_status sti_pass_place_shares(stint_graph *graph)
{
    const int32_t nodes = sti_graph_node_count(graph);
    int32_t *order = sti_alloc_array(nodes, sizeof *order, "pass.shares");
    int32_t *behind = sti_alloc_array(nodes, sizeof *behind, "pass.shares");
    stint_status st = order && behind ? STINT_OK : STINT_E_MEMORY;
    int32_t at = 0;
    for (int32_t n = 0; n < nodes && st == STINT_OK; n++) {
        const sti_node *node = sti_graph_node(graph, n);
        behind[n] = is_slice(node) ? last_reader(graph, node->in[0]) : -2;
    }
    for (int32_t n = -1; n < nodes && st == STINT_OK; n++) {
        if (n >= 0 && behind[n] == -2)
            order[at++] = n;
        for (int32_t t = 0; t < nodes; t++)
            if (behind[t] == n)
                order[at++] = t;
    }
    if (st == STINT_OK)
        st = sti_graph_reorder(graph, order);
    sti_free(order);
    sti_free(behind);
    return st;
}
