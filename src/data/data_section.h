/* [data] of a recipe: where images or text lie, and how they are read. */
#ifndef STI_DATA_DATA_SECTION_H
#define STI_DATA_DATA_SECTION_H

#include "base/recipe.h"
#include "stint/data.h"

enum {
    STI_DATA_FORMAT_CSV = 6,
    STI_DATA_FORMAT_CRITEO,
    STI_DATA_FORMAT_LIBSVM,
    STI_DATA_FORMAT_LIBFFM
};
enum { STI_SAMPLING_SHUFFLE, STI_SAMPLING_BALANCED };

typedef struct sti_data_values {
    const char *path; /* NULL: none given */
    int format;       /* of sti_recipe_format */
    int64_t size;     /* 0: as it is */
    int64_t channels; /* 0: as it is */
    int64_t crop_pad;
    bool flip;
    int fit;              /* of sti_recipe_fit */
    double scale_crop;    /* least share of the area; 0: none */
    double mixup, cutmix; /* parameters of Beta(a, a); 0: none */
    int tokenizer;        /* stint_tokenizer_kind */
    const char *tokenizer_path;
    bool nested; /* folders within a class belong to it */
    int sampling;
    int64_t window; /* tokens of a text that are trained on at once; 0: the context */
    double validation; /* share of a text, of clicks, or of images without splits */
    /* Columns and ids of clicks (clicks.h). */
    const char *separator, *label, *dense, *categorical, *bags;
    int64_t min_count, hash;
} sti_data_values;

extern const sti_recipe_section sti_data_section;
const sti_data_values *sti_data_section_of(const stint_recipe *recipe);

/* "auto", "folder", ... for stint_data_desc.format: of data.format's value, and of a
 * recipe. */
const char *sti_data_format_name(int format);
const char *sti_recipe_format(const stint_recipe *recipe);
/* data.fit for stint_data_desc.fit. */
stint_data_fit sti_recipe_fit(const stint_recipe *recipe);

#endif
