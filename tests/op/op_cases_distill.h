/* Cases of the losses against a reference; see op_cases.h. */
#ifndef TESTS_OP_OP_CASES_DISTILL_H
#define TESTS_OP_OP_CASES_DISTILL_H

/* x0 logits, x1 those of the reference, x2 labels. */
static int64_t distill_best(const double *row, int64_t n)
{
    int64_t best = 0;
    for (int64_t j = 1; j < n; j++)
        best = row[j] > row[best] ? j : best;
    return best;
}

static stint_value build_pairing(stint_graph *g, const stint_value *x, const op_case *c)
{
    return stint_logit_pairing(
        g, x[0], x[1], x[2],
        &(stint_pairing_desc){.base = (float)c->f[0], .right = (float)c->f[1]});
}

static void reference_pairing(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t rows = in->shape.dim[0], n = in->shape.dim[1];
    const bool plain = c->f[0] == 0 && c->f[1] == 0;
    for (int64_t r = 0; r < rows; r++) {
        const double *z = in[0].data + r * n, *t = in[1].data + r * n;
        const double label = in[2].data[r];
        double weight = plain ? 1 : c->f[0];
        if (label == (double)distill_best(t, n))
            weight += c->f[1];
        for (int64_t j = 0; j < n && label >= 0; j++)
            out->data[0] +=
                weight * (z[j] - t[j]) * (z[j] - t[j]) / (double)n / (double)rows;
    }
}

static stint_value build_soft(stint_graph *g, const stint_value *x, const op_case *c)
{
    return stint_soft_cross_entropy(g, x[0], x[1], x[2], (float)c->f[0]);
}

static void reference_soft(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t rows = in->shape.dim[0], n = in->shape.dim[1];
    const double temperature = c->f[0];
    for (int64_t r = 0; r < rows; r++) {
        double sum_z = 0, sum_t = 0;
        const double *z = in[0].data + r * n, *t = in[1].data + r * n;
        for (int64_t j = 0; j < n; j++) {
            sum_z += exp(z[j] / temperature);
            sum_t += exp(t[j] / temperature);
        }
        for (int64_t j = 0; j < n && in[2].data[r] >= 0; j++)
            out->data[0] -= temperature * temperature * exp(t[j] / temperature) /
                            sum_t * (z[j] / temperature - log(sum_z)) / (double)rows;
    }
}

/* x0 logits, x1 labels, x2 a weight a class. */
static stint_value build_weighted(stint_graph *g, const stint_value *x,
                                  const op_case *c)
{
    return stint_weighted_cross_entropy(g, x[0], x[1], x[2], (float)c->f[0]);
}

static void reference_weighted(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t rows = in->shape.dim[0], n = in->shape.dim[1];
    const double s = (double)(float)c->f[0];
    for (int64_t r = 0; r < rows; r++) {
        const double *z = in[0].data + r * n;
        const int64_t label = (int64_t)in[1].data[r];
        double sum = 0, loss = 0;
        for (int64_t j = 0; j < n; j++)
            sum += exp(z[j]);
        for (int64_t j = 0; j < n; j++)
            loss -= (s / (double)n + (j == label ? 1 - s : 0)) * (z[j] - log(sum));
        if (label >= 0)
            out->data[0] += in[2].data[label] * loss / (double)rows;
    }
}

static stint_value build_quantise(stint_graph *g, const stint_value *x,
                                  const op_case *c)
{
    return stint_quantise(g, x[0], (int)c->i[0]);
}

static void reference_quantise(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t n = in->shape.dim[in->shape.rank - 1];
    for (int64_t i = 0; i < in->count; i++) {
        double most = 0;
        for (int64_t k = i % n; k < in->count; k += n)
            most = fmax(most, fabs(in->data[k]));
        const double step = most / (double)((1 << (c->i[0] - 1)) - 1);
        out->data[i] = step > 0 ? rint(in->data[i] / step) * step : 0;
    }
}

/* x0 [rows, n], x1 table [classes, n], x2 labels, x3 and x4 the reference's, x5 weights
 * of the parts, if there. f: hard, pairing, soft, temperature, right; i: top, base. */
