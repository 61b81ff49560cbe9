/* A text model written as a file of Stint or as a folder in Hugging Face's layout. A
 * tensor is held in memory at a time. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/numerics.h"
#include "base/recipe.h"
#include "data/tokenizer.h"
#include "store/model_meta.h"
#include "store/text_model_file.h"

enum {
    NAME = 160,
    SLICE = 64 /* runs read at a time when a matrix is turned */
};

/* A tensor to be written: (a part of) a parameter of the graph. */
typedef struct outgoing {
    char ours[NAME], theirs[NAME];
    int64_t k, n;         /* of the whole parameter, as the graph has it */
    int64_t first, count; /* columns of it, where a part is written */
    bool turned;          /* written [n, k] */
} outgoing;

typedef struct exporter {
    const stint_text_model *model;
    sti_weight_source source;
    bool theirs;    /* names and layouts of Hugging Face */
    outgoing *list; /* [count] */
    sti_tensor_row *rows;
    int64_t count, capacity;
    float *whole; /* the largest parameter */
    float *slice; /* SLICE runs of the largest */
    int64_t whole_floats, slice_floats;
} exporter;

/* ---- the list ---- */

static stint_status make_room(exporter *e)
{
    if (e->count < e->capacity)
        return STINT_OK;
    const int64_t capacity = e->capacity ? 2 * e->capacity : 64;
    outgoing *more =
        sti_realloc(e->list, (size_t)capacity * sizeof *more, "tensors to write");
    if (!more)
        return STINT_E_MEMORY;
    e->list = more;
    e->capacity = capacity;
    return STINT_OK;
}

static bool is_vector(const char *name)
{
    const size_t length = strlen(name);
    return length < 7 || strcmp(name + length - 7, ".weight") != 0;
}

static bool is_table(const char *name)
{
    return strncmp(name, "h.", 2) != 0;
}

static stint_status add_part(exporter *e, const outgoing *whole, int part,
                             int64_t first, int64_t count)
{
    stint_status st = make_room(e);
    if (st != STINT_OK)
        return st;
    outgoing *o = &e->list[e->count++];
    *o = *whole;
    o->first = first;
    o->count = count;
    if (!e->theirs)
        snprintf(o->theirs, sizeof o->theirs, "%s", o->ours);
    else if (!sti_hf_name(e->model->facts.family, o->ours, part, o->theirs,
                          sizeof o->theirs))
        return sti_fail(STINT_E_BUG, "'%s' has no name in this layout", o->ours);
    return STINT_OK;
}

/* One parameter, told by sti_decoder_check. */
static stint_status add_parameter(void *user, const char *name, int64_t runs,
                                  int64_t each, int64_t first, int64_t count,
                                  float *out)
{
    exporter *e = user;
    const stint_text_model_desc *m = &e->model->facts.sizes;
    const bool llama = strcmp(e->model->facts.family, "llama") == 0;
    outgoing o = {.k = runs, .n = each};
    (void)first, (void)count, (void)out;
    snprintf(o.ours, sizeof o.ours, "%s", name);
    o.turned = e->theirs && llama && !is_vector(name) && !is_table(name);
    if (runs * each > e->whole_floats)
        e->whole_floats = runs * each;
    const int64_t longest = (runs > each ? runs : each) * SLICE;
    if (longest > e->slice_floats)
        e->slice_floats = longest;
    if (!e->theirs || !llama || !strstr(name, "c_attn"))
        return add_part(e, &o, 0, 0, each);
    const int64_t queries = m->heads * m->head_size, keys = m->kv_heads * m->head_size;
    stint_status st = add_part(e, &o, 0, 0, queries);
    if (st == STINT_OK)
        st = add_part(e, &o, 1, queries, keys);
    return st == STINT_OK ? add_part(e, &o, 2, queries + keys, keys) : st;
}

static bool by_rows(void *user, const char *name)
{
    (void)user, (void)name;
    return false;
}

static sti_tensor_row row_of(const outgoing *o)
{
    sti_tensor_row row = {.name = o->theirs, .type = STI_TENSOR_F32, .rank = 2};
    row.dim[0] = o->turned ? o->count : o->k;
    row.dim[1] = o->turned ? o->k : o->count;
    row.bytes = (size_t)(row.dim[0] * row.dim[1]) * sizeof(float);
    if (is_vector(o->ours)) {
        row.rank = 1;
        row.dim[0] = row.dim[1];
        row.dim[1] = 0;
    }
    return row;
}

