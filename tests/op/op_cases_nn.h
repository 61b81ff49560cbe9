/* Cases: convolution, batch normalisation, pooling, losses, dropout (included by
 * op_cases.h). */
#ifndef TESTS_OP_OP_CASES_NN_H
#define TESTS_OP_OP_CASES_NN_H

/* ---- convolution: x0 [n, h, w, c], x1 [kh, kw, c / groups, co], x2 bias
 *      i: stride, pad, groups, relu, winograd */

static stint_value build_conv2d(stint_graph *g, const stint_value *x, const op_case *c)
{
    const sti_conv2d_attr attr = {.stride = c->i[0],
                                  .pad = c->i[1],
                                  .groups = c->i[2],
                                  .has_bias = c->n_in == 3,
                                  .relu = c->i[3] != 0,
                                  .winograd = c->i[4]};
    return sti_op_conv(g, x[0], x[1], c->n_in == 3 ? x[2] : STI_NO_INPUT, &attr);
}

/* One output, [n, oy, ox, f]. (Sanitizers that watch it take most of the time of all
 * tests of operators.) */
__attribute__((no_sanitize("address"), no_sanitize("undefined"))) static double
nn_conv_at(const op_case *c, const op_tensor *in, const int64_t *o)
{
    const int64_t *x = in[0].shape.dim, *w = in[1].shape.dim;
    const int64_t group = o[3] / (w[3] / c->i[2]);
    double sum = 0;
    for (int64_t i = 0; i < w[0]; i++)
        for (int64_t j = 0; j < w[1]; j++)
            for (int64_t k = 0; k < w[2]; k++) {
                int64_t y = o[1] * c->i[0] - c->i[1] + i;
                int64_t z = o[2] * c->i[0] - c->i[1] + j;
                if (y < 0 || z < 0 || y >= x[1] || z >= x[2])
                    continue;
                int64_t at = ((o[0] * x[1] + y) * x[2] + z) * x[3] + group * w[2] + k;
                sum += in[0].data[at] *
                       in[1].data[((i * w[1] + j) * w[2] + k) * w[3] + o[3]];
            }
    return sum;
}

static void reference_conv2d(const op_case *c, const op_tensor *in, op_tensor *out)
{
    for (int64_t i = 0; i < out->count; i++) {
        int64_t o[4];
        op_index(&out->shape, i, o);
        double y = nn_conv_at(c, in, o);
        if (c->n_in == 3)
            y += in[2].data[o[3]];
        out->data[i] = c->i[3] && y < 0 ? 0 : y;
    }
}

/* Sums of squares beside the weight gradient: x0 [n, h, w, c], x1 = dy. i: stride, pad,
 * groups, window. */
static stint_value build_grad_squares(stint_graph *g, const stint_value *x,
                                      const op_case *c)
{
    const sti_conv2d_grad_attr attr = {.stride = c->i[0],
                                       .pad = c->i[1],
                                       .groups = c->i[2],
                                       .height = c->i[3],
                                       .width = c->i[3]};
    const stint_value dw = sti_graph_add(g, &sti_op_conv2d_grad_w, &attr, 2, x);
    return dw < 0 ? dw : sti_graph_value(g, dw)->producer->out[1];
}

static void reference_grad_squares(const op_case *c, const op_tensor *in,
                                   op_tensor *out)
{
    (void)c;
    for (int64_t i = 0; i < in[1].count; i++)
        out->data[i % out->count] += in[1].data[i] * in[1].data[i];
}

#define NN_SQUARES(label, xs, dys, s, p, gr, size)                               \
    {                                                                            \
        .name = "conv2d_grad_w squares " label, .n_in = 2, .shape = {xs, dys},   \
        .build = build_grad_squares, .reference = reference_grad_squares, .i = { \
            s,                                                                   \
            p,                                                                   \
            gr,                                                                  \
            size                                                                 \
        }                                                                        \
    }

#define NN_CONV(label, xs, ws, bs, inputs, s, p, gr, re, py)            \
    {                                                                   \
        .name = "conv2d " label, .n_in = inputs, .shape = {xs, ws, bs}, \
        .grad = (1u << inputs) - 1, .loose = 5, .build = build_conv2d,  \
        .reference = reference_conv2d, .i = {s, p, gr, re}, .torch = py \
    }
