#include "cli/cli_stock.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/shown.h"
#include "data/corpus.h"
#include "train/stock.h"

/* A folder of data is easily given for the recipe. */
static stint_status refuse_data(const char *path)
{
    const bool images = stint_data_has_split(path, NULL, STINT_DATA_TRAIN) ||
                        stint_data_has_split(path, NULL, STINT_DATA_TEST);
    const char *inside = images ? "images" : sti_corpus_is_text(path) ? "text" : NULL;
    if (!inside)
        return STINT_OK;
    return sti_fail(
        STINT_E_IO,
        "%s: is a folder, the file of a recipe is wanted; it holds %s: give "
        "it by --data %s",
        path, inside, path);
}

static stint_status load_file(sti_cli_call *call)
{
    const char *path = call->operands[0];
    char *run = sti_arena_printf(call->arena, "%s/recipe.ini", path);
    if (!run)
        return STINT_E_MEMORY;
    if (sti_path_is_dir(path) && !sti_path_is_file(run)) {
        const stint_status status = refuse_data(path);
        if (status != STINT_OK)
            return status;
    }
    call->recipe_name = path;
    return stint_recipe_load(path, &call->recipe);
}

static stint_status choose(sti_cli_call *call)
{
    const stint_recipe given = {.table = sti_recipe_table_get(), .set = call->set};
    const sti_data_values *data = sti_data_section_of(&given);
    sti_stock_choice choice;
    if (!data->path)
        return sti_fail(STINT_E_USAGE,
                        "wants RECIPE, or --data PATH to choose one by, for example:"
                        "\n    %.*s",
                        (int)strcspn(call->command->example, "\n"),
                        call->command->example);
    stint_status status = sti_stock_choose(data, &choice);
    if (status != STINT_OK)
        return status;
    call->recipe_name = choice.name;
    call->recipe_for = sti_arena_strdup(call->arena, choice.data);
    return call->recipe_for ? sti_stock_load(&choice, &call->recipe) : STINT_E_MEMORY;
}

static stint_status load_model(sti_cli_call *call)
{
    call->recipe_name = call->operands[0];
    return call->command->of_model(call->operands[0], &call->recipe);
}

stint_status sti_cli_open_recipe(sti_cli_call *call)
{
    if (call->command->of_model)
        return load_model(call);
    return call->operand_count > 0 ? load_file(call) : choose(call);
}

/* "model.name = resnet18, data.size = 224": what the recipe itself sets. */
static void add_keys(const stint_recipe *recipe, sti_text *out)
{
    for (int i = 0; i < recipe->set.count; i++) {
        const sti_option *row = &recipe->set.rows[i];
        if (recipe->set.origin[i] != STI_FROM_RECIPE)
            continue;
        sti_text_printf(out, "%s%s.%s = ", out->length ? ", " : "", row->section,
                        row->name);
        sti_options_value(&recipe->set, i, out);
    }
}

void sti_cli_say_recipe(const sti_cli_call *call)
{
    sti_text keys = {0}, filled = {0};
    if (!call->recipe_for || call->common->quiet)
        return;
    add_keys(call->recipe, &keys);
    sti_text_add(&filled, "  ");
    sti_text_add_filled(&filled, keys.data ? keys.data : "", 2, 2, sti_cli_width());
    fprintf(stderr, "%s: recipe %s (built in), with\n%s", sti_shown(call->recipe_for),
            call->recipe_name, filled.data ? filled.data : "");
    sti_text_fini(&filled);
    sti_text_fini(&keys);
}
