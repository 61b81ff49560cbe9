/* Cases: operators on bfloat16 (included by op_cases.h). Operands are rounded and
 * results widened by casts, so the references are those of numbers, and the tolerance
 * that of eight bits. Gradients are not checked: pass/precision comes after them. */
#ifndef TESTS_OP_OP_CASES_BF16_H
#define TESTS_OP_OP_CASES_BF16_H

#include "op/op_bf16.h"
#include "op/op_cases_nn.h"

#define BF16_LOOSE 6000.0 /* of 4e-6: six times 2^-8 */

static stint_value bf16_of(stint_graph *g, stint_value x)
{
    return sti_op_add_cast(g, x, STINT_BF16);
}

static stint_value f32_of(stint_graph *g, stint_value x)
{
    return sti_op_add_cast(g, x, STINT_F32);
}

/* ---- casts: a number of eight bits comes back as it was */

static stint_value build_cast(stint_graph *g, const stint_value *x, const op_case *c)
{
    (void)c;
    return f32_of(g, bf16_of(g, x[0]));
}

static void reference_cast(const op_case *c, const op_tensor *in, op_tensor *out)
{
    (void)c;
    for (int64_t i = 0; i < out->count; i++) {
        int exponent;
        const double part = frexp(in[0].data[i], &exponent);
        out->data[i] = ldexp(nearbyint(ldexp(part, 8)), exponent - 8);
    }
}

/* ---- convolution and its gradients; i as build_conv2d wants them */

static stint_value build_conv2d_bf16(stint_graph *g, const stint_value *x,
                                     const op_case *c)
{
    const sti_conv2d_attr attr = {.stride = c->i[0],
                                  .pad = c->i[1],
                                  .groups = 1,
                                  .has_bias = c->n_in == 3,
                                  .relu = c->i[3] != 0};
    const stint_value in[3] = {bf16_of(g, x[0]), x[1],
                               c->n_in == 3 ? x[2] : STI_NO_INPUT};
    return f32_of(g, sti_graph_add(g, &sti_op_conv2d_bf16, &attr, 3, in));
}

/* Gradients with a window of i[2]: x0 = images, x1 = dy or weights. */
static sti_conv2d_grad_attr bf16_grad_attr(const op_case *c, int64_t height,
                                           int64_t width)
{
    return (sti_conv2d_grad_attr){c->i[0], c->i[1], 1, height, width, 0};
}

static stint_value build_grad_w_bf16(stint_graph *g, const stint_value *x,
                                     const op_case *c)
{
    const sti_conv2d_grad_attr attr = bf16_grad_attr(c, c->i[2], c->i[2]);
    const stint_value in[2] = {bf16_of(g, x[0]), bf16_of(g, x[1])};
    return sti_graph_add(g, &sti_op_conv2d_bf16_grad_w, &attr, 2, in);
}

static void reference_grad_w_bf16(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t *x = in[0].shape.dim, *y = in[1].shape.dim, *w = out->shape.dim;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t o[4]; /* tap, tap, channel, filter */
        op_index(&out->shape, i, o);
        for (int64_t p = 0; p < y[0] * y[1] * y[2]; p++) {
            const int64_t n = p / (y[1] * y[2]);
            const int64_t at = p / y[2] % y[1] * c->i[0] - c->i[1] + o[0];
            const int64_t col = p % y[2] * c->i[0] - c->i[1] + o[1];
            if (at >= 0 && at < x[1] && col >= 0 && col < x[2])
                out->data[i] +=
                    in[0].data[((n * x[1] + at) * x[2] + col) * x[3] + o[2]] *
                    in[1].data[p * w[3] + o[3]];
        }
    }
}

/* Stride 1: dx has the size of dy. */
static stint_value build_grad_x_bf16(stint_graph *g, const stint_value *x,
                                     const op_case *c)
{
    const stint_shape dy = stint_value_shape(g, x[0]);
    const sti_conv2d_grad_attr attr = bf16_grad_attr(c, dy.dim[1], dy.dim[2]);
    const stint_value in[2] = {bf16_of(g, x[0]), x[1]};
    return f32_of(g, sti_graph_add(g, &sti_op_conv2d_bf16_grad_x, &attr, 2, in));
}

