/* Cases of drawn weights and outputs, at the numbers eps that the key gives; see
 * op_cases.h. The numbers themselves are tested in tests/kernel. */
#ifndef TESTS_OP_OP_CASES_BAYES_H
#define TESTS_OP_OP_CASES_BAYES_H

#include "op/op_bayes.h"

enum { BAYES_LAYER = 7 };

/* i[0]: prior; i[1]: 0 w, 1 KL, 2 both; f: deviation, narrow, wide share. */
static sti_noise_attr bayes_attr(const op_case *c)
{
    return (sti_noise_attr){.generator = STI_NORMAL_PHILOX,
                            .layer = BAYES_LAYER,
                            .prior = (int32_t)c->i[0],
                            .deviation = (float)c->f[0],
                            .narrow = (float)c->f[1],
                            .wide_share = (float)c->f[2]};
}

static double bayes_eps(int64_t element)
{
    const sti_normal_key key = {.generator = STI_NORMAL_PHILOX,
                                .seed = op_step.seed,
                                .step = op_step.step,
                                .micro = op_step.shard,
                                .layer = BAYES_LAYER};
    static float block[512];
    static int64_t first = -1; /* of the numbers in the block */
    if (first != element / 512 * 512) {
        first = element / 512 * 512;
        sti_normal_fill(&key, first, 512, block);
    }
    return (double)block[element % 512];
}

static double bayes_sigma(double rho)
{
    return log1p(exp(rho));
}

static double bayes_normal(double x, double deviation)
{
    return exp(-x * x / (2 * deviation * deviation)) / deviation;
}

/* The divergence as its definition has it; constants of densities cancel. */
static double bayes_kl(const op_case *c, const op_tensor *in)
{
    const double s = (double)(float)c->f[0], t = (double)(float)c->f[1];
    const double p = (double)(float)c->f[2];
    double sum = 0;
    for (int64_t i = 0; i < in[0].count; i++) {
        const double mu = in[0].data[i], sigma = bayes_sigma(in[1].data[i]);
        if (c->i[0] == STI_PRIOR_GAUSS) {
            sum += log(s / sigma) + (sigma * sigma + mu * mu) / (2 * s * s) - 0.5;
            continue;
        }
        const double w = mu + sigma * bayes_eps(i);
        sum += log(bayes_normal(w - mu, sigma)) -
               log(p * bayes_normal(w, s) + (1 - p) * bayes_normal(w, t));
    }
    return sum;
}

static stint_value build_noise(stint_graph *g, const stint_value *x, const op_case *c)
{
    const sti_noise_attr attr = bayes_attr(c);
    const stint_value w = sti_op_add_noise(g, &attr, x[0], x[1]);
    if (w < 0 || c->i[1] == 0)
        return w;
    if (c->i[1] == 1)
        return w + STI_NOISE_KL;
    const stint_shape shape = stint_value_shape(g, w), one = STINT_SHAPE(1, 1);
    const stint_value kl = stint_reshape(g, w + STI_NOISE_KL, &one);
    return stint_add(g, w, stint_broadcast(g, stint_scale(g, kl, 0.125f), &shape));
}

static void reference_noise(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const double kl = c->i[1] > 0 ? bayes_kl(c, in) : 0;
    if (c->i[1] == 1) {
        out->data[0] = kl;
        return;
    }
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] =
            in[0].data[i] + bayes_sigma(in[1].data[i]) * bayes_eps(i) + 0.125 * kl;
}

/* Registers draw 512 numbers after 512. */
static sti_lfsr_attr lfsr_attr(const op_case *c)
{
    sti_lfsr_attr attr = {.noise = bayes_attr(c)};
    attr.noise.generator = STI_NORMAL_LFSR256;
    (void)sti_lfsr_taps_parse(NULL, STI_NORMAL_LFSR256, &attr.taps);
    return attr;
}

static stint_value build_lfsr(stint_graph *g, const stint_value *x, const op_case *c)
{
    const sti_lfsr_attr attr = lfsr_attr(c);
    const stint_value state =
        sti_op_add_lfsr_noise(g, &attr, sti_op_add_lfsr_seed(g, &attr), x[0], x[1]);
    if (state < 0)
        return -1;
    const stint_value w = state + STI_LFSR_W;
    const stint_shape shape = stint_value_shape(g, w), one = STINT_SHAPE(1, 1);
    const stint_value kl = stint_reshape(g, state + STI_LFSR_KL, &one);
    return stint_add(g, w, stint_broadcast(g, stint_scale(g, kl, 0.125f), &shape));
}

