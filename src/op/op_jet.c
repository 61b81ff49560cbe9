/* Operators on truncated Taylor series: functions of one number, products, sums of
 * series of different lengths, a bias on coefficient 0. Their gradients are in
 * op_jet_grad.c. */
#include "op/jet_rule.h"

#include <string.h>

#include "kernel/elementwise/elementwise.h"
#include "op/op_priv.h"

/* x [rows, n, ...] with no more rows than the space has. */
static stint_status check_series(const stint_graph *graph, const sti_node *node, int i,
                                 int rows)
{
    const stint_status st = sti_op_check_f32(graph, node, i);
    const stint_shape *x = sti_op_in_shape(graph, node, i);
    if (st != STINT_OK)
        return st;
    if (rows > 0 && x->rank >= 2 && x->dim[0] <= rows)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT, "%s: input %d is %s, wanted at most %d rows",
                    node->op->name, i, sti_shape_text(x), rows);
}

static int64_t values_of(const stint_shape *shape)
{
    return stint_shape_count(shape) / shape->dim[0];
}

/* ---- functions of one number ---- */

static stint_status infer_unary(const stint_graph *graph, const sti_node *node,
                                stint_shape *out)
{
    const sti_jet_unary_attr *attr = node->attr;
    const int rows = sti_jet_rows(attr->variables, attr->order);
    stint_status st = sti_op_check_count(node, attr->has_bias ? 2 : 1);
    if (st != STINT_OK || (st = check_series(graph, node, 0, rows)) != STINT_OK)
        return st;
    *out = *sti_op_in_shape(graph, node, 0);
    const stint_shape bias = STINT_SHAPE(out->dim[out->rank - 1]);
    out->dim[0] = rows;
    if (!sti_jet_table_of(attr->variables, attr->order))
        return STINT_E_MEMORY;
    return attr->has_bias ? sti_op_check_shape(graph, node, 1, &bias) : STINT_OK;
}

static void run_unary(const sti_call *call)
{
    const sti_jet_unary_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    const sti_jet_call jet = {.table = sti_jet_table_of(attr->variables, attr->order),
                              .kind = (sti_jet_kind)attr->kind,
                              .x_rows = (int)x->dim[0],
                              .n = values_of(x),
                              .width = x->dim[x->rank - 1],
                              .factor = attr->factor};
    sti_jet_unary_f32(call->team, &jet, call->in[0],
                      attr->has_bias ? call->in[1] : NULL, call->out[0]);
}

static sti_cost cost_unary(const stint_graph *graph, const sti_node *node)
{
    const sti_jet_unary_attr *attr = node->attr;
    const sti_jet_table *t = sti_jet_table_of(attr->variables, attr->order);
    const double pairs = t ? (double)t->begin[t->rows] / t->rows : 1;
    return sti_op_cost_bytes(graph, node, 4 * pairs + 8);
}

static void print_unary(const sti_node *node, sti_text *out)
{
    static const char *const kinds[STI_JET_KINDS] = {
        "sin",  "cos",  "exp",  "log",        "tanh",   "sigmoid", "softplus",
        "silu", "gelu", "sqrt", "reciprocal", "square", "relu"};
    const sti_jet_unary_attr *attr = node->attr;
    sti_text_printf(out, "%s order %d factor %.9g", kinds[attr->kind], attr->order,
                    (double)attr->factor);
}

const sti_op sti_op_jet_unary = {
    .name = "jet_unary",
    .n_out = 1,
    .attr_bytes = sizeof(sti_jet_unary_attr),
    .infer = infer_unary,
    .grad = sti_jet_grad_unary,
    .cost = cost_unary,
    .run = {[STI_CPU] = run_unary},
    .print = print_unary,
};

static int rows_of(stint_graph *g, stint_value value)
{
    return value < 0 ? 0 : (int)stint_value_shape(g, value).dim[0];
}

static sti_jet jet_of(stint_graph *g, stint_value value)
{
    return (sti_jet){value, rows_of(g, value)};
}

sti_jet sti_jet_add_unary(stint_graph *g, const sti_jet_space *space, sti_jet_kind kind,
                          float factor, sti_jet x, stint_value bias)
{
    const sti_jet_unary_attr attr = {.variables = space->variables,
                                     .order = space->order,
                                     .kind = (int32_t)kind,
                                     .has_bias = bias >= 0,
                                     .factor = factor};
    const stint_value in[2] = {x.value, bias};
    return jet_of(g, sti_graph_add(g, &sti_op_jet_unary, &attr, bias >= 0 ? 2 : 1, in));
}

/* ---- products ---- */

static stint_status infer_mul(const stint_graph *graph, const sti_node *node,
                              stint_shape *out)
{
    const sti_jet_attr *attr = node->attr;
    const int rows = sti_jet_rows(attr->variables, attr->order);
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = check_series(graph, node, 0, rows)) != STINT_OK ||
        (st = check_series(graph, node, 1, rows)) != STINT_OK)
        return st;
    *out = *sti_op_in_shape(graph, node, 0);
    stint_shape other = *out;
    other.dim[0] = sti_op_in_shape(graph, node, 1)->dim[0];
    out->dim[0] = rows;
    if (!sti_jet_table_of(attr->variables, attr->order))
        return STINT_E_MEMORY;
    return sti_op_check_shape(graph, node, 1, &other);
}

