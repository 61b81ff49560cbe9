/* Softmax, losses and counting of right answers. */
#include <inttypes.h>

#include "kernel/softmax/softmax.h"
#include "op/op_priv.h"

/* ---- softmax ---- */

static stint_status infer_softmax(const stint_graph *graph, const sti_node *node,
                                  stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    out[0] = *sti_op_in_shape(graph, node, 0);
    if (out[0].rank < 1)
        return sti_fail(STINT_E_INPUT, "softmax: x is a scalar, wanted [..., classes]");
    return STINT_OK;
}

static void run_softmax(const sti_call *call)
{
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    const int64_t n = x->dim[x->rank - 1];
    sti_softmax_f32(call->team, stint_shape_count(x) / n, n, call->in[0], call->out[0]);
}

/* dx = y (dy - sum dy y) */
static stint_status grad_softmax(stint_graph *g, const sti_node *node,
                                 const stint_value *dy, const bool *need,
                                 stint_value *dx)
{
    const stint_value y = node->out[0];
    const int last = sti_op_out_shape(g, node, 0)->rank - 1;
    if (need[0]) {
        stint_value sum = stint_sum(g, stint_mul(g, dy[0], y), 1u << last, true);
        dx[0] = stint_mul(g, stint_sub(g, dy[0], sum), y);
    }
    return STINT_OK;
}

/* Largest, difference, exp (about 20), sum, division. */
static sti_cost cost_softmax(const stint_graph *graph, const sti_node *node)
{
    sti_cost cost = sti_op_cost_bytes(graph, node, 0.0);
    cost.flop = 24.0 * (double)stint_shape_count(sti_op_in_shape(graph, node, 0));
    return cost;
}

const sti_op sti_op_softmax = {
    .name = "softmax",
    .n_out = 1,
    .flags = STI_OP_INPLACE_0,
    .infer = infer_softmax,
    .grad = grad_softmax,
    .cost = cost_softmax,
    .run = {[STI_CPU] = run_softmax},
};

stint_value stint_softmax(stint_graph *g, stint_value x)
{
    return sti_op_add1(g, &sti_op_softmax, NULL, x);
}

/* ---- cross-entropy ---- */

typedef struct loss_attr {
    float smoothing;
} loss_attr;

/* Inputs 0 and 1: logits [n, classes] f32 and labels [n] i32. */
static stint_status check_inputs(const stint_graph *graph, const sti_node *node)
{
    stint_status st = sti_op_check_logits(graph, node, 0);
    return st == STINT_OK ? sti_op_check_labels(graph, node, 1) : st;
}

static stint_status infer_cross_entropy(const stint_graph *graph, const sti_node *node,
                                        stint_shape *out)
{
    const loss_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = check_inputs(graph, node)) != STINT_OK)
        return st;
    if (!(attr->smoothing >= 0.0f && attr->smoothing <= 1.0f))
        return sti_fail(STINT_E_INPUT,
                        "softmax_cross_entropy: label smoothing %g, wanted 0 to 1",
                        (double)attr->smoothing);
    out[0] = stint_shape_make(STINT_F32, 0, NULL);
    return STINT_OK;
}

static sti_cross_entropy loss_args(const sti_call *call)
{
    const loss_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    return (sti_cross_entropy){.rows = x->dim[0],
                               .n = x->dim[1],
                               .smoothing = attr->smoothing,
                               .x = call->in[0],
                               .label = call->in[1]};
}

static void run_cross_entropy(const sti_call *call)
{
    const sti_cross_entropy args = loss_args(call);
    float *out = call->out[0];
    sti_cross_entropy_f32(call->team, &args, call->scratch);
    *out = sti_sum_short_f32(args.rows, call->scratch) / (float)args.rows;
}

static stint_status grad_cross_entropy(stint_graph *g, const sti_node *node,
                                       const stint_value *dy, const bool *need,
                                       stint_value *dx)
{
    const stint_value in[3] = {node->in[0], node->in[1], dy[0]};
    if (need[0])
        dx[0] = sti_graph_add(g, &sti_op_softmax_cross_entropy_grad, node->attr, 3, in);
    return STINT_OK;
}