static void reference_grad_x_bf16(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t *y = in[0].shape.dim, *w = in[1].shape.dim, *x = out->shape.dim;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t o[4];
        op_index(&out->shape, i, o);
        for (int64_t t = 0; t < w[0] * w[1]; t++) {
            const int64_t row = o[1] + c->i[1] - t / w[1];
            const int64_t col = o[2] + c->i[1] - t % w[1];
            if (row < 0 || row >= y[1] || col < 0 || col >= y[2])
                continue;
            for (int64_t f = 0; f < w[3]; f++)
                out->data[i] +=
                    in[0].data[((o[0] * y[1] + row) * y[2] + col) * y[3] + f] *
                    in[1].data[(t * x[3] + o[3]) * w[3] + f];
        }
    }
}

/* ---- matrix products: i: transposed b, f32 result, ReLU */

static stint_value build_matmul_bf16(stint_graph *g, const stint_value *x,
                                     const op_case *c)
{
    const sti_matmul_bf16_attr attr = {
        {.trans_b = c->i[0] != 0, .has_bias = 1, .relu = c->i[2] != 0}, c->i[1] != 0};
    const stint_value in[3] = {bf16_of(g, x[0]), bf16_of(g, x[1]), x[2]};
    const stint_value y = sti_graph_add(g, &sti_op_matmul_bf16, &attr, 3, in);
    return c->i[1] ? y : f32_of(g, y);
}

static void reference_matmul_bf16(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t k = in[0].shape.dim[1], n = out->shape.dim[1];
    for (int64_t i = 0; i < out->count; i++) {
        double y = in[2].data[i % n];
        for (int64_t l = 0; l < k; l++)
            y += in[0].data[i / n * k + l] *
                 in[1].data[c->i[0] ? i % n * k + l : l * n + i % n];
        out->data[i] = c->i[2] && y < 0 ? 0 : y;
    }
}

/* ---- loss of a large vocabulary; f: smoothing, i: output (loss, dx, dtable) */

static stint_value build_linear_loss_bf16(stint_graph *g, const stint_value *x,
                                          const op_case *c)
{
    const float smoothing = (float)c->f[0];
    const stint_value in[3] = {bf16_of(g, x[0]), bf16_of(g, x[1]), x[2]};
    return sti_graph_add(g, &sti_op_linear_cross_entropy_bf16, &smoothing, 3, in) +
           (stint_value)c->i[0];
}

static void reference_linear_loss_bf16(const op_case *c, const op_tensor *in,
                                       op_tensor *out)
{
    const int64_t rows = in[0].shape.dim[0], n = in[0].shape.dim[1];
    const int64_t classes = in[1].shape.dim[0];
    double *d = calloc((size_t)classes, sizeof *d);
    for (int64_t r = 0; r < rows; r++) {
        const double *x = in[0].data + r * n;
        double total = 0;
        for (int64_t k = 0; k < classes; k++) {
            d[k] = 0;
            for (int64_t i = 0; i < n; i++)
                d[k] += x[i] * in[1].data[k * n + i];
            total += exp(d[k]);
        }
        for (int64_t k = 0; k < classes && in[2].data[r] >= 0; k++) {
            const double wanted = c->f[0] / (double)classes +
                                  (k == (int64_t)in[2].data[r] ? 1 - c->f[0] : 0);
            const double by = (exp(d[k]) / total - wanted) / (double)rows;
            if (c->i[0] == 0)
                out->data[0] += wanted * (log(total) - d[k]) / (double)rows;
            for (int64_t i = 0; i < n && c->i[0] == 1; i++)
                out->data[r * n + i] += by * in[1].data[k * n + i];
            for (int64_t i = 0; i < n && c->i[0] == 2; i++)
                out->data[k * n + i] += by * x[i];
        }
    }
    free(d);
}

/* ---- batch normalisation; i and f as build_batch_norm wants them */

static stint_value build_batch_norm_bf16(stint_graph *g, const stint_value *x,
                                         const op_case *c)
{
    const sti_batch_norm_attr attr = {
        .epsilon = 1e-5f, .has_residual = c->i[0] != 0, .relu = c->i[1] != 0};
    const stint_value in[4] = {bf16_of(g, x[0]), x[1], x[2],
                               c->i[0] ? bf16_of(g, x[3]) : STI_NO_INPUT};
    return f32_of(g, sti_graph_add(g, &sti_op_batch_norm_bf16, &attr, 4, in));
}

