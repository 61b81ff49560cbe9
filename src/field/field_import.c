/* Weights of a field as PyTorch keeps them, as a model file of Stint. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/numerics.h"
#include "base/recipe.h"
#include "base/units.h"
#include "model/field_section.h"
#include "stint/field.h"
#include "store/model_meta.h"
#include "store/safetensors.h"

enum { LAYERS_MOST = 65, NAME_BYTES = 32 };

typedef struct import {
    const char *path;
    sti_tensor_file *file;
    const sti_tensor_row *weight[LAYERS_MOST], *bias[LAYERS_MOST];
    int layers;
    sti_field_names names;
    char name[2 * LAYERS_MOST][NAME_BYTES];
    float *data[2 * LAYERS_MOST];
    sti_tensor_row rows[2 * LAYERS_MOST];
} import;

static int64_t inputs_of(const import *m, int k)
{
    return m->weight[k]->dim[1];
}

static int64_t units_of(const import *m, int k)
{
    return m->weight[k]->dim[0];
}

static stint_status find_layers(import *m)
{
    char name[NAME_BYTES];
    for (; m->layers < LAYERS_MOST; m->layers++) {
        snprintf(name, sizeof name, "net.%d.weight", m->layers);
        m->weight[m->layers] = sti_tensor_file_find(m->file, name);
        snprintf(name, sizeof name, "net.%d.bias", m->layers);
        m->bias[m->layers] = sti_tensor_file_find(m->file, name);
        if (!m->weight[m->layers] || !m->bias[m->layers])
            break;
    }
    if (m->layers >= 2 && sti_tensor_file_count(m->file) == 2 * m->layers)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s: %" PRId64 " tensors, of which net.0 to net.%d are layers with "
                    "a weight and a bias; wanted two layers or more, and nothing else",
                    m->path, sti_tensor_file_count(m->file), m->layers - 1);
}

static stint_status check_layer(const import *m, int k)
{
    const sti_tensor_row *w = m->weight[k], *b = m->bias[k];
    if (w->rank != 2 || b->rank != 1)
        return sti_fail(STINT_E_INPUT,
                        "%s: net.%d has a weight of %d axes and a bias of %d; wanted "
                        "[out, in] and [out]",
                        m->path, k, w->rank, b->rank);
    if (b->dim[0] != w->dim[0])
        return sti_fail(STINT_E_INPUT,
                        "%s: net.%d has %" PRId64 " units and a bias of %" PRId64,
                        m->path, k, w->dim[0], b->dim[0]);
    if (k > 0 && inputs_of(m, k) != units_of(m, k - 1))
        return sti_fail(STINT_E_INPUT,
                        "%s: net.%d takes %" PRId64 " numbers, but net.%d gives "
                        "%" PRId64 "; layers must chain",
                        m->path, k, inputs_of(m, k), k - 1, units_of(m, k - 1));
    if (k > 0 && k < m->layers - 1 && units_of(m, k) != units_of(m, 0))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: net.%d has %" PRId64 " units, net.0 %" PRId64
                        "; hidden layers of one width are read",
                        m->path, k, units_of(m, k), units_of(m, 0));
    return STINT_OK;
}

/* [out, in] -> [in, out]. */
static void turn_weight(const float *from, int64_t out, int64_t in, float *to)
{
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++)
            to[i * out + o] = from[o * in + i];
}

static stint_status read_tensor(import *m, const sti_tensor_row *row, int at, int k)
{
    const bool is_weight = row->rank == 2;
    const int64_t count = row->dim[0] * (is_weight ? row->dim[1] : 1);
    float *raw = sti_alloc_array(count, sizeof *raw, "field.import");
    float *turned = sti_alloc_array(count, sizeof *turned, "field.import");
    stint_status st = raw && turned
                          ? sti_tensor_file_read_finite(m->file, row, 0, count, raw)
                          : STINT_E_MEMORY;
    m->data[at] = turned;
    if (st == STINT_OK && is_weight)
        turn_weight(raw, row->dim[0], row->dim[1], turned);
    else if (st == STINT_OK)
        memcpy(turned, raw, (size_t)count * sizeof *raw);
    sti_free(raw);
    snprintf(m->name[at], NAME_BYTES, "net.%d.%s", k, is_weight ? "weight" : "bias");
    m->rows[at] = (sti_tensor_row){
        .name = m->name[at],
        .type = STI_TENSOR_F32,
        .rank = row->rank,
        .dim = {is_weight ? row->dim[1] : row->dim[0], is_weight ? row->dim[0] : 0},
        .bytes = (size_t)count * sizeof *turned,
        .data = turned};
    return st;
}

static stint_status read_layers(import *m)
{
    stint_status st = STINT_OK;
    for (int k = 0; k < m->layers && st == STINT_OK; k++) {
        st = check_layer(m, k);
        if (st == STINT_OK)
            st = read_tensor(m, m->weight[k], 2 * k, k);
        if (st == STINT_OK)
            st = read_tensor(m, m->bias[k], 2 * k + 1, k);
    }
    return st;
}

