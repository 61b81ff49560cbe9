#include "store/adapter.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "model/text_model.h"
#include "store/hf_folder.h"
#include "store/safetensors.h"

#define CONFIG_BYTES_MAX ((size_t)16 << 20)
#define PREFIX           "base_model.model."

enum { NAME = 256, PARTS = 3, RANK_MAX = 65536 };

/* A module of theirs: part of a matrix of ours, [k, n]. */
typedef struct module {
    const sti_tensor_row *a, *b; /* rows of the file */
    float *x, *y;                /* [rank, k], [n, rank]; as in the file */
    char ours[NAME];
    int64_t k, n, first; /* the columns of the whole that are its own */
} module;

struct sti_adapter {
    sti_arena *arena;
    sti_tensor_file *file;
    char path[4096];
    sti_decoder_desc model;
    int64_t rank;
    float scale;
    module *module; /* [count] */
    int64_t count;
};

/* ---- adapter_config.json ---- */

static stint_status broken(const char *path, const char *what)
{
    return sti_fail(STINT_E_INPUT, "%s: %s; take another copy of the adapter", path,
                    what);
}

static stint_status refuse(const char *path, const char *key)
{
    return sti_fail(STINT_E_UNSUPPORTED,
                    "%s: '%s' is set; only plain LoRA is added, with one rank and one "
                    "alpha; merge the adapter into its model with PEFT",
                    path, key);
}

/* Keys that change what an adapter is, if they are true or not empty. */
static stint_status check_plain(const json_t *root, const char *path)
{
    static const char *const keys[] = {
        "use_dora",  "use_rslora",      "rank_pattern",   "alpha_pattern",
        "lora_bias", "modules_to_save", "megatron_config"};
    const char *bias = json_string_value(json_object_get(root, "bias"));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *v = json_object_get(root, keys[i]);
        if (json_is_true(v) || json_object_size(v) > 0 || json_array_size(v) > 0)
            return refuse(path, keys[i]);
    }
    return bias && strcmp(bias, "none") != 0 ? refuse(path, "bias") : STINT_OK;
}

static stint_status read_config(const json_t *root, const char *path, int64_t *rank,
                                float *scale)
{
    const char *type = json_string_value(json_object_get(root, "peft_type"));
    const json_t *r = json_object_get(root, "r");
    const json_t *alpha = json_object_get(root, "lora_alpha");
    if (!type)
        return broken(path, "it does not say what kind of adapter it is (peft_type)");
    if (strcmp(type, "LORA") != 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: an adapter of kind %.40s; only LORA is added", path, type);
    if (!json_is_integer(r) || json_integer_value(r) < 1 ||
        json_integer_value(r) > RANK_MAX || !json_is_number(alpha) ||
        !isfinite(json_number_value(alpha)))
        return broken(path, "'r' and 'lora_alpha' are no rank and no number");
    *rank = json_integer_value(r);
    *scale = (float)(json_number_value(alpha) / (double)*rank);
    return isfinite(*scale) ? check_plain(root, path)
                            : broken(path, "'lora_alpha' is too large");
}

stint_status sti_adapter_parse(const char *text, size_t bytes, const char *path,
                               int64_t *rank_out, float *scale_out)
{
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    const stint_status st = root ? read_config(root, path, rank_out, scale_out)
                                 : broken(path, "it is no JSON, or ends too early");
    json_decref(root);
    return st;
}

static stint_status open_config(sti_adapter *a, const char *folder)
{
    char *path = sti_path_join(a->arena, folder, "adapter_config.json");
    void *text = NULL;
    size_t bytes = 0;
    stint_status st = path ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_file_read(path, CONFIG_BYTES_MAX, &text, &bytes);
    if (st == STINT_OK)
        st = sti_adapter_parse(text, bytes, path, &a->rank, &a->scale);
    sti_free(text);
    return st;
}

/* ---- tensors ---- */

/* "transformer.h.0.attn.c_attn" of PREFIX that ".lora_A.weight". */
static bool module_name(const char *tensor, const char *end, char out[NAME])
{
    const size_t length = strlen(tensor), tail = strlen(end), head = sizeof PREFIX - 1;
    if (length <= head + tail || length - head - tail >= NAME ||
        strncmp(tensor, PREFIX, head) != 0 || strcmp(tensor + length - tail, end) != 0)
        return false;
    snprintf(out, NAME, "%.*s", (int)(length - head - tail), tensor + head);
    return true;
}

static stint_status find_modules(sti_adapter *a)
{
    const int64_t tensors = sti_tensor_file_count(a->file);
    a->module = sti_arena_alloc(a->arena, (size_t)(tensors + 1) * sizeof *a->module);
    if (!a->module)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < tensors; i++) {
        const sti_tensor_row *row = sti_tensor_file_row(a->file, i);
        char name[NAME], other[NAME + 64];
        if (module_name(row->name, ".lora_B.weight", name))
            continue;
        if (!module_name(row->name, ".lora_A.weight", name))
            return sti_fail(STINT_E_UNSUPPORTED,
                            "%s: '%.100s' is no tensor of a plain LoRA", a->path,
                            row->name);
        snprintf(other, sizeof other, PREFIX "%s.lora_B.weight", name);
        module *m = &a->module[a->count++];
        *m = (module){.a = row, .b = sti_tensor_file_find(a->file, other)};
        if (!m->b)
            return broken(a->path, "an A has no B");
    }
    return 2 * a->count == tensors && a->count > 0
               ? STINT_OK
               : broken(a->path, "its tensors are no pairs of A and B");
}