static void print_loss(const sti_node *node, sti_text *out)
{
    const loss_attr *attr = node->attr;
    sti_text_printf(out, "smoothing %.9g", (double)attr->smoothing);
}

const sti_op sti_op_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .n_out = 1,
    .attr_bytes = sizeof(loss_attr),
    .infer = infer_cross_entropy,
    .grad = grad_cross_entropy,
    .cost = cost_softmax,
    .scratch_bytes = sti_op_scratch_rows,
    .run = {[STI_CPU] = run_cross_entropy},
    .print = print_loss,
};

/* in: logits, labels, gradient of the loss. */
static stint_status infer_loss_grad(const stint_graph *graph, const sti_node *node,
                                    stint_shape *out)
{
    const stint_shape scalar = stint_shape_make(STINT_F32, 0, NULL);
    stint_status st = sti_op_check_count(node, 3);
    if (st != STINT_OK || (st = check_inputs(graph, node)) != STINT_OK)
        return st;
    out[0] = *sti_op_in_shape(graph, node, 0);
    return sti_op_check_shape(graph, node, 2, &scalar);
}

static void run_loss_grad(const sti_call *call)
{
    const sti_cross_entropy args = loss_args(call);
    const float *dy = call->in[2];
    sti_cross_entropy_grad_f32(call->team, &args, *dy / (float)args.rows, call->out[0]);
}

typedef struct target_attr {
    int64_t classes;
    float smoothing;
    int32_t unused; /* no padding: attributes are compared as bytes */
} target_attr;

/* dloss / n * (softmax(x) mask - q) */
static stint_status expand_loss_grad(stint_graph *g, const sti_node *node,
                                     stint_value *out)
{
    const loss_attr *attr = node->attr;
    const stint_shape x = *sti_op_in_shape(g, node, 0);
    const target_attr target = {.classes = x.dim[1], .smoothing = attr->smoothing};
    const stint_value q = sti_op_add1(g, &sti_op_smooth_one_hot, &target, node->in[1]);
    if (q < 0)
        return STINT_OK; /* the graph has the failure */
    const stint_value p = stint_mul(g, stint_softmax(g, node->in[0]), q + 1);
    const stint_value factor = stint_scale(g, node->in[2], 1.0f / (float)x.dim[0]);
    out[0] = stint_mul(g, stint_sub(g, p, q), factor);
    return STINT_OK;
}

const sti_op sti_op_softmax_cross_entropy_grad = {
    .name = "softmax_cross_entropy_grad",
    .n_out = 1,
    .attr_bytes = sizeof(loss_attr),
    .flags = STI_OP_INPLACE_0,
    .infer = infer_loss_grad,
    .expand = expand_loss_grad,
    .cost = cost_softmax,
    .run = {[STI_CPU] = run_loss_grad},
    .print = print_loss,
};

/* in: labels [n]. out: the targets q [n, classes], and [n, 1]:
 * 0 for padding, else 1. */
static stint_status infer_target(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const target_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK)
        return st;
    const stint_shape *labels = sti_op_in_shape(graph, node, 0);
    if (labels->rank != 1 || labels->dtype != STINT_I32)
        return sti_fail(STINT_E_INPUT, "smooth_one_hot: labels are %s, wanted [n] i32",
                        sti_shape_text(labels));
    out[0] = STINT_SHAPE(labels->dim[0], attr->classes);
    out[1] = STINT_SHAPE(labels->dim[0], 1);
    return STINT_OK;
}

static void run_target(const sti_call *call)
{
    const target_attr *attr = call->node->attr;
    const stint_shape *labels = sti_op_in_shape(call->graph, call->node, 0);
    const sti_cross_entropy args = {.rows = labels->dim[0],
                                    .n = attr->classes,
                                    .smoothing = attr->smoothing,
                                    .label = call->in[0]};
    sti_cross_entropy_target_f32(call->team, &args, call->out[0], call->out[1]);
}

