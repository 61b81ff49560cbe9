/* Cases: element-wise, shape, reduction and matmul operators
 * (included by op_cases.h). */
#ifndef TESTS_OP_OP_CASES_BASIC_H
#define TESTS_OP_OP_CASES_BASIC_H

/* ---- functions of one number: f[0] is the factor, slope or addend */

#define UNARY_CASE(fn, value)                                           \
    static stint_value build_##fn(stint_graph *g, const stint_value *x, \
                                  const op_case *c)                     \
    {                                                                   \
        (void)c;                                                        \
        return stint_##fn(g, x[0]);                                     \
    }                                                                   \
    UNARY_REFERENCE(fn, value)
#define FACTOR_CASE(fn, value)                                          \
    static stint_value build_##fn(stint_graph *g, const stint_value *x, \
                                  const op_case *c)                     \
    {                                                                   \
        return stint_##fn(g, x[0], (float)c->f[0]);                     \
    }                                                                   \
    UNARY_REFERENCE(fn, value)
#define UNARY_REFERENCE(fn, value)                                                    \
    static void reference_##fn(const op_case *c, const op_tensor *in, op_tensor *out) \
    {                                                                                 \
        double p = (double)(float)c->f[0];                                            \
        (void)p;                                                                      \
        for (int64_t i = 0; i < out->count; i++) {                                    \
            double x = in[0].data[i];                                                 \
            out->data[i] = (value);                                                   \
        }                                                                             \
    }

UNARY_CASE(relu, x > 0 ? x : 0.0)
UNARY_CASE(sigmoid, 1.0 / (1.0 + exp(-x)))
UNARY_CASE(tanh, tanh(x))
UNARY_CASE(silu, x / (1.0 + exp(-x)))
UNARY_CASE(gelu,
           0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))))
UNARY_CASE(softplus, log1p(exp(x)))
UNARY_CASE(sign, x < 0 ? -1.0 : 1.0)
UNARY_CASE(exp, exp(x))
UNARY_CASE(log, log(x))
UNARY_CASE(sin, sin(x))
UNARY_CASE(cos, cos(x))
UNARY_CASE(sqrt, sqrt(x))
UNARY_CASE(square, x *x)
UNARY_CASE(reciprocal, 1.0 / x)
FACTOR_CASE(leaky_relu, x > 0 ? x : p * x)
static stint_value build_relu6(stint_graph *g, const stint_value *x, const op_case *c)
{
    return stint_relu6(g, stint_scale(g, x[0], (float)c->f[0]));
}
UNARY_REFERENCE(relu6, p *x > 6 ? 6.0 : p * x > 0 ? p * x : 0.0)
FACTOR_CASE(scale, p *x)
FACTOR_CASE(add_scalar, x + p)

static stint_value build_neg(stint_graph *g, const stint_value *x, const op_case *c)
{
    (void)c;
    return sti_graph_add(g, sti_op_find("neg"), NULL, 1, x);
}
UNARY_REFERENCE(neg, -x)

static stint_value build_copy(stint_graph *g, const stint_value *x, const op_case *c)
{
    (void)c;
    return sti_op_copy(g, x[0]);
}
UNARY_REFERENCE(copy, x)

/* y = x fill(p): fill has no inputs of its own. */
static stint_value build_fill(stint_graph *g, const stint_value *x, const op_case *c)
{
    stint_shape shape = stint_value_shape(g, x[0]);
    return stint_mul(g, x[0], sti_op_fill(g, &shape, (float)c->f[0]));
}
UNARY_REFERENCE(fill, p *x)

/* ---- functions of two numbers, broadcasting */

static int64_t op_broadcast_at(const stint_shape *from, const stint_shape *to,
                               int64_t i)
{
    int64_t at = 0, run = 1;
    for (int k = to->rank - 1; k >= 0; k--) {
        int kf = k - (to->rank - from->rank);
        int64_t dim = kf < 0 ? 1 : from->dim[kf], index = i % to->dim[k];
        i /= to->dim[k];
        at += dim == 1 ? 0 : index * run;
        run *= dim;
    }
    return at;
}

#define BINARY_CASE(fn, value)                                                        \
    static stint_value build_##fn(stint_graph *g, const stint_value *x,               \
                                  const op_case *c)                                   \
    {                                                                                 \
        (void)c;                                                                      \
        return stint_##fn(g, x[0], x[1]);                                             \
    }                                                                                 \
    static void reference_##fn(const op_case *c, const op_tensor *in, op_tensor *out) \
    {                                                                                 \
        (void)c;                                                                      \
        for (int64_t i = 0; i < out->count; i++) {                                    \
            double a = in[0].data[op_broadcast_at(&in[0].shape, &out->shape, i)];     \
            double b = in[1].data[op_broadcast_at(&in[1].shape, &out->shape, i)];     \
            out->data[i] = (value);                                                   \
        }                                                                             \
    }