/* By minimal filtering: 3 x 3, stride 1. */
#define NN_WINOGRAD(label, xs, ws, bs, inputs, p, re, py)                        \
    {                                                                            \
        .name = "conv2d winograd " label, .n_in = inputs, .shape = {xs, ws, bs}, \
        .grad = (1u << inputs) - 1, .loose = 5, .build = build_conv2d,           \
        .reference = reference_conv2d, .i = {1, p, 1, re, 1}, .torch = py        \
    }
#define NN_CONV_PY(more) \
    "F.conv2d(x0.permute(0,3,1,2), x1.permute(3,2,0,1), " more ").permute(0,2,3,1)"

/* ---- batch normalisation: x0, x1 scale, x2 shift, x3 residual
 *      i: residual, relu, eval (1: mean 0 and variance x3; 2: mean x2 too)
 *      f[0]: factor of scale, and of shift where there is a residual: small with a
 * ReLU, so that the larger addend keeps second differences away from the kink */

static stint_value build_batch_norm(stint_graph *g, const stint_value *x,
                                    const op_case *c)
{
    const stint_shape row = stint_value_shape(g, x[1]);
    const sti_batch_norm_attr attr = {.epsilon = 1e-5f,
                                      .eval = c->i[2] != 0,
                                      .has_residual = c->i[0] != 0,
                                      .relu = c->i[1] != 0};
    const float factor = (float)c->f[0];
    stint_value in[6] = {x[0], stint_scale(g, x[1], factor),
                         x[2], c->i[0] ? x[3] : STI_NO_INPUT,
                         -1,   -1};
    if (attr.has_residual)
        in[2] = stint_scale(g, x[2], factor);
    if (attr.eval) {
        in[4] = c->i[2] == 2 ? x[2] : sti_op_fill(g, &row, 0.0f);
        in[5] = x[3];
    }
    return sti_graph_add(g, &sti_op_batch_norm, &attr, attr.eval ? 6 : 4, in);
}

static void nn_column(const op_case *c, const op_tensor *in, int64_t j, double *mean,
                      double *variance)
{
    const int64_t n = in[1].count, rows = in[0].count / n;
    *mean = *variance = 0;
    if (c->i[2]) {
        *mean = c->i[2] == 2 ? in[2].data[j] : 0;
        *variance = in[3].data[j];
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        *mean += in[0].data[r * n + j] / (double)rows;
    for (int64_t r = 0; r < rows; r++) {
        double d = in[0].data[r * n + j] - *mean;
        *variance += d * d / (double)rows;
    }
}

static void reference_batch_norm(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t n = in[1].count;
    const double factor = (double)(float)c->f[0];
    for (int64_t j = 0; j < n; j++) {
        double mean, variance;
        nn_column(c, in, j, &mean, &variance);
        for (int64_t at = j; at < out->count; at += n) {
            double y = (in[0].data[at] - mean) / sqrt(variance + (double)1e-5f);
            y = y * factor * in[1].data[j] + (c->i[0] ? factor : 1) * in[2].data[j];
            if (c->i[0])
                y += in[3].data[at];
            out->data[at] = c->i[1] && y < 0 ? 0 : y;
        }
    }
}

#define NN_NORM(label, xs, cs, inputs, res, re, ev, mask, py)                          \
    {                                                                                  \
        .name = "batch_norm " label, .n_in = inputs,                                   \
        .shape = {xs, cs, cs, res ? xs : cs},                                          \
        .draw = {OP_NORMAL, OP_AWAY, OP_AWAY, res ? OP_AWAY : OP_POSITIVE},            \
        .grad = mask, .loose = 4, .build = build_batch_norm,                           \
        .reference = reference_batch_norm, .i = {res, re, ev}, .f = {re ? 0.02 : 1.0}, \
        .torch = py                                                                    \
    }

/* ---- its second half: x0, x1 scale, x2 shift, x3 mean, x4 inverse, x5 residual
 *      i: residual, relu; f[0]: as above */

static stint_value build_batch_norm_apply(stint_graph *g, const stint_value *x,
                                          const op_case *c)
{
    const sti_batch_norm_attr attr = {.has_residual = c->i[0] != 0,
                                      .relu = c->i[1] != 0};
    const float factor = (float)c->f[0];
    const stint_value in[6] = {x[0], stint_scale(g, x[1], factor),
                               x[2], c->i[0] ? x[5] : STI_NO_INPUT,
                               x[3], x[4]};
    return sti_graph_add(g, &sti_op_batch_norm_apply, &attr, 6, in);
}

static void reference_batch_norm_apply(const op_case *c, const op_tensor *in,
                                       op_tensor *out)
{
    const int64_t n = in[1].count;
    for (int64_t i = 0; i < out->count; i++) {
        const int64_t j = i % n;
        double y = (in[0].data[i] - in[3].data[j]) * in[4].data[j];
        y = y * (double)(float)c->f[0] * in[1].data[j] + in[2].data[j];
        y += c->i[0] ? in[5].data[i] : 0;
        out->data[i] = c->i[1] && y < 0 ? 0 : y;
    }
}

#define NN_APPLY(label, xs, cs, inputs, re, py)                                       \
    {                                                                                 \
        .name = "batch_norm_apply " label, .n_in = inputs,                            \
        .shape = {xs, cs, cs, cs, cs, xs},                                            \
        .draw = {OP_NORMAL, OP_NORMAL, OP_AWAY, OP_NORMAL, OP_POSITIVE, OP_POSITIVE}, \
        .grad = (1u << inputs) - 1, .loose = 2, .build = build_batch_norm_apply,      \
        .reference = reference_batch_norm_apply, .i = {inputs == 6, re},              \
        .f = {re ? 0.004 : 1.0}, .torch = py                                          \
    }
#define NN_APPLY_PY(scale) "((x0 - x3) * x4 * " scale " * x1 + x2"

/* ---- pooling: i: size, stride, pad */

#define NN_POOL(name)                                                                \
    static stint_value build_##name(stint_graph *g, const stint_value *x,            \
                                    const op_case *c)                                \
    {                                                                                \
        return stint_##name(g, x[0], &(stint_pool_desc){c->i[0], c->i[1], c->i[2]}); \
    }