static stint_value build_distillation(stint_graph *g, const stint_value *x,
                                      const op_case *c)
{
    const stint_distillation_desc d = {
        .hard = (float)c->f[0],
        .pairing = (float)c->f[1],
        .soft = (float)c->f[2],
        .temperature = (float)c->f[3],
        .top = (int32_t)c->i[0],
        .focus = {.base = (float)c->i[1], .right = (float)c->f[4]}};
    return stint_linear_distillation(g, x[0], x[1], x[2], x[3], x[4],
                                     c->n_in > 5 ? x[5] : -1, &d);
}

static void distill_logits(const op_tensor *in, int64_t row, double *z)
{
    const int64_t n = in[0].shape.dim[1];
    for (int64_t j = 0; j < in[1].shape.dim[0]; j++) {
        z[j] = 0;
        for (int64_t k = 0; k < n; k++)
            z[j] += in[0].data[row * n + k] * in[1].data[j * n + k];
    }
}

/* Is t[j] among the `top` largest? */
static bool distill_counts(const double *t, int64_t n, int64_t top, int64_t j)
{
    int64_t above = 0;
    for (int64_t k = 0; k < n; k++)
        above += t[k] > t[j];
    return top == 0 || above < top;
}

static double distill_row(const op_case *c, const double *factor, int64_t label,
                          int64_t n, const double *z, const double *t)
{
    const double temperature = c->f[3];
    double sum_z = 0, soft_z = 0, soft_t = 0, squares = 0, soft = 0;
    double weight = c->i[1] == 0 && c->f[4] == 0 ? 1 : (double)c->i[1];
    weight += label == distill_best(t, n) ? c->f[4] : 0;
    for (int64_t j = 0; j < n; j++) {
        sum_z += exp(z[j]);
        soft_z += exp(z[j] / temperature);
        soft_t += distill_counts(t, n, c->i[0], j) ? exp(t[j] / temperature) : 0;
        squares += (z[j] - t[j]) * (z[j] - t[j]);
    }
    for (int64_t j = 0; j < n; j++)
        if (distill_counts(t, n, c->i[0], j))
            soft -= temperature * temperature * exp(t[j] / temperature) / soft_t *
                    (z[j] / temperature - log(soft_z));
    return factor[0] * (log(sum_z) - z[label]) +
           factor[1] * weight * squares / (double)n + factor[2] * soft;
}

static void reference_distillation(const op_case *c, const op_tensor *in,
                                   op_tensor *out)
{
    const int64_t rows = in[0].shape.dim[0], n = in[1].shape.dim[0];
    double *z = calloc((size_t)n, sizeof *z), *t = calloc((size_t)n, sizeof *t);
    double factor[3] = {c->f[0], c->f[1], c->f[2]};
    for (int p = 0; p < 3 && c->n_in > 5; p++)
        factor[p] *= in[5].data[p];
    for (int64_t r = 0; r < rows; r++) {
        distill_logits(in, r, z);
        distill_logits(in + 3, r, t);
        if (in[2].data[r] >= 0)
            out->data[0] +=
                distill_row(c, factor, (int64_t)in[2].data[r], n, z, t) / (double)rows;
    }
    free(z);
    free(t);
}

#define LINEAR_DISTILLATION(name_, inputs, rows, width, classes, m, labels, ...)     \
    {                                                                                \
        .name = "linear distillation " name_, .n_in = inputs,                        \
        .shape = {rows "," width, classes "," width, rows,                           \
                  rows "," m,     classes "," m,     "3"},                           \
        .draw = {OP_NORMAL, OP_NORMAL, labels, OP_NORMAL, OP_NORMAL, OP_POSITIVE},   \
        .grad = 3, .build = build_distillation, .reference = reference_distillation, \
        __VA_ARGS__                                                                  \
    }

#define DISTILL_CASE(name_, fn, rows, classes, labels, f0, f1, torch_)            \
    {                                                                             \
        .name = (name_), .n_in = 3,                                               \
        .shape = {rows "," classes, rows "," classes, rows},                      \
        .draw = {OP_NORMAL, OP_DISTINCT, labels}, .grad = 1, .build = build_##fn, \
        .reference = reference_##fn, .f = {f0, f1}, .torch = torch_               \
    }

#define WEIGHTED_CASE(name_, rows, classes, labels, smoothing, torch_)                \
    {                                                                                 \
        .name = (name_), .n_in = 3, .shape = {rows "," classes, rows, classes},       \
        .draw = {OP_NORMAL, labels, OP_POSITIVE}, .grad = 1, .build = build_weighted, \
        .reference = reference_weighted, .f = {smoothing}, .torch = torch_            \
    }

