/* Checkpoints and models of recommendation models.
 *
 * Order of a checkpoint: rows are flushed and synced, then the dense part's file names
 * the next generation and takes its place, which is the commit; then the journal of
 * that generation begins. A stop between any two of these leaves a table that can be
 * taken back to what the newest dense file names. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "base/file.h"
#include "recommend/recommend.h"
#include "store/checkpoint_file.h"
#include "store/safetensors.h"
#include "train/run_section.h"
#include "train/train_section.h"

typedef struct place {
    int64_t generation, steps;
    double trail[STI_EMBED_TRAIL];
} place;

static stint_status write_dense(sti_recommend *r, const char *path, bool model,
                                int64_t generation, const char *sha256)
{
    place at = {.generation = generation,
                .steps = stint_session_steps(r->learner.session)};
    sti_text recipe = {0};
    char ranks[16];
    stint_status st = sti_recipe_write(r->recipe, model, &recipe);
    if (st != STINT_OK)
        return st;
    memcpy(at.trail, r->trail, sizeof at.trail);
    const stint_session_blob blob = {
        .name = STI_EMBED_BLOB_PLACE, .bytes = sizeof at, .data = &at};
    const stint_session_text texts[] = {{STI_EMBED_META_DATA, r->learner.clicks.sha256},
                                        {STI_EMBED_META_RECIPE, recipe.data},
                                        {STI_EMBED_META_WEIGHTS, sha256},
                                        {STI_EMBED_META_TABLE, r->table},
                                        {STI_EMBED_META_RANKS, ranks}};
    snprintf(ranks, sizeof ranks, "%d", sti_recommend_ranks(r));
    st = stint_session_save(r->learner.session, path, model, &blob, model ? 0 : 1,
                            texts, model ? 4 : 5);
    sti_text_fini(&recipe);
    return st;
}

/* Numbers and ids without a sample: what other data is read by. */
static stint_status write_ids(const sti_recommend *r)
{
    char path[1200];
    snprintf(path, sizeof path, "%.1000s/ids.ranks", r->table);
    return r->learner.clicks.fields > 0 ? sti_clicks_write_ids(&r->learner.clicks, path)
                                        : STINT_OK;
}

static void count_bytes(sti_recommend *r, const char *path)
{
    struct stat now;
    if (stat(path, &now) == 0)
        r->checkpoint_bytes += now.st_size;
}

stint_status sti_recommend_save(sti_recommend *r)
{
    const int64_t keep = sti_run_section_of(r->recipe)->keep;
    const int64_t step = stint_session_steps(r->learner.session);
    char name[STI_CHECKPOINT_NAME_BYTES], path[4096];
    stint_status st = STINT_OK;
    sti_checkpoint_name(step, name);
    snprintf(path, sizeof path, "%.3900s/%s", r->folder.checkpoints, name);
    if (r->learner.store)
        st = sti_row_store_flush(r->learner.store);
    STI_TRY(sti_recommend_agree(r, st)); /* all parts, before the commit */
    if (r->first) {
        st = write_dense(r, path, false, r->generation + 1, "");
        count_bytes(r, path);
    }
    STI_TRY(sti_recommend_agree(r, st));
    if (r->learner.store)
        STI_TRY(sti_row_store_commit(r->learner.store, r->generation + 1, keep));
    r->generation++;
    r->saved_step = step;
    if (r->first)
        STI_TRY(sti_checkpoint_remove_old(r->folder.checkpoints, name, keep));
out:
    return st == STINT_OK ? st : sti_fail_context(st, "writing a checkpoint");
}

stint_status sti_recommend_save_model(sti_recommend *r, const char *sha256)
{
    stint_status st = write_ids(r);
    if (st == STINT_OK)
        st = write_dense(r, r->folder.model_path, true, r->generation, sha256);
    return st;
}

/* ---- going on ---- */

