#include "store/hf_folder.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "store/safetensors.h"

enum {
    NAME = 160,
    FILES_MAX = 4096 /* shards */
};
#define CONFIG_MAX ((size_t)1 << 24)
#define INDEX_MAX  ((size_t)1 << 28)

struct sti_hf_folder {
    sti_arena *arena;
    const char *path;
    sti_hf_config config;
    json_t *index;      /* weight_map: tensor to shard; NULL: one file */
    const char **names; /* [count] of the shards */
    sti_tensor_file **files;
    int64_t count;
};

/* ---- names ---- */

typedef struct name_pair {
    const char *ours, *theirs;
} name_pair;

static const name_pair llama_whole[] = {
    {"wte.weight", "embed_tokens.weight"}, {"ln_f.scale", "norm.weight"}, {NULL, NULL}};
/* Names without the word behind the last dot, which is "weight" for a "scale". */
static const name_pair llama_layer[] = {{"ln_1", "input_layernorm"},
                                        {"ln_2", "post_attention_layernorm"},
                                        {"attn.q_norm", "self_attn.q_norm"},
                                        {"attn.k_norm", "self_attn.k_norm"},
                                        {"attn.c_proj", "self_attn.o_proj"},
                                        {"mlp.gate", "mlp.gate_proj"},
                                        {"mlp.up", "mlp.up_proj"},
                                        {"mlp.down", "mlp.down_proj"},
                                        {NULL, NULL}};

static const char *pair_find(const name_pair *pairs, const char *name, size_t length)
{
    for (; pairs->ours; pairs++)
        if (strlen(pairs->ours) == length && memcmp(pairs->ours, name, length) == 0)
            return pairs->theirs;
    return NULL;
}

static bool llama_name(const char *name, int part, char *out, size_t out_bytes)
{
    static const char *const parts[] = {"self_attn.q_proj", "self_attn.k_proj",
                                        "self_attn.v_proj"};
    int layer, used = 0;
    const char *theirs = pair_find(llama_whole, name, strlen(name));
    if (theirs) {
        snprintf(out, out_bytes, "model.%s", theirs);
        return true;
    }
    if (sscanf(name, "h.%d.%n", &layer, &used) != 1 || used == 0)
        return false;
    const char *dot = strrchr(name, '.');
    const size_t length = (size_t)(dot - name) - (size_t)used;
    theirs = length == 11 && memcmp(name + used, "attn.c_attn", length) == 0
                 ? parts[part]
                 : pair_find(llama_layer, name + used, length);
    if (theirs)
        snprintf(out, out_bytes, "model.layers.%d.%s%s", layer, theirs,
                 strcmp(dot, ".bias") == 0 ? dot : ".weight");
    return theirs != NULL;
}

/* The names are GPT-2's own but for those of the norms. */
static bool gpt_name(const char *name, char *out, size_t out_bytes)
{
    const char *dot = strrchr(name, '.');
    const char *last = !dot                         ? NULL
                       : strcmp(dot, ".scale") == 0 ? ".weight"
                       : strcmp(dot, ".shift") == 0 ? ".bias"
                                                    : dot;
    if (last)
        snprintf(out, out_bytes, "transformer.%.*s%s", (int)(dot - name), name, last);
    return last != NULL;
}

bool sti_hf_name(const char *family, const char *name, int part, char *out,
                 size_t out_bytes)
{
    if (strcmp(name, "lm_head.weight") == 0) {
        snprintf(out, out_bytes, "%s", name);
        return true;
    }
    return strcmp(family, "llama") == 0 ? llama_name(name, part, out, out_bytes)
                                        : gpt_name(name, out, out_bytes);
}

/* ---- opening ---- */

