/* The small network on which run-to-run noise is studied (Zhuang et al., "Randomness In
 * Neural Network Training: Characterizing the Impact of Tooling", 2022): three 3x3
 * convolutions, each with ReLU and max pooling by 2, global average, two dense layers;
 * Glorot's uniform weights. Variant 1 has batch-norm after each convolution. */
#include "model/model_priv.h"

static stint_value conv_block(stint_graph *g, stint_value x, int64_t index,
                              int64_t filters, bool norm)
{
    stint_scope_begin(g, "conv%d", (int)index);
    x = stint_conv2d(g, x,
                     &(stint_conv2d_desc){.filters = filters,
                                          .size = 3,
                                          .pad = 1,
                                          .bias = !norm,
                                          .init = STINT_INIT_GLOROT_UNIFORM});
    stint_scope_end(g);
    if (norm) {
        stint_scope_begin(g, "bn%d", (int)index);
        x = stint_batch_norm(g, x, &(stint_batch_norm_desc){0});
        stint_scope_end(g);
    }
    return stint_max_pool(g, stint_relu(g, x), &(stint_pool_desc){.size = 2});
}

static stint_value dense(stint_graph *g, stint_value x, const char *scope,
                         int64_t units)
{
    stint_scope_begin(g, "%s", scope);
    x = stint_dense(
        g, x, &(stint_dense_desc){.units = units, .init = STINT_INIT_GLOROT_UNIFORM});
    stint_scope_end(g);
    return x;
}

stint_value sti_model_smallcnn(stint_graph *g, int variant,
                               const stint_model_desc *desc, stint_value x)
{
    const int64_t width = desc->width ? desc->width : 16;
    const bool norm = variant == 1;
    x = sti_model_at_least(g, x, 8, "smallcnn");
    if (x < 0)
        return -1;
    x = conv_block(g, x, 1, width, norm);
    x = conv_block(g, x, 2, 2 * width, norm);
    x = conv_block(g, x, 3, 2 * width, norm);
    x = stint_global_avg_pool(g, x);
    x = stint_relu(g, dense(g, x, "fc1", 2 * width));
    x = sti_model_dropout(g, x, desc, 0);
    return dense(g, x, "fc2", desc->classes);
}