NN_POOL(max_pool)
NN_POOL(avg_pool)

/* Largest and sum of a window. */
static void nn_window(const op_case *c, const op_tensor *x, const int64_t *o,
                      double *largest, double *sum)
{
    const int64_t *dim = x->shape.dim;
    *largest = -INFINITY;
    *sum = 0;
    for (int64_t i = 0; i < c->i[0]; i++)
        for (int64_t j = 0; j < c->i[0]; j++) {
            int64_t y = o[1] * c->i[1] - c->i[2] + i, z = o[2] * c->i[1] - c->i[2] + j;
            if (y < 0 || z < 0 || y >= dim[1] || z >= dim[2])
                continue;
            double v = x->data[((o[0] * dim[1] + y) * dim[2] + z) * dim[3] + o[3]];
            *largest = v > *largest ? v : *largest;
            *sum += v;
        }
}

static void nn_pool(const op_case *c, const op_tensor *in, op_tensor *out, bool average)
{
    for (int64_t i = 0; i < out->count; i++) {
        int64_t o[4];
        double largest, sum;
        op_index(&out->shape, i, o);
        nn_window(c, in, o, &largest, &sum);
        out->data[i] = average ? sum / (double)(c->i[0] * c->i[0]) : largest;
    }
}

static void reference_max_pool(const op_case *c, const op_tensor *in, op_tensor *out)
{
    nn_pool(c, in, out, false);
}

static void reference_avg_pool(const op_case *c, const op_tensor *in, op_tensor *out)
{
    nn_pool(c, in, out, true);
}

static stint_value build_global_avg_pool(stint_graph *g, const stint_value *x,
                                         const op_case *c)
{
    (void)c;
    return stint_global_avg_pool(g, x[0]);
}

static void reference_global_avg_pool(const op_case *c, const op_tensor *in,
                                      op_tensor *out)
{
    const int64_t *dim = in->shape.dim, area = dim[1] * dim[2];
    (void)c;
    for (int64_t i = 0; i < in->count; i++)
        out->data[i / (area * dim[3]) * dim[3] + i % dim[3]] +=
            in->data[i] / (double)area;
}

#define NN_NORM_PY(scale, shift)                                     \
    "F.batch_norm(x0.transpose(1,-1), None, None, " scale ", " shift \
    ", True, 0.1, 1e-5).transpose(1,-1)"
#define NN_NORM_EVAL_PY(mean, scale)                        \
    "F.batch_norm(x0.transpose(1,-1), " mean ", x3, " scale \
    ", x2, False, 0.1, 1e-5).transpose(1,-1)"
