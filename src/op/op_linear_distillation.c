/* Loss of a linear classifier over a large vocabulary against labels and against a
 * reference's logits, with its gradients: logits of both exist for a block of rows at a
 * time. The reference is given: no gradient flows to it. */
#include "op/op_linear_distillation.h"

#include <math.h>

#include "kernel/softmax/linear_distillation.h"
#include "op/op_priv.h"

enum {
    X,
    TABLE,
    LABEL,
    AGAINST_X,
    AGAINST_TABLE,
    WEIGHTS
}; /* inputs; the last may
       be missing */
enum {
    LOSS = STI_DISTILLATION_LOSS,
    HARD = STI_DISTILLATION_HARD,
    DX = STI_DISTILLATION_DX,
    DTABLE = STI_DISTILLATION_DTABLE
};

static stint_status check_pair(const stint_graph *graph, const sti_node *node, int x)
{
    const stint_shape *rows = sti_op_in_shape(graph, node, x);
    const stint_shape *table = sti_op_in_shape(graph, node, x + 1);
    if (rows->rank == 2 && table->rank == 2 && rows->dim[1] == table->dim[1] &&
        rows->dim[0] >= 1 && table->dim[0] >= 1)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "linear_distillation: x %s and table %s, wanted [rows, n] and "
                    "[classes, n]",
                    sti_shape_text(rows), sti_shape_text(table));
}

static stint_status check_numbers(const stint_distillation_desc *d)
{
    if (!(d->temperature > 0.0f && d->temperature <= 1e6f))
        return sti_fail(STINT_E_INPUT,
                        "linear_distillation: temperature %g, wanted above 0",
                        (double)d->temperature);
    if (d->top < 0 || d->top > STI_DISTIL_TOP_MAX)
        return sti_fail(STINT_E_INPUT, "linear_distillation: top %d, wanted 0 to %d",
                        (int)d->top, STI_DISTIL_TOP_MAX);
    if (!(d->hard >= 0 && d->pairing >= 0 && d->soft >= 0))
        return sti_fail(STINT_E_INPUT,
                        "linear_distillation: factors %g, %g and %g, wanted 0 or more",
                        (double)d->hard, (double)d->pairing, (double)d->soft);
    return STINT_OK;
}

static stint_status check_rows(const stint_graph *graph, const sti_node *node)
{
    const stint_shape *x = sti_op_in_shape(graph, node, X);
    const stint_shape *against = sti_op_in_shape(graph, node, AGAINST_X);
    const stint_shape *table = sti_op_in_shape(graph, node, TABLE);
    const stint_shape *given = sti_op_in_shape(graph, node, AGAINST_TABLE);
    if (x->dim[0] == against->dim[0] && table->dim[0] == given->dim[0])
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "linear_distillation: x %s and table %s against %s and %s; both "
                    "must be of the same rows and classes",
                    sti_shape_text(x), sti_shape_text(table), sti_shape_text(against),
                    sti_shape_text(given));
}

static stint_status infer(const stint_graph *graph, const sti_node *node,
                          stint_shape *out)
{
    static const int floats[] = {X, TABLE, AGAINST_X, AGAINST_TABLE};
    const stint_shape parts = STINT_SHAPE(STI_DISTIL_PARTS);
    stint_status st;
    STI_TRY(sti_op_check_count(node, sti_op_has_in(node, WEIGHTS) ? 6 : 5));
    for (int i = 0; i < 4; i++)
        STI_TRY(sti_op_check_f32(graph, node, floats[i]));
    STI_TRY(check_pair(graph, node, X));
    STI_TRY(check_pair(graph, node, AGAINST_X));
    STI_TRY(check_rows(graph, node));
    STI_TRY(check_numbers(node->attr));
    if (sti_op_has_in(node, WEIGHTS))
        STI_TRY(sti_op_check_shape(graph, node, WEIGHTS, &parts));
    const stint_shape *x = sti_op_in_shape(graph, node, X);
    const stint_shape labels = stint_shape_make(STINT_I32, 1, x->dim);
    for (int i = LOSS; i < DX; i++)
        out[i] = stint_shape_make(STINT_F32, 0, NULL);
    out[DX] = *x;
    out[DTABLE] = *sti_op_in_shape(graph, node, TABLE);
    STI_TRY(sti_op_check_shape(graph, node, LABEL, &labels));
out:
    return st;
}