static stint_status list_all(exporter *e)
{
    const sti_decoder_desc desc = sti_text_model_decoder(e->model);
    const sti_weight_source visitor = {
        .user = e, .by_columns = by_rows, .read = add_parameter};
    stint_status st = sti_decoder_check(&desc, &visitor);
    if (st != STINT_OK)
        return st;
    e->rows = sti_alloc_array(e->count, sizeof *e->rows, "tensors to write");
    e->whole = sti_alloc_array(e->whole_floats, sizeof(float), "tensor");
    e->slice = sti_alloc_array(e->slice_floats, sizeof(float), "tensor");
    if (!e->rows || !e->whole || !e->slice)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < e->count; i++)
        e->rows[i] = row_of(&e->list[i]);
    return STINT_OK;
}

/* ---- tensors ---- */

/* Columns first .. first + count as they are written, from runs of the source that are
 * the columns of what is written (or the other way round). */
static stint_status turn(exporter *e, const outgoing *o, bool stored_columns)
{
    const int64_t runs = stored_columns ? o->n : o->k;
    const int64_t each = stored_columns ? o->k : o->n;
    const int64_t first = o->turned ? 0 : o->first;
    const int64_t end = o->turned ? o->k : o->first + o->count;
    stint_status st = STINT_OK;
    for (int64_t i = first, some; i < end && st == STINT_OK; i += some) {
        some = end - i < SLICE ? end - i : SLICE;
        st = e->source.read(e->source.user, o->ours, runs, each, i, some, e->slice);
        for (int64_t r = 0; r < some && st == STINT_OK; r++) {
            const float *from = e->slice + r * each + (o->turned ? o->first : 0);
            const int64_t line = i - first + r;
            const int64_t length = o->turned ? o->count : o->k;
            const int64_t stride = o->turned ? o->k : o->count;
            for (int64_t j = 0; j < length; j++)
                e->whole[j * stride + line] = from[j];
        }
    }
    return st;
}

static stint_status fill(void *user, const sti_tensor_row *row, sti_writer *writer)
{
    exporter *e = user;
    const outgoing *o = &e->list[row - e->rows];
    const bool matrix = !is_vector(o->ours) && !is_table(o->ours);
    const bool columns = matrix && e->source.by_columns(e->source.user, o->ours);
    stint_status st;
    if (columns != o->turned) {
        st = turn(e, o, columns);
    } else {
        const int64_t runs = columns ? o->n : o->k, each = columns ? o->k : o->n;
        st = e->source.read(e->source.user, o->ours, runs, each, columns ? o->first : 0,
                            columns ? o->count : runs, e->whole);
    }
    const float *from = e->whole + (is_vector(o->ours) ? o->first : 0);
    return st == STINT_OK ? sti_writer_add(writer, from, row->bytes) : st;
}

static void exporter_fini(exporter *e)
{
    sti_free(e->list);
    sti_free(e->rows);
    sti_free(e->whole);
    sti_free(e->slice);
}

static stint_status write_tensors(const stint_text_model *model, bool theirs,
                                  const char *path, const sti_tensor_text *texts,
                                  int64_t text_count)
{
    exporter e = {.model = model, .theirs = theirs};
    e.source = sti_text_model_source(model);
    stint_status st = list_all(&e);
    if (st == STINT_OK)
        st = sti_tensor_file_write_made(path, e.rows, e.count, texts, text_count, fill,
                                        &e);
    exporter_fini(&e);
    return st;
}

/* ---- a file of ours ---- */

static stint_status set_size(stint_recipe *recipe, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return stint_recipe_set(recipe, key, text);
}

static stint_status print_recipe(const stint_text_model_facts *f, sti_text *out)
{
    stint_recipe *recipe = NULL;
    const stint_text_model_desc *m = &f->sizes;
    stint_status st = stint_recipe_create(&recipe);
    if (st == STINT_OK)
        st = stint_recipe_set(recipe, "model.name", f->family);
    if (st == STINT_OK)
        st = set_size(recipe, "model.depth", m->depth);
    if (st == STINT_OK)
        st = set_size(recipe, "model.width", m->width);
    if (st == STINT_OK)
        st = set_size(recipe, "model.heads", m->heads);
    if (st == STINT_OK)
        st = set_size(recipe, "model.kv_heads", m->kv_heads);
    if (st == STINT_OK)
        st = set_size(recipe, "model.context", f->context);
    if (st == STINT_OK)
        st = set_size(recipe, "model.vocabulary", m->vocabulary);
    if (st == STINT_OK)
        st = sti_recipe_write(recipe, true, out);
    stint_recipe_destroy(recipe);
    return st;
}

