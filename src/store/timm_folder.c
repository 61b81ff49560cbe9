#include "store/timm_folder.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/numerics.h"
#include "model/network_recipe.h"
#include "store/model_file.h"
#include "store/model_meta.h"

enum { NAME = 192 };
#define CONFIG_MAX ((size_t)1 << 26)

/* ---- config.json ---- */

static stint_status read_config(const char *folder, void **data_out,
                                size_t *n_bytes_out)
{
    sti_arena *arena = sti_arena_create("timm");
    const char *path = arena ? sti_path_join(arena, folder, "config.json") : NULL;
    const stint_status st =
        path ? sti_file_read(path, CONFIG_MAX, data_out, n_bytes_out) : STINT_E_MEMORY;
    sti_arena_destroy(arena);
    return st;
}

bool sti_timm_folder_is(const char *path)
{
    void *data = NULL;
    size_t n_bytes = 0;
    if (!sti_path_is_dir(path) || read_config(path, &data, &n_bytes) != STINT_OK)
        return false;
    json_t *root = json_loadb(data, n_bytes, 0, NULL);
    const bool is = json_is_string(json_object_get(root, "architecture"));
    json_decref(root);
    sti_free(data);
    return is;
}

stint_status sti_timm_folder_config(const char *path, sti_timm_config *config_out)
{
    char where[4096];
    void *data = NULL;
    size_t n_bytes = 0;
    stint_status st = read_config(path, &data, &n_bytes);
    snprintf(where, sizeof where, "%s/config.json", path);
    if (st == STINT_OK)
        st = sti_timm_config_parse(data, n_bytes, where, config_out);
    sti_free(data);
    return st;
}

/* ---- tensors ---- */

/* Their name of a parameter or state: the scopes are theirs, but for a shortcut's. */
static void their_name(const char *ours, char out[NAME])
{
    static const char *const words[][2] = {{"scale", "weight"},
                                           {"shift", "bias"},
                                           {"mean", "running_mean"},
                                           {"variance", "running_var"}};
    const char *dot = strrchr(ours, '.');
    const int scope = (int)(dot - ours);
    const char *last = dot + 1, *short_conv = "downsample.conv";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], dot + 1) == 0)
            last = words[i][1];
    const size_t tail = strlen(short_conv);
    const char *cut = strstr(ours, "downsample.");
    if (cut && (size_t)(dot - cut) == tail && strncmp(cut, short_conv, tail) == 0)
        snprintf(out, NAME, "%.*s.0.%s", (int)(cut - ours) + 10, ours, last);
    else if (cut)
        snprintf(out, NAME, "%.*s.1.%s", (int)(cut - ours) + 10, ours, last);
    else
        snprintf(out, NAME, "%.*s.%s", scope, ours, last);
}

typedef struct importer {
    sti_tensor_file *file;
    const sti_network *network;
    sti_tensor_row *rows; /* of our file */
    int64_t count;
    float *theirs, *ours; /* the largest tensor in either order */
    sti_sha256 hash;
} importer;

/* Axes of ours that axis i of theirs is: [out, in, h, w] is [h, w, in, out] here. */
static int axis_of(int rank, int i)
{
    static const int conv[] = {3, 2, 0, 1};
    return rank == 4 ? conv[i] : rank == 2 ? 1 - i : i;
}

static bool shapes_agree(const sti_tensor_row *theirs, const sti_tensor_row *ours)
{
    bool agree = theirs->rank == ours->rank;
    for (int i = 0; agree && i < ours->rank; i++)
        agree = theirs->dim[i] == ours->dim[axis_of(ours->rank, i)];
    return agree;
}

static void reorder(const sti_tensor_row *ours, const float *from, float *to)
{
    const int64_t *d = ours->dim;
    if (ours->rank == 1) {
        memcpy(to, from, ours->bytes);
        return;
    }
    const int64_t h = ours->rank == 4 ? d[0] : 1, w = ours->rank == 4 ? d[1] : 1;
    const int64_t in = d[ours->rank - 2], out = d[ours->rank - 1];
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++)
            for (int64_t p = 0; p < h * w; p++)
                to[(p * in + i) * out + o] = from[(o * in + i) * h * w + p];
}

static stint_status make_tensor(const importer *m, const sti_tensor_row *row)
{
    const int64_t count = (int64_t)(row->bytes / sizeof(float));
    char name[NAME];
    their_name(row->name, name);
    const sti_tensor_row *theirs = sti_tensor_file_find(m->file, name);
    if (!theirs || !shapes_agree(theirs, row))
        return sti_fail(STINT_E_INPUT, "%s: %s '%s' of the network's shape",
                        sti_tensor_file_path(m->file),
                        theirs ? "no tensor" : "there is no", name);
    const stint_status st =
        sti_tensor_file_read_finite(m->file, theirs, 0, count, m->theirs);
    if (st == STINT_OK)
        reorder(row, m->theirs, m->ours);
    return st;
}

static stint_status fill_tensor(void *user, const sti_tensor_row *row,
                                sti_writer *writer)
{
    const stint_status st = make_tensor(user, row);
    return st == STINT_OK
               ? sti_writer_add(writer, ((const importer *)user)->ours, row->bytes)
               : st;
}

static stint_status add_row(void *user, const sti_value_row *value,
                            const sti_allocation *allocation)
{
    importer *m = user;
    sti_tensor_row *row = &m->rows[m->count++];
    (void)allocation;
    *row = (sti_tensor_row){.name = value->name,
                            .type = STI_TENSOR_F32,
                            .rank = value->shape.rank,
                            .bytes = stint_shape_bytes(&value->shape)};
    memcpy(row->dim, value->shape.dim, sizeof value->shape.dim);
    return STINT_OK;
}

