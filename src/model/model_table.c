/* The networks by name: one row each, with the size of photographs that it was
 * published for (0: small images). */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "model/model_priv.h"

#define NETWORKS(X)                                                                   \
    X("mlp", sti_model_mlp, 0, 0, "dense layers with ReLU: 2 hidden of 256")          \
    X("lenet5", sti_model_lenet5, 0, 0, "LeNet-5 (1998): 61,706 parameters on MNIST") \
    X("smallcnn", sti_model_smallcnn, 0, 0,                                           \
      "3 convolutions, 15,722 parameters: for studies of noise")                      \
    X("smallcnn-bn", sti_model_smallcnn, 1, 0, "the same with batch-norm")            \
    X("alexnet", sti_model_alexnet, 0, 224, "AlexNet, one column (2014)")             \
    X("vgg11", sti_model_vgg, 11, 224, "VGG-11 with batch-norm (2014)")               \
    X("vgg13", sti_model_vgg, 13, 224, "VGG-13 with batch-norm")                      \
    X("vgg16", sti_model_vgg, 16, 224, "VGG-16 with batch-norm")                      \
    X("resnet8", sti_model_resnet, 8, 0,                                              \
      "3 stages of 1 block from 16 channels: small sets")                             \
    X("resnet20", sti_model_resnet, 20, 0,                                            \
      "ResNet-20 for CIFAR (2015): 0.27 M parameters")                                \
    X("resnet32", sti_model_resnet, 32, 0, "ResNet-32 for CIFAR")                     \
    X("resnet56", sti_model_resnet, 56, 0, "ResNet-56 for CIFAR")                     \
    X("resnet18", sti_model_resnet, 18, 224,                                          \
      "ResNet-18 (2015): 4 stages from 64 channels")                                  \
    X("resnet34", sti_model_resnet, 34, 224, "ResNet-34")                             \
    X("resnet50", sti_model_resnet, 50, 224, "ResNet-50, bottleneck blocks")

#define INFO_ROW(name, build, variant, size, help)  {name, help},
#define BUILD_ROW(name, build, variant, size, help) {build, variant, size},

static const stint_model_info network_infos[] = {NETWORKS(INFO_ROW){NULL, NULL}};

static const struct {
    sti_model_fn *build;
    int variant;
    int64_t size;
} network_builders[] = {NETWORKS(BUILD_ROW)};

enum { NETWORK_COUNT = sizeof network_builders / sizeof network_builders[0] };

const stint_model_info *stint_model_list(void)
{
    return network_infos;
}

static stint_status unknown_network(const char *name)
{
    const char *names[NETWORK_COUNT];
    for (int i = 0; i < NETWORK_COUNT; i++)
        names[i] = network_infos[i].name;
    const char *near = sti_text_nearest(name, names, NETWORK_COUNT);
    if (near)
        return sti_fail(STINT_E_INPUT, "model '%s' is unknown; did you mean '%s'?",
                        name, near);
    return sti_fail(STINT_E_INPUT,
                    "model '%s' is unknown; `stint help models` lists them", name);
}

static int find_network(const char *name)
{
    for (int i = 0; i < NETWORK_COUNT; i++)
        if (strcmp(network_infos[i].name, name) == 0)
            return i;
    return -1;
}

int64_t stint_model_usual_size(const char *name)
{
    const int row = find_network(name);
    return row < 0 ? 0 : network_builders[row].size;
}

stint_value stint_model_build(stint_graph *graph, const char *name,
                              const stint_model_desc *desc, stint_value images)
{
    if (images < 0)
        return -1;
    int row = find_network(name);
    if (row < 0)
        return sti_graph_fail(graph, unknown_network(name));
    stint_shape shape = stint_value_shape(graph, images);
    if (shape.rank != 4 || shape.dtype != STINT_F32)
        return sti_graph_fail(
            graph, sti_fail(STINT_E_INPUT, "%s: wants images [n, h, w, c] f32, got %s",
                            name, sti_shape_text(&shape)));
    if (desc->classes < 2 || desc->width < 0 || desc->depth < 0 || desc->dropout >= 1)
        return sti_graph_fail(
            graph,
            sti_fail(STINT_E_INPUT,
                     "%s: wants 2 classes or more, width and depth of 0 or more and "
                     "dropout below 1; got %" PRId64 " classes, width %" PRId64
                     ", depth %" PRId64 ", dropout %g",
                     name, desc->classes, desc->width, desc->depth,
                     (double)desc->dropout));

    stint_model_desc resolved = *desc;
    int64_t side = shape.dim[1] < shape.dim[2] ? shape.dim[1] : shape.dim[2];
    if (resolved.stem == STINT_STEM_AUTO)
        resolved.stem = side < 96 ? STINT_STEM_SMALL : STINT_STEM_LARGE;
    return network_builders[row].build(graph, network_builders[row].variant, &resolved,
                                       images);
}

stint_value sti_model_at_least(stint_graph *g, stint_value x, int64_t pixels,
                               const char *name)
{
    if (x < 0)
        return -1;
    stint_shape shape = stint_value_shape(g, x);
    if (shape.dim[1] >= pixels && shape.dim[2] >= pixels)
        return x;
    return sti_graph_fail(
        g, sti_fail(STINT_E_INPUT,
                    "%s: images of %" PRId64 " x %" PRId64
                    " are too small for its pooling, which needs %" PRId64 " x %" PRId64
                    "; set data.size = %" PRId64 " or take a smaller network",
                    name, shape.dim[1], shape.dim[2], pixels, pixels, pixels));
}

stint_value sti_model_conv_norm(stint_graph *g, stint_value x, const char *conv,
                                const char *norm, const stint_conv2d_desc *desc)
{
    stint_scope_begin(g, "%s", conv);
    x = stint_conv2d(g, x, desc);
    stint_scope_end(g);
    stint_scope_begin(g, "%s", norm);
    x = stint_batch_norm(g, x, &(stint_batch_norm_desc){0});
    stint_scope_end(g);
    return x;
}

stint_value sti_model_dense(stint_graph *g, stint_value x, const char *scope,
                            int64_t units)
{
    stint_scope_begin(g, "%s", scope);
    x = stint_dense(g, x, &(stint_dense_desc){.units = units});
    stint_scope_end(g);
    return x;
}

stint_value sti_model_dropout(stint_graph *g, stint_value x,
                              const stint_model_desc *desc, float published)
{
    float rate = desc->dropout < 0 ? published : desc->dropout;
    return rate > 0 ? stint_dropout(g, x, rate) : x;
}