static stint_status read_json(const char *path, size_t most, json_t **root_out)
{
    void *data;
    size_t n_bytes;
    json_error_t error;
    stint_status st = sti_file_read(path, most, &data, &n_bytes);
    if (st != STINT_OK)
        return st;
    json_t *root = json_loadb(data, n_bytes, JSON_REJECT_DUPLICATES, &error);
    sti_free(data);
    if (!root)
        return sti_fail(STINT_E_INPUT, "%s: line %d: %s; take another copy", path,
                        error.line, error.text);
    *root_out = root;
    return STINT_OK;
}

static stint_status open_file(sti_hf_folder *f, const char *name)
{
    const char *path = sti_path_join(f->arena, f->path, name);
    char *kept = sti_arena_strdup(f->arena, name);
    if (!path || !kept)
        return STINT_E_MEMORY;
    stint_status st = sti_tensor_file_open(path, &f->files[f->count]);
    if (st == STINT_OK)
        f->names[f->count++] = kept;
    return st;
}

static int64_t file_find(const sti_hf_folder *f, const char *name)
{
    for (int64_t i = 0; i < f->count; i++)
        if (strcmp(f->names[i], name) == 0)
            return i;
    return -1;
}

static stint_status make_room(sti_hf_folder *f, size_t files)
{
    f->files = sti_arena_alloc(f->arena, files * sizeof(sti_tensor_file *));
    f->names = sti_arena_alloc(f->arena, files * sizeof(const char *));
    return f->files && f->names ? STINT_OK : STINT_E_MEMORY;
}

/* A shard is a plain name in the same folder: an index may come from anywhere. */
static bool is_plain(const char *name)
{
    return name && *name && *name != '.' && !strchr(name, '/');
}

static stint_status open_shards(sti_hf_folder *f, const char *path)
{
    json_t *root = NULL, *value;
    const char *key;
    stint_status st = read_json(path, INDEX_MAX, &root);
    if (st != STINT_OK)
        return st;
    f->index = json_incref(json_object_get(root, "weight_map"));
    json_decref(root);
    if (!json_is_object(f->index) || json_object_size(f->index) == 0)
        return sti_fail(STINT_E_INPUT, "%s: wanted an object \"weight_map\"", path);
    st = make_room(f, FILES_MAX);
    json_object_foreach(f->index, key, value)
    {
        const char *name = json_string_value(value);
        if (st != STINT_OK)
            break;
        if (!is_plain(name))
            st =
                sti_fail(STINT_E_INPUT,
                         "%s: '%.80s' is in '%.80s', which names no file of the folder",
                         path, key, name ? name : "(no text)");
        else if (file_find(f, name) < 0)
            st = f->count < FILES_MAX
                     ? open_file(f, name)
                     : sti_fail(STINT_E_INPUT, "%s: more than %d shards", path,
                                (int)FILES_MAX);
    }
    return st;
}

static stint_status open_weights(sti_hf_folder *f)
{
    const char *one = sti_path_join(f->arena, f->path, "model.safetensors");
    const char *index =
        sti_path_join(f->arena, f->path, "model.safetensors.index.json");
    if (!one || !index)
        return STINT_E_MEMORY;
    if (!sti_path_is_file(one) && sti_path_is_file(index))
        return open_shards(f, index);
    if (!sti_path_is_file(one))
        return sti_fail(STINT_E_INPUT,
                        "%s: there is neither model.safetensors nor its index; weights "
                        "in other formats (pytorch_model.bin) are not read: save them "
                        "as safetensors",
                        f->path);
    stint_status st = make_room(f, 1);
    return st == STINT_OK ? open_file(f, "model.safetensors") : st;
}

static stint_status read_config(sti_hf_folder *f)
{
    void *data;
    size_t n_bytes;
    const char *path = sti_path_join(f->arena, f->path, "config.json");
    stint_status st =
        path ? sti_file_read(path, CONFIG_MAX, &data, &n_bytes) : STINT_E_MEMORY;
    if (st == STINT_OK) {
        st = sti_hf_config_parse(data, n_bytes, path, &f->config);
        sti_free(data);
    }
    return st;
}

