#include "cli/cli_network.h"

#include "base/fail.h"
#include "model/network_recipe.h"
#include "stint/data.h"
#include "train/recipe_inputs.h"
#include "train/recipe_view.h"

static stint_status sizes_of_data(const stint_recipe *recipe, sti_network_desc *desc)
{
    stint_data *data = NULL;
    const stint_data_desc train = sti_recipe_data_desc(recipe, STI_PART_TRAIN);
    stint_status status = stint_data_open(&train, &data);
    if (status != STINT_OK)
        return status;
    const stint_data_info *info = stint_data_describe(data);
    desc->height = info->height;
    desc->width = info->width;
    desc->channels = info->channels;
    desc->model.classes = info->classes;
    stint_data_close(data);
    return STINT_OK;
}

/* With data for the vocabulary of its tokeniser, else for that of the recipe. */
static stint_status text_network(const stint_recipe *recipe, sti_network_desc *desc)
{
    sti_corpus *text = NULL;
    stint_status status = sti_data_section_of(recipe)->path
                              ? sti_recipe_open_text(recipe, NULL, &text)
                              : STINT_OK;
    const int64_t tokens =
        text ? stint_tokenizer_describe(text->tokenizer)->vocabulary : 0;
    sti_corpus_close(text);
    if (status == STINT_OK)
        status = sti_recipe_text_network(recipe, tokens, desc);
    if (status == STINT_OK)
        desc->gradient_penalty = (float)sti_loss_section_of(recipe)->gradient_penalty;
    return status;
}

static stint_status field_network(const stint_recipe *recipe, sti_network_desc *desc)
{
    sti_field_points *points = NULL;
    const stint_status status = sti_data_section_of(recipe)->path
                                    ? sti_recipe_open_field(recipe, &points)
                                    : STINT_OK;
    const int64_t outputs = points ? points->outputs : 0;
    sti_field_points_close(points);
    return status == STINT_OK ? sti_recipe_field_network(recipe, outputs, desc)
                              : status;
}

static bool any_size(const sti_cli_sizes *sizes)
{
    return sizes->image_size || sizes->image_channels || sizes->classes;
}

/* A figure that looks like one of what was asked for and is of something else helps
 * nobody. */
static stint_status check_sizes(const stint_recipe *recipe, const sti_cli_sizes *sizes)
{
    if (any_size(sizes) && sti_recipe_is_text(recipe))
        return sti_fail(STINT_E_USAGE, "--image-size, --image-channels, --classes: are "
                                       "of images; text has none of them");
    if (any_size(sizes) && sti_recipe_is_field(recipe))
        return sti_fail(STINT_E_USAGE, "--image-size, --image-channels, --classes: are "
                                       "of images; a field has none of them");
    const int64_t of_recipe = sti_data_section_of(recipe)->channels;
    if ((sizes->image_channels ? sizes->image_channels : of_recipe) == 2)
        return sti_fail(STINT_E_USAGE, "%s: 2 is neither grey (1) nor colour (3)",
                        sizes->image_channels ? "--image-channels" : "data.channels");
    return STINT_OK;
}

stint_status sti_cli_network_desc(const stint_recipe *recipe,
                                  const sti_cli_sizes *sizes,
                                  sti_network_desc *desc_out)
{
    const sti_recipe_view r = sti_recipe_view_of(recipe);
    const stint_status status = check_sizes(recipe, sizes);
    if (status != STINT_OK)
        return status;
    if (sti_recipe_is_text(recipe))
        return text_network(recipe, desc_out);
    if (sti_recipe_is_field(recipe))
        return field_network(recipe, desc_out);
    int64_t size = sizes->image_size ? sizes->image_size : r.data->size;
    *desc_out = sti_train_network_desc(recipe);
    desc_out->model.classes = sizes->classes;
    desc_out->height = size;
    desc_out->width = size;
    desc_out->channels =
        sizes->image_channels ? sizes->image_channels : r.data->channels;
    if (size && desc_out->channels && desc_out->model.classes)
        return STINT_OK;
    if (r.data->path && any_size(sizes))
        return sti_fail(STINT_E_USAGE,
                        "the sizes are those of the images in %s, unless --image-size, "
                        "--image-channels and --classes are all given; give all of "
                        "them or none",
                        r.data->path);
    if (r.data->path)
        return sizes_of_data(recipe, desc_out);
    return sti_fail(STINT_E_USAGE, "the network's sizes are not known: say where the "
                                   "images are with --data PATH, or give --image-size, "
                                   "--image-channels and --classes");
}

static void fetch(stint_graph *g, stint_value value, const char *name)
{
    if (value >= 0)
        sti_graph_output(g, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                          .value = value,
                                          .target = -1,
                                          .name = name});
}

static void build_images(const sti_network_desc *desc, int64_t images, stint_graph *g)
{
    const stint_shape shape =
        STINT_SHAPE(images, desc->height, desc->width, desc->channels);
    const stint_value x = stint_input(g, "images", &shape);
    fetch(g, stint_model_build(g, desc->name, &desc->model, x), "logits");
}

static void build_text(const sti_network_desc *desc, int64_t sequences, stint_graph *g)
{
    const stint_shape shape =
        stint_shape_make(STINT_I32, 2, (int64_t[]){sequences, desc->context});
    const stint_value tokens = stint_input(g, "tokens", &shape);
    const stint_value labels = stint_input(g, "labels", &shape);
    fetch(g, stint_text_model_build(g, desc->name, &desc->text, tokens, labels),
          "loss");
}

static void build_field(const sti_network_desc *desc, int64_t count, stint_graph *g)
{
    const stint_shape shape = STINT_SHAPE(count, desc->field.coordinates);
    const stint_value points = stint_input(g, "points", &shape);
    fetch(g, stint_field_build(g, desc->name, &desc->field, points), "outputs");
}

stint_status sti_cli_network_forward(const sti_network_desc *desc, int64_t images,
                                     stint_graph **graph_out)
{
    stint_graph *g = NULL;
    stint_status status = stint_graph_create(STINT_TRAIN, &g);
    if (status != STINT_OK)
        return status;
    if (desc->field.coordinates > 0)
        build_field(desc, images, g);
    else if (desc->context)
        build_text(desc, images, g);
    else
        build_images(desc, images, g);
    status = stint_graph_check(g);
    if (status == STINT_OK)
        *graph_out = g;
    else
        stint_graph_destroy(g);
    return status;
}
