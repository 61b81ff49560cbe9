/* A text model written as a file of Stint or as a folder in Hugging Face's layout. A
 * tensor is held in memory at a time. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/numerics.h"
#include "base/recipe.h"
#include "base/units.h"
#include "data/tokenizer.h"
#include "store/model_meta.h"
#include "store/tensor_packed.h"
#include "store/text_model_file.h"

enum {
    NAME = 160,
    SLICE = 64, /* runs read at a time when a matrix is turned */
    STRIP = 32  /* lines of a matrix that are written together, or a multiple */
};
/* Numbers of a strip where no budget is given. */
#define STRIP_FLOATS ((int64_t)64 << 20)
/* What else the process takes until it is done: a writer's buffer, code that runs. */
#define OTHER_BYTES ((size_t)2 << 20)

/* A tensor to be written: (a part of) a parameter of the graph. */
typedef struct outgoing {
    char ours[NAME], theirs[NAME];
    int64_t k, n;         /* of the whole parameter, as the graph has it */
    int64_t first, count; /* columns of it, where a part is written */
    bool turned;          /* written [n, k] */
    sti_packed_line line; /* type NULL: written as float32 */
} outgoing;

typedef struct exporter {
    const stint_text_model *model;
    sti_weight_source source;
    bool theirs;    /* names and layouts of Hugging Face */
    outgoing *list; /* [count] */
    sti_tensor_row *rows;
    int64_t count, capacity;
    const sti_gguf_type *type; /* of matrices; NULL: float32 */
    size_t memory_bytes;       /* that the process may take; 0: no bound */
    float *strip;              /* lines of a tensor: all, or as many as fit */
    float *slice;              /* SLICE runs of the largest matrix that is turned */
    int64_t strip_floats, slice_floats, least_floats; /* least: STRIP lines, a vector */
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

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Room for it as a whole, for the least of it, and for what it is turned by. */
static void measure_parameter(exporter *e, const outgoing *o)
{
    const int64_t longest = larger(o->k, o->n);
    const bool matrix = !is_vector(o->ours);
    e->strip_floats = larger(e->strip_floats, o->k * o->n);
    e->least_floats = larger(e->least_floats, !matrix             ? longest
                                              : is_table(o->ours) ? STRIP * o->n
                                                                  : STRIP * longest);
    if (matrix && !is_table(o->ours))
        e->slice_floats = larger(e->slice_floats, longest * SLICE);
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
    measure_parameter(e, &o);
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

static sti_tensor_row row_of(outgoing *o, const sti_gguf_type *type)
{
    sti_tensor_row row = {.type = STI_TENSOR_F32, .rank = 2};
    row.dim[0] = o->turned ? o->count : o->k;
    row.dim[1] = o->turned ? o->k : o->count;
    row.bytes = (size_t)(row.dim[0] * row.dim[1]) * sizeof(float);
    const bool learned_positions = strncmp(o->ours, "wpe.", 4) == 0;
    if (type && !is_vector(o->ours) && !learned_positions) {
        o->line = (sti_packed_line){.type = type,
                                    .down = type->block > 1 && !is_table(o->ours),
                                    .rows = row.dim[0],
                                    .columns = row.dim[1],
                                    .name = o->theirs,
                                    .name_bytes = strlen(o->theirs)};
        row = sti_packed_row(&o->line);
    }
    row.name = o->theirs;
    if (is_vector(o->ours)) {
        row.rank = 1;
        row.dim[0] = row.dim[1];
        row.dim[1] = 0;
    }
    return row;
}

/* Tensors go through memory whole if they may, else in strips. */
static stint_status choose_strip(exporter *e)
{
    const size_t fixed = STI_ALIGN_UP(sti_process_now_bytes(), (size_t)1 << 20) +
                         (size_t)e->slice_floats * sizeof(float) + OTHER_BYTES;
    const size_t least = fixed + (size_t)e->least_floats * sizeof(float);
    int64_t room = STRIP_FLOATS;
    if (e->memory_bytes > 0 && least > e->memory_bytes)
        return sti_fail(STINT_E_BUDGET,
                        "memory: %s are needed to write these tensors a few lines at a "
                        "time, the budget is %s; give it %s",
                        sti_bytes_text(least), sti_bytes_text(e->memory_bytes),
                        sti_bytes_text(STI_ALIGN_UP(least, (size_t)1 << 20)));
    if (e->memory_bytes > 0)
        room = (int64_t)((e->memory_bytes - fixed) / sizeof(float));
    room = larger(room, e->least_floats);
    if (e->strip_floats > room)
        e->strip_floats = room;
    return STINT_OK;
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
    if (!e->rows)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < e->count; i++)
        e->rows[i] = row_of(&e->list[i], e->type);
    if ((st = choose_strip(e)) != STINT_OK)
        return st;
    e->strip = sti_alloc_array(e->strip_floats, sizeof(float), "lines of a tensor");
    e->slice = sti_alloc_array(larger(e->slice_floats, 1), sizeof(float),
                               "tensor to be turned");
    return e->strip && e->slice ? STINT_OK : STINT_E_MEMORY;
}

/* The text that says which tensors are in blocks. */
static stint_status print_packed(const exporter *e, sti_text *out)
{
    for (int64_t i = 0; i < e->count; i++)
        if (e->list[i].line.type)
            sti_packed_line_print(&e->list[i].line, out);
    return out->failed
               ? sti_fail(STINT_E_MEMORY, "out of memory for the tensors' names")
               : STINT_OK;
}

/* ---- tensors ---- */

/* Lines of a matrix as they are written: those from `first` on, `count` of them. */
typedef struct line_range {
    int64_t first, count;
} line_range;

/* Lines from runs of the source that are the columns of what is written (or the other
 * way round): each run gives a number of every line. */
static stint_status turn(exporter *e, const outgoing *o, bool stored_columns,
                         line_range lines)
{
    const int64_t runs = stored_columns ? o->n : o->k;
    const int64_t each = stored_columns ? o->k : o->n;
    const int64_t first = o->turned ? 0 : o->first;
    const int64_t end = o->turned ? o->k : o->first + o->count;
    const int64_t stride = end - first;
    stint_status st = STINT_OK;
    for (int64_t i = first, some; i < end && st == STINT_OK; i += some) {
        some = end - i < SLICE ? end - i : SLICE;
        st = e->source.read(e->source.user, o->ours, runs, each, i, some, e->slice);
        for (int64_t r = 0; r < some && st == STINT_OK; r++) {
            const float *from =
                e->slice + r * each + (o->turned ? o->first : 0) + lines.first;
            for (int64_t j = 0; j < lines.count; j++)
                e->strip[j * stride + i - first + r] = from[j];
        }
    }
    return st;
}

static stint_status read_lines(exporter *e, const outgoing *o, line_range lines)
{
    const bool matrix = !is_table(o->ours);
    const bool columns = matrix && e->source.by_columns(e->source.user, o->ours);
    if (columns != o->turned)
        return turn(e, o, columns, lines);
    return e->source.read(e->source.user, o->ours, columns ? o->n : o->k,
                          columns ? o->k : o->n, (columns ? o->first : 0) + lines.first,
                          lines.count, e->strip);
}

static stint_status fill_vector(exporter *e, const outgoing *o, size_t bytes,
                                sti_writer *writer)
{
    const stint_status st =
        e->source.read(e->source.user, o->ours, o->k, o->n, 0, o->k, e->strip);
    return st == STINT_OK ? sti_writer_add(writer, e->strip + o->first, bytes) : st;
}

static stint_status fill(void *user, const sti_tensor_row *row, sti_writer *writer)
{
    exporter *e = user;
    const outgoing *o = &e->list[row - e->rows];
    const int64_t lines = o->turned ? o->count : o->k;
    const int64_t length = o->turned ? o->k : o->count;
    int64_t most = e->strip_floats / length;
    stint_status st = STINT_OK;
    if (is_vector(o->ours))
        return fill_vector(e, o, row->bytes, writer);
    if (most < lines)
        most = most / STRIP * STRIP;
    for (int64_t i = 0, n; i < lines && st == STINT_OK; i += n) {
        n = lines - i < most ? lines - i : most;
        st = read_lines(e, o, (line_range){.first = i, .count = n});
        if (st == STINT_OK)
            st = o->line.type ? sti_packed_add(&o->line, n, e->strip, writer)
                              : sti_writer_add(writer, e->strip,
                                               (size_t)(n * length) * sizeof(float));
    }
    return st;
}

static void exporter_fini(exporter *e)
{
    sti_free(e->list);
    sti_free(e->rows);
    sti_free(e->strip);
    sti_free(e->slice);
}

static stint_status write_tensors(exporter *e, const char *path,
                                  const sti_tensor_text *texts, int64_t text_count)
{
    return sti_tensor_file_write_made(path, e->rows, e->count, texts, text_count, fill,
                                      e);
}

/* ---- a file of ours ---- */

static stint_status set_size(stint_recipe *recipe, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return stint_recipe_set(recipe, key, text);
}

/* Choices of model.weights, in the order of the key. */
static const struct {
    int bits;
    const char *word, *type; /* of blocks; NULL: float32 */
} weight_types[] = {
    {0, "f32", NULL}, {16, "bf16", "BF16"}, {8, "q8", "Q8_0"}, {4, "q4", "Q4_0"}};

static stint_status print_recipe(const stint_text_model_facts *f, const char *weights,
                                 sti_text *out)
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
        st = stint_recipe_set(recipe, "model.weights", weights);
    if (st == STINT_OK)
        st = sti_recipe_write(recipe, true, out);
    stint_recipe_destroy(recipe);
    return st;
}

