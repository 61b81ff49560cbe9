/* Cases of the operators of reinforcement learning; see op_cases.h. */
#ifndef TESTS_OP_OP_CASES_PLAY_H
#define TESTS_OP_OP_CASES_PLAY_H

static stint_value build_log_softmax(stint_graph *g, const stint_value *x,
                                     const op_case *c)
{
    (void)c;
    return stint_log_softmax(g, x[0]);
}

static void reference_log_softmax(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t n = in->shape.dim[in->shape.rank - 1];
    (void)c;
    for (int64_t r = 0; r < in->count / n; r++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += exp(in->data[r * n + j]);
        for (int64_t j = 0; j < n; j++)
            out->data[r * n + j] = in->data[r * n + j] - log(sum);
    }
}

static stint_value build_pick(stint_graph *g, const stint_value *x, const op_case *c)
{
    (void)c;
    return stint_pick(g, x[0], x[1]);
}

static void reference_pick(const op_case *c, const op_tensor *in, op_tensor *out)
{
    (void)c;
    for (int64_t r = 0; r < out->count; r++)
        if (in[1].data[r] >= 0)
            out->data[r] = in->data[r * in->shape.dim[1] + (int64_t)in[1].data[r]];
}

/* x0 log of the ratio, x1 reward, x2 discount, x3 weight, x4 values; f: rho, c, lambda;
 * i[0]: the advantages are looked at, not the targets. */
static stint_value build_vtrace(stint_graph *g, const stint_value *x, const op_case *c)
{
    const stint_returns_in in = {x[1], x[2], x[3], x[4]};
    const stint_vtrace_desc desc = {(float)c->f[0], (float)c->f[1], (float)c->f[2]};
    stint_value advantage;
    const stint_value target = stint_vtrace(g, &in, x[0], &desc, &advantage);
    return c->i[0] ? advantage : target;
}

static double case_ratio(const op_tensor *in, int64_t i, double cap)
{
    const double ratio = exp(in[0].data[i]);
    return in[3].data[i] * (ratio < cap ? ratio : cap);
}

/* The literal sum of the paper, over all later steps of each step. */
static double vtrace_target(const op_case *c, const op_tensor *in, int64_t t, int64_t b)
{
    const int64_t steps = in->shape.dim[0], n = in->shape.dim[1];
    double target = in[4].data[t * n + b];
    for (int64_t k = t; k < steps; k++) {
        const int64_t at = k * n + b;
        double product = case_ratio(in, at, c->f[0]);
        for (int64_t i = t; i < k; i++)
            product *=
                in[2].data[i * n + b] * c->f[2] * case_ratio(in, i * n + b, c->f[1]);
        target += product * (in[1].data[at] + in[2].data[at] * in[4].data[at + n] -
                             in[4].data[at]);
    }
    return target;
}

static void reference_vtrace(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t steps = in->shape.dim[0], n = in->shape.dim[1];
    for (int64_t t = 0; t < steps; t++)
        for (int64_t b = 0; b < n; b++) {
            const int64_t i = t * n + b;
            const double next =
                t + 1 < steps ? vtrace_target(c, in, t + 1, b) : in[4].data[i + n];
            out->data[i] =
                c->i[0] ? case_ratio(in, i, c->f[0]) *
                              (in[1].data[i] + in[2].data[i] * next - in[4].data[i])
                        : vtrace_target(c, in, t, b);
        }
}

/* x0 reward, x1 discount, x2 weight, x3 values; f[0]: lambda; i[0] as above. */
static stint_value build_gae(stint_graph *g, const stint_value *x, const op_case *c)
{
    const stint_returns_in in = {x[0], x[1], x[2], x[3]};
    stint_value advantage;
    const stint_value target = stint_gae(g, &in, (float)c->f[0], &advantage);
    return c->i[0] ? advantage : target;
}

static void reference_gae(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t steps = in->shape.dim[0], n = in->shape.dim[1];
    for (int64_t t = 0; t < steps; t++)
        for (int64_t b = 0; b < n; b++) {
            double sum = 0, share = 1;
            for (int64_t k = t; k < steps; k++) {
                const int64_t i = k * n + b;
                share *= in[2].data[i];
                sum += share * (in[0].data[i] + in[1].data[i] * in[3].data[i + n] -
                                in[3].data[i]);
                share *= in[1].data[i] * c->f[0];
            }
            out->data[t * n + b] = sum + (c->i[0] ? 0 : in[3].data[t * n + b]);
        }
}

#define PLAY_VTRACE(label, rho, c_, lambda_, advantage, py)                            \
    {                                                                                  \
        .name = label, .n_in = 5, .shape = {"7,C", "7,C", "7,C", "7,C", "8,C"},        \
        .draw = {OP_NORMAL, OP_NORMAL, OP_NORMAL, OP_NORMAL, OP_NORMAL},               \
        .build = build_vtrace, .reference = reference_vtrace, .f = {rho, c_, lambda_}, \
        .i = {advantage}, .loose = 8, .torch = py                                      \
    }
#define PLAY_GAE(label, lambda_, advantage, py)                                   \
    {                                                                             \
        .name = label, .n_in = 4, .shape = {"7,C", "7,C", "7,C", "8,C"},          \
        .draw = {OP_NORMAL, OP_NORMAL, OP_NORMAL, OP_NORMAL}, .build = build_gae, \
        .reference = reference_gae, .f = {lambda_}, .i = {advantage}, .loose = 8, \
        .torch = py                                                               \
    }

static const op_case op_cases_play[] = {
    {.name = "log-softmax",
     .n_in = 1,
     .shape = {"N,H,C"},
     .grad = 1,
     .build = build_log_softmax,
     .reference = reference_log_softmax,
     .torch = "F.log_softmax(x0, -1)"},
    {.name = "log-softmax long",
     .n_in = 1,
     .shape = {"N,L"},
     .grad = 1,
     .loose = 4, /* exp(y) has the error of a y of -6 */
     .build = build_log_softmax,
     .reference = reference_log_softmax,
     .torch = "F.log_softmax(x0, -1)"},
    {.name = "pick",
     .n_in = 2,
     .shape = {"L,C", "L"},
     .draw = {OP_NORMAL, OP_SOME_LABELS},
     .grad = 1,
     .build = build_pick,
     .reference = reference_pick,
     .torch = "x0.gather(1, x1.clamp(min=0)[:, None])[:, 0] * (x1 >= 0)"},
    PLAY_VTRACE("vtrace targets", 1, 1, 1, 0, "vtrace(x0, x1, x2, x3, x4, 1, 1, 1)[0]"),
    PLAY_VTRACE("vtrace targets capped", 0.8, 0.5, 0.9, 0,
                "vtrace(x0, x1, x2, x3, x4, 0.8, 0.5, 0.9)[0]"),
    PLAY_VTRACE("vtrace advantages", 1.5, 1, 0.95, 1,
                "vtrace(x0, x1, x2, x3, x4, 1.5, 1, 0.95)[1]"),
    PLAY_GAE("gae targets", 1, 0, "gae(x0, x1, x2, x3, 1)[0]"),
    PLAY_GAE("gae advantages", 0.9, 1, "gae(x0, x1, x2, x3, 0.9)[1]"),
};

#endif
