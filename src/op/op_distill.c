/* Losses against the logits of a reference model. The reference is given: no gradient
 * flows to it. */
#include "kernel/softmax/softmax.h"
#include "op/op_priv.h"

enum { X, REFERENCE, LABEL }; /* inputs of a loss */

/* ---- weight of a row ---- */

typedef struct weight_attr {
    float base, right;
} weight_attr;

/* in: logits of the reference, labels. out: [n, 1]. */
static stint_status infer_weight(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = sti_op_check_logits(graph, node, 0)) != STINT_OK)
        return st;
    out[0] = STINT_SHAPE(sti_op_in_shape(graph, node, 0)->dim[0], 1);
    return sti_op_check_labels(graph, node, 1);
}

static void run_weight(const sti_call *call)
{
    const weight_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    const int64_t classes = x->dim[1];
    const float *logits = call->in[0];
    const int32_t *label = call->in[1];
    float *out = call->out[0];
    for (int64_t i = 0; i < x->dim[0]; i++) {
        const float *row = logits + i * classes;
        const bool right = sti_count_correct_f32(1, classes, row, &label[i]) == 1;
        out[i] = label[i] == -1 ? 0.0f : attr->base + (right ? attr->right : 0.0f);
    }
}

static void print_weight(const sti_node *node, sti_text *out)
{
    const weight_attr *attr = node->attr;
    sti_text_printf(out, "base %.9g right %.9g", (double)attr->base,
                    (double)attr->right);
}

const sti_op sti_op_reference_weight = {
    .name = "reference_weight",
    .n_out = 1,
    .attr_bytes = sizeof(weight_attr),
    .flags = STI_OP_NO_GRAD,
    .infer = infer_weight,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_weight},
    .print = print_weight,
};

/* ---- logit pairing ---- */

/* What each row of the pairing weighs. */
static stint_value pairing_weight(stint_graph *g, stint_value reference,
                                  stint_value labels, const stint_pairing_desc *desc)
{
    weight_attr attr = {desc->base, desc->right};
    if (attr.base == 0.0f && attr.right == 0.0f)
        attr.base = 1.0f;
    return sti_op_add2(g, &sti_op_reference_weight, &attr, reference, labels);
}

stint_value sti_op_pairing_slope(stint_graph *g, stint_value x, stint_value reference,
                                 stint_value labels, const stint_pairing_desc *desc)
{
    if (x < 0 || reference < 0)
        return -1;
    const stint_shape shape = stint_value_shape(g, x);
    const stint_value apart = stint_sub(g, x, reference);
    return stint_scale(g,
                       stint_mul(g, apart, pairing_weight(g, reference, labels, desc)),
                       2.0f / (float)stint_shape_count(&shape));
}

stint_value stint_logit_pairing(stint_graph *g, stint_value x, stint_value reference,
                                stint_value labels, const stint_pairing_desc *desc)
{
    if (x < 0 || reference < 0 || labels < 0)
        return -1;
    const stint_shape a = stint_value_shape(g, x), b = stint_value_shape(g, reference);
    if (!sti_shape_equal(&a, &b))
        return sti_graph_fail(
            g, sti_fail(STINT_E_INPUT,
                        "logit pairing: logits are %s, the reference's %s; both must "
                        "tell the same classes apart",
                        sti_shape_text(&a), sti_shape_text(&b)));
    const stint_value weight = pairing_weight(g, reference, labels, desc);
    const stint_value error = stint_square(g, stint_sub(g, x, reference));
    return stint_mean(g, stint_mul(g, error, weight), 3u, false);
}

/* ---- soft labels ---- */

typedef struct soft_attr {
    float temperature;
} soft_attr;

