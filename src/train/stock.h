/* Recipes that are built in (recipes/ of the source), and which of them suits some
 * data. */
#ifndef STI_TRAIN_STOCK_H
#define STI_TRAIN_STOCK_H

#include "base/recipe.h"
#include "data/data_section.h"

typedef struct sti_stock_recipe {
    const char *name; /* "cifar10-resnet20" */
    const char *text; /* the file */
} sti_stock_recipe;

/* By name; the last row is {NULL, NULL}. */
extern const sti_stock_recipe sti_stock_recipes[];

typedef struct sti_stock_choice {
    const char *name; /* static */
    char data[160];   /* what is there: "20,160 grey images of 32 x 32 in 36 classes" */
    int64_t images;   /* to train on; 0: text */
} sti_stock_choice;

/* Look at data->path, and at its other keys as far as they decide what is there:
 *
 *   text                                        shakespeare-small
 *   images of at most 36 pixels a side, colour  cifar10-resnet20
 *   grey, 28 x 28                               mnist-lenet5
 *   grey, any other size up to 36               glyphs-resnet8
 *   larger, or of more than one size            photos-resnet18
 *
 * where data->size, if given, is the size. Headers are read, no pixels. STINT_E_INPUT:
 * neither images nor text, no training images; STINT_E_IO; STINT_E_MEMORY. */
stint_status sti_stock_choose(const sti_data_values *data, sti_stock_choice *choice);

/* The recipe that was chosen, whose name its runs have. Where there are fewer images
 * than its batch, that is made as small, and the learning rate with it. The caller
 * destroys it. Its data.path means nothing: say where the data lies. STINT_E_BUG: no
 * such recipe; STINT_E_MEMORY. */
stint_status sti_stock_load(const sti_stock_choice *choice, stint_recipe **recipe_out);

#endif
