/* Loss of a linear classifier over a large vocabulary, with its gradients: the logits
 * exist for a block of rows at a time. */
#include "kernel/softmax/linear_cross_entropy.h"
#include "op/op_bf16.h"
#include "op/op_bf16_priv.h"
#include "op/op_priv.h"

enum { X, TABLE, LABEL };  /* inputs */
enum { LOSS, DX, DTABLE }; /* outputs; the last two are of this very loss */

typedef struct loss_attr {
    float smoothing;
} loss_attr;

static bool is_bf16(const sti_node *node)
{
    return node->op == &sti_op_linear_cross_entropy_bf16;
}

static stint_status check_types(const stint_graph *graph, const sti_node *node)
{
    stint_status st = STINT_OK;
    for (int i = X; i <= TABLE && st == STINT_OK; i++)
        st = is_bf16(node) ? sti_op_check_bf16(graph, node, i, 2)
                           : sti_op_check_f32(graph, node, i);
    return st;
}

static stint_status infer(const stint_graph *graph, const sti_node *node,
                          stint_shape *out)
{
    const loss_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 3);
    if (st != STINT_OK || (st = check_types(graph, node)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, X);
    const stint_shape *table = sti_op_in_shape(graph, node, TABLE);
    if (x->rank != 2 || table->rank != 2 || x->dim[1] != table->dim[1] || x->dim[0] < 1)
        return sti_fail(STINT_E_INPUT,
                        "linear_cross_entropy: x %s and table %s, wanted [rows, n] and "
                        "[classes, n]",
                        sti_shape_text(x), sti_shape_text(table));
    if (!(attr->smoothing >= 0.0f && attr->smoothing <= 1.0f))
        return sti_fail(STINT_E_INPUT,
                        "linear_cross_entropy: label smoothing %g, wanted 0 to 1",
                        (double)attr->smoothing);
    out[LOSS] = stint_shape_make(STINT_F32, 0, NULL);
    out[DX] = stint_shape_make(STINT_F32, 2, x->dim);
    out[DTABLE] = stint_shape_make(STINT_F32, 2, table->dim);
    const stint_shape labels = stint_shape_make(STINT_I32, 1, x->dim);
    return sti_op_check_shape(graph, node, LABEL, &labels);
}

static sti_linear_cross_entropy args_of(const stint_graph *graph, const sti_node *node)
{
    const loss_attr *attr = node->attr;
    const stint_shape *table = sti_op_in_shape(graph, node, TABLE);
    return (sti_linear_cross_entropy){.rows = sti_op_in_shape(graph, node, X)->dim[0],
                                      .n = table->dim[1],
                                      .classes = table->dim[0],
                                      .bf16 = is_bf16(node),
                                      .smoothing = attr->smoothing};
}

static bool is_read(const stint_graph *graph, stint_value v)
{
    const sti_output *outputs = sti_graph_outputs(graph);
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++)
        for (int32_t i = 0; i < sti_graph_node(graph, n)->n_in; i++)
            if (sti_graph_node(graph, n)->in[i] == v)
                return true;
    for (int32_t i = 0; i < sti_graph_output_count(graph); i++)
        if (outputs[i].value == v)
            return true;
    return false;
}

/* In use a gradient that nobody reads is absent in the call, so that this never says
 * less than what the run takes. */
static size_t scratch_bytes(const stint_graph *graph, const sti_node *node, int threads)
{
    sti_linear_cross_entropy args = args_of(graph, node);
    args.forward = stint_graph_mode(graph) == STINT_EVAL &&
                   !is_read(graph, node->out[DX]) && !is_read(graph, node->out[DTABLE]);
    return sti_linear_cross_entropy_scratch_bytes(&args, threads);
}

static void run(const sti_call *call)
{
    sti_linear_cross_entropy args = args_of(call->graph, call->node);
    args.x = call->in[X];
    args.table = call->in[TABLE];
    args.label = call->in[LABEL];
    args.forward = stint_graph_mode(call->graph) == STINT_EVAL && !call->out[DX] &&
                   !call->out[DTABLE];
    sti_linear_cross_entropy_f32(call->team, &args, call->out[LOSS], call->out[DX],
                                 call->out[DTABLE], call->scratch);
}

stint_value sti_op_times(stint_graph *g, stint_value dy, stint_value gradient)
{
    const sti_node *from = sti_graph_value(g, dy)->producer;
    if (from && sti_op_is_fill(from, 1.0f))
        return gradient;
    return stint_mul(g, gradient, dy);
}

static stint_status grad(stint_graph *g, const sti_node *node, const stint_value *dy,
                         const bool *need, stint_value *dx)
{
    if (need[X])
        dx[X] = sti_op_times(g, dy[LOSS], node->out[DX]);
    if (need[TABLE])
        dx[TABLE] = sti_op_times(g, dy[LOSS], node->out[DTABLE]);
    return STINT_OK;
}

/* The two gradients by logits that all exist at once. */
static stint_status expand(stint_graph *g, const sti_node *node, stint_value *out)
{
    const loss_attr *attr = node->attr;
    const stint_value x = node->in[X], table = node->in[TABLE];
    const stint_value logits = stint_matmul(g, x, table, false, true);
    const stint_value loss =
        stint_softmax_cross_entropy(g, logits, node->in[LABEL], attr->smoothing);
    const stint_shape scalar = stint_shape_make(STINT_F32, 0, NULL);
    const stint_value slope = sti_op_slope(g, loss, sti_op_fill(g, &scalar, 1.0f));
    out[DX] = stint_matmul(g, slope, table, false, false);
    out[DTABLE] = stint_matmul(g, slope, x, true, false);
    return STINT_OK;
}

static sti_cost cost(const stint_graph *graph, const sti_node *node)
{
    const sti_linear_cross_entropy args = args_of(graph, node);
    sti_cost cost = sti_op_cost_bytes(graph, node, 0.0);
    cost.flop = sti_linear_cross_entropy_flop(
        &args, stint_graph_mode(graph) == STINT_TRAIN ? 2 : 0);
    return cost;
}

static void print(const sti_node *node, sti_text *out)
{
    const loss_attr *attr = node->attr;
    sti_text_printf(out, "smoothing %.9g", (double)attr->smoothing);
}

const sti_op sti_op_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .n_out = 3,
    .optional_out = 1u << DX | 1u << DTABLE,
    .attr_bytes = sizeof(loss_attr),
    .infer = infer,
    .grad = grad,
    .expand_out = 1u << DX | 1u << DTABLE,
    .expand = expand,
    .cost = cost,
    .scratch_bytes = scratch_bytes,
    .run = {[STI_CPU] = run},
    .print = print,
};

const sti_op sti_op_linear_cross_entropy_bf16 = {
    .name = "linear_cross_entropy_bf16",
    .n_out = 3,
    .optional_out = 1u << DX | 1u << DTABLE,
    .attr_bytes = sizeof(loss_attr),
    .flags = STI_OP_BF16,
    .infer = infer,
    .cost = cost,
    .scratch_bytes = scratch_bytes,
    .run = {[STI_CPU] = run},
    .print = print,
};

stint_value stint_linear_cross_entropy(stint_graph *g, stint_value x, stint_value table,
                                       stint_value labels, float smoothing)
{
    const stint_value in[3] = {x, table, labels};
    return sti_graph_add(g, &sti_op_linear_cross_entropy, &(loss_attr){smoothing}, 3,
                         in);
}
