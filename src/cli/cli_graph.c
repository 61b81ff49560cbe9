#include "cli/cli_graph.h"

#include "base/fail.h"
#include "pass/pass.h"
#include "stint/data.h"
#include "stint/model.h"
#include "stint/op.h"

static void build(const sti_cli_graph_desc *desc, sti_cli_graph *out)
{
    stint_graph *g = out->graph;
    const sti_recipe_values *r = desc->recipe;
    stint_shape image_shape =
        STINT_SHAPE(desc->batch, desc->height, desc->width, desc->channels);
    stint_shape label_shape = stint_shape_make(STINT_I32, 1, &desc->batch);
    out->images = stint_input(g, "images", &image_shape);
    out->labels = desc->backward ? stint_input(g, "labels", &label_shape) : -1;
    out->logits =
        stint_model_build(g, r->model.name,
                          &(stint_model_desc){.classes = desc->classes,
                                              .stem = (stint_stem)r->model.stem,
                                              .width = r->model.width,
                                              .depth = r->model.depth,
                                              .dropout = (float)r->model.dropout},
                          out->images);
}

static stint_status finish(const sti_cli_graph_desc *desc, sti_cli_graph *out)
{
    stint_graph *g = out->graph;
    stint_status status = STINT_OK;
    if (desc->backward) {
        stint_value loss = stint_softmax_cross_entropy(
            g, out->logits, out->labels, (float)desc->recipe->train.label_smoothing);
        sti_graph_output(g, &(sti_output){.kind = STI_OUTPUT_METRIC,
                                          .value = loss,
                                          .target = -1,
                                          .name = "loss"});
        status = stint_graph_check(g);
        if (status == STINT_OK)
            status = sti_pass_train(g, loss);
    } else {
        sti_graph_output(g, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                          .value = out->logits,
                                          .target = -1,
                                          .name = "logits"});
    }
    if (status == STINT_OK)
        status = stint_graph_check(g);
    if (status == STINT_OK && desc->passes)
        status = sti_pass_standard(g);
    return status;
}

stint_status sti_cli_graph_build(const sti_cli_graph_desc *desc, sti_cli_graph *out)
{
    *out = (sti_cli_graph){.labels = -1};
    stint_status status = stint_graph_create(desc->mode, &out->graph);
    if (status != STINT_OK)
        return status;
    build(desc, out);
    status = stint_graph_check(out->graph);
    if (status == STINT_OK)
        status = finish(desc, out);
    if (status != STINT_OK)
        sti_cli_graph_fini(out);
    return status;
}

void sti_cli_graph_fini(sti_cli_graph *graph)
{
    stint_graph_destroy(graph->graph);
    graph->graph = NULL;
}

static stint_status sizes_of_data(const stint_recipe *recipe, sti_cli_graph_desc *desc)
{
    stint_data *data = NULL;
    stint_status status = stint_data_open(
        &(stint_data_desc){.path = recipe->values.data.path,
                           .split = STINT_DATA_TRAIN,
                           .format = sti_recipe_format(recipe),
                           .size = recipe->values.data.size,
                           .channels = (int)recipe->values.data.channels},
        &data);
    if (status != STINT_OK)
        return status;
    const stint_data_info *info = stint_data_describe(data);
    desc->height = info->height;
    desc->width = info->width;
    desc->channels = info->channels;
    desc->classes = info->classes;
    stint_data_close(data);
    return STINT_OK;
}

stint_status sti_cli_graph_sizes(const stint_recipe *recipe, int64_t image_size,
                                 int64_t image_channels, int64_t classes,
                                 sti_cli_graph_desc *desc_out)
{
    const sti_recipe_values *r = &recipe->values;
    desc_out->recipe = r;
    desc_out->height = desc_out->width = image_size ? image_size : r->data.size;
    desc_out->channels = image_channels ? image_channels : r->data.channels;
    desc_out->classes = classes;
    if (desc_out->height && desc_out->channels && desc_out->classes)
        return STINT_OK;
    if (r->data.path)
        return sizes_of_data(recipe, desc_out);
    return sti_fail(STINT_E_USAGE, "the network's sizes are not known: say where the "
                                   "images are with --data PATH, or give --image-size, "
                                   "--image-channels and --classes");
}