static stint_status name_all(const stint_field_import_desc *desc, import *m)
{
    const int64_t coordinates = inputs_of(m, 0);
    const int64_t outputs = units_of(m, m->layers - 1);
    static const char *const usual[] = {"x", "x,y", "x,y,z", "x,y,z,t"};
    if (coordinates < 1 || coordinates > STI_FIELD_COORDINATES || outputs < 1 ||
        outputs > STI_FIELD_OUTPUTS)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: %" PRId64 " coordinates and %" PRId64
                        " outputs; a field has at most %d and %d",
                        m->path, coordinates, outputs, STI_FIELD_COORDINATES,
                        STI_FIELD_OUTPUTS);
    const stint_status st = sti_field_names_parse(
        desc->coordinates ? desc->coordinates : usual[coordinates - 1], desc->outputs,
        &m->names);
    if (st != STINT_OK)
        return sti_fail(STINT_E_USAGE, "%s", stint_last_error());
    if (m->names.outputs == 0)
        sti_field_names_usual(&m->names, (int)outputs);
    if (m->names.coordinates == coordinates && m->names.outputs == outputs)
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "%s: %" PRId64 " coordinates and %" PRId64
                    " outputs, but %d and %d names for them",
                    m->path, coordinates, outputs, m->names.coordinates,
                    m->names.outputs);
}

static stint_status set_number(stint_recipe *recipe, const char *key, double value)
{
    return stint_recipe_set(recipe, key, sti_float_text(value));
}

static bool is_siren(const stint_field_import_desc *desc)
{
    return !desc->activation || strcmp(desc->activation, "sin") == 0;
}

/* The recipe that stands for the network. */
static stint_status print_recipe(const stint_field_import_desc *desc, const import *m,
                                 sti_text *out)
{
    const char *activation = desc->activation ? desc->activation : "sin";
    const double omega = desc->omega > 0 ? desc->omega : 1;
    stint_recipe *recipe = NULL;
    sti_text names = {0};
    stint_status st;
    sti_field_names_print(&m->names, &names);
    STI_TRY(names.failed ? STINT_E_MEMORY : stint_recipe_create(&recipe));
    char *outputs = strchr(names.data, ' ');
    *outputs++ = '\0';
    STI_TRY(stint_recipe_set(recipe, "model.name", is_siren(desc) ? "siren" : "field"));
    STI_TRY(stint_recipe_set(recipe, "model.activation", activation));
    STI_TRY(set_number(recipe, "model.width", (double)units_of(m, 0)));
    STI_TRY(set_number(recipe, "model.depth", m->layers - 1));
    STI_TRY(set_number(recipe, "model.omega", omega));
    STI_TRY(set_number(recipe, "model.omega_hidden", omega));
    STI_TRY(stint_recipe_set(recipe, "field.coordinates", names.data));
    STI_TRY(stint_recipe_set(recipe, "field.outputs", outputs));
    STI_TRY(sti_recipe_write(recipe, true, out));
out:
    stint_recipe_destroy(recipe);
    sti_text_fini(&names);
    return st;
}

static stint_status write_model(const stint_field_import_desc *desc, const import *m,
                                const char *model_path)
{
    sti_text recipe = {0}, names = {0};
    sti_meta_texts texts = {.count = 0};
    char hex[65];
    sti_sha256 sha;
    stint_status st;
    STI_TRY(print_recipe(desc, m, &recipe));
    sti_field_names_print(&m->names, &names);
    sti_sha256_init(&sha);
    for (int i = 0; i < 2 * m->layers; i++)
        sti_sha256_add(&sha, m->rows[i].data, m->rows[i].bytes);
    sti_sha256_hex(&sha, hex);
    sti_meta_add(&texts, STI_META_VERSION, stint_version());
    sti_meta_add(&texts, STI_META_KIND, "model");
    sti_meta_add(&texts, STI_META_NUMERICS, STI_NUMERICS_VERSION);
    sti_meta_add(&texts, STI_META_NETWORK, is_siren(desc) ? "siren" : "field");
    sti_meta_add(&texts, STI_META_RECIPE, recipe.data);
    sti_meta_add(&texts, STI_META_FIELD, names.data);
    sti_meta_add(&texts, STI_META_WEIGHTS, hex);
    st = names.failed ? STINT_E_MEMORY
                      : sti_tensor_file_write(model_path, m->rows, 2 * m->layers,
                                              texts.row, texts.count);
out:
    sti_text_fini(&recipe);
    sti_text_fini(&names);
    return st;
}

stint_status stint_field_import(const char *path, const stint_field_import_desc *desc,
                                const char *model_path)
{
    import *m = sti_alloc(sizeof *m, "field.import");
    stint_status st;
    if (!m)
        return STINT_E_MEMORY;
    m->path = path;
    STI_TRY(sti_tensor_file_open(path, &m->file));
    STI_TRY(find_layers(m));
    STI_TRY(read_layers(m));
    STI_TRY(name_all(desc, m));
    STI_TRY(write_model(desc, m, model_path));
out:
    for (int i = 0; i < 2 * LAYERS_MOST; i++)
        sti_free(m->data[i]);
    sti_tensor_file_close(m->file);
    sti_free(m);
    return st;
}
