/* [model] of a recipe: which network is trained, and of what size. */
#ifndef STI_MODEL_MODEL_SECTION_H
#define STI_MODEL_MODEL_SECTION_H

#include "base/recipe.h"

enum { STI_CONVOLUTION_AUTO, STI_CONVOLUTION_DIRECT };
enum { STI_WEIGHTS_F32, STI_WEIGHTS_BF16, STI_WEIGHTS_Q8, STI_WEIGHTS_Q4 };

typedef struct sti_model_values {
    const char *name;
    int stem;             /* stint_stem */
    int64_t width, depth; /* 0: as published */
    double dropout;       /* -1: as published */
    int convolution;      /* STI_CONVOLUTION_... */
    int activation;       /* stint_activation */
    int64_t input_bits;   /* 0: as they are */
    /* Sizes of a text model: 0 as published, vocabulary 0 as the tokeniser has. */
    int64_t heads, kv_heads, context, vocabulary;
    /* Sizes of a field: 0 the usual one, features 0 none. */
    double omega, omega_hidden, feature_scale;
    int64_t features;
    bool skip;
    const char *bottom, *top; /* of clicks: "512,256" or "none" */
    int weights;              /* STI_WEIGHTS_..., of a text model in generation */
} sti_model_values;

/* model.name of a network that another program made: it is that of train.start. */
#define STI_MODEL_IMPORTED "imported"

extern const sti_recipe_section sti_model_section;
const sti_model_values *sti_model_section_of(const stint_recipe *recipe);

/* The network's name as written in model.name; never NULL. */
const char *sti_recipe_network(const stint_recipe *recipe);

#endif
