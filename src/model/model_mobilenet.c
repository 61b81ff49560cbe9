/* Networks of inverted residuals (Sandler et al., "MobileNetV2", 2018): a 1x1
 * convolution widens, a depthwise one filters, a 1x1 convolution narrows without an
 * activation, and what enters is added where shapes agree. A network is a list of such
 * blocks.
 *
 *   mobilenetv2      as torchvision and timm have it, 3,504,872 parameters of 1000
 * classes mcunet-5fps      found by a search for microcontrollers (Lin et al.,
 * "MCUNet", 2020), in the form of its published weights: windows of 3, 5 and 7, batch-
 *                    norm folded into biases
 *   mcunet-5fps-bn   the same with batch-norm, to be trained from new weights
 *
 * Parameters have timm's names. width: channels of the first layer; the others in
 * proportion, multiples of 8. Small stem: its stride is 1. */
#include "model/model_priv.h"

typedef struct block_row {
    int expand; /* how many times wider inside; 1: no widening convolution */
    int out, size, stride, repeats;
} block_row;

typedef struct mobilenet_form {
    int first, head; /* channels of the stem and of the last 1x1 convolution; 0: none */
    bool norm;       /* with batch-norm, else biases */
    float dropout;
    block_row row[16]; /* a stage each, then one of expand 0 */
} mobilenet_form;

#define MCUNET_ROWS                                                             \
    {1, 8, 3, 1, 1}, {4, 16, 3, 2, 1}, {3, 16, 3, 1, 1}, {3, 24, 7, 2, 1},      \
        {5, 24, 3, 1, 1}, {5, 40, 3, 2, 1}, {4, 40, 7, 1, 1}, {4, 48, 5, 1, 1}, \
        {3, 48, 3, 1, 1}, {4, 48, 3, 1, 1}, {5, 96, 7, 2, 1}, {4, 96, 5, 1, 2}, \
        {6, 160, 3, 1, 1},                                                      \
    {                                                                           \
        0, 0, 0, 0, 0                                                           \
    }

static const mobilenet_form forms[] = {
    {32,
     1280,
     true,
     0.2f,
     {{1, 16, 3, 1, 1},
      {6, 24, 3, 2, 2},
      {6, 32, 3, 2, 3},
      {6, 64, 3, 2, 4},
      {6, 96, 3, 1, 3},
      {6, 160, 3, 2, 3},
      {6, 320, 3, 1, 1},
      {0, 0, 0, 0, 0}}},
    {16, 0, false, 0, {MCUNET_ROWS}},
    {16, 0, true, 0, {MCUNET_ROWS}},
};

/* What a network is built with. */
typedef struct builder {
    stint_graph *g;
    const mobilenet_form *form;
    int64_t width; /* of the first layer, where the form's has form->first */
} builder;

/* Channels in proportion: the nearest multiple of 8, and not less by more than a tenth
 * (as the published code rounds). */
static int64_t scaled(const builder *b, int64_t channels)
{
    const double exact = (double)(channels * b->width) / b->form->first;
    int64_t near = (int64_t)(exact + 4) / 8 * 8;
    near = near < 8 ? 8 : near;
    return (double)near < 0.9 * exact ? near + 8 : near;
}

/* A convolution with its norm, or with a bias. */
static stint_value convolve(const builder *b, stint_value x, const char *conv,
                            const char *norm, stint_conv2d_desc desc)
{
    if (b->form->norm)
        return sti_model_conv_norm(b->g, x, conv, norm, &desc);
    desc.bias = true;
    stint_scope_begin(b->g, "%s", conv);
    x = stint_conv2d(b->g, x, &desc);
    stint_scope_end(b->g);
    return x;
}

static stint_value depthwise(const builder *b, stint_value x, const block_row *row,
                             int64_t stride, const char *norm)
{
    if (x < 0)
        return -1;
    const int64_t channels = stint_value_shape(b->g, x).dim[3];
    return convolve(b, x, "conv_dw", norm,
                    (stint_conv2d_desc){.filters = channels,
                                        .size = row->size,
                                        .stride = stride,
                                        .pad = row->size / 2,
                                        .groups = channels});
}

/* Without widening the names are those of a separable convolution. */
static stint_value block(const builder *b, stint_value x, const block_row *row,
                         int64_t stride)
{
    const bool widens = row->expand > 1;
    if (x < 0)
        return -1;
    const int64_t in = stint_value_shape(b->g, x).dim[3], out = scaled(b, row->out);
    stint_value y = x;
    if (widens)
        y = stint_relu6(b->g, convolve(b, y, "conv_pw", "bn1",
                                       (stint_conv2d_desc){.filters = row->expand * in,
                                                           .size = 1}));
    y = stint_relu6(b->g, depthwise(b, y, row, stride, widens ? "bn2" : "bn1"));
    y = convolve(b, y, widens ? "conv_pwl" : "conv_pw", widens ? "bn3" : "bn2",
                 (stint_conv2d_desc){.filters = out, .size = 1});
    return stride == 1 && in == out ? stint_add(b->g, y, x) : y;
}

static stint_value stages(const builder *b, stint_value x)
{
    for (int stage = 0; b->form->row[stage].expand > 0; stage++) {
        const block_row *row = &b->form->row[stage];
        for (int i = 0; i < row->repeats; i++) {
            stint_scope_begin(b->g, "blocks.%d.%d", stage, i);
            x = block(b, x, row, i == 0 ? row->stride : 1);
            stint_scope_end(b->g);
        }
    }
    return x;
}

stint_value sti_model_mobilenet(stint_graph *g, int variant,
                                const stint_model_desc *desc, stint_value x)
{
    const mobilenet_form *form = &forms[variant];
    const builder b = {g, form, desc->width ? desc->width : form->first};
    const int64_t stride = desc->stem == STINT_STEM_SMALL ? 1 : 2;
    x = stint_relu6(
        g, convolve(&b, x, "conv_stem", "bn1",
                    (stint_conv2d_desc){
                        .filters = b.width, .size = 3, .stride = stride, .pad = 1}));
    x = stages(&b, x);
    if (form->head)
        x = stint_relu6(g, convolve(&b, x, "conv_head", "bn2",
                                    (stint_conv2d_desc){
                                        .filters = scaled(&b, form->head), .size = 1}));
    x = stint_global_avg_pool(g, x);
    x = sti_model_dropout(g, x, desc, form->dropout);
    return sti_model_dense(g, x, "classifier", desc->classes);
}
