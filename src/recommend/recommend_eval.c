/* A trained model over data of any kind that it can read. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/team.h"
#include "recommend/recipe_clicks.h"
#include "recommend/recommend.h"
#include "store/safetensors.h"
#include "train/train_section.h"

enum { DEPTH = 2 };
#define CACHE_BYTES ((size_t)1 << 30)

typedef struct evaluation {
    sti_recommend_model model;
    sti_clicks clicks;
    stint_click_model_desc sizes;
    sti_scorer scorer;
    sti_row_store *store;
    int64_t batch, parts;
} evaluation;

/* The data as ranks of the model: the very file that it was trained on, or text whose
 * ids are looked up in the model's. */
static stint_status open_data(evaluation *e, const stint_embed_eval_desc *d)
{
    const char *path = d->data;
    sti_clicks_counted counted;
    sti_clicks_desc desc;
    stint_status st;
    if (!path)
        return sti_fail(STINT_E_USAGE,
                        "say which clicks: --data FILE; a model does not "
                        "keep where those are that it was trained on");
    if (sti_clicks_is_ranks(path)) {
        STI_TRY(sti_clicks_open(path, &e->clicks));
        if (strcmp(e->clicks.sha256, e->model.ids.sha256) != 0)
            return sti_fail(
                STINT_E_INPUT,
                "%s: are ranks of other data than the model was trained on; "
                "give the text itself",
                path);
        return STINT_OK;
    }
    STI_TRY(sti_recipe_clicks(e->model.recipe, path, &desc));
    desc.like = &e->model.ids;
    desc.unlabelled = d->unlabelled;
    STI_TRY(sti_clicks_rank(&desc, NULL, &counted));
    STI_TRY(sti_clicks_open(counted.path, &e->clicks));
out:
    return st;
}

static stint_status open_model(evaluation *e, const stint_embed_eval_desc *d)
{
    const sti_train_values *t = sti_train_section_of(e->model.recipe);
    int threads = 0;
    stint_status st;
    STI_TRY(sti_threads_choose(d->threads, &threads, NULL));
    STI_TRY(sti_learner_model(e->model.recipe, &e->sizes));
    e->parts = t->shards;
    e->batch = t->batch;
    STI_TRY(sti_scorer_open(&e->sizes, &e->clicks, e->batch, e->parts, threads,
                            &e->scorer));
    STI_TRY(stint_use_load(e->scorer.use, e->model.file));
    if (e->clicks.fields == 0)
        return STINT_OK;
    const int64_t most = e->batch * (e->clicks.slots > 0 ? e->clicks.slots : 1);
    STI_TRY(sti_recommend_rows_open(
        &e->model,
        &(sti_row_store_desc){
            .entries = (int64_t)(d->cache_bytes ? d->cache_bytes : CACHE_BYTES),
            .hot = 0.5,
            .policy = STI_CACHE_STATIC,
            .depth = DEPTH,
            .most = most},
        &e->store));
out:
    return st;
}

static void choose_samples(const evaluation *e, stint_embed_split split, int64_t *first,
                           int64_t *count)
{
    const int64_t n = e->clicks.samples, train = e->clicks.train;
    *first = split == STINT_EMBED_TEST ? train : 0;
    *count = split == STINT_EMBED_TRAIN ? train : n - *first;
}

static void fini(evaluation *e)
{
    sti_scorer_close(&e->scorer);
    sti_row_store_close(e->store);
    if (e->clicks.arena)
        sti_clicks_close(&e->clicks);
    sti_recommend_model_close(&e->model);
}

stint_status stint_embed_eval(const char *model, const stint_embed_eval_desc *desc,
                              stint_embed_scores *scores_out)
{
    evaluation e = {.clicks = {.fd = -1}, .model = {.ids = {.fd = -1}}};
    int64_t first = 0, count = 0;
    stint_status st = sti_recommend_model_open(model, &e.model);
    if (st == STINT_OK)
        st = open_data(&e, desc);
    if (st == STINT_OK)
        st = open_model(&e, desc);
    if (st == STINT_OK) {
        choose_samples(&e, desc->split, &first, &count);
        st = sti_scorer_run(&e.scorer, e.store, DEPTH + 1, first, count, desc,
                            scores_out);
    }
    fini(&e);
    return st;
}

/* ---- export ---- */

typedef struct export
{
    sti_recommend_model model;
    sti_row_store *store;
    sti_writer *writer;
    size_t row_bytes;
    int64_t text_bytes; /* of all ids */
}
export;

