/* Operators on truncated Taylor series: functions of one number, products, sums of
 * series of different lengths, a bias on coefficient 0; and their gradients.
 *
 * Where u changes by du, the series of f(u) changes by f'(u) du, a product of series.
 * So whatever f is, the gradient with respect to u is that of a product with f'(u),
 * which is a series of the same operators: one kernel more serves all functions. */
#include "op/jet_rule.h"

#include <string.h>

#include "kernel/elementwise/elementwise.h"
#include "op/op_priv.h"

const sti_jet_ops sti_jet_series = {&sti_op_jet_unary, &sti_op_jet_mul, &sti_op_jet_sum,
                                    &sti_op_jet_bias};

static int64_t values_of(const stint_shape *shape)
{
    return stint_shape_count(shape) / shape->dim[0];
}

/* v = u (C + K u^2), which the GELU takes the sigmoid of; as kernel/jet has them. */
#define GELU_C 0x1.988454p+0f
#define GELU_K 0x1.2444f2p-4f

/* ---- the product's gradient ---- */

static stint_status infer_mul_grad(const stint_graph *graph, const sti_node *node,
                                   stint_shape *out)
{
    const sti_jet_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 2);
    for (int i = 0; i < 2 && st == STINT_OK; i++)
        st = sti_op_check_f32(graph, node, i);
    if (st != STINT_OK)
        return st;
    *out = *sti_op_in_shape(graph, node, 0);
    stint_shape other = *out;
    other.dim[0] = sti_op_in_shape(graph, node, 1)->dim[0];
    out->dim[0] = attr->rows;
    if (!sti_jet_table_of(attr->variables, attr->order))
        return STINT_E_MEMORY;
    return sti_op_check_shape(graph, node, 1, &other);
}

static void run_mul_grad(const sti_call *call)
{
    const sti_jet_attr *attr = call->node->attr;
    const stint_shape *dz = sti_op_in_shape(call->graph, call->node, 0);
    const stint_shape *b = sti_op_in_shape(call->graph, call->node, 1);
    sti_jet_mul_grad_f32(call->team, sti_jet_table_of(attr->variables, attr->order),
                         values_of(dz), call->in[0], (int)b->dim[0], call->in[1],
                         attr->rows, call->out[0]);
}

static sti_cost cost_mul_grad(const stint_graph *graph, const sti_node *node)
{
    const sti_jet_attr *attr = node->attr;
    const sti_jet_table *t = sti_jet_table_of(attr->variables, attr->order);
    return sti_op_cost_bytes(graph, node,
                             t ? 2.0 * (double)t->begin[t->rows] / t->rows : 1);
}

/* The gradient by the operand of so many rows that b was multiplied with. */
static stint_value product_gradient(stint_graph *g, const sti_jet_space *space,
                                    stint_value dz, stint_value b, int rows)
{
    const sti_jet_attr attr = {
        .variables = space->variables, .order = space->order, .rows = rows};
    return sti_op_add2(g, &sti_op_jet_mul_grad, &attr, dz, b);
}

static stint_status grad_mul(stint_graph *g, const sti_node *node,
                             const stint_value *dy, const bool *need, stint_value *dx)
{
    const sti_jet_attr *attr = node->attr;
    const sti_jet_space space = {attr->variables, attr->order, &sti_jet_series};
    for (int i = 0; i < 2; i++)
        if (need[i])
            dx[i] = product_gradient(g, &space, dy[0], node->in[1 - i],
                                     sti_jet_rows_of(g, node->in[i]));
    return sti_graph_status(g);
}

/* ---- its own gradient ---- */

static stint_value first_rows(stint_graph *g, stint_value x, int rows)
{
    return sti_jet_rows_of(g, x) == rows ? x : stint_slice(g, x, 0, 0, rows, 1);
}

/* From <d, gradient(dz, b)> = <dz, d b>, a product of series again, and of the same by
 * the other operand. */
