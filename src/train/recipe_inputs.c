#include "train/recipe_inputs.h"

#include "base/fail.h"
#include "model/field_terms.h"
#include "model/network_recipe.h"
#include "store/model_tokenizer.h"
#include "train/recipe_view.h"

/* The size that the recipe's model is usually given; 0: none. */
static int64_t usual_size(const stint_recipe *recipe)
{
    return sti_recipe_view_of(recipe).model->stem == STINT_STEM_SMALL
               ? 0
               : stint_model_usual_size(sti_recipe_network(recipe));
}

stint_data_desc sti_recipe_data_desc(const stint_recipe *recipe, sti_images_part part)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    return (stint_data_desc){
        .path = v.data->path,
        .split = part == STI_PART_TEST ? STINT_DATA_TEST : STINT_DATA_TRAIN,
        .hold_out = part == STI_PART_TEST ? 0 : v.train->validation,
        .held_out = part == STI_PART_VALIDATION,
        .format = sti_recipe_format(recipe),
        .size = v.data->size,
        .channels = (int)v.data->channels,
        .fit = sti_recipe_fit(recipe),
        .cuts = part == STI_PART_TRAIN && v.data->scale_crop > 0,
        .validation = v.data->validation > 0 ? v.data->validation : -1,
        .nested = v.data->nested,
        .quiet = part == STI_PART_VALIDATION, /* its files are those of the first */
        .usual_size = usual_size(recipe)};
}

stint_status sti_recipe_open_text(const stint_recipe *recipe,
                                  const stint_tokenizer *tokenizer,
                                  sti_corpus **corpus_out)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    const sti_corpus_desc desc = {.path = v.data->path,
                                  .tokenizer = tokenizer,
                                  .tokenizer_path = v.data->tokenizer_path,
                                  .read_tokenizer = sti_model_tokenizer_read,
                                  .kind = (stint_tokenizer_kind)v.data->tokenizer,
                                  .vocabulary = (int32_t)sti_recipe_vocabulary(recipe),
                                  .validation = v.data->validation,
                                  .hold_out = v.train->validation,
                                  .budget_bytes = v.run->memory_bytes};
    return sti_corpus_open(&desc, corpus_out);
}

stint_status sti_recipe_open_field(const stint_recipe *recipe,
                                   sti_field_points **points_out)
{
    const sti_data_values *data = sti_data_section_of(recipe);
    const sti_field_values *field = sti_field_section_of(recipe);
    sti_field_want want = {.path = data->path,
                           .size = data->size,
                           .channels = (int)data->channels,
                           .constant = field->term[STI_TERMS_DATA] != NULL};
    sti_network_desc network;
    sti_field_terms terms = {.any = false};
    sti_field_points *points = NULL;
    stint_status st;
    if (field->outputs) { /* normals make a picture an outline of one value a point */
        STI_TRY(sti_recipe_field_network(recipe, 0, &network));
        STI_TRY(sti_field_terms_parse(field, &network.names, &terms));
        want.outline = sti_field_has_normals(&terms);
        sti_field_terms_fini(&terms);
    }
    STI_TRY(sti_field_points_open(&want, &points));
    STI_TRY(sti_recipe_field_network(recipe, points->outputs, &network));
    STI_TRY(sti_field_terms_parse(field, &network.names, &terms));
    want.differences = sti_field_target_order(&terms);
    if (want.differences > 0) { /* which are known now that the outputs have names */
        sti_field_points_close(points);
        points = NULL;
        STI_TRY(sti_field_points_open(&want, &points));
    }
    *points_out = points;
    points = NULL;
out:
    sti_field_terms_fini(&terms);
    sti_field_points_close(points);
    return st;
}

sti_network_desc sti_train_network_desc(const stint_recipe *recipe)
{
    const sti_train_values *train = sti_train_section_of(recipe);
    const sti_data_values *data = sti_data_section_of(recipe);
    sti_network_desc network = sti_recipe_network_desc(recipe);
    network.smoothing = (float)train->label_smoothing;
    network.mixed = data->mixup > 0 || data->cutmix > 0;
    network.gradient_penalty = (float)sti_loss_section_of(recipe)->gradient_penalty;
    network.freeze_norm = train->freeze_norm;
    network.squares = sti_grow_section_of(recipe)->by == STI_GROW_NOISE;
    return network;
}
