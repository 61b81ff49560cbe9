/* Functions of two numbers with broadcasting, and the bias, which is the one case that
 * every layer has. */
#include <string.h>

#include "kernel/elementwise/elementwise.h"
#include "op/jet_rule.h"
#include "op/op_binary.h"
#include "op/op_priv.h"

stint_status sti_op_infer_binary(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK ||
        (st = sti_op_check_f32(graph, node, 1)) != STINT_OK)
        return st;
    const stint_shape *a = sti_op_in_shape(graph, node, 0);
    const stint_shape *b = sti_op_in_shape(graph, node, 1);
    int rank = a->rank > b->rank ? a->rank : b->rank;
    *out = (stint_shape){.rank = rank, .dtype = STINT_F32};
    for (int i = 0; i < rank; i++) {
        int ia = i - (rank - a->rank), ib = i - (rank - b->rank);
        int64_t da = ia < 0 ? 1 : a->dim[ia], db = ib < 0 ? 1 : b->dim[ib];
        if (da != db && da != 1 && db != 1)
            return sti_fail(STINT_E_INPUT,
                            "%s: %s and %s do not go together (axes are aligned at the "
                            "last and must be equal or 1)",
                            node->op->name, sti_shape_text(a), sti_shape_text(b));
        out->dim[i] = da == 1 ? db : da;
    }
    return STINT_OK;
}

void sti_op_run_binary(const sti_call *call, sti_binary kind)
{
    const stint_shape *a = sti_op_in_shape(call->graph, call->node, 0);
    const stint_shape *b = sti_op_in_shape(call->graph, call->node, 1);
    const stint_shape *z = sti_op_out_shape(call->graph, call->node, 0);
    int64_t a_stride[STINT_MAX_RANK], b_stride[STINT_MAX_RANK];
    if (sti_shape_equal(a, b)) {
        sti_binary_f32(call->team, kind, stint_shape_count(z), call->in[0], call->in[1],
                       call->out[0]);
        return;
    }
    sti_op_broadcast_strides(a, z, a_stride);
    sti_op_broadcast_strides(b, z, b_stride);
    sti_binary_broadcast_f32(call->team, kind, z->rank, z->dim, a_stride, b_stride,
                             call->in[0], call->in[1], call->out[0]);
}

/* The gradient d of the result, brought back to the shape of input i. */
static stint_value to_input(stint_graph *g, const sti_node *node, int i, stint_value d)
{
    stint_shape shape = *sti_op_in_shape(g, node, i);
    return sti_op_reduce_to(g, d, &shape);
}

#define GRAD(name, of_a, of_b)                                                     \
    static stint_status grad_##name(stint_graph *g, const sti_node *node,          \
                                    const stint_value *dy, const bool *need,       \
                                    stint_value *dx)                               \
    {                                                                              \
        stint_value a = node->in[0], b = node->in[1], y = node->out[0], d = dy[0]; \
        (void)a, (void)b, (void)y;                                                 \
        if (need[0])                                                               \
            dx[0] = to_input(g, node, 0, of_a);                                    \
        if (need[1])                                                               \
            dx[1] = to_input(g, node, 1, of_b);                                    \
        return STINT_OK;                                                           \
    }

/* The share of d of an operand that is chosen where `hit` is 1. */
static stint_value unless(stint_graph *g, stint_value d, stint_value hit)
{
    return stint_sub(g, d, stint_mul(g, d, hit));
}

GRAD(add, d, d)
GRAD(sub, d, sti_op_negate(g, d))
GRAD(mul, stint_mul(g, d, b), stint_mul(g, d, a))
GRAD(div, stint_div(g, d, b), sti_op_negate(g, stint_div(g, stint_mul(g, d, y), b)))
GRAD(maximum, unless(g, d, stint_less(g, a, b)), stint_mul(g, d, stint_less(g, a, b)))
GRAD(minimum, unless(g, d, stint_less(g, b, a)), stint_mul(g, d, stint_less(g, b, a)))

#define ROW(row, kind, ...)                                      \
    static void run_##row(const sti_call *call)                  \
    {                                                            \
        sti_op_run_binary(call, kind);                           \
    }                                                            \
    const sti_op sti_op_##row = {.name = #row,                   \
                                 .n_out = 1,                     \
                                 .binary = 1 + (kind),           \
                                 .infer = sti_op_infer_binary,   \
                                 .run = {[STI_CPU] = run_##row}, \
                                 __VA_ARGS__};
/* Sums of series; what does not depend on the points counts for coefficient 0. */
static stint_status jet_sum(stint_graph *g, const sti_node *node,
                            const sti_jet_rule *rule, float sign)
{
    sti_jet in[2] = {rule->in[0], rule->in[1]};
    for (int i = 0; i < 2; i++) {
        if (in[i].rows > 0)
            continue;
        stint_shape shape = stint_value_shape(g, node->out[0]);
        const stint_value whole = stint_broadcast(g, in[i].value, &shape);
        if (shape.rank >= STINT_MAX_RANK)
            return sti_fail(STINT_E_UNSUPPORTED,
                            "%s: %d axes are too many for a series", node->op->name,
                            shape.rank);
        memmove(shape.dim + 1, shape.dim, (size_t)shape.rank * sizeof shape.dim[0]);
        shape.dim[0] = 1;
        shape.rank++;
        in[i] = (sti_jet){stint_reshape(g, whole, &shape), 1};
    }
    *rule->out = sti_jet_add_sum(g, &rule->space, in[0], in[1], sign);
    return sti_graph_status(g);
}