BINARY_CASE(add, a + b)
BINARY_CASE(sub, a - b)
BINARY_CASE(mul, a *b)
BINARY_CASE(div, a / b)
BINARY_CASE(bias, a + b)

/* ---- moving elements */

static void reference_same_order(const op_case *c, const op_tensor *in, op_tensor *out)
{
    (void)c;
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = in[0].data[i];
}

static stint_value build_reshape(stint_graph *g, const stint_value *x, const op_case *c)
{
    stint_shape shape = STINT_SHAPE(2, -1, 3);
    (void)c;
    return stint_reshape(g, x[0], &shape);
}

static stint_value build_flatten(stint_graph *g, const stint_value *x, const op_case *c)
{
    (void)c;
    return stint_flatten(g, x[0]);
}

/* Index of each axis of element i. */
static void op_index(const stint_shape *shape, int64_t i, int64_t *index)
{
    for (int k = shape->rank - 1; k >= 0; k--) {
        index[k] = i % shape->dim[k];
        i /= shape->dim[k];
    }
}

static int64_t op_offset(const stint_shape *shape, const int64_t *index)
{
    int64_t at = 0;
    for (int k = 0; k < shape->rank; k++)
        at = at * shape->dim[k] + index[k];
    return at;
}

/* i[0..]: the axes */
static stint_value build_transpose(stint_graph *g, const stint_value *x,
                                   const op_case *c)
{
    int axes[STINT_MAX_RANK] = {0};
    for (int k = 0; k < 6; k++)
        axes[k] = (int)c->i[k];
    return stint_transpose(g, x[0], axes);
}

static void reference_transpose(const op_case *c, const op_tensor *in, op_tensor *out)
{
    int64_t to[STINT_MAX_RANK], from[STINT_MAX_RANK];
    for (int64_t i = 0; i < out->count; i++) {
        op_index(&out->shape, i, to);
        for (int k = 0; k < out->shape.rank; k++)
            from[c->i[k]] = to[k];
        out->data[i] = in[0].data[op_offset(&in[0].shape, from)];
    }
}

/* i[0]: axis; the three inputs are joined along it */
static stint_value build_concat(stint_graph *g, const stint_value *x, const op_case *c)
{
    return stint_concat(g, x, c->n_in, (int)c->i[0]);
}

static void reference_concat(const op_case *c, const op_tensor *in, op_tensor *out)
{
    int64_t index[STINT_MAX_RANK], axis = c->i[0];
    for (int64_t i = 0; i < out->count; i++) {
        int k = 0;
        op_index(&out->shape, i, index);
        while (index[axis] >= in[k].shape.dim[axis])
            index[axis] -= in[k++].shape.dim[axis];
        out->data[i] = in[k].data[op_offset(&in[k].shape, index)];
    }
}

/* i: axis, begin, distance of the end from the end, step */
static stint_value build_slice(stint_graph *g, const stint_value *x, const op_case *c)
{
    int64_t dim = stint_value_shape(g, x[0]).dim[c->i[0]];
    return stint_slice(g, x[0], (int)c->i[0], c->i[1], dim - c->i[2], c->i[3]);
}

static void reference_slice(const op_case *c, const op_tensor *in, op_tensor *out)
{
    int64_t index[STINT_MAX_RANK];
    for (int64_t i = 0; i < out->count; i++) {
        op_index(&out->shape, i, index);
        index[c->i[0]] = c->i[1] + index[c->i[0]] * c->i[3];
        out->data[i] = in[0].data[op_offset(&in[0].shape, index)];
    }
}

/* x [.., 1, ..] repeated to the shape of input 1 */
static stint_value build_broadcast(stint_graph *g, const stint_value *x,
                                   const op_case *c)
{
    stint_shape shape = stint_value_shape(g, x[1]);
    (void)c;
    return stint_broadcast(g, x[0], &shape);
}

static void reference_broadcast(const op_case *c, const op_tensor *in, op_tensor *out)
{
    (void)c;
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = in[0].data[op_broadcast_at(&in[0].shape, &out->shape, i)];
}

/* ---- reductions: i[0] axes as bits, i[1] keep */