/* The file's texts: `texts` and what they borrow. */
static stint_status write_file(exporter *e, const char *weights, const char *path,
                               sti_text *made)
{
    const stint_text_model_facts *f = &e->model->facts;
    sti_meta_texts texts = {.count = 0};
    sti_text *recipe = &made[0], *tokenizer = &made[1], *packed = &made[2];
    stint_status st = print_recipe(f, weights, recipe);
    if (st == STINT_OK && f->tokenizer)
        st = sti_tokenizer_print(f->tokenizer, tokenizer);
    if (st == STINT_OK)
        st = list_all(e);
    if (st == STINT_OK)
        st = print_packed(e, packed);
    if (st != STINT_OK)
        return st;
    sti_meta_add(&texts, STI_META_VERSION, stint_version());
    sti_meta_add(&texts, STI_META_KIND, "model");
    sti_meta_add(&texts, STI_META_NUMERICS, STI_NUMERICS_VERSION);
    sti_meta_add(&texts, STI_META_NETWORK, f->family);
    sti_meta_add(&texts, STI_META_RECIPE, recipe->data);
    sti_meta_add_sizes(&texts, f->context, &f->sizes);
    sti_meta_add_int(&texts, STI_META_END_TOKEN, f->end_token);
    if (f->tokenizer)
        sti_meta_add(&texts, STI_META_TOKENIZER, tokenizer->data);
    if (packed->data)
        sti_meta_add(&texts, STI_META_PACKED, packed->data);
    return write_tensors(e, path, texts.row, texts.count);
}