static stint_status jet_add(stint_graph *g, const sti_node *node,
                            const sti_jet_rule *rule)
{
    return jet_sum(g, node, rule, 1);
}

static stint_status jet_sub(stint_graph *g, const sti_node *node,
                            const sti_jet_rule *rule)
{
    return jet_sum(g, node, rule, -1);
}

/* A factor that does not depend on the points multiplies every row. */
static sti_jet jet_product(stint_graph *g, const sti_jet_space *space, sti_jet a,
                           sti_jet b)
{
    if (a.rows > 0 && b.rows > 0)
        return sti_jet_add_mul(g, space, a, b);
    return (sti_jet){stint_mul(g, a.value, b.value), a.rows > b.rows ? a.rows : b.rows};
}

static stint_status jet_mul(stint_graph *g, const sti_node *node,
                            const sti_jet_rule *rule)
{
    (void)node;
    *rule->out = jet_product(g, &rule->space, rule->in[0], rule->in[1]);
    return sti_graph_status(g);
}

static stint_status jet_div(stint_graph *g, const sti_node *node,
                            const sti_jet_rule *rule)
{
    sti_jet b = rule->in[1];
    if (b.rows == 0) {
        *rule->out =
            (sti_jet){stint_div(g, rule->in[0].value, b.value), rule->in[0].rows};
        return sti_graph_status(g);
    }
    (void)node;
    b = sti_jet_add_unary(g, &rule->space, STI_JET_RECIPROCAL, 1, b, STI_NO_INPUT);
    *rule->out = jet_product(g, &rule->space, rule->in[0], b);
    return sti_graph_status(g);
}

static stint_status jet_bias(stint_graph *g, const sti_node *node,
                             const sti_jet_rule *rule)
{
    (void)node;
    *rule->out = sti_jet_add_bias(g, &rule->space, rule->in[0], rule->in[1].value);
    return sti_graph_status(g);
}

#define INPLACE (STI_OP_INPLACE_0 | STI_OP_INPLACE_1)

ROW(add, STI_BINARY_ADD, .flags = INPLACE, .grad = grad_add, .jet = jet_add)
ROW(sub, STI_BINARY_SUB, .flags = INPLACE, .grad = grad_sub, .jet = jet_sub)
ROW(mul, STI_BINARY_MUL, .flags = INPLACE, .grad = grad_mul, .jet = jet_mul)
ROW(div, STI_BINARY_DIV, .flags = INPLACE, .grad = grad_div, .jet = jet_div)
ROW(equal, STI_BINARY_EQUAL, .flags = INPLACE | STI_OP_NO_GRAD)
ROW(less, STI_BINARY_LESS, .flags = INPLACE | STI_OP_NO_GRAD)
ROW(less_equal, STI_BINARY_LESS_EQUAL, .flags = INPLACE | STI_OP_NO_GRAD)
ROW(maximum, STI_BINARY_MAXIMUM, .flags = INPLACE, .grad = grad_maximum)
ROW(minimum, STI_BINARY_MINIMUM, .flags = INPLACE, .grad = grad_minimum)

#define BUILDER(name)                                                      \
    stint_value stint_##name(stint_graph *g, stint_value a, stint_value b) \
    {                                                                      \
        return sti_op_add2(g, &sti_op_##name, NULL, a, b);                 \
    }

BUILDER(add)
BUILDER(sub)
BUILDER(mul)
BUILDER(div)
BUILDER(bias)
BUILDER(equal)
BUILDER(less)
BUILDER(less_equal)
BUILDER(maximum)
BUILDER(minimum)

static stint_status infer_bias(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    *out = *sti_op_in_shape(graph, node, 0);
    if (out->rank == 0)
        return sti_fail(STINT_E_INPUT, "bias: x is a scalar, wanted [..., c]");
    stint_shape want = stint_shape_make(STINT_F32, 1, &out->dim[out->rank - 1]);
    return sti_op_check_shape(graph, node, 1, &want);
}

static stint_status grad_bias(stint_graph *g, const sti_node *node,
                              const stint_value *dy, const bool *need, stint_value *dx)
{
    if (need[0])
        dx[0] = dy[0];
    if (need[1])
        dx[1] = to_input(g, node, 1, dy[0]);
    return STINT_OK;
}

static void run_bias(const sti_call *call)
{
    int64_t c = sti_op_in_count(call, 1), n = sti_op_in_count(call, 0);
    sti_bias_f32(call->team, c > 0 ? n / c : 0, c, call->in[0], call->in[1],
                 call->out[0]);
}

const sti_op sti_op_bias = {
    .name = "bias",
    .n_out = 1,
    .binary = 1 + STI_BINARY_ADD,
    .flags = STI_OP_INPLACE_0,
    .infer = infer_bias,
    .grad = grad_bias,
    .jet = jet_bias,
    .run = {[STI_CPU] = run_bias},
};
