/* Sum, mean and maximum over a set of axes. The maximum's gradient is shared equally by
 * all elements that attain it. */
#include "kernel/reduce/reduce.h"
#include "op/op_priv.h"

typedef struct reduce_attr {
    uint32_t axes; /* bit i: axis i */
    int32_t keep;
} reduce_attr;

static stint_shape kept_shape(const stint_shape *x, unsigned axes)
{
    stint_shape kept = *x;
    for (int i = 0; i < x->rank; i++)
        if (axes >> i & 1)
            kept.dim[i] = 1;
    return kept;
}

static stint_status infer_reduce(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const reduce_attr *attr = node->attr;
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

/* v has the result's shape; give it the input's shape with reduced axes as 1. */
static stint_value with_kept_axes(stint_graph *g, const sti_node *node, stint_value v)
{
    const reduce_attr *attr = node->attr;
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
        dx[0] = stint_broadcast(g, with_kept_axes(g, node, dy[0]), &shape);
    return STINT_OK;
}

static stint_status grad_mean(stint_graph *g, const sti_node *node,
                              const stint_value *dy, const bool *need, stint_value *dx)
{
    stint_value each = stint_scale(g, dy[0], 1.0f / reduced_count(g, node));
    return grad_sum(g, node, &each, need, dx);
}

static stint_status grad_max(stint_graph *g, const sti_node *node,
                             const stint_value *dy, const bool *need, stint_value *dx)
{
    const reduce_attr *attr = node->attr;
    if (!need[0])
        return STINT_OK;
    stint_value y = with_kept_axes(g, node, node->out[0]);
    stint_value hit = sti_op_add2(g, &sti_op_equal, NULL, node->in[0], y);
    stint_value share = stint_sum(g, hit, attr->axes, true);
    share = stint_div(g, with_kept_axes(g, node, dy[0]), share);
    dx[0] = stint_mul(g, hit, share);
    return STINT_OK;
}

static size_t reduce_scratch(const stint_graph *graph, const sti_node *node,
                             int threads)
{
    const reduce_attr *attr = node->attr;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    (void)threads;
    return sti_reduce_axes_scratch_bytes(x->rank, x->dim, attr->axes);
}

static sti_cost reduce_cost(const stint_graph *graph, const sti_node *node)
{
    sti_cost cost = sti_op_cost_move(graph, node);
    cost.flop = (double)stint_shape_count(sti_op_in_shape(graph, node, 0));
    return cost;
}

static void run_reduce(const sti_call *call, sti_reduce kind)
{
    const reduce_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    sti_reduce_axes_f32(call->team, kind, x->rank, x->dim, attr->axes, call->in[0],
                        call->out[0], call->scratch);
}

static void print_reduce(const sti_node *node, sti_text *out)
{
    const reduce_attr *attr = node->attr;
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
        run_reduce(call, kind);                                                      \
    }                                                                                \
    const sti_op sti_op_##row = {.name = #row,                                       \
                                 .n_out = 1,                                         \
                                 .attr_bytes = sizeof(reduce_attr),                  \
                                 .infer = infer_reduce,                              \
                                 .grad = grad_##row,                                 \
                                 .cost = reduce_cost,                                \
                                 .scratch_bytes = reduce_scratch,                    \
                                 .run = {[STI_CPU] = run_##row},                     \
                                 .print = print_reduce};                             \
    stint_value stint_##row(stint_graph *g, stint_value x, unsigned axes, bool keep) \
    {                                                                                \
        return sti_op_add1(g, &sti_op_##row, &(reduce_attr){axes, keep}, x);         \
    }

ROW(sum, STI_REDUCE_SUM)
ROW(mean, STI_REDUCE_MEAN)
ROW(max, STI_REDUCE_MAX)
