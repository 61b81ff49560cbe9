/* Functions of one number, applied to every element: y = f(x). Gradient rules use y
 * where that saves keeping x, and are made of ordinary operators, so they can be
 * differentiated again. The gradients of SiLU and GELU are one kernel each, and are
 * themselves differentiated through their expansions. The sign has one that training
 * can use: that of x where |x| = x y is at most 1. */
#include "op/jet_rule.h"
#include "op/op_unary_row.h"

#define gradient_square     stint_scale(g, stint_mul(g, d, x), 2.0f)
#define gradient_sqrt       stint_scale(g, stint_div(g, d, y), 0.5f)
#define gradient_exp        stint_mul(g, d, y)
#define gradient_log        stint_div(g, d, x)
#define gradient_sin        stint_mul(g, d, stint_cos(g, x))
#define gradient_cos        sti_op_negate(g, stint_mul(g, d, stint_sin(g, x)))
#define gradient_softplus   stint_mul(g, d, stint_sigmoid(g, x))
#define gradient_reciprocal sti_op_negate(g, stint_mul(g, d, stint_square(g, y)))
#define gradient_tanh \
    stint_mul(g, d, stint_add_scalar(g, sti_op_negate(g, stint_square(g, y)), 1.0f))
#define gradient_sigmoid stint_mul(g, d, stint_sub(g, y, stint_square(g, y)))
#define gradient_abs     stint_mul(g, d, direction(g, x))
#define gradient_erf                                                                 \
    stint_scale(g,                                                                   \
                stint_mul(g, d, stint_exp(g, sti_op_negate(g, stint_square(g, x)))), \
                0x1.20dd76p+0f)
#define gradient_sign stint_mul(g, d, within_one(g, stint_mul(g, x, y)))

/* 1 where size is at most 1, else 0. */
static stint_value within_one(stint_graph *g, stint_value size)
{
    const stint_value sign =
        stint_sign(g, stint_add_scalar(g, sti_op_negate(g, size), 1.0f));
    return stint_add_scalar(g, stint_scale(g, sign, 0.5f), 0.5f);
}

/* 1 above 0, -1 below, 0 at 0. */
static stint_value direction(stint_graph *g, stint_value x)
{
    const stint_shape scalar = stint_shape_make(STINT_F32, 0, NULL);
    const stint_value zero = sti_op_fill(g, &scalar, 0.0f);
    return stint_sub(g, stint_less(g, zero, x), stint_less(g, x, zero));
}

STI_UNARY_GRAD(abs)
STI_UNARY_GRAD(erf)
STI_UNARY_GRAD(square)
STI_UNARY_GRAD(sqrt)
STI_UNARY_GRAD(reciprocal)
STI_UNARY_GRAD(exp)
STI_UNARY_GRAD(log)
STI_UNARY_GRAD(sin)
STI_UNARY_GRAD(cos)
STI_UNARY_GRAD(tanh)
STI_UNARY_GRAD(sigmoid)
STI_UNARY_GRAD(softplus)
STI_UNARY_GRAD(sign)

#define gradient_silu sti_op_add2(g, &sti_op_silu_grad, NULL, d, x)
#define gradient_gelu sti_op_add2(g, &sti_op_gelu_grad, NULL, d, x)
STI_UNARY_GRAD(silu)
STI_UNARY_GRAD(gelu)

STI_JET_RULE(square, STI_JET_SQUARE)
STI_JET_RULE(sqrt, STI_JET_SQRT)
STI_JET_RULE(reciprocal, STI_JET_RECIPROCAL)
STI_JET_RULE(exp, STI_JET_EXP)
STI_JET_RULE(log, STI_JET_LOG)
STI_JET_RULE(sin, STI_JET_SIN)
STI_JET_RULE(cos, STI_JET_COS)
STI_JET_RULE(tanh, STI_JET_TANH)
STI_JET_RULE(sigmoid, STI_JET_SIGMOID)
STI_JET_RULE(softplus, STI_JET_SOFTPLUS)
STI_JET_RULE(silu, STI_JET_SILU)
STI_JET_RULE(gelu, STI_JET_GELU)

/* s + x s (1 - s) slope, times dy. */
static stint_value sigmoid_product(stint_graph *g, stint_value dy, stint_value x,
                                   stint_value s, stint_value slope)
{
    stint_value rest = stint_sub(g, s, stint_square(g, s));
    rest = stint_mul(g, x, rest);
    if (slope >= 0)
        rest = stint_mul(g, rest, slope);
    return stint_mul(g, dy, stint_add(g, s, rest));
}

static stint_status expand_silu_grad(stint_graph *g, const sti_node *node,
                                     stint_value *out)
{
    stint_value x = node->in[1];
    out[0] = sigmoid_product(g, node->in[0], x, stint_sigmoid(g, x), -1);
    return STINT_OK;
}