static stint_status read_matrix(sti_adapter *a, const sti_tensor_row *row, int64_t rows,
                                int64_t columns, float **out)
{
    if (row->rank != 2 || row->dim[0] != rows || row->dim[1] != columns)
        return sti_fail(STINT_E_INPUT,
                        "%s: '%.100s' is not [%lld, %lld], as the model wants it; give "
                        "the adapter of this model",
                        a->path, row->name, (long long)rows, (long long)columns);
    *out = sti_arena_alloc(a->arena, (size_t)(rows * columns) * sizeof **out);
    return *out ? sti_tensor_file_read_f32(a->file, row, 0, rows * columns, *out)
                : STINT_E_MEMORY;
}

/* The module that a part of a parameter of ours is called; NULL: there is none. */
static module *find_part(sti_adapter *a, const char *name, int part)
{
    char theirs[NAME], module_of[NAME];
    const char *family = sti_text_model_family(a->model.name);
    if (!sti_hf_name(family, name, part, theirs, sizeof theirs))
        return NULL;
    const size_t length = strlen(theirs), tail = sizeof ".weight" - 1;
    if (length <= tail || strcmp(theirs + length - tail, ".weight") != 0)
        return NULL;
    theirs[length - tail] = '\0';
    for (int64_t i = 0; i < a->count; i++)
        if (module_name(a->module[i].a->name, ".lora_A.weight", module_of) &&
            strcmp(module_of, theirs) == 0)
            return &a->module[i];
    return NULL;
}

static stint_status place_part(sti_adapter *a, const char *name, int part, int64_t k,
                               int64_t first, int64_t n)
{
    module *m = find_part(a, name, part);
    if (!m)
        return STINT_OK;
    snprintf(m->ours, sizeof m->ours, "%s", name);
    m->k = k;
    m->n = n;
    m->first = first;
    const stint_status st = read_matrix(a, m->a, a->rank, k, &m->x);
    return st == STINT_OK ? read_matrix(a, m->b, n, a->rank, &m->y) : st;
}

/* One parameter, told by sti_decoder_check; tables and vectors have no adapters. */
static stint_status place(void *user, const char *name, int64_t runs, int64_t each,
                          int64_t first, int64_t count, float *out)
{
    sti_adapter *a = user;
    const stint_text_model_desc *m = &a->model.model;
    const bool llama = strcmp(sti_text_model_family(a->model.name), "llama") == 0;
    const int64_t keys = m->kv_heads * (m->width / m->heads);
    (void)first, (void)count, (void)out;
    if (strncmp(name, "h.", 2) != 0 || runs == 1)
        return STINT_OK;
    if (!llama || !strstr(name, "c_attn"))
        return place_part(a, name, 0, runs, 0, each);
    stint_status st = place_part(a, name, 0, runs, 0, m->width);
    if (st == STINT_OK)
        st = place_part(a, name, 1, runs, m->width, keys);
    return st == STINT_OK ? place_part(a, name, 2, runs, m->width + keys, keys) : st;
}

static bool by_rows(void *user, const char *name)
{
    (void)user, (void)name;
    return false;
}

static stint_status place_modules(sti_adapter *a)
{
    const sti_weight_source visitor = {.user = a, .by_columns = by_rows, .read = place};
    const stint_status st = sti_decoder_check(&a->model, &visitor);
    for (int64_t i = 0; i < a->count && st == STINT_OK; i++)
        if (!a->module[i].x)
            return sti_fail(STINT_E_INPUT,
                            "%s: the model has nothing that '%.100s' is for; give the "
                            "adapter of this model",
                            a->path, a->module[i].a->name);
    return st;
}

stint_status sti_adapter_open(const char *folder, const sti_decoder_desc *model,
                              sti_adapter **adapter_out)
{
    sti_arena *arena = sti_arena_create("adapter");
    sti_adapter *a = arena ? sti_arena_alloc(arena, sizeof *a) : NULL;
    if (!a) {
        sti_arena_destroy(arena);
        return STINT_E_MEMORY;
    }
    *a = (sti_adapter){.arena = arena, .model = *model};
    snprintf(a->path, sizeof a->path, "%s/adapter_model.safetensors", folder);
    stint_status st = open_config(a, folder);
    if (st == STINT_OK)
        st = sti_tensor_file_open(a->path, &a->file);
    if (st == STINT_OK)
        st = find_modules(a);
    if (st == STINT_OK)
        st = place_modules(a);
    if (st == STINT_OK)
        *adapter_out = a;
    else
        sti_adapter_close(a);
    return st == STINT_OK ? st : sti_fail_context(st, "--adapter");
}

void sti_adapter_close(sti_adapter *a)
{
    if (!a)
        return;
    sti_tensor_file_close(a->file);
    sti_arena_destroy(a->arena);
}

/* ---- adding ---- */

static void add_number(const sti_adapter *a, const module *m, int64_t i, int64_t j,
                       float *out)
{
    for (int64_t r = 0; r < a->rank; r++)
        *out += a->scale * m->x[r * m->k + i] * m->y[j * a->rank + r];
}

void sti_adapter_add(const sti_adapter *a, const char *name, bool by_columns,
                     int64_t each, int64_t first, int64_t count, float *out)
{
    for (int64_t t = 0; t < a->count; t++) {
        const module *m = &a->module[t];
        if (strcmp(m->ours, name) != 0)
            continue;
        for (int64_t run = 0; run < count; run++)
            for (int64_t at = 0; at < each; at++) {
                const int64_t i = by_columns ? at : first + run;
                const int64_t j = (by_columns ? first + run : at) - m->first;
                if (j >= 0 && j < m->n)
                    add_number(a, m, i, j, &out[run * each + at]);
            }
    }
}
