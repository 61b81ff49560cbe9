/* Residual networks (He et al., "Deep residual learning for image recognition", 2015).
 *
 *   resnet18, 34, 50   4 stages from 64 channels; 50 has bottleneck blocks (1x1, 3x3,
 *                      1x1 to four times the width, the stride on the 3x3)
 *   resnet20, 32, 56   the CIFAR form: 3 stages from 16 channels; resnet8 likewise
 *
 * Where the shape changes, the shortcut is a 1x1 convolution with batch-norm (option
 * B): on CIFAR the paper's zero-padded identity saves 1 % of the parameters but is no
 * faster and a little less accurate. Large stem: 7x7 stride 2 and 3x3 max pooling;
 * small stem: 3x3 stride 1. */
#include "model/model_priv.h"

typedef struct resnet_form {
    int depth, stages, blocks[4];
    int64_t width;
    bool bottleneck;
} resnet_form;

static const resnet_form resnet_forms[] = {
    {8, 3, {1, 1, 1}, 16, false},     {20, 3, {3, 3, 3}, 16, false},
    {32, 3, {5, 5, 5}, 16, false},    {56, 3, {9, 9, 9}, 16, false},
    {18, 4, {2, 2, 2, 2}, 64, false}, {34, 4, {3, 4, 6, 3}, 64, false},
    {50, 4, {3, 4, 6, 3}, 64, true},
};

typedef struct block_desc {
    int64_t width, out, stride;
    bool bottleneck;
} block_desc;

static stint_value plain_branch(stint_graph *g, stint_value x, const block_desc *b)
{
    x = sti_model_conv_norm(
        g, x, "conv1", "bn1",
        &(stint_conv2d_desc){
            .filters = b->width, .size = 3, .stride = b->stride, .pad = 1});
    x = stint_relu(g, x);
    return sti_model_conv_norm(
        g, x, "conv2", "bn2",
        &(stint_conv2d_desc){.filters = b->out, .size = 3, .pad = 1});
}

static stint_value bottleneck_branch(stint_graph *g, stint_value x, const block_desc *b)
{
    x = sti_model_conv_norm(g, x, "conv1", "bn1",
                            &(stint_conv2d_desc){.filters = b->width, .size = 1});
    x = stint_relu(g, x);
    x = sti_model_conv_norm(
        g, x, "conv2", "bn2",
        &(stint_conv2d_desc){
            .filters = b->width, .size = 3, .stride = b->stride, .pad = 1});
    x = stint_relu(g, x);
    return sti_model_conv_norm(g, x, "conv3", "bn3",
                               &(stint_conv2d_desc){.filters = b->out, .size = 1});
}

static stint_value block(stint_graph *g, stint_value x, const block_desc *b)
{
    stint_value branch =
        b->bottleneck ? bottleneck_branch(g, x, b) : plain_branch(g, x, b);
    if (branch < 0)
        return -1;
    stint_shape shape = stint_value_shape(g, x);
    if (b->stride != 1 || shape.dim[3] != b->out)
        x = sti_model_conv_norm(
            g, x, "downsample.conv", "downsample.bn",
            &(stint_conv2d_desc){.filters = b->out, .size = 1, .stride = b->stride});
    return stint_relu(g, stint_add(g, branch, x));
}

static stint_value stem(stint_graph *g, stint_value x, int64_t width, bool small)
{
    stint_conv2d_desc conv = {.filters = width, .size = 3, .pad = 1};
    if (!small)
        conv = (stint_conv2d_desc){.filters = width, .size = 7, .stride = 2, .pad = 3};
    x = stint_relu(g, sti_model_conv_norm(g, x, "conv1", "bn1", &conv));
    if (!small)
        x = stint_max_pool(g, x, &(stint_pool_desc){.size = 3, .stride = 2, .pad = 1});
    return x;
}

stint_value sti_model_resnet(stint_graph *g, int variant, const stint_model_desc *desc,
                             stint_value x)
{
    const resnet_form *form = resnet_forms;
    while (form->depth != variant)
        form++;
    int64_t width = desc->width ? desc->width : form->width;
    x = stem(g, x, width, desc->stem == STINT_STEM_SMALL);
    for (int stage = 0; stage < form->stages; stage++) {
        for (int i = 0; i < form->blocks[stage]; i++) {
            stint_scope_begin(g, "layer%d.%d", stage + 1, i);
            x = block(g, x,
                      &(block_desc){.width = width,
                                    .out = form->bottleneck ? 4 * width : width,
                                    .stride = stage > 0 && i == 0 ? 2 : 1,
                                    .bottleneck = form->bottleneck});
            stint_scope_end(g);
        }
        width *= 2;
    }
    x = stint_global_avg_pool(g, x);
    x = sti_model_dropout(g, x, desc, 0);
    return sti_model_dense(g, x, "fc", desc->classes);
}
