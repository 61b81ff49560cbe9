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
    float block[512];
    sti_normal_fill(&key, element / 512 * 512, 512, block);
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

#define BAYES_CASE(name_, fn, what, prior, s, t, p)                                   \
    {                                                                                 \
        .name = (name_), .n_in = 2, .shape = {"L,C", "L,C"}, .grad = 3, .once = true, \
        .build = build_##fn, .reference = reference_##fn, .i = {prior, what}, .f = {  \
            s,                                                                        \
            t,                                                                        \
            p                                                                         \
        }                                                                             \
    }

static const op_case op_cases_bayes[] = {
    BAYES_CASE("noise", noise, 0, STI_PRIOR_GAUSS, 1, 0, 0),
    BAYES_CASE("noise, divergence", noise, 1, STI_PRIOR_GAUSS, 0.7, 0, 0),
    BAYES_CASE("noise, both", noise, 2, STI_PRIOR_GAUSS, 1.5, 0, 0),
    BAYES_CASE("noise, mixture", noise, 1, STI_PRIOR_MIXTURE, 1, 0.25, 0.3),
    BAYES_CASE("noise, both of a mixture", noise, 2, STI_PRIOR_MIXTURE, 2, 0.5, 0.6),
    BAYES_CASE("kl", kl, 0, STI_PRIOR_GAUSS, 0.7, 0, 0),
    BAYES_CASE("kl of a mixture", kl, 0, STI_PRIOR_MIXTURE, 1, 0.25, 0.3),
    {.name = "output noise",
     .n_in = 2,
     .shape = {"L,C", "L,C"},
     .draw = {OP_NORMAL, OP_POSITIVE},
     .grad = 3,
     .once = true,
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
