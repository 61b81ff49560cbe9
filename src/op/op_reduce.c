/* Sum and mean over a set of axes, and broadcasting, which is the gradient of a sum as
 * a sum is the gradient of broadcasting. */
#include "kernel/elementwise/elementwise.h"
#include "op/op_reduce_priv.h"

typedef struct broadcast_attr {
    stint_shape shape;
} broadcast_attr;

static stint_shape kept_shape(const stint_shape *x, unsigned axes)
{
    stint_shape kept = *x;
    for (int i = 0; i < x->rank; i++)
        if (axes >> i & 1)
            kept.dim[i] = 1;
    return kept;
}

stint_status sti_op_reduce_infer(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const sti_reduce_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    if (attr->axes >> x->rank != 0)
        return sti_fail(STINT_E_INPUT, "%s: axes 0x%x of %s, which has %d",
                        node->op->name, (unsigned)attr->axes, sti_shape_text(x),
                        (int)x->rank);
    if (stint_shape_count(x) == 0)
        return sti_fail(STINT_E_INPUT, "%s: %s is empty", node->op->name,
                        sti_shape_text(x));
    *out = kept_shape(x, attr->axes);
    if (attr->keep)
        return STINT_OK;
    *out = (stint_shape){.dtype = STINT_F32};
    for (int i = 0; i < x->rank; i++)
        if (!(attr->axes >> i & 1))
            out->dim[out->rank++] = x->dim[i];
    return STINT_OK;
}

stint_value sti_op_reduce_keep(stint_graph *g, const sti_node *node, stint_value v)
{
    const sti_reduce_attr *attr = node->attr;
    stint_shape kept = kept_shape(sti_op_in_shape(g, node, 0), attr->axes);
    return attr->keep ? v : stint_reshape(g, v, &kept);
}

static float reduced_count(const stint_graph *g, const sti_node *node)
{
    return (float)(stint_shape_count(sti_op_in_shape(g, node, 0)) /
                   stint_shape_count(sti_op_out_shape(g, node, 0)));
}

static stint_status grad_sum(stint_graph *g, const sti_node *node,
                             const stint_value *dy, const bool *need, stint_value *dx)
{
    stint_shape shape = *sti_op_in_shape(g, node, 0);
    if (need[0])
        dx[0] = stint_broadcast(g, sti_op_reduce_keep(g, node, dy[0]), &shape);
    return STINT_OK;
}

static stint_status grad_mean(stint_graph *g, const sti_node *node,
                              const stint_value *dy, const bool *need, stint_value *dx)
{
    stint_value each = stint_scale(g, dy[0], 1.0f / reduced_count(g, node));
    return grad_sum(g, node, &each, need, dx);
}

size_t sti_op_reduce_scratch(const stint_graph *graph, const sti_node *node,
                             int threads)
{
    const sti_reduce_attr *attr = node->attr;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    (void)threads;
    return sti_reduce_axes_scratch_bytes(x->rank, x->dim, attr->axes);
}

sti_cost sti_op_reduce_cost(const stint_graph *graph, const sti_node *node)
{
    sti_cost cost = sti_op_cost_move(graph, node);
    cost.flop = (double)stint_shape_count(sti_op_in_shape(graph, node, 0));
    return cost;
}

void sti_op_reduce_run(const sti_call *call, sti_reduce kind)
{
    const sti_reduce_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    sti_reduce_axes_f32(call->team, kind, x->rank, x->dim, attr->axes, call->in[0],
                        call->out[0], call->scratch);
}

void sti_op_reduce_print(const sti_node *node, sti_text *out)
{
    const sti_reduce_attr *attr = node->attr;
    const char *between = "axes ";
    for (int i = 0; i < STINT_MAX_RANK; i++)
        if (attr->axes >> i & 1) {
            sti_text_printf(out, "%s%d", between, i);
            between = ",";
        }
    if (attr->keep)
        sti_text_add(out, " keep");
}