/* dx of the gradient: x0 = dy, x1 = x, x2 scale. */
static stint_value build_batch_norm_grad_bf16(stint_graph *g, const stint_value *x,
                                              const op_case *c)
{
    const sti_batch_norm_attr attr = {.epsilon = 1e-5f};
    const stint_value half = bf16_of(g, x[1]);
    const stint_value forward[4] = {half, x[2], x[2], STI_NO_INPUT};
    const stint_value y = sti_graph_add(g, &sti_op_batch_norm_bf16, &attr, 4, forward);
    const stint_value in[6] = {bf16_of(g, x[0]), half, x[2], y + 1, y + 2,
                               STI_NO_INPUT};
    (void)c;
    return f32_of(g, sti_graph_add(g, &sti_op_batch_norm_bf16_grad, &attr, 6, in));
}

static void reference_batch_norm_grad_bf16(const op_case *c, const op_tensor *in,
                                           op_tensor *out)
{
    const int64_t n = in[2].count, rows = out->count / n;
    (void)c;
    for (int64_t j = 0; j < n; j++) {
        double mean = 0, variance = 0, z = 0, cross = 0;
        for (int64_t r = 0; r < rows; r++)
            mean += in[1].data[r * n + j] / (double)rows;
        for (int64_t r = 0; r < rows; r++) {
            const double d = in[1].data[r * n + j] - mean;
            variance += d * d / (double)rows;
            z += in[0].data[r * n + j] / (double)rows;
            cross += in[0].data[r * n + j] * d / (double)rows;
        }
        const double inverse = 1 / sqrt(variance + 1e-5);
        for (int64_t r = 0; r < rows; r++)
            out->data[r * n + j] =
                in[2].data[j] * inverse *
                (in[0].data[r * n + j] - z -
                 (in[1].data[r * n + j] - mean) * inverse * inverse * cross);
    }
}

/* ---- element by element; whole images */

static stint_value build_add_bf16(stint_graph *g, const stint_value *x,
                                  const op_case *c)
{
    const stint_value in[2] = {bf16_of(g, x[0]), bf16_of(g, x[1])};
    (void)c;
    return f32_of(g, sti_graph_add(g, &sti_op_add_bf16, NULL, 2, in));
}

static void reference_add_bf16(const op_case *c, const op_tensor *in, op_tensor *out)
{
    (void)c;
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = in[0].data[i] + in[1].data[i];
}

/* relu(x0), or x1 where x0 > 0. */
static stint_value build_relu_bf16(stint_graph *g, const stint_value *x,
                                   const op_case *c)
{
    const stint_value half = bf16_of(g, x[0]);
    const stint_value y = sti_graph_add(g, &sti_op_relu_bf16, NULL, 1, &half);
    if (c->n_in == 1)
        return f32_of(g, y);
    const stint_value in[2] = {bf16_of(g, x[1]), y + 1};
    return f32_of(g, sti_graph_add(g, &sti_op_relu_bf16_grad, NULL, 2, in));
}

static void reference_relu_bf16(const op_case *c, const op_tensor *in, op_tensor *out)
{
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = in[0].data[i] > 0 ? in[c->n_in - 1].data[i] : 0;
}

static stint_value build_pool_bf16(stint_graph *g, const stint_value *x,
                                   const op_case *c)
{
    const stint_value half = bf16_of(g, x[0]);
    (void)c;
    return sti_graph_add(g, &sti_op_global_avg_pool_bf16, NULL, 1, &half);
}

static stint_value build_unpool_bf16(stint_graph *g, const stint_value *x,
                                     const op_case *c)
{
    const sti_unpool_bf16_attr attr = {c->i[0], c->i[1]};
    return f32_of(g, sti_graph_add(g, &sti_op_global_avg_unpool_bf16, &attr, 1, x));
}

static void reference_unpool_bf16(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t area = c->i[0] * c->i[1], n = in[0].shape.dim[1];
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = in[0].data[i / (area * n) * n + i % n] / (double)area;
}

#define BF16_CASE(label, inputs, what, from, ...)                                  \
    {                                                                              \
        .name = label, .n_in = inputs, .loose = BF16_LOOSE, .build = build_##what, \
        .reference = reference_##from, __VA_ARGS__                                 \
    }