/* gelu(x) = x sigmoid(v), v = x (c + k x^2): as the kernel computes it. */
static stint_status expand_gelu_grad(stint_graph *g, const sti_node *node,
                                     stint_value *out)
{
    stint_value x = node->in[1], q = stint_square(g, x);
    stint_value v =
        stint_add_scalar(g, stint_scale(g, q, 0x1.2444f2p-4f), 0x1.988454p+0f);
    stint_value slope =
        stint_add_scalar(g, stint_scale(g, q, 0x1.b6676cp-3f), 0x1.988454p+0f);
    stint_value s = stint_sigmoid(g, stint_mul(g, x, v));
    out[0] = sigmoid_product(g, node->in[0], x, s, slope);
    return STINT_OK;
}

STI_UNARY_ROW(square, STI_UNARY_SQUARE, .grad = grad_square, .jet = jet_square)
STI_UNARY_ROW(sqrt, STI_UNARY_SQRT, .grad = grad_sqrt, .jet = jet_sqrt)
STI_UNARY_ROW(reciprocal, STI_UNARY_RECIPROCAL, .grad = grad_reciprocal,
              .jet = jet_reciprocal)
STI_UNARY_ROW(exp, STI_UNARY_EXP, .grad = grad_exp, .jet = jet_exp)
STI_UNARY_ROW(log, STI_UNARY_LOG, .grad = grad_log, .jet = jet_log)
STI_UNARY_ROW(sin, STI_UNARY_SIN, .grad = grad_sin, .jet = jet_sin)
STI_UNARY_ROW(cos, STI_UNARY_COS, .grad = grad_cos, .jet = jet_cos)
STI_UNARY_ROW(tanh, STI_UNARY_TANH, .grad = grad_tanh, .jet = jet_tanh)
STI_UNARY_ROW(sigmoid, STI_UNARY_SIGMOID, .grad = grad_sigmoid, .jet = jet_sigmoid)
STI_UNARY_ROW_FLAGS(silu, "silu", STI_OP_INPLACE_0 | STI_OP_CHEAP, STI_UNARY_SILU,
                    .grad = grad_silu, .jet = jet_silu)
STI_UNARY_ROW_FLAGS(gelu, "gelu", STI_OP_INPLACE_0 | STI_OP_CHEAP, STI_UNARY_GELU,
                    .grad = grad_gelu, .jet = jet_gelu)
STI_UNARY_ROW(softplus, STI_UNARY_SOFTPLUS, .grad = grad_softplus, .jet = jet_softplus)
STI_UNARY_ROW(sign, STI_UNARY_SIGN, .grad = grad_sign)
STI_UNARY_ROW(abs, STI_UNARY_ABS, .grad = grad_abs)
STI_UNARY_ROW(erf, STI_UNARY_ERF, .grad = grad_erf)
STI_UNARY_ROW_FLAGS(floor, "floor", STI_OP_INPLACE_0 | STI_OP_NO_GRAD, STI_UNARY_FLOOR,
                    .grad = NULL)
STI_UNARY_ROW_FLAGS(ceil, "ceil", STI_OP_INPLACE_0 | STI_OP_NO_GRAD, STI_UNARY_CEIL,
                    .grad = NULL)
STI_UNARY_ROW_FLAGS(round, "round", STI_OP_INPLACE_0 | STI_OP_NO_GRAD, STI_UNARY_ROUND,
                    .grad = NULL)

#define GRAD_ROW(row, kind)                                                      \
    static void run_##row(const sti_call *call)                                  \
    {                                                                            \
        sti_binary_f32(call->team, kind, sti_op_out_count(call, 0), call->in[0], \
                       call->in[1], call->out[0]);                               \
    }                                                                            \
    const sti_op sti_op_##row = {.name = #row,                                   \
                                 .n_out = 1,                                     \
                                 .flags = STI_OP_INPLACE_0 | STI_OP_INPLACE_1,   \
                                 .binary = 1 + (kind),                           \
                                 .infer = infer_pair,                            \
                                 .expand = expand_##row,                         \
                                 .run = {[STI_CPU] = run_##row}};

/* dy and x of one shape. */
static stint_status infer_pair(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    *out = *sti_op_in_shape(graph, node, 0);
    return sti_op_check_shape(graph, node, 1, out);
}

GRAD_ROW(silu_grad, STI_BINARY_SILU_GRAD)
GRAD_ROW(gelu_grad, STI_BINARY_GELU_GRAD)

#define BUILDER(name)                                       \
    stint_value stint_##name(stint_graph *g, stint_value x) \
    {                                                       \
        return sti_op_add1(g, &sti_op_##name, NULL, x);     \
    }

BUILDER(square)
BUILDER(sqrt)
BUILDER(reciprocal)
BUILDER(exp)
BUILDER(log)
BUILDER(sin)
BUILDER(cos)
BUILDER(tanh)
BUILDER(sigmoid)
BUILDER(silu)
BUILDER(gelu)
BUILDER(softplus)
BUILDER(sign)
BUILDER(abs)
BUILDER(floor)
BUILDER(ceil)
BUILDER(round)
BUILDER(erf)