#define ROW(row, kind)                                                               \
    static void run_##row(const sti_call *call)                                      \
    {                                                                                \
        sti_op_reduce_run(call, kind);                                               \
    }                                                                                \
    const sti_op sti_op_##row = {.name = #row,                                       \
                                 .n_out = 1,                                         \
                                 .attr_bytes = sizeof(sti_reduce_attr),              \
                                 .infer = sti_op_reduce_infer,                       \
                                 .grad = grad_##row,                                 \
                                 .cost = sti_op_reduce_cost,                         \
                                 .scratch_bytes = sti_op_reduce_scratch,             \
                                 .run = {[STI_CPU] = run_##row},                     \
                                 .print = sti_op_reduce_print};                      \
    stint_value stint_##row(stint_graph *g, stint_value x, unsigned axes, bool keep) \
    {                                                                                \
        return sti_op_add1(g, &sti_op_##row, &(sti_reduce_attr){axes, keep}, x);     \
    }

ROW(sum, STI_REDUCE_SUM)
ROW(mean, STI_REDUCE_MEAN)

/* ---- broadcast ---- */

static stint_status infer_broadcast(const stint_graph *graph, const sti_node *node,
                                    stint_shape *out)
{
    const broadcast_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_words(graph, node, 0)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    *out = attr->shape;
    out->dtype = x->dtype;
    int extra = out->rank - x->rank;
    bool fits = extra >= 0;
    for (int i = 0; fits && i < x->rank; i++)
        fits = x->dim[i] == 1 || x->dim[i] == out->dim[i + extra];
    if (!fits)
        return sti_fail(STINT_E_INPUT, "broadcast: %s does not repeat to %s",
                        sti_shape_text(x), sti_shape_text(out));
    return STINT_OK;
}

static void run_broadcast(const sti_call *call)
{
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    const stint_shape *y = sti_op_out_shape(call->graph, call->node, 0);
    int64_t from[STINT_MAX_RANK], to[STINT_MAX_RANK];
    sti_op_broadcast_strides(x, y, from);
    sti_op_row_strides(y, to);
    sti_copy_strided_32(call->team, y->rank, y->dim, from, to, call->in[0],
                        call->out[0]);
}

static stint_status grad_broadcast(stint_graph *g, const sti_node *node,
                                   const stint_value *dy, const bool *need,
                                   stint_value *dx)
{
    stint_shape shape = *sti_op_in_shape(g, node, 0);
    if (need[0])
        dx[0] = sti_op_reduce_to(g, dy[0], &shape);
    return STINT_OK;
}

static void print_broadcast(const sti_node *node, sti_text *out)
{
    const broadcast_attr *attr = node->attr;
    sti_text_add(out, sti_shape_text(&attr->shape));
}

const sti_op sti_op_broadcast = {
    .name = "broadcast",
    .n_out = 1,
    .attr_bytes = sizeof(broadcast_attr),
    .infer = infer_broadcast,
    .grad = grad_broadcast,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_broadcast},
    .print = print_broadcast,
};

stint_value stint_broadcast(stint_graph *g, stint_value x, const stint_shape *shape)
{
    if (x < 0)
        return -1;
    stint_shape from = stint_value_shape(g, x);
    broadcast_attr attr = {stint_shape_make(shape->dtype, shape->rank, shape->dim)};
    attr.shape.dtype = from.dtype;
    return sti_shape_equal(&from, &attr.shape)
               ? x
               : sti_op_add1(g, &sti_op_broadcast, &attr, x);
}

stint_value sti_op_reduce_to(stint_graph *g, stint_value x, const stint_shape *shape)
{
    if (x < 0)
        return -1;
    stint_shape from = stint_value_shape(g, x);
    int extra = from.rank - shape->rank;
    unsigned axes = 0;
    if (sti_shape_equal(&from, shape))
        return x;
    for (int i = 0; i < from.rank; i++)
        if (i < extra || (shape->dim[i - extra] == 1 && from.dim[i] != 1))
            axes |= 1u << i;
    if (axes)
        x = stint_sum(g, x, axes, true);
    return extra > 0 ? stint_reshape(g, x, shape) : x;
}