/* The tensor of that name, or of the name without its module. */
static const sti_tensor_row *row_find(const sti_hf_folder *f, const char *name,
                                      const sti_tensor_file **file_out)
{
    const char *dot = strchr(name, '.');
    const char *tries[2] = {name, dot ? dot + 1 : name};
    for (int i = 0; i < 2; i++) {
        int64_t at = 0;
        if (f->index) {
            const char *shard = json_string_value(json_object_get(f->index, tries[i]));
            at = shard ? file_find(f, shard) : -1;
        }
        if (at < 0)
            continue;
        *file_out = f->files[at];
        const sti_tensor_row *row = sti_tensor_file_find(f->files[at], tries[i]);
        if (row)
            return row;
    }
    return NULL;
}

/* "model.layers.12.mlp..." or "transformer.h.12.attn..."; -1: of no layer. */
static int64_t layer_of(const char *name)
{
    static const char *const words[] = {"layers.", "h."};
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(name, words[i]);
        int layer, used = 0;
        if (at && (at == name || at[-1] == '.') &&
            sscanf(at + strlen(words[i]), "%d%n", &layer, &used) == 1 && layer >= 0 &&
            at[strlen(words[i]) + (size_t)used] == '.')
            return layer;
    }
    return -1;
}

/* Weights of more layers than config.json has are another model's. */
static stint_status check_layers(const sti_hf_folder *f)
{
    const int64_t depth = f->config.model.depth;
    for (int64_t i = 0; i < f->count; i++)
        for (int64_t t = 0; t < sti_tensor_file_count(f->files[i]); t++) {
            const char *name = sti_tensor_file_row(f->files[i], t)->name;
            if (layer_of(name) >= depth)
                return sti_fail(STINT_E_INPUT,
                                "%s: config.json says %" PRId64 " layers, but there is "
                                "'%.100s'; take another copy of either",
                                f->path, depth, name);
        }
    return STINT_OK;
}

stint_status sti_hf_folder_open(const char *path, sti_hf_folder **folder_out)
{
    sti_arena *arena = sti_arena_create("model folder");
    sti_hf_folder *f = arena ? sti_arena_alloc(arena, sizeof *f) : NULL;
    if (!f) {
        sti_arena_destroy(arena);
        return STINT_E_MEMORY;
    }
    f->arena = arena;
    f->path = sti_arena_strdup(arena, path);
    stint_status st = f->path ? read_config(f) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = open_weights(f);
    if (st == STINT_OK)
        st = check_layers(f);
    if (st != STINT_OK) {
        sti_hf_folder_close(f);
        return st;
    }
    *folder_out = f;
    return STINT_OK;
}

void sti_hf_folder_close(sti_hf_folder *f)
{
    if (!f)
        return;
    for (int64_t i = 0; i < f->count; i++)
        sti_tensor_file_close(f->files[i]);
    json_decref(f->index);
    sti_arena_destroy(f->arena);
}

const sti_hf_config *sti_hf_folder_config(const sti_hf_folder *f)
{
    return &f->config;
}

bool sti_hf_folder_is(const char *path)
{
    char config[4096];
    const int length = snprintf(config, sizeof config, "%s/config.json", path);
    return length > 0 && (size_t)length < sizeof config && sti_path_is_file(config);
}

/* ---- reading ---- */

/* A part of a parameter: `runs` runs of it are this tensor. */
typedef struct part_request {
    int64_t runs, each;
    bool vector;
    int64_t first, count;
    float *out;
} part_request;

