/* The networks by name: one row each. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "model/model_priv.h"

#define NETWORKS(X)                                                                    \
    X("mlp", sti_model_mlp, 0, "dense layers with ReLU: 2 hidden of 256")              \
    X("lenet5", sti_model_lenet5, 0, "LeNet-5 (1998): 61,706 parameters on MNIST")     \
    X("smallcnn", sti_model_smallcnn, 0,                                               \
      "3 convolutions, 15,722 parameters: for studies of noise")                       \
    X("smallcnn-bn", sti_model_smallcnn, 1, "the same with batch-norm")                \
    X("alexnet", sti_model_alexnet, 0, "AlexNet, one column (2014)")                   \
    X("vgg11", sti_model_vgg, 11, "VGG-11 with batch-norm (2014)")                     \
    X("vgg13", sti_model_vgg, 13, "VGG-13 with batch-norm")                            \
    X("vgg16", sti_model_vgg, 16, "VGG-16 with batch-norm")                            \
    X("resnet8", sti_model_resnet, 8,                                                  \
      "3 stages of 1 block from 16 channels: small sets")                              \
    X("resnet20", sti_model_resnet, 20,                                                \
      "ResNet-20 for CIFAR (2015): 0.27 M parameters")                                 \
    X("resnet32", sti_model_resnet, 32, "ResNet-32 for CIFAR")                         \
    X("resnet56", sti_model_resnet, 56, "ResNet-56 for CIFAR")                         \
    X("resnet18", sti_model_resnet, 18, "ResNet-18 (2015): 4 stages from 64 channels") \
    X("resnet34", sti_model_resnet, 34, "ResNet-34")                                   \
    X("resnet50", sti_model_resnet, 50, "ResNet-50, bottleneck blocks")

#define INFO_ROW(name, build, variant, help)  {name, help},
#define BUILD_ROW(name, build, variant, help) {build, variant},

static const stint_model_info network_infos[] = {NETWORKS(INFO_ROW){NULL, NULL}};

static const struct {
    sti_model_fn *build;
    int variant;
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