static sti_linear_distillation args_of(const stint_graph *graph, const sti_node *node)
{
    const stint_distillation_desc *d = node->attr;
    const stint_shape *table = sti_op_in_shape(graph, node, TABLE);
    return (sti_linear_distillation){
        .rows = sti_op_in_shape(graph, node, X)->dim[0],
        .n = table->dim[1],
        .m = sti_op_in_shape(graph, node, AGAINST_TABLE)->dim[1],
        .classes = table->dim[0],
        .weight = {d->hard, d->pairing, d->soft},
        .temperature = d->temperature,
        .top = d->top,
        .base = d->focus.base == 0 && d->focus.right == 0 ? 1.0f : d->focus.base,
        .right = d->focus.right};
}

static size_t scratch_bytes(const stint_graph *graph, const sti_node *node, int threads)
{
    const sti_linear_distillation args = args_of(graph, node);
    return sti_linear_distillation_scratch_bytes(&args, threads);
}

static void run(const sti_call *call)
{
    sti_linear_distillation args = args_of(call->graph, call->node);
    float part[STI_DISTIL_PARTS], loss = 0;
    args.x = call->in[X];
    args.table = call->in[TABLE];
    args.label = call->in[LABEL];
    args.against_x = call->in[AGAINST_X];
    args.against_table = call->in[AGAINST_TABLE];
    if (sti_op_has_in(call->node, WEIGHTS))
        for (int p = 0; p < STI_DISTIL_PARTS; p++)
            args.weight[p] *= ((const float *)call->in[WEIGHTS])[p];
    sti_linear_distillation_f32(call->team, &args, part, call->out[DX],
                                call->out[DTABLE], call->scratch);
    for (int p = 0; p < STI_DISTIL_PARTS; p++) {
        loss += args.weight[p] * part[p];
        if (call->out[HARD + p])
            *(float *)call->out[HARD + p] = part[p];
    }
    *(float *)call->out[LOSS] = loss;
}

static stint_status grad(stint_graph *g, const sti_node *node, const stint_value *dy,
                         const bool *need, stint_value *dx)
{
    if (need[AGAINST_X] || need[AGAINST_TABLE])
        return sti_fail(STINT_E_UNSUPPORTED,
                        "linear_distillation has no gradient for the reference's "
                        "logits");
    if (need[X])
        dx[X] = sti_op_times(g, dy[LOSS], node->out[DX]);
    if (need[TABLE])
        dx[TABLE] = sti_op_times(g, dy[LOSS], node->out[DTABLE]);
    return STINT_OK;
}

/* ---- parts and gradients by logits that all exist at once ---- */

typedef struct whole {
    stint_graph *g;
    const sti_node *node;
    stint_value u, v; /* logits, and the reference's */
} whole;

/* Minus infinity in place of the reference's logits that do not count for soft. */
static stint_value likeliest(const whole *w)
{
    const stint_distillation_desc *d = w->node->attr;
    const int64_t n = stint_value_shape(w->g, w->v).dim[1];
    stint_value index;
    if (d->top == 0 || d->top >= n)
        return w->v;
    const stint_shape scalar = STINT_SHAPE(1, 1);
    const stint_value top = stint_top(w->g, w->v, d->top, false, &index);
    const stint_value least = stint_slice(w->g, top, 1, d->top - 1, d->top, 1);
    return stint_select(w->g, stint_less(w->g, w->v, least),
                        sti_op_fill(w->g, &scalar, -INFINITY), w->v);
}

/* What a part counts in the loss, a scalar. */
static stint_value factor_of(const whole *w, int part, float factor)
{
    const stint_shape scalar = stint_shape_make(STINT_F32, 0, NULL);
    if (!sti_op_has_in(w->node, WEIGHTS))
        return sti_op_fill(w->g, &scalar, factor);
    const stint_value own =
        stint_slice(w->g, w->node->in[WEIGHTS], 0, part, part + 1, 1);
    return stint_scale(w->g, stint_reshape(w->g, own, &scalar), factor);
}

