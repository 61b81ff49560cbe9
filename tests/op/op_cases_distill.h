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
