/* Functions of one number, applied to every element: y = f(x). Gradient rules use y
 * where that saves keeping x, and are made of ordinary operators, so they can be
 * differentiated again. SiLU and GELU are differentiated through their expansions. */
#include "kernel/elementwise.h"
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

static stint_status expand_silu(stint_graph *g, const sti_node *node, stint_value *out)
{
    out[0] = stint_mul(g, node->in[0], stint_sigmoid(g, node->in[0]));
    return STINT_OK;
}

/* x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): as the kernel computes it. */
static stint_status expand_gelu(stint_graph *g, const sti_node *node, stint_value *out)
{
    stint_value x = node->in[0];
    stint_value v = stint_scale(g, stint_square(g, x), 0x1.2444f2p-4f);
    v = stint_mul(g, x, stint_add_scalar(g, v, 0x1.988454p+0f));
    out[0] = stint_mul(g, x, stint_sigmoid(g, v));
    return STINT_OK;
}

static void print_factor(const sti_node *node, sti_text *out)
{
    const factor_attr *attr = node->attr;
    sti_text_printf(out, "%.9g", (double)attr->value);
}

#define ROW(row, kind, ...) ROW_NAMED(row, #row, kind, __VA_ARGS__)
#define ROW_NAMED(row, text, kind, ...)                          \
    static void run_##row(const sti_call *call)                  \
    {                                                            \
        run_unary(call, kind);                                   \
    }                                                            \
    const sti_op sti_op_##row = {.name = text,                   \
                                 .n_out = 1,                     \
                                 .flags = STI_OP_INPLACE_0,      \
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
ROW(silu, STI_UNARY_SILU, .expand = expand_silu)
ROW(gelu, STI_UNARY_GELU, .expand = expand_gelu)
ROW(softplus, STI_UNARY_SOFTPLUS, .grad = grad_softplus)
ROW(scale, STI_UNARY_SCALE, .grad = grad_scale, .attr_bytes = sizeof(factor_attr),
    .print = print_factor)
ROW(add_scalar, STI_UNARY_ADD_SCALAR, .grad = grad_add_scalar,
    .attr_bytes = sizeof(factor_attr), .print = print_factor)

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