static stint_value plus(stint_graph *g, stint_value a, stint_value b)
{
    return a < 0 ? b : stint_add(g, a, b);
}

/* The gradient of the loss by u; parts get their values. */
static stint_value expand_parts(const whole *w, stint_value *part)
{
    const stint_distillation_desc *d = w->node->attr;
    const stint_value labels = w->node->in[LABEL];
    stint_value slope = -1;
    if (d->hard != 0) {
        part[STI_DISTIL_HARD] = stint_softmax_cross_entropy(w->g, w->u, labels, 0);
        slope = sti_op_slope(w->g, part[STI_DISTIL_HARD],
                             factor_of(w, STI_DISTIL_HARD, d->hard));
    }
    if (d->pairing != 0) {
        const stint_value factor = factor_of(w, STI_DISTIL_PAIRING, d->pairing);
        part[STI_DISTIL_PAIRING] =
            stint_logit_pairing(w->g, w->u, w->v, labels, &d->focus);
        slope = plus(
            w->g, slope,
            stint_mul(w->g, sti_op_pairing_slope(w->g, w->u, w->v, labels, &d->focus),
                      factor));
    }
    if (d->soft != 0) {
        part[STI_DISTIL_SOFT] =
            stint_soft_cross_entropy(w->g, w->u, likeliest(w), labels, d->temperature);
        slope = plus(w->g, slope,
                     sti_op_slope(w->g, part[STI_DISTIL_SOFT],
                                  factor_of(w, STI_DISTIL_SOFT, d->soft)));
    }
    return slope;
}

static stint_status expand(stint_graph *g, const sti_node *node, stint_value *out)
{
    const stint_value x = node->in[X], table = node->in[TABLE];
    const whole w = {
        g, node, stint_matmul(g, x, table, false, true),
        stint_matmul(g, node->in[AGAINST_X], node->in[AGAINST_TABLE], false, true)};
    if (w.u < 0 || w.v < 0)
        return STINT_OK; /* the graph has the failure */
    const stint_value slope = expand_parts(&w, out + HARD);
    if (slope < 0)
        return STINT_OK; /* no part counts */
    out[DX] = stint_matmul(g, slope, table, false, false);
    out[DTABLE] = stint_matmul(g, slope, x, true, false);
    return STINT_OK;
}

static sti_cost cost(const stint_graph *graph, const sti_node *node)
{
    const sti_linear_distillation args = args_of(graph, node);
    sti_cost cost = sti_op_cost_bytes(graph, node, 0.0);
    cost.flop = sti_linear_distillation_flop(
        &args, stint_graph_mode(graph) == STINT_TRAIN ? 2 : 0);
    return cost;
}

static void print(const sti_node *node, sti_text *out)
{
    const stint_distillation_desc *d = node->attr;
    sti_text_printf(out,
                    "hard %.9g pairing %.9g soft %.9g temperature %.9g top %d base "
                    "%.9g right %.9g",
                    (double)d->hard, (double)d->pairing, (double)d->soft,
                    (double)d->temperature, (int)d->top, (double)d->focus.base,
                    (double)d->focus.right);
}

const sti_op sti_op_linear_distillation = {
    .name = "linear_distillation",
    .n_out = STI_DISTILLATION_OUTPUTS,
    .optional_out = (1u << STI_DISTILLATION_OUTPUTS) - 1 - (1u << LOSS),
    .attr_bytes = sizeof(stint_distillation_desc),
    .infer = infer,
    .grad = grad,
    .expand_out = (1u << STI_DISTILLATION_OUTPUTS) - 1 - (1u << LOSS),
    .expand = expand,
    .cost = cost,
    .scratch_bytes = scratch_bytes,
    .run = {[STI_CPU] = run},
    .print = print,
};

stint_value stint_linear_distillation(stint_graph *g, stint_value x, stint_value table,
                                      stint_value labels, stint_value against_x,
                                      stint_value against_table, stint_value weights,
                                      const stint_distillation_desc *desc)
{
    const stint_value in[6] = {x, table, labels, against_x, against_table, weights};
    return sti_graph_add(g, &sti_op_linear_distillation, desc, weights < 0 ? 5 : 6, in);
}
