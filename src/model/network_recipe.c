#include "model/network_recipe.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "model/bayes_section.h"
#include "model/model_section.h"
#include "model/quantise_section.h"

bool sti_recipe_is_text(const stint_recipe *recipe)
{
    return stint_model_is_text(sti_recipe_network(recipe));
}

bool sti_recipe_is_imported(const stint_recipe *recipe)
{
    return strcmp(sti_recipe_network(recipe), STI_MODEL_IMPORTED) == 0;
}

bool sti_recipe_is_field(const stint_recipe *recipe)
{
    return stint_model_is_field(sti_recipe_network(recipe));
}

/* [train] belongs to a higher room, but precision is the network's, too. */
static bool is_bf16(const stint_recipe *recipe)
{
    return sti_recipe_says(recipe, "train.precision", "bf16");
}

sti_bayes_desc sti_recipe_bayes_desc(const stint_recipe *recipe)
{
    const sti_bayes_values *bayes = sti_bayes_section_of(recipe);
    if (bayes->samples == 0)
        return (sti_bayes_desc){0};
    return (sti_bayes_desc){.samples = bayes->samples,
                            .generator = bayes->generator,
                            .estimator = bayes->estimator,
                            .prior = bayes->prior,
                            .deviation = (float)bayes->deviation,
                            .narrow = (float)bayes->narrow,
                            .wide_share = (float)bayes->wide_share,
                            .sigma = (float)bayes->sigma};
}

sti_network_desc sti_recipe_network_desc(const stint_recipe *recipe)
{
    const sti_model_values *model = sti_model_section_of(recipe);
    return (sti_network_desc){
        .name = sti_recipe_network(recipe),
        .model = {.stem = (stint_stem)model->stem,
                  .width = model->width,
                  .depth = model->depth,
                  .dropout = (float)model->dropout,
                  .activation = (stint_activation)model->activation,
                  .input_bits = (int)model->input_bits},
        .weight_bits = (int)sti_quantise_section_of(recipe)->bits,
        .bayes = sti_recipe_bayes_desc(recipe),
        .bf16 = is_bf16(recipe),
        .winograd = model->convolution == STI_CONVOLUTION_AUTO};
}

stint_status sti_recipe_field_network(const stint_recipe *recipe, int64_t outputs,
                                      sti_network_desc *network_out)
{
    const sti_model_values *model = sti_model_section_of(recipe);
    const sti_field_values *field = sti_field_section_of(recipe);
    sti_network_desc net = {.name = sti_recipe_network(recipe),
                            .field = {.width = model->width,
                                      .depth = model->depth,
                                      .omega = (float)model->omega,
                                      .omega_hidden = (float)model->omega_hidden,
                                      .activation = (stint_activation)model->activation,
                                      .features = model->features,
                                      .feature_scale = (float)model->feature_scale,
                                      .skip = model->skip},
                            .bf16 = is_bf16(recipe)};
    stint_status st =
        sti_field_names_parse(field->coordinates, field->outputs, &net.names);
    if (st != STINT_OK)
        return st;
    if (net.names.outputs > 0 && outputs > 0 && net.names.outputs != outputs)
        return sti_fail(STINT_E_INPUT,
                        "field.outputs: %d names, but the data have %" PRId64
                        " number%s a point; name as many, or leave it out",
                        net.names.outputs, outputs, sti_s(outputs));
    if (net.names.outputs == 0 && outputs > STI_FIELD_OUTPUTS)
        return sti_fail(STINT_E_INPUT,
                        "%" PRId64 " numbers a point; a field has at most %d outputs",
                        outputs, STI_FIELD_OUTPUTS);
    if (net.names.outputs == 0)
        sti_field_names_usual(&net.names, outputs > 0 ? (int)outputs : 1);
    net.terms = field;
    net.field.coordinates = net.names.coordinates;
    net.field.outputs = net.names.outputs;
    st = stint_field_resolve(net.name, &net.field);
    if (st == STINT_OK)
        *network_out = net;
    return st;
}

int64_t sti_recipe_vocabulary(const stint_recipe *recipe)
{
    stint_text_model_desc sizes = {.vocabulary =
                                       sti_model_section_of(recipe)->vocabulary};
    int64_t context = 0;
    const char *name = sti_recipe_network(recipe);
    if (strcmp(name, "gpt2-124m") == 0)
        (void)stint_text_model_resolve(name, &sizes, &context);
    return sizes.vocabulary;
}

int sti_recipe_generation_bits(const stint_recipe *recipe)
{
    switch (sti_model_section_of(recipe)->weights) {
    case STI_WEIGHTS_BF16:
        return 16;
    case STI_WEIGHTS_Q8:
        return 8;
    case STI_WEIGHTS_Q4:
        return 4;
    default:
        return 0;
    }
}

stint_status sti_recipe_text_network(const stint_recipe *recipe, int64_t tokens,
                                     sti_network_desc *network_out)
{
    const sti_model_values *model = sti_model_section_of(recipe);
    const double dropout = model->dropout;
    sti_network_desc net = {.name = sti_recipe_network(recipe),
                            .text = {.vocabulary = sti_recipe_vocabulary(recipe),
                                     .depth = model->depth,
                                     .width = model->width,
                                     .heads = model->heads,
                                     .kv_heads = model->kv_heads,
                                     .dropout = dropout > 0 ? (float)dropout : 0},
                            .context = model->context,
                            .weight_bits = (int)sti_quantise_section_of(recipe)->bits,
                            .bf16 = is_bf16(recipe)};
    if (net.text.vocabulary == 0)
        net.text.vocabulary = tokens;
    const bool unknown = net.text.vocabulary == 0;
    const stint_status st = stint_text_model_resolve(net.name, &net.text, &net.context);
    if (st != STINT_OK)
        return st;
    if (unknown)
        sti_log(STINT_LOG_INFO,
                "no text is given: a vocabulary of %s tokens is taken, as published; "
                "--data PATH takes that of a text",
                sti_count_text(net.text.vocabulary));
    if (tokens > net.text.vocabulary)
        return sti_fail(STINT_E_INPUT,
                        "model.vocabulary: %" PRId64 ", but the tokeniser has %" PRId64
                        " tokens; set it to %" PRId64 " or more, or to 0 for as many",
                        net.text.vocabulary, tokens, tokens);
    *network_out = net;
    return STINT_OK;
}
