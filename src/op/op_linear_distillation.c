/* Loss of a linear classifier over a large vocabulary against labels and against a
 * reference's logits, with its gradients: logits of both exist for a block of rows at a
 * time. The reference is given: no gradient flows to it. */
#include "op/op_linear_distillation.h"

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
    for (int i = HARD; i <= DTABLE; i++)
        if (dy[i] >= 0)
            return sti_fail(STINT_E_UNSUPPORTED,
                            "linear_distillation: its loss alone is differentiable, "
                            "and once");
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
