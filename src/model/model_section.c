/* [model] of a recipe: which network is trained, and of what size. */
#include "model/model_section.h"

#include <string.h>

#include "stint/model.h"

#define AT(field) .offset = offsetof(sti_model_values, field)

static const sti_option rows[] = {
    {.name = "name",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "resnet20",
     AT(name),
     .unit = "NAME",
     .help = "network to train: for images"
/* The names come from the lists of networks. */
#define STI_MODEL(name, builder, variant, side, help) ", " name
#include "model/model_list.h"
#undef STI_MODEL
             "; for text"
#define STI_TEXT_MODEL(name, llama, help) ", " name
#include "model/text_model_list.h"
#undef STI_TEXT_MODEL
             "; for fields"
#define STI_FIELD(name, siren, help) ", " name
#include "model/field_list.h"
#undef STI_FIELD
             "; for clicks, dlrm; imported: that of the file train.start"},
    {.name = "stem",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     .choices = "auto|small|large",
     AT(stem),
     .unit = "KIND",
     .help = "first layers: small for images under 96 pixels, large for bigger ones"},
    {.name = "width",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1 << 20),
     .default_text = "0",
     AT(width),
     .unit = "N",
     .help = "channels of the first stage, units of hidden layers (mlp), or columns of "
             "a text model; 0: as published"},
    {.name = "depth",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1024),
     .default_text = "0",
     AT(depth),
     .unit = "N",
     .help =
         "layers or blocks that a network repeats: hidden layers (mlp), blocks of a "
         "text model; 0: as published"},
    {.name = "dropout",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(-1, 0.99),
     .default_text = "-1",
     AT(dropout),
     .unit = "RATE",
     .help = "dropout before the classifier, where the network has it, or of a text "
             "model's embeddings and branches; -1: as published (of text: none)"},
    {.name = "convolution",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     .choices = "auto|direct",
     AT(convolution),
     .unit = "KIND",
     .help = "auto: 3 x 3 convolutions by Winograd's minimal filtering where it is "
             "faster (float32); direct: never"},
    {.name = "activation",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "relu",
     .choices = "relu|sign|sin|tanh|gelu|silu|sigmoid|softplus",
     AT(activation),
     .unit = "KIND",
     .help = "of hidden layers (mlp): relu, or batch-norm and sign, -1 or 1, whose "
             "gradient is passed straight through where the input is within 1; of a "
             "field: all but sign"},
    {.name = "input_bits",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 8),
     .default_text = "0",
     AT(input_bits),
     .unit = "N",
     .help = "normalised pixels are rounded to 2^N even steps from -2 to 2 (mlp); 0: "
             "as they are"},
    {.name = "heads",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 4096),
     .default_text = "0",
     AT(heads),
     .unit = "N",
     .help = "of text: heads of attention; 0: one for each 64 columns of width, or 12 "
             "where those do not come out even"},
    {.name = "kv_heads",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 4096),
     .default_text = "0",
     AT(kv_heads),
     .unit = "N",
     .help = "of text: heads of keys and values, shared by several of queries; 0: all "
             "heads (gpt), a fourth of them (llama)"},
    {.name = "context",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1 << 20),
     .default_text = "0",
     AT(context),
     .unit = "TOKENS",
     .help = "of text: tokens that are seen at once; 0: 1024"},
    {.name = "vocabulary",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1 << 24),
     .default_text = "0",
     AT(vocabulary),
     .unit = "TOKENS",
     .help = "of text: tokens that the model knows, and as many byte pairs are learnt; "
             "0: as the tokeniser has (4096 when byte pairs are learnt)"},
    {.name = "weights",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "f32",
     .choices = "f32|bf16|q8|q4",
     AT(weights),
     .unit = "KIND",
     .help =
         "of text: how `stint run` and `stint serve` keep matrices, in 4, 2, 1.1 or "
         "0.6 bytes a weight; training and evaluation are in f32"},
    {.name = "omega",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e6),
     .default_text = "0",
     AT(omega),
     .unit = "N",
     .help = "of a field: what sums of the first layer are multiplied by before the "
             "activation; 0: 30 before a sine, else 1"},
    {.name = "omega_hidden",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e6),
     .default_text = "0",
     AT(omega_hidden),
     .unit = "N",
     .help = "of a field: the same of the other hidden layers"},
    {.name = "features",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 65536),
     .default_text = "0",
     AT(features),
     .unit = "N",
     .help = "of a field: Fourier features, sines and cosines of so many products of "
             "the coordinates; 0: none"},
    {.name = "feature_scale",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1e6),
     .default_text = "10",
     AT(feature_scale),
     .unit = "N",
     .help = "of a field: deviation that the weights of Fourier features begin with"},
    {.name = "skip",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(skip),
     .help = "of a field: the middle layer sees the first one's input, too"},
    {.name = "bottom",
     .type = STI_OPTION_LIST,
     STI_OPTION_NO_BOUND,
     .default_text = "512,256",
     AT(bottom),
     .unit = "N[,N...]",
     .help =
         "of clicks: units of the hidden layers that numbers go through, before the "
         "one of model.width; none: there is that one alone"},
    {.name = "top",
     .type = STI_OPTION_LIST,
     STI_OPTION_NO_BOUND,
     .default_text = "512,256",
     AT(top),
     .unit = "N[,N...]",
     .help = "of clicks: units of the hidden layers behind the dot products; none: "
             "there are none"},
};

const char *sti_recipe_network(const stint_recipe *recipe)
{
    const char *name = sti_model_section_of(recipe)->name;
    return name ? name : "";
}

/* (Sections call nothing of the room's, so the names are looked up here.) */
static bool is_field(const stint_recipe *recipe)
{
    static const char *const names[] = {
#define STI_FIELD(name, siren, help) name,
#include "model/field_list.h"
#undef STI_FIELD
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], sti_recipe_network(recipe)) == 0)
            return true;
    return false;
}

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_model_values *model = sti_model_section_of(recipe);
    const bool is_mlp = strcmp(sti_recipe_network(recipe), "mlp") == 0;
    if (is_field(recipe))
        return;
    if (model->activation != STINT_ACTIVATION_RELU && !is_mlp)
        sti_complain(list, "model.activation: only the network mlp has a choice; "
                           "leave it out, or set model.name = mlp");
    if (model->activation > STINT_ACTIVATION_SIGN && is_mlp)
        sti_complain(list,
                     "model.activation: of mlp it is relu or sign; the others are "
                     "of fields");
    if (model->omega > 0 || model->omega_hidden > 0 || model->features > 0 ||
        model->skip)
        sti_complain(list, "model.omega, omega_hidden, features, skip: are of fields; "
                           "leave them out, or set model.name = siren or field");
    if (model->input_bits > 0 && !is_mlp)
        sti_complain(list, "model.input_bits: only the network mlp rounds its input; "
                           "leave it out, or set model.name = mlp");
}

const sti_recipe_section sti_model_section = {
    STI_RECIPE_SECTION("model", rows, sti_model_values),
    .check = check,
};

const sti_model_values *sti_model_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_model_section);
}
