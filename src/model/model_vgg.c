/* VGG (Simonyan and Zisserman 2014), configurations A, B and D, with batch-norm (Ioffe
 * and Szegedy 2015) after every convolution, which therefore has no bias.
 * Large stem: the published classifier of two dense layers of 4096 with dropout 0.5.
 * Small stem: the global average of the last stage and one dense layer, as is usual on
 * CIFAR: 14,724,042 parameters for vgg16 and 10 classes. */
#include "model/model_priv.h"

enum { STAGES = 5 };

static stint_value features(stint_graph *g, int depth, int64_t width, stint_value x)
{
    /* Convolutions a stage; filters double up to eight times the first stage's. */
    static const int blocks_11[STAGES] = {1, 1, 2, 2, 2};
    static const int blocks_13[STAGES] = {2, 2, 2, 2, 2};
    static const int blocks_16[STAGES] = {2, 2, 3, 3, 3};
    static const int64_t factor[STAGES] = {1, 2, 4, 8, 8};
    const int *blocks = depth == 11 ? blocks_11 : depth == 13 ? blocks_13 : blocks_16;

    for (int stage = 0; stage < STAGES; stage++) {
        stint_scope_begin(g, "stage%d", stage + 1);
        for (int i = 0; i < blocks[stage]; i++) {
            stint_scope_begin(g, "%d", i);
            x = sti_model_conv_norm(
                g, x, "conv", "bn",
                &(stint_conv2d_desc){
                    .filters = width * factor[stage], .size = 3, .pad = 1});
            x = stint_relu(g, x);
            stint_scope_end(g);
        }
        x = stint_max_pool(g, x, &(stint_pool_desc){.size = 2});
        stint_scope_end(g);
    }
    return x;
}

stint_value sti_model_vgg(stint_graph *g, int variant, const stint_model_desc *desc,
                          stint_value x)
{
    x = sti_model_at_least(g, x, 32, "vgg");
    x = features(g, variant, desc->width ? desc->width : 64, x);
    if (desc->stem == STINT_STEM_SMALL) {
        x = stint_global_avg_pool(g, x);
        x = sti_model_dropout(g, x, desc, 0);
        return sti_model_dense(g, x, "fc", desc->classes);
    }
    x = stint_flatten(g, x);
    for (int i = 0; i < 2; i++) {
        x = sti_model_dense(g, x, i == 0 ? "fc1" : "fc2", 4096);
        x = stint_relu(g, x);
        x = sti_model_dropout(g, x, desc, 0.5f);
    }
    return sti_model_dense(g, x, "fc3", desc->classes);
}
