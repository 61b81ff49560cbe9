/* Adapters in PEFT's files. Its A is ours turned, [rank, k], and its B [n, rank]. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "model/text_model.h"
#include "store/hf_folder.h"
#include "store/safetensors.h"
#include "train/lora_merge.h"

enum { NAME = 256, PARTS = 3 };

typedef struct writer {
    const sti_network *net;
    const sti_network_desc *desc;
    const void *params;
    const char *family;
    sti_arena *arena;
    sti_tensor_row *rows;
    int64_t count, capacity;
    char module[16][NAME]; /* of target_modules */
    int modules;
} writer;

/* [rows, columns] with so many numbers a row, turned. */
static float *turned(writer *w, const float *x, int64_t rows, int64_t stride,
                     int64_t first, int64_t columns)
{
    float *out = sti_arena_alloc(w->arena, (size_t)(rows * columns) * sizeof *out);
    for (int64_t r = 0; r < rows && out; r++)
        for (int64_t c = 0; c < columns; c++)
            out[c * rows + r] = x[r * stride + first + c];
    return out;
}

static stint_status add_row(writer *w, const char *theirs, const char *which,
                            int64_t rows, int64_t columns, const float *data)
{
    const size_t scope = strlen(theirs) - strlen(".weight");
    char *name = sti_arena_printf(w->arena, "base_model.model.%.*s.%s.weight",
                                  (int)scope, theirs, which);
    if (!name || !data)
        return STINT_E_MEMORY;
    w->rows[w->count++] =
        (sti_tensor_row){.name = name,
                         .type = STI_TENSOR_F32,
                         .rank = 2,
                         .dim = {rows, columns},
                         .bytes = (size_t)(rows * columns) * sizeof *data,
                         .data = data};
    return STINT_OK;
}

/* "attn.c_proj" of "transformer.h.0.attn.c_proj.weight": the last part alone would be
 * that of another layer, too. */
static void note_module(writer *w, const char *theirs)
{
    char copy[NAME];
    snprintf(copy, sizeof copy, "%s", theirs);
    *strrchr(copy, '.') = '\0';
    const char *module = copy + strlen(copy);
    for (int dots = 0; module > copy; module--)
        if (module[-1] == '.' && ++dots == 2)
            break;
    for (int i = 0; i < w->modules; i++)
        if (strcmp(w->module[i], module) == 0)
            return;
    if (w->modules < (int)(sizeof w->module / sizeof w->module[0]))
        snprintf(w->module[w->modules++], sizeof w->module[0], "%s", module);
}

/* Columns [first, first + count) of a weight's n under one of their names. */
static stint_status add_part(writer *w, const char *ours, int part, stint_value a,
                             stint_value b, int64_t first, int64_t count)
{
    const int64_t rank = w->desc->lora.rank;
    const stint_shape as = stint_value_shape(w->net->graph, a);
    const stint_shape bs = stint_value_shape(w->net->graph, b);
    const char *base = w->params;
    const float *x =
        (const float *)(const void *)(base + w->net->plan->allocation[a].offset);
    const float *y =
        (const float *)(const void *)(base + w->net->plan->allocation[b].offset);
    char theirs[NAME];
    if (!sti_hf_name(w->family, ours, part, theirs, sizeof theirs))
        return sti_fail(STINT_E_BUG, "'%s' has no name in this layout", ours);
    note_module(w, theirs);
    const stint_status st = add_row(w, theirs, "lora_A", rank, as.dim[0],
                                    turned(w, x, as.dim[0], rank, 0, rank));
    return st == STINT_OK ? add_row(w, theirs, "lora_B", count, rank,
                                    turned(w, y, rank, bs.dim[1], first, count))
                          : st;
}

static stint_status add_weight(writer *w, const sti_value_row *row, stint_value a,
                               stint_value b)
{
    const stint_text_model_desc *m = &w->desc->text;
    const int64_t keys = m->kv_heads * (m->width / m->heads);
    const int64_t first[PARTS] = {0, m->width, m->width + keys};
    const int64_t count[PARTS] = {m->width, keys, keys};
    const bool packed =
        strcmp(w->family, "llama") == 0 && strstr(row->name, "c_attn") != NULL;
    stint_status st = STINT_OK;
    if (!packed)
        return add_part(w, row->name, 0, a, b, 0, row->shape.dim[1]);
    for (int part = 0; part < PARTS && st == STINT_OK; part++)
        st = add_part(w, row->name, part, a, b, first[part], count[part]);
    return st;
}

static stint_status add_all(writer *w)
{
    const stint_graph *g = w->net->graph;
    stint_status st = STINT_OK;
    stint_value a, b;
    w->capacity = 2 * PARTS * (int64_t)sti_graph_value_count(g);
    w->rows = sti_arena_alloc(w->arena, (size_t)w->capacity * sizeof *w->rows);
    if (!w->rows)
        return STINT_E_MEMORY;
    for (stint_value v = 0; v < sti_graph_value_count(g) && st == STINT_OK; v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role == STI_ROLE_PARAM && !row->adapter &&
            sti_lora_find(g, row->name, &a, &b))
            st = add_weight(w, row, a, b);
    }
    return st;
}

static stint_status write_config(const writer *w, const char *path)
{
    const sti_lora_desc *d = &w->desc->lora;
    sti_text text = {0};
    sti_json j = {.out = &text, .pretty = true};
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "peft_type", "LORA");
    sti_json_text(&j, "task_type", "CAUSAL_LM");
    sti_json_text(&j, "base_model_name_or_path", NULL);
    sti_json_int(&j, "r", d->rank);
    sti_json_float(&j, "lora_alpha", (double)d->scale * (double)d->rank);
    sti_json_float(&j, "lora_dropout", 0);
    sti_json_text(&j, "bias", "none");
    sti_json_bool(&j, "fan_in_fan_out", strcmp(w->family, "gpt") == 0);
    sti_json_bool(&j, "inference_mode", true);
    sti_json_begin_array(&j, "target_modules");
    for (int i = 0; i < w->modules; i++)
        sti_json_text(&j, NULL, w->module[i]);
    sti_json_end_array(&j);
    sti_json_end_object(&j);
    sti_text_add(&text, "\n");
    const stint_status st = text.failed
                                ? sti_fail(STINT_E_MEMORY, "out of memory for a config")
                                : sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    return st;
}

stint_status sti_lora_write_peft(const sti_network *net, const sti_network_desc *desc,
                                 const void *params, const char *folder)
{
    static const sti_tensor_text texts[] = {{"format", "pt"}};
    writer w = {.net = net,
                .desc = desc,
                .params = params,
                .family = sti_text_model_family(desc->name),
                .arena = sti_arena_create("adapter")};
    char *path;
    stint_status st = w.arena ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(add_all(&w));
    path = sti_path_join(w.arena, folder, "adapter_model.safetensors");
    STI_TRY(path ? sti_tensor_file_write(path, w.rows, w.count, texts, 1)
                 : STINT_E_MEMORY);
    path = sti_path_join(w.arena, folder, "adapter_config.json");
    STI_TRY(path ? write_config(&w, path) : STINT_E_MEMORY);
out:
    sti_arena_destroy(w.arena);
    return st;
}