static void print_target(const sti_node *node, sti_text *out)
{
    const target_attr *attr = node->attr;
    sti_text_printf(out, "classes %" PRId64 " smoothing %.9g", attr->classes,
                    (double)attr->smoothing);
}

const sti_op sti_op_smooth_one_hot = {
    .name = "smooth_one_hot",
    .n_out = 2,
    .attr_bytes = sizeof(target_attr),
    .flags = STI_OP_NO_GRAD,
    .infer = infer_target,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_target},
    .print = print_target,
};

stint_value stint_softmax_cross_entropy(stint_graph *g, stint_value logits,
                                        stint_value labels, float smoothing)
{
    const loss_attr attr = {smoothing};
    return sti_op_add2(g, &sti_op_softmax_cross_entropy, &attr, logits, labels);
}

/* ---- other losses and counts ---- */

stint_value stint_mean_squared_error(stint_graph *g, stint_value x, stint_value target)
{
    if (x < 0 || target < 0)
        return -1;
    const stint_shape a = stint_value_shape(g, x), b = stint_value_shape(g, target);
    if (!sti_shape_equal(&a, &b))
        return sti_graph_fail(
            g,
            sti_fail(STINT_E_INPUT,
                     "mean_squared_error: x is %s and the target %s, wanted the same",
                     sti_shape_text(&a), sti_shape_text(&b)));
    const stint_value error = stint_square(g, stint_sub(g, x, target));
    return a.rank ? stint_mean(g, error, (1u << a.rank) - 1u, false) : error;
}

/* y softplus(-x) + (1 - y) softplus(x), from softplus(-x) = softplus(x) - x only where
 * that loses nothing: both are taken. */
stint_value stint_binary_cross_entropy(stint_graph *g, stint_value logits,
                                       stint_value labels)
{
    if (logits < 0 || labels < 0)
        return -1;
    const stint_shape a = stint_value_shape(g, logits),
                      b = stint_value_shape(g, labels);
    if (!sti_shape_equal(&a, &b))
        return sti_graph_fail(
            g, sti_fail(STINT_E_INPUT,
                        "binary_cross_entropy: logits are %s and labels %s, wanted "
                        "the same",
                        sti_shape_text(&a), sti_shape_text(&b)));
    const stint_value on = stint_softplus(g, stint_scale(g, logits, -1));
    const stint_value off = stint_softplus(g, logits);
    const stint_value rest = stint_add_scalar(g, stint_scale(g, labels, -1), 1);
    const stint_value loss =
        stint_add(g, stint_mul(g, labels, on), stint_mul(g, rest, off));
    return a.rank ? stint_mean(g, loss, (1u << a.rank) - 1u, false) : loss;
}

static stint_status infer_count(const stint_graph *graph, const sti_node *node,
                                stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = check_inputs(graph, node)) != STINT_OK)
        return st;
    out[0] = stint_shape_make(STINT_F32, 0, NULL);
    return STINT_OK;
}

static void run_count(const sti_call *call)
{
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    float *out = call->out[0];
    *out = (float)sti_count_correct_f32(x->dim[0], x->dim[1], call->in[0], call->in[1]);
}

static sti_cost cost_count(const stint_graph *graph, const sti_node *node)
{
    sti_cost cost = sti_op_cost_bytes(graph, node, 0.0);
    cost.flop = (double)stint_shape_count(sti_op_in_shape(graph, node, 0));
    return cost;
}

const sti_op sti_op_count_correct = {
    .name = "count_correct",
    .n_out = 1,
    .flags = STI_OP_NO_GRAD,
    .infer = infer_count,
    .cost = cost_count,
    .run = {[STI_CPU] = run_count},
};

stint_value stint_count_correct(stint_graph *g, stint_value logits, stint_value labels)
{
    return sti_op_add2(g, &sti_op_count_correct, NULL, logits, labels);
}
