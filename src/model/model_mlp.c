/* Multi-layer perceptron: pixels -> `depth` hidden layers of `width` with ReLU, or with
 * batch-norm and sign -> logits. */
#include "model/model_priv.h"

/* To the nearest of 2^bits numbers from -2 to 2. Added to a float, 1.5 2^23 rounds it
 * to a whole number. */
static stint_value round_input(stint_graph *g, stint_value x, int bits)
{
    const float magic = 0x1.8p23f, last = (float)((1 << bits) - 1);
    x = stint_relu(g, stint_add_scalar(g, stint_scale(g, x, last / 4), last / 2));
    /* At most `last`: last - max(last - x, 0). */
    x = stint_relu(g, stint_add_scalar(g, stint_scale(g, x, -1), last));
    x = stint_add_scalar(g, stint_scale(g, x, -1), last);
    x = stint_add_scalar(g, stint_add_scalar(g, x, magic), -magic);
    return stint_add_scalar(g, stint_scale(g, x, 4 / last), -2);
}

static stint_value hidden(stint_graph *g, stint_value x, const stint_model_desc *desc)
{
    const bool signs = desc->activation == STINT_ACTIVATION_SIGN;
    x = stint_dense(g, x,
                    &(stint_dense_desc){.units = desc->width ? desc->width : 256,
                                        .no_bias = signs,
                                        .init = STINT_INIT_HE_NORMAL});
    if (!signs)
        return stint_relu(g, x);
    stint_scope_begin(g, "norm");
    x = stint_batch_norm(g, x, &(stint_batch_norm_desc){0});
    stint_scope_end(g);
    return stint_sign(g, x);
}

stint_value sti_model_mlp(stint_graph *g, int variant, const stint_model_desc *desc,
                          stint_value x)
{
    (void)variant;
    int64_t depth = desc->depth ? desc->depth : 2;
    x = stint_flatten(g, x);
    if (desc->input_bits > 0)
        x = round_input(g, x, desc->input_bits);
    for (int64_t i = 0; i < depth; i++) {
        stint_scope_begin(g, "hidden%d", (int)i);
        x = hidden(g, x, desc);
        stint_scope_end(g);
    }
    x = sti_model_dropout(g, x, desc, 0);
    return sti_model_dense(g, x, "fc", desc->classes);
}
