/* The recipe of a fine-tuning: what is the model's, and defaults for the rest. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "exchange/imported.h"
#include "exchange/start.h"
#include "model/network_recipe.h"
#include "store/hf_folder.h"
#include "store/model_file.h"
#include "store/text_model_file.h"
#include "store/timm_folder.h"
#include "train/finetune.h"
#include "train/recipe_view.h"

/* Small steps from what is there already; norms stay as they are. */
static const char *const common[][2] = {
    {"train.freeze_norm", "true"},   {"train.batch", "32"},
    {"train.reference_batch", "32"}, {"train.epochs", "3"},
    {"update.keep", "auto"},         {"schedule.name", "cosine"}};
static const char *const of_images[][2] = {{"optimizer.name", "sgd"},
                                           {"optimizer.lr", "0.02"},
                                           {"optimizer.momentum", "0.9"},
                                           {"update.fold_norm", "true"},
                                           {"optimizer.weight_decay", "0"}};
static const char *const of_text[][2] = {
    {"train.freeze_norm", "false"}, {"train.batch", "8"},
    {"train.reference_batch", "8"}, {"optimizer.name", "adamw"},
    {"optimizer.lr", "3e-4"},       {"optimizer.weight_decay", "0"}};

static stint_status set_all(stint_recipe *recipe, const char *const (*rows)[2],
                            size_t count)
{
    stint_status st = STINT_OK;
    for (size_t i = 0; i < count && st == STINT_OK; i++)
        st = stint_recipe_set(recipe, rows[i][0], rows[i][1]);
    return st;
}

#define SET_ALL(recipe, rows) set_all(recipe, rows, sizeof(rows) / sizeof *(rows))

static stint_status set_number(stint_recipe *recipe, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return stint_recipe_set(recipe, key, text);
}

/* How images become what the network takes; where they lie, and which of them are held
 * out, is another training's. */