#define NN_POOL_CASE(kind, label, how, s, t, p, py)                              \
    {                                                                            \
        .name = #kind " " label, .n_in = 1, .shape = {"N,H,W,C"}, .draw = {how}, \
        .grad = 1, .build = build_##kind, .reference = reference_##kind,         \
        .i = {s, t, p}, .torch = py                                              \
    }

/* ---- softmax and losses: f[0] smoothing */

static stint_value build_softmax(stint_graph *g, const stint_value *x, const op_case *c)
{
    (void)c;
    return stint_softmax(g, x[0]);
}

/* log of the sum of exp of a row of n. */
static double nn_log_sum(const double *x, int64_t n)
{
    double largest = x[0], sum = 0;
    for (int64_t j = 1; j < n; j++)
        largest = fmax(largest, x[j]);
    for (int64_t j = 0; j < n; j++)
        sum += exp(x[j] - largest);
    return largest + log(sum);
}

static void reference_softmax(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t n = in->shape.dim[in->shape.rank - 1];
    (void)c;
    for (int64_t row = 0; row < out->count; row += n) {
        const double log_sum = nn_log_sum(in->data + row, n);
        for (int64_t i = row; i < row + n; i++)
            out->data[i] = exp(in->data[i] - log_sum);
    }
}

static stint_value build_cross_entropy(stint_graph *g, const stint_value *x,
                                       const op_case *c)
{
    return stint_softmax_cross_entropy(g, x[0], x[1], (float)c->f[0]);
}

static void reference_cross_entropy(const op_case *c, const op_tensor *in,
                                    op_tensor *out)
{
    const int64_t rows = in->shape.dim[0], n = in->shape.dim[1];
    const double s = (double)(float)c->f[0];
    for (int64_t i = 0; i < in->count; i++) {
        const double label = in[1].data[i / n];
        const double q = s / (double)n + (label == (double)(i % n) ? 1 - s : 0);
        const double log_p = in->data[i] - nn_log_sum(in->data + i / n * n, n);
        if (label >= 0)
            out->data[0] -= q * log_p / (double)rows;
    }
}

static stint_value build_mean_squared_error(stint_graph *g, const stint_value *x,
                                            const op_case *c)
{
    (void)c;
    return stint_mean_squared_error(g, x[0], x[1]);
}

static void reference_mean_squared_error(const op_case *c, const op_tensor *in,
                                         op_tensor *out)
{
    (void)c;
    for (int64_t i = 0; i < in->count; i++) {
        double d = in[0].data[i] - in[1].data[i];
        out->data[0] += d * d / (double)in->count;
    }
}

static stint_value build_count_correct(stint_graph *g, const stint_value *x,
                                       const op_case *c)
{
    (void)c;
    return stint_count_correct(g, x[0], x[1]);
}

static void reference_count_correct(const op_case *c, const op_tensor *in,
                                    op_tensor *out)
{
    const int64_t rows = in->shape.dim[0], n = in->shape.dim[1];
    (void)c;
    for (int64_t r = 0; r < rows; r++) {
        int64_t best = 0;
        for (int64_t j = 1; j < n; j++)
            if (in->data[r * n + j] > in->data[r * n + best])
                best = j;
        out->data[0] += in[1].data[r] == (double)best;
    }
}

/* ---- dropout: f[0] rate. The second of two, to see the layer's number. */

static stint_value build_dropout(stint_graph *g, const stint_value *x, const op_case *c)
{
    stint_value first = stint_dropout(g, x[0], (float)c->f[0]);
    return stint_dropout(g, first, (float)c->f[0]);
}

static void reference_dropout(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const float rate = (float)c->f[0];
    for (uint64_t i = 0; i < (uint64_t)out->count; i++) {
        out->data[i] = in->data[i];
        for (uint64_t layer = 0; layer < 2; layer++) {
            uint32_t w[4];
            sti_random4(op_step.seed, STI_STREAM_DROPOUT,
                        layer << 48 | (uint64_t)op_step.step,
                        (uint64_t)op_step.shard << 40 | i / 4, w);
            out->data[i] *= sti_uniform(w[i % 4]) < rate ? 0 : 1 / (1 - (double)rate);
        }
    }
}

#define NN_CHW           "x0.permute(0,3,1,2)"
#define NN_POOL_PY(call) "F." call ").permute(0,2,3,1)"
#define NN_LOSS(label, fn, xs, ys, how0, how1, mask, smoothing, py)        \
    {                                                                      \
        .name = label, .n_in = 2, .shape = {xs, ys}, .draw = {how0, how1}, \
        .grad = mask, .build = build_##fn, .reference = reference_##fn,    \
        .f = {smoothing}, .torch = py                                      \
    }