static stint_status read_part(const sti_hf_folder *f, const char *theirs,
                              const part_request *p)
{
    const sti_tensor_file *file = NULL;
    const sti_tensor_row *row = row_find(f, theirs, &file);
    if (!row)
        return sti_fail(STINT_E_INPUT, "%s: there is no tensor '%s'", f->path, theirs);
    const bool fits =
        p->vector ? row->rank == 1 && row->dim[0] == p->each
                  : row->rank == 2 && row->dim[0] == p->runs && row->dim[1] == p->each;
    if (!fits) {
        char got[200] = "";
        size_t at = 0;
        for (int i = 0; i < row->rank && at < sizeof got; i++)
            at += (size_t)snprintf(got + at, sizeof got - at, "%s%" PRId64,
                                   i ? ", " : "", row->dim[i]);
        if (p->vector)
            return sti_fail(STINT_E_INPUT,
                            "%s: '%s' is [%s], but config.json wants [%" PRId64 "]",
                            sti_tensor_file_path(file), theirs, got, p->each);
        return sti_fail(STINT_E_INPUT,
                        "%s: '%s' is [%s], but config.json wants [%" PRId64 ", %" PRId64
                        "]",
                        sti_tensor_file_path(file), theirs, got, p->runs, p->each);
    }
    if (row->type != STI_TENSOR_F32 && row->type != STI_TENSOR_F16 &&
        row->type != STI_TENSOR_BF16)
        return sti_tensor_file_read_f32(file, row, 0, 0, NULL); /* its complaint */
    if (p->count == 0)
        return STINT_OK;
    return sti_tensor_file_read_finite(file, row, p->first * p->each,
                                       p->count * p->each, p->out);
}

/* Queries, keys and values are three tensors: each serves its runs. Those of a bias are
 * numbers. */
static stint_status read_packed(const sti_hf_folder *f, const char *name, int64_t each,
                                bool vector, int64_t first, int64_t count, float *out)
{
    const stint_text_model_desc *m = &f->config.model;
    const int64_t size = m->head_size;
    const int64_t runs[3] = {m->heads * size, m->kv_heads * size, m->kv_heads * size};
    char theirs[NAME];
    int64_t begin = 0;
    stint_status st = STINT_OK;
    for (int i = 0; i < 3 && st == STINT_OK; begin += runs[i++]) {
        const int64_t from = first > begin ? first - begin : 0;
        const int64_t end = first + count - begin;
        const int64_t to = end < runs[i] ? end : runs[i];
        part_request p = {.runs = runs[i], .each = each, .first = from};
        p.count = to > from ? to - from : 0;
        if (vector)
            p = (part_request){1, runs[i], true, 0, count > 0, NULL};
        p.out = out ? out + (begin + from - first) * each : NULL;
        (void)sti_hf_name("llama", name, i, theirs, sizeof theirs);
        st = read_part(f, theirs, &p);
    }
    return st;
}

static stint_status read_runs(void *user, const char *name, int64_t runs, int64_t each,
                              int64_t first, int64_t count, float *out)
{
    const sti_hf_folder *f = user;
    const bool llama = strcmp(f->config.name, "llama") == 0;
    const size_t length = strlen(name);
    char theirs[NAME];
    if (llama && length > 13 && strcmp(name + length - 13, "c_attn.weight") == 0)
        return read_packed(f, name, each, false, first, count, out);
    if (llama && length > 11 && strcmp(name + length - 11, "c_attn.bias") == 0)
        return read_packed(f, name, 1, true, 0, count ? each : 0, out);
    if (!sti_hf_name(f->config.name, name, 0, theirs, sizeof theirs))
        return sti_fail(STINT_E_BUG, "'%s' has no name in this layout", name);
    const bool vector = runs == 1 && strstr(name, ".weight") == NULL;
    const part_request p = {runs, each, vector, first, count, out};
    return read_part(f, theirs, &p);
}

/* Linear layers are stored [out, in], but those of GPT-2 as we have them. */
static bool by_columns(void *user, const char *name)
{
    const sti_hf_folder *f = user;
    (void)name;
    return strcmp(f->config.name, "llama") == 0;
}

sti_weight_source sti_hf_folder_source(sti_hf_folder *f)
{
    return (sti_weight_source){.user = f, .by_columns = by_columns, .read = read_runs};
}