static const op_case op_cases_distill[] = {
    WEIGHTED_CASE("weighted cross-entropy", "N", "C", OP_LABELS, 0,
                  "F.cross_entropy(x0, x1.long(), weight=x2, reduction='sum')"
                  " / len(x1)"),
    WEIGHTED_CASE("weighted cross-entropy padded", "L", "C", OP_SOME_LABELS, 0,
                  "F.cross_entropy(x0, x1.long(), weight=x2, ignore_index=-1,"
                  " reduction='sum') / len(x1)"),
    WEIGHTED_CASE("weighted cross-entropy smoothed", "L", "17", OP_SOME_LABELS, 0.1,
                  "(F.cross_entropy(x0, x1.long(), ignore_index=-1, reduction='none',"
                  " label_smoothing=0.1) * x2[x1.long()]).mean()"),
    DISTILL_CASE("logit pairing", pairing, "N", "C", OP_LABELS, 0, 0,
                 "F.mse_loss(x0, x1)"),
    DISTILL_CASE("logit pairing padded", pairing, "L", "11", OP_SOME_LABELS, 0, 0,
                 "(((x0 - x1) ** 2).mean(1) * (x2 >= 0)).mean()"),
    DISTILL_CASE("logit pairing focal", pairing, "L", "3", OP_SOME_LABELS, 0.5, 4,
                 "(((x0 - x1) ** 2).mean(1) * (x2 >= 0) * "
                 "(0.5 + 4 * (x1.argmax(1) == x2))).mean()"),
    DISTILL_CASE("soft cross-entropy", soft, "N", "C", OP_LABELS, 1, 0,
                 "F.cross_entropy(x0, x1.softmax(1))"),
    DISTILL_CASE("soft cross-entropy T 4", soft, "L", "17", OP_LABELS, 4, 0,
                 "16 * F.cross_entropy(x0 / 4, (x1 / 4).softmax(1))"),
    DISTILL_CASE("soft cross-entropy T 0.5 padded", soft, "L", "7", OP_SOME_LABELS, 0.5,
                 0,
                 "0.25 * (F.cross_entropy(x0 / 0.5, (x1 / 0.5).softmax(1), "
                 "reduction='none') * (x2 >= 0)).mean()"),
    LINEAR_DISTILLATION("of all parts", 5, "L", "5", "37", "4", OP_SOME_LABELS,
                        .f = {1, 0.25, 0.5, 2, 0},
                        .torch = "distillation(x0, x1, x2, x3, x4, (1, 0.25, 0.5), 2, "
                                 "1, 0)"),
    LINEAR_DISTILLATION("soft alone", 5, "A", "5", "5", "7", OP_LABELS,
                        .f = {0, 0, 1, 0.5, 0}, .loose = 2,
                        .torch = "distillation(x0, x1, x2, x3, x4, (0, 0, 1), 0.5, 1, "
                                 "0)"),
    LINEAR_DISTILLATION("of the likeliest three", 5, "9", "7", "16", "2",
                        OP_SOME_LABELS, .f = {0.5, 0, 2, 1, 0}, .i = {3},
                        .torch = "distillation(x0, x1, x2, x3, x4, (0.5, 0, 2), 1, 1, "
                                 "0, 3)"),
    LINEAR_DISTILLATION("weighed and focal", 6, "40", "6", "33", "6", OP_SOME_LABELS,
                        .f = {1, 1, 1, 3, 4}, .i = {0, 2},
                        .torch = "distillation(x0, x1, x2, x3, x4, x5, 3, 2, 4)"),
    {.name = "quantise 8 bits",
     .n_in = 1,
     .shape = {"A,B,3,70"},
     .build = build_quantise,
     .reference = reference_quantise,
     .i = {8},
     .torch = "(lambda s: (x0 / s).round() * s)(x0.abs().amax((0, 1, 2)) / 127)"},
    {.name = "quantise 3 bits",
     .n_in = 1,
     .shape = {"L,C"},
     .build = build_quantise,
     .reference = reference_quantise,
     .i = {3},
     .torch = "(lambda s: (x0 / s).round() * s)(x0.abs().amax(0) / 3)"},
};

#endif