#define REDUCE_CASE(fn)                                                 \
    static stint_value build_##fn(stint_graph *g, const stint_value *x, \
                                  const op_case *c)                     \
    {                                                                   \
        return stint_##fn(g, x[0], (unsigned)c->i[0], c->i[1] != 0);    \
    }
REDUCE_CASE(sum)
REDUCE_CASE(mean)
REDUCE_CASE(max)

static stint_value build_squares(stint_graph *g, const stint_value *x, const op_case *c)
{
    (void)c;
    return stint_squares(g, x[0]);
}

static void reference_squares(const op_case *c, const op_tensor *in, op_tensor *out)
{
    (void)c;
    for (int64_t i = 0; i < in[0].count; i++)
        out->data[0] += in[0].data[i] * in[0].data[i];
}

static int64_t op_reduced_at(const op_case *c, const stint_shape *x, int64_t i)
{
    int64_t index[STINT_MAX_RANK], at = 0;
    op_index(x, i, index);
    for (int k = 0; k < x->rank; k++)
        if (!(c->i[0] >> k & 1))
            at = at * x->dim[k] + index[k];
    return at;
}

static void reference_sum(const op_case *c, const op_tensor *in, op_tensor *out)
{
    for (int64_t i = 0; i < in[0].count; i++)
        out->data[op_reduced_at(c, &in[0].shape, i)] += in[0].data[i];
}

static void reference_mean(const op_case *c, const op_tensor *in, op_tensor *out)
{
    reference_sum(c, in, out);
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] /= (double)(in[0].count / out->count);
}

static void reference_max(const op_case *c, const op_tensor *in, op_tensor *out)
{
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = -HUGE_VAL;
    for (int64_t i = 0; i < in[0].count; i++) {
        double *to = &out->data[op_reduced_at(c, &in[0].shape, i)];
        *to = in[0].data[i] > *to ? in[0].data[i] : *to;
    }
}

/* ---- matmul: i: trans_a, trans_b, bias, relu */

static stint_value build_matmul(stint_graph *g, const stint_value *x, const op_case *c)
{
    sti_matmul_attr attr = {.trans_a = c->i[0] != 0,
                            .trans_b = c->i[1] != 0,
                            .has_bias = c->i[2] != 0,
                            .relu = c->i[3] != 0};
    return sti_graph_add(g, &sti_op_matmul, &attr, c->n_in, x);
}

static void reference_matmul(const op_case *c, const op_tensor *in, op_tensor *out)
{
    int rank = out->shape.rank;
    int64_t m = out->shape.dim[rank - 2], n = out->shape.dim[rank - 1];
    int64_t k = in[0].shape.dim[rank - (c->i[0] ? 2 : 1)];
    for (int64_t o = 0; o < out->count; o++) {
        int64_t j = o % n, i = o / n % m, batch = o / n / m;
        const double *a = in[0].data + batch * m * k, *b = in[1].data + batch * k * n;
        double sum = c->i[2] ? in[2].data[j] : 0.0;
        for (int64_t t = 0; t < k; t++)
            sum += (c->i[0] ? a[t * m + i] : a[i * k + t]) *
                   (c->i[1] ? b[j * k + t] : b[t * n + j]);
        out->data[o] = c->i[3] && sum < 0 ? 0.0 : sum;
    }
}

/* ---- the list */

#define U(fn, drawn, text)                                                    \
    {                                                                         \
        .name = #fn, .n_in = 1, .shape = {"N,L"}, .draw = {drawn}, .grad = 1, \
        .build = build_##fn, .reference = reference_##fn, .torch = text       \
    }
#define P(fn, drawn, p, text)                                                     \
    {                                                                             \
        .name = #fn, .n_in = 1, .shape = {"N,L"}, .draw = {drawn}, .grad = 1,     \
        .build = build_##fn, .reference = reference_##fn, .f = {p}, .torch = text \
    }
#define B(fn, label, sa, sb, text)                                        \
    {                                                                     \
        .name = #fn " " label, .n_in = 2, .shape = {sa, sb},              \
        .draw = {OP_NORMAL, OP_POSITIVE}, .grad = 3, .build = build_##fn, \
        .reference = reference_##fn, .torch = text                        \
    }
#define R(fn, label, s, drawn, axes, keep, text)                                    \
    {                                                                               \
        .name = #fn " " label, .n_in = 1, .shape = {s}, .draw = {drawn}, .grad = 1, \
        .build = build_##fn, .reference = reference_##fn, .i = {axes, keep},        \
        .torch = text                                                               \
    }