static stint_value build_take_channels(stint_graph *g, const stint_value *x,
                                       const op_case *c)
{
    (void)c;
    return sti_graph_add(g, &sti_op_take_channels, NULL, 2, x);
}

static void reference_take_channels(const op_case *c, const op_tensor *in,
                                    op_tensor *out)
{
    const int64_t n = in[1].count, all = in->shape.dim[in->shape.rank - 1];
    (void)c;
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = in->data[i / n * all + (int64_t)in[1].data[i % n]];
}

static const op_case op_cases_nn[] = {
    NN_CONV("3x3", "N,H,W,C", "3,3,C,F", "F", 2, 1, 1, 1, 0, NN_CONV_PY("None, 1, 1")),
    NN_CONV("3x3 stride 2 bias", "N,H,W,C", "3,3,C,F", "F", 3, 2, 1, 1, 0,
            NN_CONV_PY("x2, 2, 1")),
    NN_CONV("1x1 stride 2", "N,H,W,C", "1,1,C,F", "F", 2, 2, 0, 1, 0,
            NN_CONV_PY("None, 2, 0")),
    NN_CONV("5x5 relu", "N,H,W,3C", "5,5,3C,4F", "4F", 2, 1, 2, 1, 1,
            "F.relu(" NN_CONV_PY("None, 1, 2") ")"),
    NN_CONV("2x4 stride 3 bias relu", "N,H,W,17", "2,4,17,10", "10", 3, 3, 1, 1, 1,
            "F.relu(" NN_CONV_PY("x2, 3, 1") ")"),
    NN_CONV("groups 2", "N,H,W,2C", "3,3,C,2F", "2F", 3, 1, 1, 2, 0,
            NN_CONV_PY("x2, 1, 1, 1, 2")),
    NN_CONV("depthwise", "N,H,W,16", "3,3,1,16", "16", 3, 1, 1, 16, 0,
            NN_CONV_PY("x2, 1, 1, 1, 16")),
    NN_CONV("depthwise times 2", "N,H,W,3", "3,3,1,6", "6", 2, 2, 1, 3, 0,
            NN_CONV_PY("None, 2, 1, 1, 3")),
    NN_SQUARES("3x3", "N,H,W,C", "N,H,W,F", 1, 1, 1, 3),
    NN_SQUARES("1x1", "N,H,W,C", "N,H,W,17", 1, 0, 1, 1),
    NN_SQUARES("5x5 in 2 groups", "N,H,W,2C", "N,H,W,2F", 1, 2, 2, 5),
    NN_CONV("no padding", "N,H,W,16", "3,3,16,16", "16", 2, 1, 0, 1, 0,
            NN_CONV_PY("None, 1, 0")),
    NN_WINOGRAD("", "N,8,9,16", "3,3,16,32", "32", 2, 1, 0, NN_CONV_PY("None, 1, 1")),
    NN_WINOGRAD("bias relu", "N,9,9,32", "3,3,32,16", "16", 3, 0, 1,
                "F.relu(" NN_CONV_PY("x2, 1, 0") ")"),

    NN_NORM("images", "N,H,W,C", "C", 3, 0, 0, 0, 7, NN_NORM_PY("x1", "x2")),
    NN_NORM("rows", "2L,C", "C", 3, 0, 0, 0, 7, NN_NORM_PY("x1", "x2")),
    NN_NORM("relu", "N,H,W,16", "16", 3, 0, 1, 0, 7,
            "F.relu(" NN_NORM_PY("0.02*x1", "x2") ")"),
    NN_NORM("residual", "N,H,W,C", "C", 4, 1, 0, 0, 15, NN_NORM_PY("x1", "x2") " + x3"),
    NN_NORM("residual relu", "N,H,W,C", "C", 4, 1, 1, 0, 15,
            "F.relu(" NN_NORM_PY("0.02*x1", "0.02*x2") " + x3)"),
    NN_NORM("wide residual relu", "3,H,W,65", "65", 4, 1, 1, 0, 15,
            "F.relu(" NN_NORM_PY("0.02*x1", "0.02*x2") " + x3)"),
    NN_NORM("eval", "N,H,W,C", "C", 4, 0, 0, 1, 7,
            NN_NORM_EVAL_PY("torch.zeros_like(x2)", "x1")),
    NN_NORM("eval relu", "N,H,W,C", "C", 4, 0, 1, 1, 7,
            "F.relu(" NN_NORM_EVAL_PY("torch.zeros_like(x2)", "0.02*x1") ")"),
    NN_NORM("eval mean", "2N,C", "C", 4, 0, 0, 2, 3,
            NN_NORM_EVAL_PY("x2.detach()", "x1")),

    NN_APPLY("images", "N,H,W,C", "C", 5, 0, NN_APPLY_PY("1") ")"),
    NN_APPLY("relu", "N,H,W,16", "16", 5, 1,
             "F.relu(" NN_APPLY_PY("0.004") ")"
                                            ")"),
    NN_APPLY("residual", "N,H,W,3C", "3C", 6, 0, NN_APPLY_PY("1") ") + x5"),
    NN_APPLY("rows wide", "2N,70", "70", 5, 0, NN_APPLY_PY("1") ")"),

    NN_POOL_CASE(max_pool, "2", OP_DISTINCT, 2, 2, 0,
                 NN_POOL_PY("max_pool2d(" NN_CHW ", 2")),
    NN_POOL_CASE(max_pool, "3 stride 2", OP_DISTINCT, 3, 2, 1,
                 NN_POOL_PY("max_pool2d(" NN_CHW ", 3, 2, 1")),
    NN_POOL_CASE(max_pool, "5 stride 1", OP_DISTINCT, 5, 1, 2,
                 NN_POOL_PY("max_pool2d(" NN_CHW ", 5, 1, 2")),
    NN_POOL_CASE(avg_pool, "2", OP_NORMAL, 2, 2, 0,
                 NN_POOL_PY("avg_pool2d(" NN_CHW ", 2")),
    NN_POOL_CASE(avg_pool, "3 stride 2", OP_NORMAL, 3, 2, 1,
                 NN_POOL_PY("avg_pool2d(" NN_CHW ", 3, 2, 1")),
    NN_POOL_CASE(global_avg_pool, "all", OP_NORMAL, 0, 0, 0, "x0.mean((1, 2))"),

    {.name = "softmax",
     .n_in = 1,
     .shape = {"N,H,C"},
     .grad = 1,
     .build = build_softmax,
     .reference = reference_softmax,
     .torch = "F.softmax(x0, -1)"},
    {.name = "softmax long",
     .n_in = 1,
     .shape = {"N,L"},
     .grad = 1,
     .build = build_softmax,
     .reference = reference_softmax,
     .torch = "F.softmax(x0, -1)"},
    NN_LOSS("cross-entropy", cross_entropy, "N,C", "N", OP_NORMAL, OP_LABELS, 1, 0.0,
            "F.cross_entropy(x0, x1.long())"),
    NN_LOSS("cross-entropy smoothed", cross_entropy, "L,17", "L", OP_NORMAL, OP_LABELS,
            1, 0.1, "F.cross_entropy(x0, x1.long(), label_smoothing=0.1)"),
    NN_LOSS("cross-entropy padded", cross_entropy, "L,C", "L", OP_NORMAL,
            OP_SOME_LABELS, 1, 0.2,
            "F.cross_entropy(x0, x1.long(), ignore_index=-1, reduction='sum',"
            " label_smoothing=0.2) / len(x1)"),
    NN_LOSS("mean squared error", mean_squared_error, "N,H,C", "N,H,C", OP_NORMAL,
            OP_NORMAL, 3, 0.0, "F.mse_loss(x0, x1)"),
    NN_LOSS("count correct", count_correct, "L,C", "L", OP_DISTINCT, OP_SOME_LABELS, 0,
            0.0, "(x0.argmax(1) == x1).sum().to(x0.dtype)"),
    {.name = "take channels",
     .n_in = 2,
     .shape = {"L,3C", "C"},
     .draw = {OP_NORMAL, OP_LABELS},
     .build = build_take_channels,
     .reference = reference_take_channels,
     .torch = "x0[:, x1.long()]"},
    {.name = "take channels of images",
     .n_in = 2,
     .shape = {"N,H,W,2C", "C"},
     .draw = {OP_NORMAL, OP_LABELS},
     .build = build_take_channels,
     .reference = reference_take_channels,
     .torch = "x0[..., x1.long()]"},
    {.name = "dropout",
     .n_in = 1,
     .shape = {"L,C"},
     .grad = 1,
     .build = build_dropout,
     .reference = reference_dropout,
     .f = {0.3}},
};

#endif
