/* LeNet-5 (LeCun et al., "Gradient-based learning applied to document recognition",
 * 1998): tanh and average pooling as published; C3 sees all maps of S2, pooling has no
 * coefficients of its own, and the output layer is an ordinary dense one, as every
 * later account has it. Images of less than 32 pixels are padded by 2, which makes 28
 * the published 32. */
#include "model/model_priv.h"

static stint_value tanh_conv(stint_graph *g, stint_value x, const char *scope,
                             int64_t filters, int64_t pad)
{
    stint_scope_begin(g, "%s", scope);
    x = stint_conv2d(g, x,
                     &(stint_conv2d_desc){.filters = filters,
                                          .size = 5,
                                          .pad = pad,
                                          .bias = true,
                                          .init = STINT_INIT_GLOROT_UNIFORM});
    x = stint_tanh(g, x);
    stint_scope_end(g);
    return stint_avg_pool(g, x, &(stint_pool_desc){.size = 2});
}

static stint_value tanh_dense(stint_graph *g, stint_value x, const char *scope,
                              int64_t units)
{
    stint_scope_begin(g, "%s", scope);
    x = stint_dense(
        g, x, &(stint_dense_desc){.units = units, .init = STINT_INIT_GLOROT_UNIFORM});
    x = stint_tanh(g, x);
    stint_scope_end(g);
    return x;
}

stint_value sti_model_lenet5(stint_graph *g, int variant, const stint_model_desc *desc,
                             stint_value x)
{
    (void)variant;
    x = sti_model_at_least(g, x, 12, "lenet5");
    if (x < 0)
        return -1;
    stint_shape shape = stint_value_shape(g, x);
    x = tanh_conv(g, x, "c1", 6, shape.dim[1] < 32 ? 2 : 0); /* 28x28 -> 14x14 */
    x = tanh_conv(g, x, "c3", 16, 0);                        /* 10x10 -> 5x5 */
    x = stint_flatten(g, x);
    x = tanh_dense(g, x, "c5", 120);
    x = tanh_dense(g, x, "f6", 84);
    x = sti_model_dropout(g, x, desc, 0);
    return sti_model_dense(g, x, "output", desc->classes);
}