static void reference_lfsr(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const sti_normal_key key = {.generator = STI_NORMAL_LFSR256,
                                .seed = op_step.seed,
                                .step = op_step.step,
                                .micro = op_step.shard};
    const sti_lfsr_attr attr = lfsr_attr(c);
    const double kl = bayes_kl(c, in);
    static _Alignas(64) uint8_t state[STI_LFSR_BYTES];
    float eps[512];
    sti_lfsr_seed(&key, state);
    for (int64_t i = 0; i < out->count; i++) {
        if (i % 512 == 0)
            sti_lfsr_next(&attr.taps, state, eps);
        out->data[i] = in[0].data[i] +
                       bayes_sigma(in[1].data[i]) * (double)eps[i % 512] + 0.125 * kl;
    }
}

/* 0 for the first state, 2 for the next. */
static stint_value build_lfsr_end(stint_graph *g, const stint_value *x,
                                  const op_case *c)
{
    const sti_lfsr_attr attr = lfsr_attr(c);
    const stint_value seed = sti_op_add_lfsr_seed(g, &attr);
    const stint_value next = sti_op_add_lfsr_noise(g, &attr, seed, x[0], x[1]);
    return stint_add(g, sti_op_add_lfsr_end(g, &attr, seed),
                     stint_scale(g, sti_op_add_lfsr_end(g, &attr, next), 2.0f));
}

static void reference_lfsr_end(const op_case *c, const op_tensor *in, op_tensor *out)
{
    (void)c, (void)in;
    out->data[0] = 2;
}

static stint_value build_kl(stint_graph *g, const stint_value *x, const op_case *c)
{
    const sti_noise_attr attr = bayes_attr(c);
    return sti_op_add_kl(g, &attr, x[0], x[1]);
}

static void reference_kl(const op_case *c, const op_tensor *in, op_tensor *out)
{
    out->data[0] = bayes_kl(c, in);
}

static stint_value build_output_noise(stint_graph *g, const stint_value *x,
                                      const op_case *c)
{
    const sti_noise_attr attr = bayes_attr(c);
    return sti_op_add_output_noise(g, &attr, x[0], x[1]);
}

static void reference_output_noise(const op_case *c, const op_tensor *in,
                                   op_tensor *out)
{
    (void)c;
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = in[0].data[i] + sqrt(in[1].data[i]) * bayes_eps(i);
}

static stint_value build_add_up(stint_graph *g, const stint_value *x, const op_case *c)
{
    (void)c;
    return sti_graph_add(g, &sti_op_add_up, NULL, 1, x);
}

static void reference_add_up(const op_case *c, const op_tensor *in, op_tensor *out)
{
    (void)c;
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = in[0].data[i];
}

#define BAYES_CASE(name_, fn, rows, what, prior, s, t, p)                            \
    {                                                                                \
        .name = (name_), .n_in = 2, .shape = {rows ",C", rows ",C"}, .grad = 3,      \
        .build = build_##fn, .reference = reference_##fn, .i = {prior, what}, .f = { \
            s,                                                                       \
            t,                                                                       \
            p                                                                        \
        }                                                                            \
    }

static const op_case op_cases_bayes[] = {
    BAYES_CASE("noise", noise, "L", 0, STI_PRIOR_GAUSS, 1, 0, 0),
    BAYES_CASE("noise, divergence", noise, "L", 1, STI_PRIOR_GAUSS, 0.7, 0, 0),
    BAYES_CASE("noise, both", noise, "A", 2, STI_PRIOR_GAUSS, 1.5, 0, 0),
    BAYES_CASE("noise, mixture", noise, "L", 1, STI_PRIOR_MIXTURE, 1, 0.25, 0.3),
    BAYES_CASE("noise, both of a mixture", noise, "A", 2, STI_PRIOR_MIXTURE, 2, 0.5,
               0.6),
    BAYES_CASE("kl", kl, "L", 0, STI_PRIOR_GAUSS, 0.7, 0, 0),
    BAYES_CASE("kl of a mixture", kl, "L", 0, STI_PRIOR_MIXTURE, 1, 0.25, 0.3),
    BAYES_CASE("lfsr noise", lfsr, "L", 0, STI_PRIOR_GAUSS, 0.7, 0, 0),
    {.name = "lfsr end",
     .n_in = 2,
     .shape = {"L,C", "L,C"},
     .build = build_lfsr_end,
     .reference = reference_lfsr_end},
    {.name = "output noise",
     .n_in = 2,
     .shape = {"L,C", "L,C"},
     .draw = {OP_NORMAL, OP_POSITIVE},
     .grad = 3,
     .build = build_output_noise,
     .reference = reference_output_noise},
    {.name = "add up",
     .n_in = 1,
     .shape = {"L,C"},
     .grad = 1,
     .build = build_add_up,
     .reference = reference_add_up},
};

#endif