static stint_status grad_mul_grad(stint_graph *g, const sti_node *node,
                                  const stint_value *dy, const bool *need,
                                  stint_value *dx)
{
    const sti_jet_attr *attr = node->attr;
    const sti_jet_space space = {attr->variables, attr->order, &sti_jet_series};
    if (need[0]) {
        const sti_jet product = sti_jet_add_mul(g, &space, sti_jet_of(g, dy[0]),
                                                sti_jet_of(g, node->in[1]));
        dx[0] = first_rows(g, product.value, sti_jet_rows_of(g, node->in[0]));
    }
    if (need[1])
        dx[1] = product_gradient(g, &space, node->in[0], dy[0],
                                 sti_jet_rows_of(g, node->in[1]));
    return sti_graph_status(g);
}

const sti_op sti_op_jet_mul_grad = {
    .name = "jet_mul_grad",
    .n_out = 1,
    .attr_bytes = sizeof(sti_jet_attr),
    .infer = infer_mul_grad,
    .grad = grad_mul_grad,
    .cost = cost_mul_grad,
    .run = {[STI_CPU] = run_mul_grad},
};

/* ---- sums and biases ---- */

static stint_status grad_sum(stint_graph *g, const sti_node *node,
                             const stint_value *dy, const bool *need, stint_value *dx)
{
    const sti_jet_attr *attr = node->attr;
    for (int i = 0; i < node->n_in; i++) {
        if (!need[i])
            continue;
        dx[i] = first_rows(g, dy[0], sti_jet_rows_of(g, node->in[i]));
        if (i == 1 && attr->sign < 0)
            dx[i] = sti_op_negate(g, dx[i]);
    }
    return sti_graph_status(g);
}

/* The bias is part of coefficient 0 of every point. */
static stint_value bias_gradient(stint_graph *g, stint_value dx)
{
    const int rank = stint_value_shape(g, dx).rank;
    return stint_sum(g, first_rows(g, dx, 1), (1u << (rank - 1)) - 1, false);
}

static stint_status grad_bias(stint_graph *g, const sti_node *node,
                              const stint_value *dy, const bool *need, stint_value *dx)
{
    (void)node;
    if (need[0])
        dx[0] = dy[0];
    if (need[1])
        dx[1] = bias_gradient(g, dy[0]);
    return sti_graph_status(g);
}

/* ---- functions ---- */

typedef struct function {
    stint_graph *g;
    sti_jet_space space;
    const sti_node *node;
    const sti_jet_unary_attr *attr;
} function;

/* Another function of the same argument. */
static sti_jet other_of(const function *f, sti_jet_kind kind)
{
    return sti_jet_add_unary(f->g, &f->space, kind, f->attr->factor,
                             sti_jet_of(f->g, f->node->in[0]),
                             f->attr->has_bias ? f->node->in[1] : STI_NO_INPUT);
}

/* The argument itself, factor (x + bias). */
static sti_jet argument_of(const function *f)
{
    sti_jet u = sti_jet_of(f->g, f->node->in[0]);
    if (f->attr->has_bias)
        u = sti_jet_add_bias(f->g, &f->space, u, f->node->in[1]);
    if (f->attr->factor != 1.0f)
        u.value = stint_scale(f->g, u.value, f->attr->factor);
    return u;
}

static sti_jet times(const function *f, sti_jet a, float factor)
{
    return (sti_jet){stint_scale(f->g, a.value, factor), a.rows};
}

static sti_jet product(const function *f, sti_jet a, sti_jet b)
{
    return sti_jet_add_mul(f->g, &f->space, a, b);
}

static sti_jet sum(const function *f, sti_jet a, sti_jet b, float sign)
{
    return sti_jet_add_sum(f->g, &f->space, a, b, sign);
}

/* A number as a series beside y. */
static sti_jet number(const function *f, float value)
{
    stint_shape shape = stint_value_shape(f->g, f->node->out[0]);
    shape.dim[0] = 1;
    return (sti_jet){sti_op_fill(f->g, &shape, value), 1};
}

