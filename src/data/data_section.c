/* [data] of a recipe: where images or text lie, and how they are read. */
#include "data/data_section.h"

#include <inttypes.h>

#define AT(field) .offset = offsetof(sti_data_values, field)

static const sti_option rows[] = {
    {.name = "path",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(path),
     .flag = true,
     .flag_name = "data",
     .unit = "PATH",
     .same_weights = true,
     .local = true,
     .help = "images (folder, tar, IDX, CIFAR) or text"},
    {.name = "format",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "auto",
     .choices = "auto|folder|tar|idx|cifar|text|csv|criteo|libsvm|libffm",
     AT(format),
     .unit = "KIND",
     .same_weights = true,
     .help = "how the data is stored; auto: by what is in the folder"},
    {.name = "size",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 4096),
     .default_text = "0",
     AT(size),
     .unit = "PIXELS",
     .help = "resize every image to so many pixels a side; 0: all must be of one size"},
    {.name = "channels",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 3),
     .default_text = "0",
     AT(channels),
     .unit = "N",
     .help = "1 for grey, 3 for colour; 0: as the first image"},
    {.name = "crop_pad",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 512),
     .default_text = "0",
     AT(crop_pad),
     .unit = "PIXELS",
     .help = "training images are shifted at random by up to so many pixels"},
    {.name = "flip",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(flip),
     .help = "training images are mirrored left to right at random"},
    {.name = "fit",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "squash",
     .choices = "squash|crop|pad",
     AT(fit),
     .unit = "HOW",
     .help = "how pictures become size x size: both sides squashed to it, the middle "
             "cut out, or padded with grey"},
    {.name = "scale_crop",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1),
     .default_text = "0",
     AT(scale_crop),
     .unit = "SHARE",
     .help = "a part of every training image is cut out at random, of at least this "
             "share of its area; 0: none, usual: 0.08"},
    {.name = "mixup",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1000),
     .default_text = "0",
     AT(mixup),
     .unit = "A",
     .help = "training images are mixed in pairs, with their labels, by shares from "
             "Beta(A, A); 0: none, usual: 0.2"},
    {.name = "cutmix",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1000),
     .default_text = "0",
     AT(cutmix),
     .unit = "A",
     .help = "a box of another training image, of a share from Beta(A, A), takes the "
             "place of a part, and its label that share; 0: none, usual: 1"},
    {.name = "nested",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(nested),
     .help = "folders within a class folder, at any depth, belong to the class; else "
             "they are skipped"},
    {.name = "sampling",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "shuffle",
     .choices = "shuffle|balanced",
     AT(sampling),
     .unit = "HOW",
     .help = "of images: an epoch is every training image once, or as many images but "
             "of each class equally often, those of rare classes again and again"},
    {.name = "tokenizer",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "bpe",
     .choices = "byte|char|bpe",
     AT(tokenizer),
     .unit = "KIND",
     .help = "of text: what a token is; char and bpe are learnt from the text"},
    {.name = "tokenizer_path",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(tokenizer_path),
     .unit = "PATH",
     .same_weights = true,
     .local = true,
     .help =
         "of text: a tokeniser that is there, a file of `stint data tokens`, a "
         "folder with GPT-2's vocab.json and merges.txt, or a run or model of text, "
         "whose own it is; nothing is learnt then"},
    {.name = "window",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1 << 24),
     .default_text = "0",
     AT(window),
     .unit = "TOKENS",
     .help = "of text: tokens of a sequence, if fewer than model.context; 0: as many"},
    {.name = "validation",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 0.9),
     .default_text = "0.1",
     AT(validation),
     .unit = "SHARE",
     .help =
         "of text: share of the tokens, the last ones, that is not trained on but "
         "tested with; of clicks likewise of the samples; of images in class folders "
         "without splits: likewise, chosen by file name"},
    {.name = "separator",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(separator),
     .unit = "CHARACTER",
     .help = "of clicks in csv: between columns, or tab; else found in the header"},
    {.name = "label",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(label),
     .unit = "COLUMN",
     .help = "of clicks in csv: the column of the label, 0 or 1, or a comparison, "
             "rating>=4; else label"},
    {.name = "dense",
     .type = STI_OPTION_LIST,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(dense),
     .unit = "COLUMN[,COLUMN...]",
     .help = "of clicks: columns that are numbers, or none; of libsvm features and of "
             "libffm fields, 1-13; else of csv I1, I2 and so on"},
    {.name = "categorical",
     .type = STI_OPTION_LIST,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(categorical),
     .unit = "COLUMN[,COLUMN...]",
     .help = "of clicks in csv: columns that are ids, or none; else all others"},
    {.name = "bags",
     .type = STI_OPTION_LIST,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(bags),
     .unit = "COLUMN[,COLUMN...]",
     .help =
         "of clicks in csv: columns of several ids, apart by | or blanks, whose rows "
         "are summed"},
    {.name = "min_count",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 1e9),
     .default_text = "1",
     AT(min_count),
     .unit = "N",
     .help =
         "of clicks: ids that the training part has less often share a row of their "
         "field"},
    {.name = "hash",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 1e15),
     .default_text = "0",
     AT(hash),
     .unit = "N",
     .help = "of clicks: ids are folded to so many a field; 0: they stay"},
};

static const char *const formats[] = {"auto", "folder", "tar",    "idx",    "cifar",
                                      "text", "csv",    "criteo", "libsvm", "libffm"};

const char *sti_data_format_name(int format)
{
    return formats[format];
}

const char *sti_recipe_format(const stint_recipe *recipe)
{
    return sti_data_format_name(sti_data_section_of(recipe)->format);
}

stint_data_fit sti_recipe_fit(const stint_recipe *recipe)
{
    return (stint_data_fit)(sti_data_section_of(recipe)->fit + 1);
}

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_data_values *data = sti_data_section_of(recipe);
    if (data->channels == 2)
        sti_complain(list, "data.channels: 2 is neither grey (1) nor colour (3)");
    if (data->size > 0 && data->crop_pad >= data->size)
        sti_complain(list,
                     "data.crop_pad: %" PRId64 " pixels would shift images of "
                     "data.size %" PRId64 " out of sight; use less than the size",
                     data->crop_pad, data->size);
}

const sti_recipe_section sti_data_section = {
    STI_RECIPE_SECTION("data", rows, sti_data_values),
    .check = check,
};

const sti_data_values *sti_data_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_data_section);
}