stint_status stint_text_model_write_packed(const stint_text_model *model,
                                           const char *path, int weight_bits,
                                           size_t memory_bytes)
{
    enum { KINDS = sizeof weight_types / sizeof *weight_types, TEXTS = 3 };
    sti_text made[TEXTS] = {{0}};
    int kind = 0;
    while (kind < KINDS && weight_types[kind].bits != weight_bits % 32)
        kind++;
    if (kind == KINDS || weight_bits < 0 || weight_bits > 32)
        return sti_fail(STINT_E_USAGE,
                        "weights of %d bits; wanted 0 or 32 (float32), 16, 8 or 4",
                        weight_bits);
    exporter e = {.model = model, .memory_bytes = memory_bytes};
    e.source = sti_text_model_source(model);
    if (weight_types[kind].type)
        e.type = sti_gguf_type_named(weight_types[kind].type);
    const stint_status st = write_file(&e, weight_types[kind].word, path, made);
    exporter_fini(&e);
    for (int i = 0; i < TEXTS; i++)
        sti_text_fini(&made[i]);
    return st;
}

stint_status stint_text_model_write(const stint_text_model *model, const char *path)
{
    return stint_text_model_write_packed(model, path, 0, 0);
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

static stint_status write_theirs(const stint_text_model *model, const char *path)
{
    static const sti_tensor_text texts[] = {{"format", "pt"}};
    exporter e = {.model = model, .theirs = true};
    e.source = sti_text_model_source(model);
    stint_status st = list_all(&e);
    if (st == STINT_OK)
        st = write_tensors(&e, path, texts, 1);
    exporter_fini(&e);
    return st;
}

stint_status stint_text_model_write_hf(const stint_text_model *model,
                                       const char *folder)
{
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
    st = write_theirs(model, tensors);
    if (st == STINT_OK)
        st = write_tokenizer(f, folder);
    return st == STINT_OK ? write_config(f, config) : st;
}