/* y = u s(v): y' = s + (y - y s) v'. */
static sti_jet gelu_slope(const function *f, sti_jet y)
{
    const sti_jet square = times(f, other_of(f, STI_JET_SQUARE), GELU_K);
    const sti_jet c = number(f, GELU_C);
    const sti_jet v = product(f, argument_of(f), sum(f, square, c, 1));
    const sti_jet slope = sum(f, times(f, square, 3), c, 1);
    const sti_jet s =
        sti_jet_add_unary(f->g, &f->space, STI_JET_SIGMOID, 1, v, STI_NO_INPUT);
    const sti_jet rest = sum(f, y, product(f, y, s), -1);
    return sum(f, s, product(f, rest, slope), 1);
}

/* Where y_0 is above 0 one, else zero; a comparison, through which no gradient flows.
 */
static sti_jet relu_slope(const function *f, sti_jet y)
{
    const stint_value first = first_rows(f->g, y.value, 1);
    return (sti_jet){stint_less(f->g, number(f, 0).value, first), 1};
}

/* f'(u) as a series. */
static sti_jet slope_of(const function *f)
{
    const sti_jet y = sti_jet_of(f->g, f->node->out[0]);
    sti_jet s;
    switch ((sti_jet_kind)f->attr->kind) {
    case STI_JET_SIN:
        return other_of(f, STI_JET_COS);
    case STI_JET_COS:
        return times(f, other_of(f, STI_JET_SIN), -1);
    case STI_JET_EXP:
        return y;
    case STI_JET_LOG:
        return other_of(f, STI_JET_RECIPROCAL);
    case STI_JET_TANH:
        return sum(f, number(f, 1), product(f, y, y), -1);
    case STI_JET_SIGMOID:
        return sum(f, y, product(f, y, y), -1);
    case STI_JET_SOFTPLUS:
        return other_of(f, STI_JET_SIGMOID);
    case STI_JET_SILU:
        s = other_of(f, STI_JET_SIGMOID);
        return sum(f, s, sum(f, y, product(f, y, s), -1), 1);
    case STI_JET_GELU:
        return gelu_slope(f, y);
    case STI_JET_SQRT:
        s = sti_jet_add_unary(f->g, &f->space, STI_JET_RECIPROCAL, 1, y, STI_NO_INPUT);
        return times(f, s, 0.5f);
    case STI_JET_RECIPROCAL:
        return times(f, product(f, y, y), -1);
    case STI_JET_SQUARE:
        return times(f, argument_of(f), 2);
    case STI_JET_RELU:
    case STI_JET_KINDS:
    default:
        return relu_slope(f, y);
    }
}

static stint_status grad_unary(stint_graph *g, const sti_node *node,
                               const stint_value *dy, const bool *need, stint_value *dx)
{
    const sti_jet_unary_attr *attr = node->attr;
    const function f = {g, {attr->variables, attr->order, &sti_jet_series}, node, attr};
    const sti_jet slope = slope_of(&f);
    stint_value du = product_gradient(g, &f.space, dy[0], slope.value,
                                      sti_jet_rows_of(g, node->in[0]));
    if (attr->factor != 1.0f)
        du = stint_scale(g, du, attr->factor);
    if (need[0])
        dx[0] = du;
    if (attr->has_bias && need[1])
        dx[1] = bias_gradient(g, du);
    return sti_graph_status(g);
}

/* ---- the operators ---- */

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
    .grad = grad_unary,
    .cost = cost_unary,
    .run = {[STI_CPU] = run_unary},
    .print = print_unary,
};

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
    .grad = grad_mul,
    .cost = cost_mul,
    .run = {[STI_CPU] = run_mul},
};

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
    .grad = grad_sum,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_sum},
};

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
    .grad = grad_bias,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_jet_bias},
};