#define M(label, sa, sb, sc, ta, tb, bias, relu, text)                              \
    {                                                                               \
        .name = "matmul " label, .n_in = 2 + bias, .shape = {sa, sb, sc},           \
        .grad = bias ? 7 : 3, .build = build_matmul, .reference = reference_matmul, \
        .i = {ta, tb, bias, relu}, .torch = text                                    \
    }

static const op_case op_cases_basic[] = {
    U(relu, OP_AWAY, "F.relu(x0)"),
    U(sigmoid, OP_NORMAL, "torch.sigmoid(x0)"),
    U(tanh, OP_NORMAL, "torch.tanh(x0)"),
    U(silu, OP_NORMAL, "F.silu(x0)"),
    U(gelu, OP_NORMAL, "F.gelu(x0, approximate='tanh')"),
    U(softplus, OP_NORMAL, "F.softplus(x0)"),
    /* Its gradient is not the derivative: tests/pass/op_gradient_test.c. */
    {.name = "sign",
     .n_in = 1,
     .shape = {"A,B"},
     .draw = {OP_NORMAL},
     .build = build_sign,
     .reference = reference_sign,
     .torch = "torch.where(x0 < 0, -1.0, 1.0)"},
    U(exp, OP_NORMAL, "torch.exp(x0)"),
    U(log, OP_POSITIVE, "torch.log(x0)"),
    U(sin, OP_NORMAL, "torch.sin(x0)"),
    U(cos, OP_NORMAL, "torch.cos(x0)"),
    U(sqrt, OP_POSITIVE, "torch.sqrt(x0)"),
    U(square, OP_NORMAL, "torch.square(x0)"),
    U(reciprocal, OP_POSITIVE, "torch.reciprocal(x0)"),
    U(neg, OP_NORMAL, "-x0"),
    U(copy, OP_NORMAL, "x0.clone()"),
    P(leaky_relu, OP_AWAY, 0.1, "F.leaky_relu(x0, 0.1)"),
    P(relu6, OP_AWAY, 5.0, "F.relu6(5 * x0)"),
    P(scale, OP_NORMAL, -1.75, "x0 * -1.75"),
    P(add_scalar, OP_NORMAL, 0.625, "x0 + 0.625"),
    P(fill, OP_NORMAL, 1.25, "x0 * 1.25"),

    B(add, "same", "N,H,C", "N,H,C", "x0 + x1"),
    B(add, "row", "N,H,C", "C", "x0 + x1"),
    B(add, "scalar", "N,H,C", "", "x0 + x1"),
    B(add, "from scalar", "", "N,C", "x0 + x1"),
    B(sub, "column", "N,C", "N,1", "x0 - x1"),
    B(sub, "both ways", "N,1,C", "H,1", "x0 - x1"),
    B(mul, "same", "N,C", "N,C", "x0 * x1"),
    B(mul, "row", "L,C", "C", "x0 * x1"),
    B(mul, "middle", "N,H,C", "N,1,C", "x0 * x1"),
    B(mul, "both ways", "N,1,C,1", "H,1,W", "x0 * x1"),
    B(div, "same", "N,C", "N,C", "x0 / x1"),
    B(div, "column", "N,H,C", "N,H,1", "x0 / x1"),
    B(div, "row", "L,C", "1,C", "x0 / x1"),
    B(bias, "", "N,H,W,C", "C", "x0 + x1"),

    {.name = "reshape",
     .n_in = 1,
     .shape = {"N,2,3C"},
     .grad = 1,
     .build = build_reshape,
     .reference = reference_same_order,
     .torch = "x0.reshape(2, -1, 3)"},
    {.name = "flatten",
     .n_in = 1,
     .shape = {"N,H,W,C"},
     .grad = 1,
     .build = build_flatten,
     .reference = reference_same_order,
     .torch = "x0.flatten(1)"},
    {.name = "transpose matrix",
     .n_in = 1,
     .shape = {"L,2M"},
     .grad = 1,
     .build = build_transpose,
     .reference = reference_transpose,
     .i = {1, 0},
     .torch = "x0.permute(1, 0)"},
    {.name = "transpose to channels first",
     .n_in = 1,
     .shape = {"N,H,W,C"},
     .grad = 1,
     .build = build_transpose,
     .reference = reference_transpose,
     .i = {0, 3, 1, 2},
     .torch = "x0.permute(0, 3, 1, 2)"},
    {.name = "transpose five axes",
     .n_in = 1,
     .shape = {"N,C,M,K,2"},
     .grad = 1,
     .build = build_transpose,
     .reference = reference_transpose,
     .i = {4, 2, 0, 3, 1},
     .torch = "x0.permute(4, 2, 0, 3, 1)"},
    {.name = "concat last",
     .n_in = 3,
     .shape = {"N,H,C", "N,H,K", "N,H,M"},
     .grad = 7,
     .build = build_concat,
     .reference = reference_concat,
     .i = {2},
     .torch = "torch.cat([x0, x1, x2], 2)"},
    {.name = "concat first",
     .n_in = 2,
     .shape = {"N,H", "M,H"},
     .grad = 3,
     .build = build_concat,
     .reference = reference_concat,
     .i = {0},
     .torch = "torch.cat([x0, x1], 0)"},
    {.name = "slice by step",
     .n_in = 1,
     .shape = {"N,H,C"},
     .grad = 1,
     .build = build_slice,
     .reference = reference_slice,
     .i = {1, 1, 1, 2},
     .torch = "x0[:, 1:-1:2]"},
    {.name = "slice last",
     .n_in = 1,
     .shape = {"N,3C"},
     .grad = 1,
     .build = build_slice,
     .reference = reference_slice,
     .i = {1, 2, 0, 1},
     .torch = "x0[:, 2:]"},
    {.name = "broadcast",
     .n_in = 2,
     .shape = {"N,1,C", "M,N,H,C"},
     .grad = 1,
     .build = build_broadcast,
     .reference = reference_broadcast,
     .torch = "x0.expand(x1.shape)"},

    R(sum, "all", "N,L", OP_NORMAL, 3, 0, "x0.sum()"),
    R(sum, "rows", "N,L", OP_NORMAL, 2, 0, "x0.sum(1)"),
    R(sum, "columns", "L,C", OP_NORMAL, 1, 1, "x0.sum(0, keepdim=True)"),
    R(sum, "wide columns", "N,20C", OP_NORMAL, 1, 0, "x0.sum(0)"),
    R(sum, "alternating", "N,H,C,W", OP_NORMAL, 5, 0, "x0.sum((0, 2))"),
    R(sum, "middle", "N,H,W,C", OP_NORMAL, 6, 1, "x0.sum((1, 2), keepdim=True)"),
    R(sum, "outside", "N,C,H,W", OP_NORMAL, 13, 0, "x0.sum((0, 2, 3))"),
    R(sum, "nothing", "N,C", OP_NORMAL, 0, 0, "x0.clone()"),
    R(mean, "middle", "N,H,W,C", OP_NORMAL, 6, 0, "x0.mean((1, 2))"),
    R(mean, "last", "N,L", OP_NORMAL, 2, 1, "x0.mean(1, keepdim=True)"),
    R(max, "rows", "N,L", OP_DISTINCT, 2, 0, "x0.amax(1)"),
    R(max, "columns", "L,C", OP_DISTINCT, 1, 1, "x0.amax(0, keepdim=True)"),
    R(max, "alternating", "N,H,C,W", OP_DISTINCT, 10, 0, "x0.amax((1, 3))"),

    {.name = "squares",
     .n_in = 1,
     .shape = {"N,H,C"},
     .grad = 1,
     .build = build_squares,
     .reference = reference_squares,
     .torch = "(x0 * x0).sum()"},
    {.name = "squares of pieces",
     .n_in = 1,
     .shape = {"300,61"},
     .build = build_squares,
     .reference = reference_squares,
     .torch = "(x0 * x0).sum()"},

    M("plain", "N,K", "K,M", "", 0, 0, 0, 0, "x0 @ x1"),
    M("long", "N,L", "L,M", "", 0, 0, 0, 0, "x0 @ x1"),
    M("trans a", "K,N", "K,M", "", 1, 0, 0, 0, "x0.mT @ x1"),
    M("trans b", "N,K", "M,K", "", 0, 1, 0, 0, "x0 @ x1.mT"),
    M("trans both", "K,N", "M,K", "", 1, 1, 0, 0, "x0.mT @ x1.mT"),
    M("batched", "2,N,H,K", "2,N,K,M", "", 0, 0, 0, 0, "x0 @ x1"),
    M("batched trans", "C,K,N", "C,M,K", "", 1, 1, 0, 0, "x0.mT @ x1.mT"),
    M("bias", "N,K", "K,M", "M", 0, 0, 1, 0, "x0 @ x1 + x2"),
    M("bias relu", "N,K", "K,M", "M", 0, 0, 1, 1, "F.relu(x0 @ x1 + x2)"),
    M("batched bias relu", "C,N,K", "C,M,K", "M", 0, 1, 1, 1,
      "F.relu(x0 @ x1.mT + x2)"),
};

#undef U
#undef P
#undef B
#undef R
#undef M

#endif