static void run_mul(const sti_call *call)
{
    const sti_jet_attr *attr = call->node->attr;
    const stint_shape *a = sti_op_in_shape(call->graph, call->node, 0);
    const stint_shape *b = sti_op_in_shape(call->graph, call->node, 1);
    sti_jet_mul_f32(call->team, sti_jet_table_of(attr->variables, attr->order),
                    values_of(a), (int)a->dim[0], call->in[0], (int)b->dim[0],
                    call->in[1], call->out[0]);
}

static sti_cost cost_mul(const stint_graph *graph, const sti_node *node)
{
    const sti_jet_attr *attr = node->attr;
    const sti_jet_table *t = sti_jet_table_of(attr->variables, attr->order);
    return sti_op_cost_bytes(graph, node,
                             t ? 2.0 * (double)t->begin[t->rows] / t->rows : 1);
}

const sti_op sti_op_jet_mul = {
    .name = "jet_mul",
    .n_out = 1,
    .attr_bytes = sizeof(sti_jet_attr),
    .infer = infer_mul,
    .grad = sti_jet_grad_mul,
    .cost = cost_mul,
    .run = {[STI_CPU] = run_mul},
};

sti_jet sti_jet_add_mul(stint_graph *g, const sti_jet_space *space, sti_jet a,
                        sti_jet b)
{
    const sti_jet_attr attr = {.variables = space->variables, .order = space->order};
    return jet_of(g, sti_op_add2(g, &sti_op_jet_mul, &attr, a.value, b.value));
}

/* ---- sums ---- */

static stint_status infer_sum(const stint_graph *graph, const sti_node *node,
                              stint_shape *out)
{
    const sti_jet_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, node->n_in == 1 ? 1 : 2);
    for (int i = 0; i < node->n_in && st == STINT_OK; i++)
        st = check_series(graph, node, i, attr->rows);
    if (st != STINT_OK)
        return st;
    *out = *sti_op_in_shape(graph, node, 0);
    stint_shape other = *out;
    out->dim[0] = attr->rows;
    if (node->n_in == 1)
        return STINT_OK;
    other.dim[0] = sti_op_in_shape(graph, node, 1)->dim[0];
    return sti_op_check_shape(graph, node, 1, &other);
}

/* Rows first .. rows - 1 of z begin as those of a, or zeros. */
static void run_sum(const sti_call *call)
{
    const sti_jet_attr *attr = call->node->attr;
    const int64_t a = sti_op_in_count(call, 0);
    const int64_t all = sti_op_out_count(call, 0);
    float *z = call->out[0];
    memmove(z, call->in[0], (size_t)a * sizeof *z);
    memset(z + a, 0, (size_t)(all - a) * sizeof *z);
    if (call->node->n_in == 1)
        return;
    const int64_t b = sti_op_in_count(call, 1);
    sti_binary_f32(call->team, attr->sign < 0 ? STI_BINARY_SUB : STI_BINARY_ADD, b, z,
                   call->in[1], z);
}

const sti_op sti_op_jet_sum = {
    .name = "jet_sum",
    .n_out = 1,
    .attr_bytes = sizeof(sti_jet_attr),
    .infer = infer_sum,
    .grad = sti_jet_grad_sum,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_sum},
};

sti_jet sti_jet_add_sum(stint_graph *g, const sti_jet_space *space, sti_jet a,
                        sti_jet b, float sign)
{
    const sti_jet_attr attr = {.variables = space->variables,
                               .order = space->order,
                               .sign = sign,
                               .rows = a.rows > b.rows ? a.rows : b.rows};
    return jet_of(g, sti_op_add2(g, &sti_op_jet_sum, &attr, a.value, b.value));
}

sti_jet sti_jet_pad(stint_graph *g, const sti_jet_space *space, sti_jet x, int rows)
{
    const sti_jet_attr attr = {
        .variables = space->variables, .order = space->order, .rows = rows};
    return x.rows == rows ? x
                          : jet_of(g, sti_op_add1(g, &sti_op_jet_sum, &attr, x.value));
}

/* ---- bias ---- */

static stint_status infer_jet_bias(const stint_graph *graph, const sti_node *node,
                                   stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = check_series(graph, node, 0, STI_JET_ROWS)) != STINT_OK)
        return st;
    *out = *sti_op_in_shape(graph, node, 0);
    const stint_shape bias = STINT_SHAPE(out->dim[out->rank - 1]);
    return sti_op_check_shape(graph, node, 1, &bias);
}

static void run_jet_bias(const sti_call *call)
{
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    const int64_t width = x->dim[x->rank - 1];
    float *z = call->out[0];
    if (call->in[0] != call->out[0])
        memcpy(z, call->in[0], stint_shape_bytes(x));
    sti_bias_f32(call->team, values_of(x) / width, width, z, call->in[1], z);
}

const sti_op sti_op_jet_bias = {
    .name = "jet_bias",
    .n_out = 1,
    .flags = STI_OP_INPLACE_0,
    .infer = infer_jet_bias,
    .grad = sti_jet_grad_bias,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_jet_bias},
};

sti_jet sti_jet_add_bias(stint_graph *g, sti_jet x, stint_value bias)
{
    return jet_of(g, sti_op_add2(g, &sti_op_jet_bias, NULL, x.value, bias));
}

stint_status sti_jet_rule_linear(stint_graph *g, const sti_node *node,
                                 const sti_jet_rule *rule)
{
    const stint_value x = rule->in[0].value;
    *rule->out =
        (sti_jet){sti_graph_add(g, node->op, node->attr, 1, &x), rule->in[0].rows};
    return sti_graph_status(g);
}