static stint_status list_rows(importer *m)
{
    const int64_t values = sti_graph_value_count(m->network->graph);
    size_t largest = 0;
    m->rows = sti_alloc_array(values, sizeof *m->rows, "timm");
    if (!m->rows)
        return STINT_E_MEMORY;
    stint_status st = sti_network_each(m->network, STI_ROLE_PARAM, add_row, m);
    if (st == STINT_OK)
        st = sti_network_each(m->network, STI_ROLE_STATE, add_row, m);
    for (int64_t i = 0; i < m->count; i++)
        largest = m->rows[i].bytes > largest ? m->rows[i].bytes : largest;
    m->theirs = sti_alloc(largest, "timm");
    m->ours = sti_alloc(largest, "timm");
    return st == STINT_OK && (!m->theirs || !m->ours) ? STINT_E_MEMORY : st;
}

/* Every tensor once, before anything is written. */
static stint_status hash_tensors(importer *m, char hex_out[65])
{
    stint_status st = STINT_OK;
    sti_sha256_init(&m->hash);
    for (int64_t i = 0; i < m->count && st == STINT_OK; i++) {
        st = make_tensor(m, &m->rows[i]);
        if (st == STINT_OK)
            sti_sha256_add(&m->hash, m->ours, m->rows[i].bytes);
    }
    sti_sha256_hex(&m->hash, hex_out);
    return st;
}

/* ---- our file ---- */

static stint_status make_recipe(const sti_timm_config *c, stint_recipe **recipe_out)
{
    char size[32], channels[32];
    stint_recipe *recipe = NULL;
    stint_status st;
    snprintf(size, sizeof size, "%d", (int)c->height);
    snprintf(channels, sizeof channels, "%d", (int)c->channels);
    STI_TRY(stint_recipe_create(&recipe));
    STI_TRY(stint_recipe_set(recipe, "model.name", c->network));
    STI_TRY(stint_recipe_set(recipe, "data.size", size));
    STI_TRY(stint_recipe_set(recipe, "data.channels", channels));
    *recipe_out = recipe;
    recipe = NULL;
out:
    stint_recipe_destroy(recipe);
    return st;
}

static stint_status build(const sti_timm_config *c, const stint_recipe *recipe,
                          sti_network *network)
{
    sti_network_desc desc = sti_recipe_network_desc(recipe);
    desc.model.classes = c->classes;
    desc.height = c->height;
    desc.width = c->width;
    desc.channels = c->channels;
    const stint_status st = sti_network_build(&desc, STINT_EVAL, 1, network);
    return st == STINT_OK ? sti_network_plan(network, 1) : st;
}

static stint_status write_file(importer *m, const sti_timm_config *c,
                               const stint_recipe *recipe, const char *path)
{
    const int64_t image[] = {c->height, c->width, c->channels};
    sti_meta_texts t = {.count = 0};
    sti_text text = {0};
    char sha[65];
    stint_status st;
    STI_TRY(hash_tensors(m, sha));
    STI_TRY(sti_recipe_write(recipe, true, &text));
    sti_meta_add(&t, STI_META_VERSION, stint_version());
    sti_meta_add(&t, STI_META_KIND, "model");
    sti_meta_add(&t, STI_META_NUMERICS, STI_NUMERICS_VERSION);
    sti_meta_add(&t, STI_META_NETWORK, c->network);
    sti_meta_add(&t, STI_META_CLASSES, c->names.data);
    sti_meta_add_ints(&t, STI_META_IMAGE, image, 3);
    sti_meta_add_floats(&t, STI_META_MEAN, c->norm.mean, (int)c->channels);
    sti_meta_add_floats(&t, STI_META_DEVIATION, c->norm.deviation, (int)c->channels);
    sti_meta_add(&t, STI_META_RECIPE, text.data);
    sti_meta_add(&t, STI_META_WEIGHTS, sha);
    STI_TRY(sti_tensor_file_write_made(path, m->rows, m->count, t.row, t.count,
                                       fill_tensor, m));
out:
    sti_text_fini(&text);
    return st;
}

static stint_status open_tensors(const char *folder, sti_tensor_file **file_out)
{
    sti_arena *arena = sti_arena_create("timm");
    const char *path = arena ? sti_path_join(arena, folder, "model.safetensors") : NULL;
    const stint_status st =
        path ? sti_tensor_file_open(path, file_out) : STINT_E_MEMORY;
    sti_arena_destroy(arena);
    return st;
}

stint_status sti_timm_import(const char *folder, const char *path)
{
    sti_timm_config config = {.network = NULL};
    stint_recipe *recipe = NULL;
    sti_network network = {.graph = NULL};
    importer m = {.network = &network};
    stint_status st;
    STI_TRY(sti_timm_folder_config(folder, &config));
    STI_TRY(make_recipe(&config, &recipe));
    STI_TRY(build(&config, recipe, &network));
    STI_TRY(open_tensors(folder, &m.file));
    STI_TRY(list_rows(&m));
    STI_TRY(write_file(&m, &config, recipe, path));
out:
    sti_free(m.rows);
    sti_free(m.theirs);
    sti_free(m.ours);
    sti_tensor_file_close(m.file);
    sti_network_fini(&network);
    stint_recipe_destroy(recipe);
    sti_timm_config_fini(&config);
    return st;
}