static stint_status infer_soft(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const soft_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 3);
    if (st != STINT_OK || (st = sti_op_check_logits(graph, node, X)) != STINT_OK)
        return st;
    st = sti_op_check_shape(graph, node, REFERENCE, sti_op_in_shape(graph, node, X));
    if (st != STINT_OK || (st = sti_op_check_labels(graph, node, LABEL)) != STINT_OK)
        return st;
    if (!(attr->temperature > 0.0f && attr->temperature <= 1e6f))
        return sti_fail(STINT_E_INPUT,
                        "soft_cross_entropy: temperature %g, wanted above 0",
                        (double)attr->temperature);
    out[0] = stint_shape_make(STINT_F32, 0, NULL);
    return STINT_OK;
}

static void soft_piece(void *arg, int64_t row, int worker)
{
    const sti_call *call = arg;
    const soft_attr *attr = call->node->attr;
    const int64_t n = sti_op_in_shape(call->graph, call->node, X)->dim[1];
    const float *x = call->in[X], *reference = call->in[REFERENCE];
    const int32_t *label = call->in[LABEL];
    float *loss = call->scratch;
    (void)worker;
    loss[row] = label[row] == -1
                    ? 0.0f
                    : sti_soft_cross_entropy_row_f32(n, attr->temperature, x + row * n,
                                                     reference + row * n);
}

static void run_soft(const sti_call *call)
{
    const int64_t rows = sti_op_in_shape(call->graph, call->node, X)->dim[0];
    sti_call args = *call;
    float *out = call->out[0];
    sti_team_run(call->team, rows, soft_piece, &args);
    *out = sti_sum_short_f32(rows, call->scratch) / (float)rows;
}

/* dx = dy T / n mask (softmax(x / T) - softmax(reference / T)) */
static stint_status grad_soft(stint_graph *g, const sti_node *node,
                              const stint_value *dy, const bool *need, stint_value *dx)
{
    const soft_attr *attr = node->attr;
    const float t = attr->temperature;
    const int64_t rows = sti_op_in_shape(g, node, X)->dim[0];
    if (need[REFERENCE])
        return sti_fail(
            STINT_E_UNSUPPORTED,
            "soft_cross_entropy has no gradient for the reference's logits");
    if (!need[X])
        return STINT_OK;
    const stint_value mask =
        sti_op_add2(g, &sti_op_reference_weight, &(weight_attr){.base = 1.0f},
                    node->in[REFERENCE], node->in[LABEL]);
    const stint_value p = stint_softmax(g, stint_scale(g, node->in[X], 1.0f / t));
    const stint_value q =
        stint_softmax(g, stint_scale(g, node->in[REFERENCE], 1.0f / t));
    const stint_value apart = stint_mul(g, stint_sub(g, p, q), mask);
    dx[X] = stint_mul(g, apart, stint_scale(g, dy[0], t / (float)rows));
    return STINT_OK;
}

static sti_cost cost_soft(const stint_graph *graph, const sti_node *node)
{
    sti_cost cost = sti_op_cost_bytes(graph, node, 0.0);
    cost.flop = 50.0 * (double)stint_shape_count(sti_op_in_shape(graph, node, X));
    return cost;
}

static void print_soft(const sti_node *node, sti_text *out)
{
    const soft_attr *attr = node->attr;
    sti_text_printf(out, "temperature %.9g", (double)attr->temperature);
}

const sti_op sti_op_soft_cross_entropy = {
    .name = "soft_cross_entropy",
    .n_out = 1,
    .attr_bytes = sizeof(soft_attr),
    .infer = infer_soft,
    .grad = grad_soft,
    .cost = cost_soft,
    .scratch_bytes = sti_op_scratch_rows,
    .run = {[STI_CPU] = run_soft},
    .print = print_soft,
};

stint_value stint_soft_cross_entropy(stint_graph *g, stint_value x,
                                     stint_value reference, stint_value labels,
                                     float temperature)
{
    const stint_value in[3] = {x, reference, labels};
    return sti_graph_add(g, &sti_op_soft_cross_entropy, &(soft_attr){temperature}, 3,
                         in);
}