static stint_status add_rows(void *user, int64_t first, int64_t count,
                             const void *records, int64_t record_bytes)
{
    export *x = user;
    stint_status st = STINT_OK;
    (void)first;
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        st = sti_writer_add(x->writer, (const char *)records + i * record_bytes,
                            x->row_bytes);
    return st;
}

/* The field whose row of rare ids this is. */
static int other_of(const sti_clicks *ids, int64_t rank)
{
    for (int f = 0; f < ids->fields; f++)
        if (ids->field[f].other == rank)
            return f;
    return 0;
}

static stint_status add_field(void *user, int64_t rank, int field, const char *id,
                              size_t length)
{
    export *x = user;
    const int32_t value = field < 0 ? -1 - other_of(&x->model.ids, rank) : field;
    (void)id;
    (void)length;
    return sti_writer_add(x->writer, &value, sizeof value);
}

static stint_status add_start(void *user, int64_t rank, int field, const char *id,
                              size_t length)
{
    export *x = user;
    (void)rank;
    (void)field;
    (void)id;
    x->text_bytes += (int64_t)length;
    return x->writer ? sti_writer_add(x->writer, &x->text_bytes, sizeof x->text_bytes)
                     : STINT_OK;
}

static stint_status add_text(void *user, int64_t rank, int field, const char *id,
                             size_t length)
{
    export *x = user;
    (void)rank;
    (void)field;
    return sti_writer_add(x->writer, id, length);
}

static stint_status fill(void *user, const sti_tensor_row *row, sti_writer *writer)
{
    export *x = user;
    const int64_t zero = 0;
    x->writer = writer;
    if (strcmp(row->name, "embeddings") == 0)
        return sti_row_store_each(x->store, add_rows, x);
    if (strcmp(row->name, "field") == 0)
        return sti_clicks_each_id(&x->model.ids, add_field, x);
    if (strcmp(row->name, "ids") == 0)
        return sti_clicks_each_id(&x->model.ids, add_text, x);
    x->text_bytes = 0;
    const stint_status st = sti_writer_add(writer, &zero, sizeof zero);
    return st == STINT_OK ? sti_clicks_each_id(&x->model.ids, add_start, x) : st;
}

static stint_status write_export(export *x, int64_t width, const char *path)
{
    const int64_t rows = x->model.ids.rows;
    sti_text names = {0};
    for (int f = 0; f < x->model.ids.fields; f++)
        sti_text_printf(&names, "%s%s", f ? "\n" : "", x->model.ids.field[f].name);
    const sti_tensor_row tensors[] = {{.name = "embeddings",
                                       .type = STI_TENSOR_F32,
                                       .rank = 2,
                                       .dim = {rows, width},
                                       .bytes = (size_t)rows * x->row_bytes},
                                      {.name = "field",
                                       .type = STI_TENSOR_I32,
                                       .rank = 1,
                                       .dim = {rows},
                                       .bytes = 4 * (size_t)rows},
                                      {.name = "id_start",
                                       .type = STI_TENSOR_I64,
                                       .rank = 1,
                                       .dim = {rows + 1},
                                       .bytes = 8 * (size_t)(rows + 1)},
                                      {.name = "ids",
                                       .type = STI_TENSOR_U8,
                                       .rank = 1,
                                       .dim = {x->text_bytes},
                                       .bytes = (size_t)x->text_bytes}};
    const sti_tensor_text texts[] = {{"fields", names.data ? names.data : ""},
                                     {"weights_sha256", x->model.sha256}};
    const stint_status st =
        sti_tensor_file_write_made(path, tensors, 4, texts, 2, fill, x);
    sti_text_fini(&names);
    return st;
}

stint_status stint_embed_export(const char *model, const char *path)
{
    export x = {.model = {.ids = {.fd = -1}}};
    stint_click_model_desc sizes;
    stint_status st;
    STI_TRY(sti_recommend_model_open(model, &x.model));
    STI_TRY(sti_learner_model(x.model.recipe, &sizes));
    x.row_bytes = 4 * (size_t)sizes.width;
    STI_TRY(sti_recommend_rows_open(
        &x.model,
        &(sti_row_store_desc){
            .entries = 1 << 23, .policy = STI_CACHE_STATIC, .depth = 1, .most = 64},
        &x.store));
    STI_TRY(sti_clicks_each_id(&x.model.ids, add_start, &x));
    STI_TRY(write_export(&x, sizes.width, path));
out:
    sti_row_store_close(x.store);
    sti_recommend_model_close(&x.model);
    return st;
}
