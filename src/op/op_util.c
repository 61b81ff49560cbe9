/* Helpers of op_priv.h. */
#include <inttypes.h>
#include <string.h>

#include "op/op_priv.h"

const stint_shape *sti_op_in_shape(const stint_graph *graph, const sti_node *node,
                                   int i)
{
    return &sti_graph_value(graph, node->in[i])->shape;
}

const stint_shape *sti_op_out_shape(const stint_graph *graph, const sti_node *node,
                                    int i)
{
    return &sti_graph_value(graph, node->out[i])->shape;
}

int64_t sti_op_in_count(const sti_call *call, int i)
{
    return stint_shape_count(sti_op_in_shape(call->graph, call->node, i));
}

int64_t sti_op_out_count(const sti_call *call, int i)
{
    return stint_shape_count(sti_op_out_shape(call->graph, call->node, i));
}

stint_status sti_op_check_count(const sti_node *node, int n_in)
{
    if (node->n_in != n_in)
        return sti_fail(STINT_E_INPUT, "%s: %" PRId32 " inputs, wanted %d",
                        node->op->name, node->n_in, n_in);
    return STINT_OK;
}

stint_status sti_op_check_f32(const stint_graph *graph, const sti_node *node, int i)
{
    if (!sti_op_has_in(node, i))
        return sti_fail(STINT_E_INPUT, "%s: input %d is missing", node->op->name, i);
    const stint_shape *shape = sti_op_in_shape(graph, node, i);
    if (shape->dtype != STINT_F32)
        return sti_fail(STINT_E_INPUT, "%s: input %d is %s, wanted f32", node->op->name,
                        i, sti_shape_text(shape));
    return STINT_OK;
}

stint_status sti_op_check_shape(const stint_graph *graph, const sti_node *node, int i,
                                const stint_shape *want)
{
    if (!sti_op_has_in(node, i))
        return sti_fail(STINT_E_INPUT, "%s: input %d is missing", node->op->name, i);
    const stint_shape *shape = sti_op_in_shape(graph, node, i);
    if (!sti_shape_equal(shape, want))
        return sti_fail(STINT_E_INPUT, "%s: input %d is %s, wanted %s", node->op->name,
                        i, sti_shape_text(shape), sti_shape_text(want));
    return STINT_OK;
}

stint_status sti_op_check_logits(const stint_graph *graph, const sti_node *node, int i)
{
    stint_status st = sti_op_check_f32(graph, node, i);
    if (st != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, i);
    if (x->rank != 2 || x->dim[1] < 1)
        return sti_fail(STINT_E_INPUT, "%s: logits are %s, wanted [n, classes]",
                        node->op->name, sti_shape_text(x));
    return STINT_OK;
}

stint_status sti_op_check_labels(const stint_graph *graph, const sti_node *node, int i)
{
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    const stint_shape labels = stint_shape_make(STINT_I32, 1, x->dim);
    return sti_op_check_shape(graph, node, i, &labels);
}

stint_status sti_op_infer_same(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    out[0] = *sti_op_in_shape(graph, node, 0);
    return STINT_OK;
}

stint_shape sti_op_bits_shape(const stint_shape *of)
{
    int64_t bytes = (stint_shape_count(of) + 7) / 8;
    return stint_shape_make(STINT_U8, 1, &bytes);
}

stint_value sti_op_add1(stint_graph *g, const sti_op *op, const void *attr,
                        stint_value a)
{
    return sti_graph_add(g, op, attr, 1, &a);
}

stint_value sti_op_add2(stint_graph *g, const sti_op *op, const void *attr,
                        stint_value a, stint_value b)
{
    stint_value in[2] = {a, b};
    return sti_graph_add(g, op, attr, 2, in);
}

sti_cost sti_op_cost_bytes(const stint_graph *graph, const sti_node *node,
                           double flop_per_output)
{
    sti_cost cost = {0};
    for (int i = 0; i < node->n_in; i++)
        if (sti_op_has_in(node, i))
            cost.read_bytes +=
                (double)stint_shape_bytes(sti_op_in_shape(graph, node, i));
    for (int i = 0; i < node->n_out; i++)
        cost.write_bytes += (double)stint_shape_bytes(sti_op_out_shape(graph, node, i));
    cost.flop =
        flop_per_output * (double)stint_shape_count(sti_op_out_shape(graph, node, 0));
    return cost;
}

sti_cost sti_op_cost_none(const stint_graph *graph, const sti_node *node)
{
    (void)graph;
    (void)node;
    return (sti_cost){0};
}

sti_cost sti_op_cost_move(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 0.0);
}

size_t sti_op_scratch_rows(const stint_graph *graph, const sti_node *node, int threads)
{
    (void)threads;
    return (size_t)sti_op_in_shape(graph, node, 0)->dim[0] * sizeof(float);
}

void sti_op_row_strides(const stint_shape *shape, int64_t *stride)
{
    int64_t run = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        stride[i] = run;
        run *= shape->dim[i];
    }
}

stint_status sti_op_check_words(const stint_graph *graph, const sti_node *node, int i)
{
    if (!sti_op_has_in(node, i))
        return sti_fail(STINT_E_INPUT, "%s: input %d is missing", node->op->name, i);
    const stint_shape *shape = sti_op_in_shape(graph, node, i);
    if (shape->dtype == STINT_U8)
        return sti_fail(STINT_E_INPUT, "%s: input %d is %s, wanted f32 or i32",
                        node->op->name, i, sti_shape_text(shape));
    return STINT_OK;
}

/* Strides in elements with which `from` is read under the axes of `to`. */
void sti_op_broadcast_strides(const stint_shape *from, const stint_shape *to,
                              int64_t *stride)
{
    int64_t run = 1;
    for (int i = to->rank - 1; i >= 0; i--) {
        int k = i - (to->rank - from->rank);
        int64_t dim = k < 0 ? 1 : from->dim[k];
        stride[i] = dim == 1 ? 0 : run;
        run *= dim;
    }
}

stint_value sti_op_slope(stint_graph *g, stint_value y, stint_value dy)
{
    const bool need[3] = {true};
    stint_value dx[3] = {-1, -1, -1};
    if (y < 0 || dy < 0)
        return -1;
    const sti_node *node = sti_graph_value(g, y)->producer;
    const stint_status st = node->op->grad(g, node, &dy, need, dx);
    return st == STINT_OK ? dx[0] : sti_graph_fail(g, st);
}