stint_status stint_text_model_write(const stint_text_model *model, const char *path)
{
    const stint_text_model_facts *f = &model->facts;
    sti_meta_texts texts = {.count = 0};
    sti_text recipe = {0}, tokenizer = {0};
    stint_status st;
    STI_TRY(print_recipe(f, &recipe));
    if (f->tokenizer)
        STI_TRY(sti_tokenizer_print(f->tokenizer, &tokenizer));
    sti_meta_add(&texts, STI_META_VERSION, stint_version());
    sti_meta_add(&texts, STI_META_KIND, "model");
    sti_meta_add(&texts, STI_META_NUMERICS, STI_NUMERICS_VERSION);
    sti_meta_add(&texts, STI_META_NETWORK, f->family);
    sti_meta_add(&texts, STI_META_RECIPE, recipe.data);
    sti_meta_add_sizes(&texts, f->context, &f->sizes);
    sti_meta_add_int(&texts, STI_META_END_TOKEN, f->end_token);
    if (f->tokenizer)
        sti_meta_add(&texts, STI_META_TOKENIZER, tokenizer.data);
    STI_TRY(write_tensors(model, false, path, texts.row, texts.count));
out:
    sti_text_fini(&recipe);
    sti_text_fini(&tokenizer);
    return st;
}

/* ---- a folder of theirs ---- */

static stint_status check_theirs(const stint_text_model_facts *f)
{
    if (strcmp(f->family, "gpt") == 0 && f->sizes.kv_heads != f->sizes.heads)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "GPT-2's layout has as many heads of keys as of queries; this "
                        "model shares %" PRId64 " among %" PRId64,
                        f->sizes.kv_heads, f->sizes.heads);
    if (strcmp(f->family, "llama") == 0 && !sti_hf_config_has_class(&f->sizes))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "no family of this layout has this model's biases, normalised "
                        "heads and windows together");
    return STINT_OK;
}

static stint_status write_config(const stint_text_model_facts *f, const char *path)
{
    sti_text text = {0};
    const sti_hf_config config = {.name = f->family,
                                  .model = f->sizes,
                                  .context = f->context,
                                  .end_token = f->end_token};
    sti_hf_config_print(&config, &text);
    stint_status st = text.failed
                          ? sti_fail(STINT_E_MEMORY, "out of memory for config.json")
                          : sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    return st;
}

/* Byte pairs as GPT-2's two files, characters and all others as one; bytes have no form
 * there. */
static stint_status write_tokenizer(const stint_text_model_facts *f, const char *folder)
{
    const stint_tokenizer *t = f->tokenizer;
    char path[4096];
    if (!t || stint_tokenizer_describe(t)->kind == STINT_TOKENIZER_BYTE)
        return STINT_OK;
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    const bool characters = stint_tokenizer_describe(t)->kind == STINT_TOKENIZER_CHAR;
    stint_status st = characters ? sti_tokenizer_write_char_hf(t, path)
                      : sti_text_scheme_is_plain(&t->scheme)
                          ? stint_tokenizer_write_gpt2(t, folder)
                          : sti_tokenizer_write_hf(t, path);
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    return st == STINT_OK ? sti_tokenizer_write_config(t, f->end_token, path) : st;
}

stint_status stint_text_model_write_hf(const stint_text_model *model,
                                       const char *folder)
{
    static const sti_tensor_text texts[] = {{"format", "pt"}};
    const stint_text_model_facts *f = &model->facts;
    char tensors[4096], config[4096];
    stint_status st = check_theirs(f);
    if (st == STINT_OK)
        st = sti_dir_create(folder);
    if (st != STINT_OK)
        return st;
    snprintf(tensors, sizeof tensors, "%s/model.safetensors", folder);
    snprintf(config, sizeof config, "%s/config.json", folder);
    /* config.json last: without it the folder is none of these. */
    st = write_tensors(model, true, tensors, texts, 1);
    if (st == STINT_OK)
        st = write_tokenizer(f, folder);
    return st == STINT_OK ? write_config(f, config) : st;
}
