/* AlexNet in one column (Krizhevsky, "One weird trick for parallelizing convolutional
 * neural networks", 2014). Large stem: as published, 61,100,840 parameters at 1000
 * classes and 224 pixels. Small stem: 3x3 convolutions, 2x2 pooling, and dense layers
 * of 1024 units instead of 4096. */
#include "model/model_priv.h"

typedef struct conv_row {
    int64_t filters, size, stride, pad;
    bool pool;
} conv_row;

static const conv_row large_rows[5] = {{64, 11, 4, 2, true},
                                       {192, 5, 1, 2, true},
                                       {384, 3, 1, 1, false},
                                       {256, 3, 1, 1, false},
                                       {256, 3, 1, 1, true}};
static const conv_row small_rows[5] = {{64, 3, 1, 1, true},
                                       {192, 3, 1, 1, true},
                                       {384, 3, 1, 1, false},
                                       {256, 3, 1, 1, false},
                                       {256, 3, 1, 1, true}};

static stint_value features(stint_graph *g, stint_value x, const conv_row *rows,
                            int64_t pool_size)
{
    for (int i = 0; i < 5; i++) {
        stint_scope_begin(g, "conv%d", i + 1);
        x = stint_conv2d(g, x,
                         &(stint_conv2d_desc){.filters = rows[i].filters,
                                              .size = rows[i].size,
                                              .stride = rows[i].stride,
                                              .pad = rows[i].pad,
                                              .bias = true});
        x = stint_relu(g, x);
        stint_scope_end(g);
        if (rows[i].pool)
            x = stint_max_pool(g, x,
                               &(stint_pool_desc){.size = pool_size, .stride = 2});
    }
    return x;
}

stint_value sti_model_alexnet(stint_graph *g, int variant, const stint_model_desc *desc,
                              stint_value x)
{
    (void)variant;
    bool small = desc->stem == STINT_STEM_SMALL;
    x = sti_model_at_least(g, x, small ? 8 : 63, "alexnet");
    x = features(g, x, small ? small_rows : large_rows, small ? 2 : 3);
    x = stint_flatten(g, x);
    for (int i = 0; i < 2; i++) {
        x = sti_model_dropout(g, x, desc, 0.5f);
        x = sti_model_dense(g, x, i == 0 ? "fc1" : "fc2", small ? 1024 : 4096);
        x = stint_relu(g, x);
    }
    return sti_model_dense(g, x, "fc3", desc->classes);
}