#define BF16_SHAPES(...) .shape = {__VA_ARGS__}
#define BF16_DRAW(...)   .draw = {__VA_ARGS__}
#define BF16_I(...)      .i = {__VA_ARGS__}

static const op_case op_cases_bf16[] = {
    {.name = "cast to bf16 and back",
     .n_in = 1,
     .shape = {"L,C"},
     .build = build_cast,
     .reference = reference_cast},
    BF16_CASE("conv2d_bf16", 2, conv2d_bf16, conv2d, BF16_SHAPES("N,H,W,C", "3,3,C,F"),
              BF16_I(1, 1, 1, 0)),
    BF16_CASE("conv2d_bf16 stride 2 bias relu", 3, conv2d_bf16, conv2d,
              BF16_SHAPES("N,H,W,16", "3,3,16,F", "F"), BF16_I(2, 1, 1, 1)),
    BF16_CASE("conv2d_bf16_grad_w", 2, grad_w_bf16, grad_w_bf16,
              BF16_SHAPES("N,H,W,C", "N,H,W,F"), BF16_I(1, 1, 3)),
    BF16_CASE("conv2d_bf16_grad_x", 2, grad_x_bf16, grad_x_bf16,
              BF16_SHAPES("N,H,W,F", "3,3,C,F"), BF16_I(1, 1)),
    BF16_CASE("matmul_bf16", 3, matmul_bf16, matmul_bf16,
              BF16_SHAPES("N,L", "L,C", "C"), BF16_I(0, 1, 0)),
    BF16_CASE("matmul_bf16 transposed relu", 3, matmul_bf16, matmul_bf16,
              BF16_SHAPES("L,C", "17,C", "17"), BF16_I(1, 0, 1)),
    BF16_CASE("linear_cross_entropy_bf16", 3, linear_loss_bf16, linear_loss_bf16,
              BF16_SHAPES("9,37", "41,37", "9"),
              BF16_DRAW(OP_NORMAL, OP_NORMAL, OP_SOME_LABELS), BF16_I(0), .f = {0.1}),
    BF16_CASE("linear_cross_entropy_bf16, dx", 3, linear_loss_bf16, linear_loss_bf16,
              BF16_SHAPES("9,37", "41,37", "9"),
              BF16_DRAW(OP_NORMAL, OP_NORMAL, OP_SOME_LABELS), BF16_I(1), .f = {0.1}),
    BF16_CASE("linear_cross_entropy_bf16, dtable", 3, linear_loss_bf16,
              linear_loss_bf16, BF16_SHAPES("9,37", "41,37", "9"),
              BF16_DRAW(OP_NORMAL, OP_NORMAL, OP_SOME_LABELS), BF16_I(2), .f = {0.0}),
    BF16_CASE("batch_norm_bf16", 3, batch_norm_bf16, batch_norm,
              BF16_SHAPES("4,H,W,16", "16", "16"), .f = {1.0}),
    BF16_CASE("batch_norm_bf16 residual relu", 4, batch_norm_bf16, batch_norm,
              BF16_SHAPES("4,H,W,C", "C", "C", "4,H,W,C"), BF16_I(1, 1), .f = {1.0}),
    BF16_CASE("batch_norm_bf16_grad", 3, batch_norm_grad_bf16, batch_norm_grad_bf16,
              BF16_SHAPES("4,H,W,C", "4,H,W,C", "C")),
    BF16_CASE("add_bf16", 2, add_bf16, add_bf16, BF16_SHAPES("L,C", "L,C")),
    BF16_CASE("relu_bf16", 1, relu_bf16, relu_bf16, BF16_SHAPES("L,C"),
              BF16_DRAW(OP_AWAY)),
    BF16_CASE("relu_bf16_grad", 2, relu_bf16, relu_bf16, BF16_SHAPES("L,C", "L,C"),
              BF16_DRAW(OP_AWAY)),
    BF16_CASE("global_avg_pool_bf16", 1, pool_bf16, global_avg_pool,
              BF16_SHAPES("N,H,W,C")),
    BF16_CASE("global_avg_unpool_bf16", 1, unpool_bf16, unpool_bf16, BF16_SHAPES("N,C"),
              BF16_I(3, 5)),
};

#endif
