/* Cases of the operators of recommendation models; see op_cases.h. */
#ifndef TESTS_OP_OP_CASES_CLICKS_H
#define TESTS_OP_OP_CASES_CLICKS_H

static stint_value build_interaction(stint_graph *g, const stint_value *x,
                                     const op_case *c)
{
    (void)c;
    return stint_interaction(g, x[0]);
}

static void reference_interaction(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t n = in->shape.dim[0], v = in->shape.dim[1], d = in->shape.dim[2];
    int64_t at = 0;
    (void)c;
    for (int64_t s = 0; s < n; s++)
        for (int64_t i = 0; i < v; i++)
            for (int64_t j = i + 1; j < v; j++, at++)
                for (int64_t k = 0; k < d; k++)
                    out->data[at] +=
                        in->data[(s * v + i) * d + k] * in->data[(s * v + j) * d + k];
}

static stint_value build_binary(stint_graph *g, const stint_value *x, const op_case *c)
{
    (void)c;
    return stint_binary_cross_entropy(g, x[0], stint_sigmoid(g, x[1]));
}

static void reference_binary(const op_case *c, const op_tensor *in, op_tensor *out)
{
    (void)c;
    for (int64_t i = 0; i < in->count; i++) {
        const double y = 1 / (1 + exp(-in[1].data[i]));
        const double p = 1 / (1 + exp(-in[0].data[i]));
        out->data[0] -= (y * log(p) + (1 - y) * log(1 - p)) / (double)in->count;
    }
}

#define CLICKS_INTERACTION(dims)                                                     \
    {                                                                                \
        .name = "interaction " dims, .n_in = 1, .shape = {dims}, .grad = 1,          \
        .build = build_interaction, .reference = reference_interaction,              \
        .torch = "torch.bmm(x0, x0.transpose(1, 2))[:, torch.triu_indices("          \
                 "x0.shape[1], x0.shape[1], 1)[0], torch.triu_indices(x0.shape[1], " \
                 "x0.shape[1], 1)[1]]"                                               \
    }

static const op_case op_cases_clicks[] = {
    CLICKS_INTERACTION("N,2,1"),
    CLICKS_INTERACTION("N,5,W"),
    CLICKS_INTERACTION("N,4,37"),
    CLICKS_INTERACTION("2,27,128"),
    {.name = "binary cross-entropy",
     .n_in = 2,
     .shape = {"L", "L"},
     .grad = 3,
     .build = build_binary,
     .reference = reference_binary,
     .torch = "F.binary_cross_entropy_with_logits(x0, torch.sigmoid(x1))"},
};

#endif