/* Rows lie in as many parts as there were ranks. */
static stint_status compare_ranks(const sti_recommend *r, const sti_tensor_file *file)
{
    const char *text = sti_tensor_file_text(file, STI_EMBED_META_RANKS);
    const int was = text ? atoi(text) : 1, now = sti_recommend_ranks(r);
    return was == now
               ? STINT_OK
               : sti_fail(STINT_E_USAGE,
                          "%s: is of %d process%s, each with its part of the "
                          "rows, not of %d; go on with as many",
                          sti_tensor_file_path(file), was, was == 1 ? "" : "es", now);
}

static stint_status compare_recipes(const sti_recommend *r, const sti_tensor_file *file)
{
    const char *text = sti_tensor_file_text(file, STI_EMBED_META_RECIPE);
    const char *path = sti_tensor_file_path(file);
    stint_recipe *then = NULL;
    sti_text differences = {0};
    if (!text)
        return sti_fail(STINT_E_INPUT, "%s: is no checkpoint of clicks", path);
    stint_status st = sti_recipe_parse_stored(text, path, &then);
    if (st == STINT_OK)
        sti_recipe_differences(r->recipe, "now", then, "was", &differences);
    if (st == STINT_OK && differences.length > 0)
        st = sti_fail(STINT_E_USAGE,
                      "%s: the run cannot go on with another recipe: %s; train anew "
                      "with --force",
                      path, differences.data);
    sti_text_fini(&differences);
    stint_recipe_destroy(then);
    return st;
}

static stint_status check_file(sti_recommend *r, const char *path)
{
    sti_tensor_file *file = NULL;
    stint_status st = sti_tensor_file_open(path, &file);
    if (st == STINT_OK)
        st = compare_recipes(r, file);
    if (st == STINT_OK)
        st = compare_ranks(r, file);
    sti_tensor_file_close(file);
    return st;
}

stint_status sti_recommend_find(sti_recommend *r, const char **path_out)
{
    char **names = NULL;
    int64_t count = 0;
    stint_status st =
        sti_checkpoint_list(r->folder.arena, r->folder.checkpoints, &names, &count);
    *path_out = NULL;
    for (int64_t i = count - 1; i >= 0 && st == STINT_OK && !*path_out; i--) {
        const char *path =
            sti_path_join(r->folder.arena, r->folder.checkpoints, names[i]);
        if (!path)
            return STINT_E_MEMORY;
        const stint_status one = check_file(r, path);
        if (one == STINT_OK)
            *path_out = path;
        else if (one == STINT_E_USAGE || one == STINT_E_MEMORY || i == 0)
            return one; /* the oldest: nothing is left to go on from */
        else
            sti_log(STINT_LOG_WARNING, "passed over: %s", stint_last_error());
    }
    return st;
}

stint_status sti_recommend_load(sti_recommend *r, const char *path)
{
    place at = {0};
    const stint_session_blob blob = {
        .name = STI_EMBED_BLOB_PLACE, .bytes = sizeof at, .data = &at};
    const stint_session_text texts[] = {
        {STI_EMBED_META_DATA, r->learner.clicks.sha256}};
    stint_status st = stint_session_load(r->learner.session, path, &blob, 1, texts, 1);
    if (st != STINT_OK)
        return st;
    if (at.generation < 1 || at.steps != stint_session_steps(r->learner.session))
        return sti_fail(STINT_E_INPUT, "%s: its place does not fit its step", path);
    memcpy(r->trail, at.trail, sizeof at.trail);
    r->generation = at.generation;
    r->saved_step = at.steps;
    return STINT_OK;
}

/* ---- a model in files ---- */

