/* Cross-entropy in which rows count by their class. The weights are given: no gradient
 * flows to them. */
#include "kernel/softmax/softmax.h"
#include "op/op_priv.h"

/* ---- weight of a row ---- */

/* in: labels [n] i32, weights [classes]. out: [n, 1]. */
static stint_status infer_class_weight(const stint_graph *graph, const sti_node *node,
                                       stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 1)) != STINT_OK)
        return st;
    const stint_shape *labels = sti_op_in_shape(graph, node, 0);
    const stint_shape *weights = sti_op_in_shape(graph, node, 1);
    if (labels->rank != 1 || labels->dtype != STINT_I32 || weights->rank != 1)
        return sti_fail(STINT_E_INPUT,
                        "class_weight: labels are %s and weights %s, wanted [n] i32 "
                        "and [classes] f32",
                        sti_shape_text(labels), sti_shape_text(weights));
    out[0] = STINT_SHAPE(labels->dim[0], 1);
    return STINT_OK;
}

/* A label outside of the classes has NaN as its loss already. */
static void run_class_weight(const sti_call *call)
{
    const stint_shape *labels = sti_op_in_shape(call->graph, call->node, 0);
    const int64_t classes = sti_op_in_shape(call->graph, call->node, 1)->dim[0];
    const int32_t *label = call->in[0];
    const float *weight = call->in[1];
    float *out = call->out[0];
    for (int64_t i = 0; i < labels->dim[0]; i++)
        out[i] = label[i] == -1                        ? 0.0f
                 : label[i] >= 0 && label[i] < classes ? weight[label[i]]
                                                       : 1.0f;
}

const sti_op sti_op_class_weight = {
    .name = "class_weight",
    .n_out = 1,
    .flags = STI_OP_NO_GRAD,
    .infer = infer_class_weight,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_class_weight},
};

/* ---- the loss ---- */

enum { X, LABEL, WEIGHT }; /* inputs of the loss */

typedef struct weighted_attr {
    float smoothing;
} weighted_attr;

static stint_status infer_weighted(const stint_graph *graph, const sti_node *node,
                                   stint_shape *out)
{
    const weighted_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 3);
    if (st != STINT_OK || (st = sti_op_check_logits(graph, node, X)) != STINT_OK ||
        (st = sti_op_check_labels(graph, node, LABEL)) != STINT_OK)
        return st;
    const stint_shape rows = STINT_SHAPE(sti_op_in_shape(graph, node, X)->dim[0], 1);
    if (!(attr->smoothing >= 0.0f && attr->smoothing <= 1.0f))
        return sti_fail(STINT_E_INPUT,
                        "weighted_cross_entropy: label smoothing %g, wanted 0 to 1",
                        (double)attr->smoothing);
    out[0] = stint_shape_make(STINT_F32, 0, NULL);
    return sti_op_check_shape(graph, node, WEIGHT, &rows);
}

static void run_weighted(const sti_call *call)
{
    const weighted_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, X);
    const sti_cross_entropy args = {.rows = x->dim[0],
                                    .n = x->dim[1],
                                    .smoothing = attr->smoothing,
                                    .x = call->in[X],
                                    .label = call->in[LABEL]};
    const float *weight = call->in[WEIGHT];
    float *loss = call->scratch, *out = call->out[0];
    sti_cross_entropy_f32(call->team, &args, loss);
    for (int64_t i = 0; i < args.rows; i++)
        loss[i] *= weight[i];
    *out = sti_sum_short_f32(args.rows, loss) / (float)args.rows;
}

/* Each row of the plain loss's gradient times its weight. */
static stint_status grad_weighted(stint_graph *g, const sti_node *node,
                                  const stint_value *dy, const bool *need,
                                  stint_value *dx)
{
    const stint_value in[3] = {node->in[X], node->in[LABEL], dy[0]};
    if (need[WEIGHT])
        return sti_fail(STINT_E_UNSUPPORTED,
                        "weighted_cross_entropy has no gradient for the weights");
    if (need[X])
        dx[X] = stint_mul(
            g, sti_graph_add(g, &sti_op_softmax_cross_entropy_grad, node->attr, 3, in),
            node->in[WEIGHT]);
    return STINT_OK;
}

static sti_cost cost_weighted(const stint_graph *graph, const sti_node *node)
{
    sti_cost cost = sti_op_cost_bytes(graph, node, 0.0);
    cost.flop = 24.0 * (double)stint_shape_count(sti_op_in_shape(graph, node, X));
    return cost;
}

static void print_weighted(const sti_node *node, sti_text *out)
{
    const weighted_attr *attr = node->attr;
    sti_text_printf(out, "smoothing %.9g", (double)attr->smoothing);
}

const sti_op sti_op_weighted_cross_entropy = {
    .name = "weighted_cross_entropy",
    .n_out = 1,
    .attr_bytes = sizeof(weighted_attr),
    .infer = infer_weighted,
    .grad = grad_weighted,
    .cost = cost_weighted,
    .scratch_bytes = sti_op_scratch_rows,
    .run = {[STI_CPU] = run_weighted},
    .print = print_weighted,
};

stint_value stint_class_weight(stint_graph *g, stint_value labels,
                               stint_value class_weights)
{
    return sti_op_add2(g, &sti_op_class_weight, NULL, labels, class_weights);
}

stint_value stint_row_weighted_cross_entropy(stint_graph *g, stint_value logits,
                                             stint_value labels, stint_value weights,
                                             float smoothing)
{
    const stint_value in[3] = {logits, labels, weights};
    if (logits < 0 || labels < 0 || weights < 0)
        return -1;
    return sti_graph_add(g, &sti_op_weighted_cross_entropy, &(weighted_attr){smoothing},
                         3, in);
}

stint_value stint_weighted_cross_entropy(stint_graph *g, stint_value logits,
                                         stint_value labels, stint_value class_weights,
                                         float smoothing)
{
    if (logits < 0 || labels < 0 || class_weights < 0)
        return -1;
    const stint_shape x = stint_value_shape(g, logits);
    const stint_shape w = stint_value_shape(g, class_weights);
    if (x.rank == 2 && w.rank == 1 && w.dim[0] != x.dim[1])
        return sti_graph_fail(g, sti_fail(STINT_E_INPUT,
                                          "weighted_cross_entropy: logits are %s, "
                                          "class weights %s; one a class is wanted",
                                          sti_shape_text(&x), sti_shape_text(&w)));
    return stint_row_weighted_cross_entropy(
        g, logits, labels, stint_class_weight(g, labels, class_weights), smoothing);
}
