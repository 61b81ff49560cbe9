#include "train/stock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "data/corpus.h"
#include "data/data.h"
#include "train/optimizer_section.h"
#include "train/train_section.h"

/* Networks for small images take these; the large stem begins further up. */
#define SMALL_SIDE 36

/* ---- what is there ---- */

static const char *format_of(const sti_data_values *data)
{
    return sti_data_format_name(data->format);
}

static bool has_images(const sti_data_values *data)
{
    return sti_data_has_part(data->path, format_of(data), STINT_DATA_TRAIN,
                             data->nested) ||
           sti_data_has_part(data->path, format_of(data), STINT_DATA_TEST,
                             data->nested);
}

static stint_status open_images(const sti_data_values *data, stint_data **images_out)
{
    const stint_data_desc desc = {.path = data->path,
                                  .split = STINT_DATA_TRAIN,
                                  .format = format_of(data),
                                  .size = data->size,
                                  .channels = (int)data->channels,
                                  .nested = data->nested,
                                  .quiet = true}; /* the run will tell */
    return stint_data_open(&desc, images_out);
}

static const char *name_for(const stint_data_info *info, bool mixed)
{
    if (mixed || info->width > SMALL_SIDE || info->height > SMALL_SIDE)
        return "photos-resnet18";
    if (info->channels == 3)
        return "cifar10-resnet20";
    return info->width == 28 && info->height == 28 ? "mnist-lenet5" : "glyphs-resnet8";
}

static stint_status choose_for_images(const sti_data_values *data,
                                      sti_stock_choice *choice)
{
    stint_data *images = NULL;
    bool mixed = false;
    stint_status st = open_images(data, &images);
    if (st == STINT_OK && data->size == 0)
        st = sti_data_find_mixed(images, &mixed);
    if (st != STINT_OK) {
        stint_data_close(images);
        return st;
    }
    const stint_data_info *info = stint_data_describe(images);
    char size[64] = "of mixed sizes";
    if (!mixed)
        snprintf(size, sizeof size, "of %" PRId64 " x %" PRId64, info->width,
                 info->height);
    choice->name = name_for(info, mixed);
    choice->images = info->count;
    snprintf(choice->data, sizeof choice->data, "%s %s image%s %s in %d class%s",
             sti_count_text(info->count), info->channels == 3 ? "colour" : "grey",
             sti_s(info->count), size, info->classes, info->classes == 1 ? "" : "es");
    stint_data_close(images);
    return STINT_OK;
}

stint_status sti_stock_choose(const sti_data_values *data, sti_stock_choice *choice)
{
    const char *format = format_of(data);
    const bool unknown = strcmp(format, "auto") == 0 && !has_images(data);
    if (strcmp(format, "text") == 0 || (unknown && sti_corpus_is_text(data->path))) {
        choice->name = "shakespeare-small";
        choice->images = 0;
        snprintf(choice->data, sizeof choice->data, "text");
        return STINT_OK;
    }
    stint_status st = choose_for_images(data, choice);
    if (st == STINT_E_INPUT && unknown)
        return sti_fail(st, "%s; or, for text, a file or a folder with *.txt",
                        stint_last_error());
    return st;
}

/* ---- the recipe ---- */

/* Whole shards of at least one image each, as many as there are. */
static void shrink_batch(stint_recipe *recipe, int64_t images)
{
    sti_train_values *train = sti_recipe_edit(recipe, &sti_train_section);
    sti_optimizer_values *optimizer = sti_recipe_edit(recipe, &sti_optimizer_section);
    const int64_t batch = train->batch;
    if (images >= batch)
        return;
    if (train->shards > images)
        train->shards = images;
    train->batch = images / train->shards * train->shards;
    optimizer->lr *= (double)train->batch / (double)batch;
}

stint_status sti_stock_load(const sti_stock_choice *choice, stint_recipe **recipe_out)
{
    const sti_stock_recipe *stock = sti_stock_recipes;
    while (stock->name && strcmp(stock->name, choice->name) != 0)
        stock++;
    if (!stock->name)
        return sti_fail(STINT_E_BUG, "%s: no recipe of that name is built in",
                        choice->name);
    stint_status st = sti_recipe_parse(stock->text, stock->name, recipe_out);
    if (st != STINT_OK)
        return st;
    stint_recipe *recipe = *recipe_out;
    if (choice->images > 0)
        shrink_batch(recipe, choice->images);
    recipe->path = sti_arena_printf(recipe->arena, "%s.ini", stock->name);
    if (recipe->path)
        return STINT_OK;
    stint_recipe_destroy(recipe);
    return STINT_E_MEMORY;
}