static stint_status read_texts(sti_recommend_model *m)
{
    sti_tensor_file *file = NULL;
    stint_status st = sti_tensor_file_open(m->file, &file);
    if (st != STINT_OK)
        return st;
    const char *recipe = sti_tensor_file_text(file, STI_EMBED_META_RECIPE);
    const char *data = sti_tensor_file_text(file, STI_EMBED_META_DATA);
    const char *table = sti_tensor_file_text(file, STI_EMBED_META_TABLE);
    const char *sha = sti_tensor_file_text(file, STI_EMBED_META_WEIGHTS);
    if (!recipe || !data || !table)
        st = sti_fail(STINT_E_INPUT, "%s: is no model of clicks", m->file);
    if (st == STINT_OK)
        st = sti_recipe_parse_stored(recipe, m->file, &m->recipe);
    if (st == STINT_OK && !sti_path_is_dir(m->table))
        snprintf(m->table, sizeof m->table, "%s", table);
    snprintf(m->sha256, sizeof m->sha256, "%.64s", sha ? sha : "");
    sti_tensor_file_close(file);
    return st;
}

/* A run's folder, or the file in it: rows lie in embeddings/ beside the file, or where
 * training was told to put them. */
stint_status sti_recommend_model_open(const char *model, sti_recommend_model *out)
{
    char ids[1200];
    sti_recommend_model m = {.ids = {.fd = -1}};
    const bool folder = sti_path_is_dir(model);
    const size_t length =
        folder ? strlen(model) : (size_t)(sti_path_name(model) - model);
    snprintf(m.file, sizeof m.file, folder ? "%.1000s/model.safetensors" : "%.1000s",
             model);
    snprintf(m.table, sizeof m.table, "%.*s%sembeddings",
             (int)(length < 1000 ? length : 1000), model, folder ? "/" : "");
    stint_status st = read_texts(&m);
    snprintf(ids, sizeof ids, "%.1000s/ids.ranks", m.table);
    if (st == STINT_OK)
        st = sti_clicks_open(ids, &m.ids);
    if (st != STINT_OK) {
        sti_recommend_model_close(&m);
        return st;
    }
    *out = m;
    return STINT_OK;
}

void sti_recommend_model_close(sti_recommend_model *model)
{
    stint_recipe_destroy(model->recipe);
    if (model->ids.arena)
        sti_clicks_close(&model->ids);
    *model = (sti_recommend_model){.ids = {.fd = -1}};
}

stint_status sti_recommend_rows_open(const sti_recommend_model *m,
                                     const sti_row_store_desc *desc,
                                     sti_row_store **store_out)
{
    const sti_embedding_values *e = sti_embedding_section_of(m->recipe);
    char identity[160];
    stint_click_model_desc sizes;
    sti_row_store_desc d = *desc;
    stint_status st;
    STI_TRY(sti_learner_model(m->recipe, &sizes));
    STI_TRY(sti_row_layout_of(
        m->ids.rows, sizes.width,
        sti_row_state_floats((sti_row_rule)e->optimizer, sizes.width),
        sti_recipe_seed(m->recipe, STI_STREAM_INIT), (float)e->scale, &d.layout));
    sti_learner_identity(&m->ids, e->optimizer, identity);
    d.folder = m->table;
    d.identity = identity;
    d.read_only = true;
    if (d.cached == 0 || d.cached > d.layout.rows)
        d.cached = d.layout.rows;
    if (desc->entries > 0) /* memory for rows */
        d.cached = sti_row_store_fit(&d, (size_t)desc->entries);
    d.entries = 0;
    STI_TRY(sti_row_store_open(&d, store_out));
out:
    return st;
}

bool stint_embed_is_run(const char *path)
{
    char file[1100];
    sti_tensor_file *f = NULL;
    snprintf(file, sizeof file,
             sti_path_is_dir(path) ? "%.1000s/model.safetensors" : "%.1000s", path);
    if (!sti_path_is_file(file) || sti_tensor_file_open(file, &f) != STINT_OK)
        return false;
    const bool is = sti_tensor_file_text(f, STI_EMBED_META_DATA) != NULL;
    sti_tensor_file_close(f);
    return is;
}