static bool is_of_images(const char *key)
{
    static const char *const keys[] = {"size", "channels", "crop_pad",
                                       "flip", "fit",      "scale_crop"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* Values of [model], and of [data] what images are made with. */
static stint_status take_values(const stint_recipe *from, stint_recipe *to)
{
    stint_status st = STINT_OK;
    for (int i = 0; i < from->set.count && st == STINT_OK; i++) {
        const sti_option *row = &from->set.rows[i];
        sti_text value = {0};
        char key[128];
        if (strcmp(row->section, "model") != 0 &&
            !(strcmp(row->section, "data") == 0 && is_of_images(row->name)))
            continue;
        snprintf(key, sizeof key, "%s.%s", row->section, row->name);
        sti_options_value(&from->set, i, &value);
        st = value.failed ? STINT_E_MEMORY
                          : stint_recipe_set(to, key, value.data ? value.data : "");
        sti_text_fini(&value);
    }
    return st;
}

static stint_status take_images(const stint_model_file *m, stint_recipe *recipe)
{
    stint_status st = SET_ALL(recipe, common);
    if (st == STINT_OK)
        st = SET_ALL(recipe, of_images);
    if (st == STINT_OK && m->network.height == m->network.width)
        st = set_number(recipe, "data.size", m->network.height);
    return st == STINT_OK ? set_number(recipe, "data.channels", m->network.channels)
                          : st;
}

static stint_status take_text(const char *family, const stint_text_model_desc *m,
                              int64_t context, stint_recipe *recipe)
{
    stint_status st;
    STI_TRY(SET_ALL(recipe, common));
    STI_TRY(SET_ALL(recipe, of_text));
    STI_TRY(stint_recipe_set(recipe, "model.name", family));
    STI_TRY(set_number(recipe, "model.depth", m->depth));
    STI_TRY(set_number(recipe, "model.width", m->width));
    STI_TRY(set_number(recipe, "model.heads", m->heads));
    STI_TRY(set_number(recipe, "model.kv_heads", m->kv_heads));
    STI_TRY(set_number(recipe, "model.context", context));
    STI_TRY(set_number(recipe, "model.vocabulary", m->vocabulary));
out:
    return st;
}

static stint_status of_file(const char *path, stint_recipe *recipe)
{
    stint_model_file *m = NULL;
    stint_status st;
    STI_TRY(sti_model_open_for("finetune", path, &m));
    STI_TRY(take_values(m->recipe, recipe));
    if (m->network.context)
        STI_TRY(
            take_text(m->network.name, &m->network.text, m->network.context, recipe));
    else
        STI_TRY(take_images(m, recipe));
    STI_TRY(stint_recipe_set(recipe, "train.start", sti_tensor_file_path(m->file)));
out:
    stint_model_close(m);
    return st;
}

/* ---- imported networks ---- */

static stint_status of_imported(const char *path, stint_recipe *recipe)
{
    stint_model_file *m = NULL;
    stint_status st;
    STI_TRY(sti_imported_start(path, &m));
    STI_TRY(take_images(m, recipe));
    STI_TRY(stint_recipe_set(recipe, "model.name", STI_MODEL_IMPORTED));
    STI_TRY(stint_recipe_set(recipe, "train.start", sti_tensor_file_path(m->file)));
out:
    stint_model_close(m);
    return st;
}

/* What the recipe and the stock say of a network is not looked at, and the pictures are
 * those of the file. */
static stint_status take_imported(const stint_model_file *m, bool stock,
                                  stint_recipe *recipe)
{
    static const char *const of_network[][2] = {{"model.name", STI_MODEL_IMPORTED},
                                                {"model.stem", "auto"},
                                                {"model.width", "0"},
                                                {"model.depth", "0"},
                                                {"model.dropout", "-1"}};
    const sti_data_values *data = sti_data_section_of(recipe);
    stint_status st = SET_ALL(recipe, of_network);
    if (st == STINT_OK && (stock || data->size == 0) &&
        m->network.height == m->network.width)
        st = set_number(recipe, "data.size", m->network.height);
    if (st == STINT_OK && (stock || data->channels == 0))
        st = set_number(recipe, "data.channels", m->network.channels);
    return st;
}

static bool is_named(const stint_recipe *recipe)
{
    for (int i = 0; i < recipe->set.count; i++)
        if (strcmp(recipe->set.rows[i].section, "model") == 0 &&
            strcmp(recipe->set.rows[i].name, "name") == 0)
            return recipe->set.origin[i] != STI_FROM_DEFAULT;
    return false;
}

stint_status sti_recipe_take_imported(bool stock, stint_recipe *recipe)
{
    const char *start = sti_train_section_of(recipe)->start;
    stint_model_file *m = NULL;
    if (!start || !sti_imported_is_model(start))
        return STINT_OK;
    if (!stock && is_named(recipe) && !sti_recipe_is_imported(recipe))
        return sti_fail(STINT_E_USAGE,
                        "train.start: %s is an imported network, and model.name is %s; "
                        "set it to " STI_MODEL_IMPORTED ", or leave it out",
                        start, sti_recipe_network(recipe));
    stint_status st = sti_imported_start(start, &m);
    if (st == STINT_OK)
        st = take_imported(m, stock, recipe);
    stint_model_close(m);
    return st;
}

static stint_status of_folder(const char *path, stint_recipe *recipe)
{
    stint_text_model *m = NULL;
    stint_text_model_facts f;
    stint_status st;
    STI_TRY(stint_text_model_open(path, &m));
    stint_text_model_describe(m, &f);
    STI_TRY(take_text(f.family, &f.sizes, f.context, recipe));
    STI_TRY(stint_recipe_set(recipe, "train.start", path));
out:
    stint_text_model_close(m);
    return st;
}

static stint_status of_timm(const char *path, stint_recipe *recipe)
{
    sti_timm_config c = {.network = NULL};
    stint_status st;
    STI_TRY(sti_timm_folder_config(path, &c));
    STI_TRY(SET_ALL(recipe, common));
    STI_TRY(SET_ALL(recipe, of_images));
    STI_TRY(stint_recipe_set(recipe, "model.name", c.network));
    STI_TRY(set_number(recipe, "data.size", c.height));
    STI_TRY(set_number(recipe, "data.channels", c.channels));
    STI_TRY(stint_recipe_set(recipe, "train.start", path));
out:
    sti_timm_config_fini(&c);
    return st;
}

/* runs/<network>-tuned, which --out replaces. */
static stint_status name_out(stint_recipe *recipe)
{
    char out[256];
    snprintf(out, sizeof out, "runs/%s-tuned", sti_recipe_network(recipe));
    return stint_recipe_set(recipe, "run.out", out);
}

stint_status stint_finetune_recipe(const char *model_path, stint_recipe **recipe_out)
{
    stint_recipe *recipe = NULL;
    stint_status st = stint_recipe_create(&recipe);
    if (st == STINT_OK)
        st = sti_timm_folder_is(model_path)      ? of_timm(model_path, recipe)
             : sti_hf_folder_is(model_path)      ? of_folder(model_path, recipe)
             : sti_imported_is_model(model_path) ? of_imported(model_path, recipe)
                                                 : of_file(model_path, recipe);
    if (st == STINT_OK)
        st = name_out(recipe);
    if (st != STINT_OK) {
        stint_recipe_destroy(recipe);
        return st;
    }
    *recipe_out = recipe;
    return STINT_OK;
}

/* ---- a folder's tensors as a file of ours ---- */

static stint_status write_start(const char *folder, const char *path)
{
    stint_text_model *m = NULL;
    if (sti_timm_folder_is(folder))
        return sti_timm_import(folder, path);
    const stint_status st = stint_text_model_open(folder, &m);
    const stint_status written = st == STINT_OK ? stint_text_model_write(m, path) : st;
    stint_text_model_close(m);
    return written;
}

/* Written anew where there is one: the folder may have changed. */
static stint_status write_draft(const char *folder, sti_finetune_draft *draft,
                                stint_recipe *recipe)
{
    const char *out = sti_run_section_of(recipe)->out;
    const char *place = out ? sti_path_absolute(draft->arena, out) : NULL;
    const char *kept =
        place ? sti_path_join(draft->arena, place, "start.safetensors") : NULL;
    const char *other =
        place ? sti_path_join(draft->arena, place, "start.new.safetensors") : NULL;
    if (!kept || !other)
        return STINT_E_MEMORY;
    const bool there = sti_path_is_dir(place);
    stint_status st = sti_dir_create(place);
    if (st != STINT_OK)
        return st;
    draft->kept = kept;
    draft->path = sti_path_is_file(kept) ? other : kept;
    draft->out = place;
    draft->made_out = !there;
    st = write_start(folder, draft->path);
    return st == STINT_OK ? stint_recipe_set(recipe, "train.start", draft->path) : st;
}

stint_status sti_finetune_draft_keep(sti_finetune_draft *draft, stint_recipe *recipe)
{
    if (!draft->path)
        return STINT_OK;
    if (draft->path != draft->kept && rename(draft->path, draft->kept) != 0)
        return sti_fail_errno("%s: cannot be made of %s", draft->kept, draft->path);
    draft->path = NULL;
    return stint_recipe_set(recipe, "train.start", draft->kept);
}

void sti_finetune_draft_fini(sti_finetune_draft *draft)
{
    if (draft->path) {
        unlink(draft->path);
        if (draft->made_out)
            rmdir(draft->out); /* (if nothing else is in it) */
    }
    sti_arena_destroy(draft->arena);
    *draft = (sti_finetune_draft){.path = NULL};
}

/* The model that is begun with is never replaced, not by --force either. */
static stint_status check_out(const stint_recipe *recipe, sti_arena *arena)
{
    const char *start = sti_train_section_of(recipe)->start;
    const char *out = sti_run_section_of(recipe)->out;
    const char *place = out ? sti_path_absolute(arena, out) : NULL;
    const char *path = place ? sti_path_join(arena, place, "model.safetensors") : NULL;
    if (!path)
        return STINT_E_MEMORY;
    if (sti_path_is_same(start, path))
        return sti_fail(STINT_E_USAGE,
                        "%s would be written over by its own answer; choose another "
                        "folder by --out",
                        start);
    return STINT_OK;
}

/* A run that lies there is neither searched for again nor given another beginning, only
 * to be refused. */
static stint_status check_free(const stint_recipe *recipe, sti_arena *arena)
{
    const char *out = sti_run_section_of(recipe)->out;
    const char *place = out ? sti_path_absolute(arena, out) : NULL;
    const char *model = place ? sti_path_join(arena, place, "model.safetensors") : NULL;
    const char *log = place ? sti_path_join(arena, place, "log.jsonl") : NULL;
    if (!model || !log)
        return STINT_E_MEMORY;
    return sti_path_is_file(model) || sti_path_is_file(log)
               ? sti_fail(STINT_E_USAGE,
                          "%s holds a run already; go on with it by --resume, replace "
                          "it by --force, or choose another folder by --out",
                          place)
               : STINT_OK;
}

/* A list says by itself that it is what is trained. */
static stint_status follow_list(stint_recipe *recipe)
{
    const sti_update_values *update = sti_update_section_of(recipe);
    return update->tensors && update->what == STI_UPDATE_FULL
               ? stint_recipe_set(recipe, "update.what", "tensors")
               : STINT_OK;
}

stint_status sti_finetune_ready(const stint_recipe *recipe, bool beside,
                                sti_finetune_draft *draft, stint_recipe **ready_out)
{
    const sti_recipe_view v = sti_recipe_view_of(recipe);
    stint_recipe *ready = NULL;
    stint_status st;
    *draft = (sti_finetune_draft){.arena = sti_arena_create("finetune")};
    if (!draft->arena)
        return STINT_E_MEMORY;
    if (!v.train->start)
        STI_TRY(
            sti_fail(STINT_E_USAGE, "finetune: no model to begin from (train.start)"));
    if (!v.data->path || !*v.data->path)
        STI_TRY(sti_fail(STINT_E_USAGE,
                         "data.path: no data given; say where they are with --data "
                         "PATH: images in folders of classes, or text, as the model "
                         "takes"));
    STI_TRY(sti_recipe_copy(recipe, &ready));
    STI_TRY(follow_list(ready));
    STI_TRY(stint_recipe_check(ready));
    STI_TRY(check_out(ready, draft->arena));
    if (!beside)
        STI_TRY(check_free(ready, draft->arena));
    if (sti_hf_folder_is(v.train->start))
        STI_TRY(write_draft(v.train->start, draft, ready));
    *ready_out = ready;
    ready = NULL;
out:
    stint_recipe_destroy(ready);
    return st;
}
