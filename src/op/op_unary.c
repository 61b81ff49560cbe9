/* Functions of one number, applied to every element: y = f(x). Gradient rules use y
 * where that saves keeping x, and are made of ordinary operators, so they can be
 * differentiated again. The gradients of SiLU and GELU are one kernel each, and are
 * themselves differentiated through their expansions. */
#include "kernel/elementwise/elementwise.h"
#include "op/op_priv.h"

typedef struct factor_attr {
    float value;
} factor_attr;

static void run_unary(const sti_call *call, sti_unary kind)
{
    const factor_attr *attr = call->node->attr;
    bool has_factor = kind == STI_UNARY_SCALE || kind == STI_UNARY_ADD_SCALAR;
    sti_unary_f32(call->team, kind, sti_op_out_count(call, 0),
                  has_factor ? attr->value : 0.0f, call->in[0], call->out[0]);
}

static stint_value unary(stint_graph *g, const sti_op *op, stint_value x)
{
    return sti_op_add1(g, op, NULL, x);
}

#define GRAD(name)                                                           \
    static stint_status grad_##name(stint_graph *g, const sti_node *node,    \
                                    const stint_value *dy, const bool *need, \
                                    stint_value *dx)                         \
    {                                                                        \
        stint_value x = node->in[0], y = node->out[0], d = dy[0];            \
        (void)g;                                                             \
        (void)x;                                                             \
        (void)y;                                                             \
        if (need[0])                                                         \
            dx[0] = gradient_##name;                                         \
        return STINT_OK;                                                     \
    }

#define gradient_copy       d
#define gradient_neg        unary(g, &sti_op_neg, d)
#define gradient_square     stint_scale(g, stint_mul(g, d, x), 2.0f)
#define gradient_sqrt       stint_scale(g, stint_div(g, d, y), 0.5f)
#define gradient_exp        stint_mul(g, d, y)
#define gradient_log        stint_div(g, d, x)
#define gradient_sin        stint_mul(g, d, stint_cos(g, x))
#define gradient_cos        unary(g, &sti_op_neg, stint_mul(g, d, stint_sin(g, x)))
#define gradient_softplus   stint_mul(g, d, stint_sigmoid(g, x))
#define gradient_reciprocal unary(g, &sti_op_neg, stint_mul(g, d, stint_square(g, y)))
#define gradient_tanh \
    stint_mul(g, d,   \
              stint_add_scalar(g, unary(g, &sti_op_neg, stint_square(g, y)), 1.0f))
#define gradient_sigmoid    stint_mul(g, d, stint_sub(g, y, stint_square(g, y)))
#define gradient_add_scalar d
#define gradient_scale      stint_scale(g, d, ((const factor_attr *)node->attr)->value)

GRAD(copy)
GRAD(neg)
GRAD(square)
GRAD(sqrt)
GRAD(reciprocal)
GRAD(exp)
GRAD(log)
GRAD(sin)
GRAD(cos)
GRAD(tanh)
GRAD(sigmoid)
GRAD(softplus)
GRAD(scale)
GRAD(add_scalar)

#define gradient_silu sti_op_add2(g, &sti_op_silu_grad, NULL, d, x)
#define gradient_gelu sti_op_add2(g, &sti_op_gelu_grad, NULL, d, x)
GRAD(silu)
GRAD(gelu)

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

static void print_factor(const sti_node *node, sti_text *out)
{
    const factor_attr *attr = node->attr;
    sti_text_printf(out, "%.9g", (double)attr->value);
}

#define ROW(row, kind, ...) ROW_NAMED(row, #row, kind, __VA_ARGS__)
#define ROW_NAMED(row, text, kind, ...) \
    ROW_FLAGS(row, text, kind, STI_OP_INPLACE_0, __VA_ARGS__)
#define ROW_CHEAP(row, kind, ...) \
    ROW_FLAGS(row, #row, kind, STI_OP_INPLACE_0 | STI_OP_CHEAP, __VA_ARGS__)
#define ROW_FLAGS(row, text, kind, bits, ...)                    \
    static void run_##row(const sti_call *call)                  \
    {                                                            \
        run_unary(call, kind);                                   \
    }                                                            \
    const sti_op sti_op_##row = {.name = text,                   \
                                 .n_out = 1,                     \
                                 .flags = (bits),                \
                                 .infer = sti_op_infer_same,     \
                                 .run = {[STI_CPU] = run_##row}, \
                                 __VA_ARGS__};

ROW_NAMED(copy_value, "copy", STI_UNARY_COPY, .grad = grad_copy,
          .cost = sti_op_cost_move)
ROW(neg, STI_UNARY_NEG, .grad = grad_neg)
ROW(square, STI_UNARY_SQUARE, .grad = grad_square)
ROW(sqrt, STI_UNARY_SQRT, .grad = grad_sqrt)
ROW(reciprocal, STI_UNARY_RECIPROCAL, .grad = grad_reciprocal)
ROW(exp, STI_UNARY_EXP, .grad = grad_exp)
ROW(log, STI_UNARY_LOG, .grad = grad_log)
ROW(sin, STI_UNARY_SIN, .grad = grad_sin)
ROW(cos, STI_UNARY_COS, .grad = grad_cos)
ROW(tanh, STI_UNARY_TANH, .grad = grad_tanh)
ROW(sigmoid, STI_UNARY_SIGMOID, .grad = grad_sigmoid)
ROW_CHEAP(silu, STI_UNARY_SILU, .grad = grad_silu)
ROW_CHEAP(gelu, STI_UNARY_GELU, .grad = grad_gelu)
ROW(softplus, STI_UNARY_SOFTPLUS, .grad = grad_softplus)
ROW(scale, STI_UNARY_SCALE, .grad = grad_scale, .attr_bytes = sizeof(factor_attr),
    .print = print_factor)
ROW(add_scalar, STI_UNARY_ADD_SCALAR, .grad = grad_add_scalar,
    .attr_bytes = sizeof(factor_attr), .print = print_factor)

#define GRAD_ROW(row, kind)                                                      \
    static void run_##row(const sti_call *call)                                  \
    {                                                                            \
        sti_binary_f32(call->team, kind, sti_op_out_count(call, 0), call->in[0], \
                       call->in[1], call->out[0]);                               \
    }                                                                            \
    const sti_op sti_op_##row = {.name = #row,                                   \
                                 .n_out = 1,                                     \
                                 .flags = STI_OP_INPLACE_0 | STI_OP_INPLACE_1,   \
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
        return unary(g, &sti_op_##name, x);                 \
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

stint_value sti_op_copy(stint_graph *g, stint_value x)
{
    return unary(g, &sti_op_copy_value, x);
}

stint_value stint_scale(stint_graph *g, stint_value x, float factor)
{
    return sti_op_add1(g, &sti_op_scale, &(factor_attr){factor}, x);
}

stint_value stint_add_scalar(stint_graph *g, stint_value x, float addend)
{
    return sti_op_add1(g, &sti_op_add_scalar, &(factor_attr){addend}, x);
}
