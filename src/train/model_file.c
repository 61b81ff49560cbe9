#include "train/model_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "train/checkpoint.h"

#define CLASSES_MAX (1 << 20)
#define SIDE_MAX    65535 /* pixels */

static stint_status broken(const stint_model_file *m, const char *what)
{
    return sti_fail(STINT_E_INPUT, "%s: %s; it was not written by stint train",
                    sti_tensor_file_path(m->file), what);
}

static const char *text_of(const stint_model_file *m, const char *key)
{
    return sti_tensor_file_text(m->file, key);
}

static stint_status read_classes(stint_model_file *m)
{
    const char *text = text_of(m, STI_META_CLASSES);
    json_t *list = text ? json_loads(text, 0, NULL) : NULL;
    size_t count = json_array_size(list);
    stint_status st = count >= 1 && count <= CLASSES_MAX
                          ? STINT_OK
                          : broken(m, "it names no classes");
    if (st == STINT_OK) {
        m->class_names = sti_arena_alloc(m->arena, count * sizeof *m->class_names);
        st = m->class_names ? STINT_OK : STINT_E_MEMORY;
    }
    for (size_t i = 0; i < count && st == STINT_OK; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name)
            st = broken(m, "a class has no name");
        else if (!(m->class_names[i] = sti_arena_strdup(m->arena, name)))
            st = STINT_E_MEMORY;
    }
    json_decref(list);
    m->network.model.classes = (int64_t)count;
    return st;
}

static stint_status read_image(stint_model_file *m)
{
    double image[3], mean[3], deviation[3];
    if (!sti_meta_numbers(text_of(m, STI_META_IMAGE), 3, image) || !(image[0] >= 1) ||
        !(image[1] >= 1) || image[0] > SIDE_MAX || image[1] > SIDE_MAX ||
        !(image[2] == 1 || image[2] == 3))
        return broken(m, "it does not say what images it takes");
    m->network.height = (int64_t)image[0];
    m->network.width = (int64_t)image[1];
    m->network.channels = (int64_t)image[2];
    int channels = (int)image[2];
    if (!sti_meta_numbers(text_of(m, STI_META_MEAN), channels, mean) ||
        !sti_meta_numbers(text_of(m, STI_META_DEVIATION), channels, deviation))
        return broken(m, "it has no normalisation of its images");
    for (int i = 0; i < channels; i++) {
        m->norm.mean[i] = (float)mean[i];
        m->norm.deviation[i] = (float)deviation[i];
        if (!(m->norm.deviation[i] > 0))
            return broken(m, "its normalisation divides by zero");
    }
    return STINT_OK;
}

static stint_status read_recipe(stint_model_file *m)
{
    m->recipe_text = text_of(m, STI_META_RECIPE);
    if (!m->recipe_text)
        return broken(m, "it holds no recipe");
    stint_status st =
        sti_recipe_parse(m->recipe_text, sti_tensor_file_path(m->file), &m->recipe);
    if (st == STINT_E_USAGE) { /* the file is at fault, not who gave it */
        char words[1024];
        snprintf(words, sizeof words, "%s", stint_last_error());
        st = sti_fail(STINT_E_INPUT, "the recipe in the model cannot be read: %s",
                      words);
    }
    if (st != STINT_OK)
        return st;
    const sti_recipe_values *v = &m->recipe->values;
    m->network.name = sti_recipe_network(m->recipe);
    m->network.model.stem = (stint_stem)v->model.stem;
    m->network.model.width = v->model.width;
    m->network.model.depth = v->model.depth;
    m->network.model.dropout = (float)v->model.dropout;
    m->network.bf16 = v->train.precision == STI_PRECISION_BF16;
    return STINT_OK;
}

static void read_facts(stint_model_file *m)
{
    const char *step = text_of(m, STI_META_STEP),
               *accuracy = text_of(m, STI_META_ACCURACY);
    m->weights_sha256 = text_of(m, STI_META_WEIGHTS);
    if (!step || sti_parse_int(step, &m->step) != STINT_OK)
        m->step = 0;
    if (!accuracy || !*accuracy ||
        sti_parse_float(accuracy, &m->test_accuracy) != STINT_OK)
        m->test_accuracy = (double)NAN;
}

static stint_status check_kind(const stint_model_file *m)
{
    const char *kind = text_of(m, STI_META_KIND);
    if (!kind)
        return sti_fail(STINT_E_INPUT,
                        "%s: safetensors, but not a model of Stint: it does not name a "
                        "network",
                        sti_tensor_file_path(m->file));
    return STINT_OK;
}

/* One image through the network: shows at once whether tensors and network agree, and
 * serves single predictions. */
static stint_status build_single(stint_model_file *m)
{
    stint_status st = sti_network_build(&m->network, STINT_EVAL, 1, &m->single);
    if (st == STINT_OK)
        st = sti_network_plan(&m->single, 1);
    if (st != STINT_OK)
        return st;
    m->parameters = sti_network_parameters(&m->single);
    return STINT_OK;
}

typedef struct loader {
    const stint_model_file *model;
    char *block;      /* NULL: only check */
    sti_sha256 *hash; /* of what is only checked */
} loader;

static stint_status load_tensor(void *user, const sti_value_row *value,
                                const sti_place *place)
{
    const loader *l = user;
    const sti_tensor_file *f = l->model->file;
    const sti_tensor_row *row = sti_tensor_file_find(f, value->name);
    if (!row || row->type != STI_TENSOR_F32 || row->rank != value->shape.rank ||
        memcmp(row->dim, value->shape.dim, (size_t)row->rank * sizeof row->dim[0]) != 0)
        return sti_fail(STINT_E_INPUT, "%s: %s '%s' of %s, as the network %s wants it",
                        sti_tensor_file_path(f), row ? "has another" : "has no",
                        value->name, sti_shape_text(&value->shape),
                        l->model->network.name);
    if (!l->block)
        return sti_tensor_file_add_sha256(f, row, l->hash);
    return sti_tensor_file_read(f, row, l->block + place->offset);
}

static stint_status load_all(const stint_model_file *model, const sti_network *network,
                             void *params, void *states)
{
    loader l = {model, params, NULL};
    stint_status st = sti_network_each(network, STI_ROLE_PARAM, load_tensor, &l);
    l.block = states;
    return st != STINT_OK ? st
                          : sti_network_each(network, STI_ROLE_STATE, load_tensor, &l);
}

/* Every tensor is there, and its bytes are those that training wrote. A model whose
 * file names no hash (a checkpoint) is taken as it is. */
static stint_status check_weights(stint_model_file *m)
{
    char hex[65];
    sti_sha256 hash;
    loader l = {m, NULL, &hash};
    sti_sha256_init(&hash);
    stint_status st = sti_network_each(&m->single, STI_ROLE_PARAM, load_tensor, &l);
    if (st == STINT_OK)
        st = sti_network_each(&m->single, STI_ROLE_STATE, load_tensor, &l);
    if (st != STINT_OK)
        return st;
    sti_sha256_hex(&hash, hex);
    if (m->weights_sha256 && strcmp(m->weights_sha256, hex) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: damaged: its weights have the SHA-256 %s, but the file "
                        "says %.64s; take another copy (or, if you changed them, "
                        "remove " STI_META_WEIGHTS " from its metadata)",
                        sti_tensor_file_path(m->file), hex, m->weights_sha256);
    m->weights_sha256 = sti_arena_strdup(m->arena, hex);
    return m->weights_sha256 ? STINT_OK : STINT_E_MEMORY;
}

stint_status sti_model_load(const stint_model_file *model, const sti_network *network,
                            sti_crew *crew)
{
    return load_all(model, network, crew->params, crew->states);
}

stint_status stint_model_open(const char *path, stint_model_file **model_out)
{
    sti_arena *arena = sti_arena_create("model file");
    stint_model_file *m = arena ? sti_arena_alloc(arena, sizeof *m) : NULL;
    if (!m) {
        sti_arena_destroy(arena);
        return STINT_E_MEMORY;
    }
    m->arena = arena;
    stint_status st = sti_tensor_file_open(path, &m->file);
    if (st == STINT_OK)
        st = check_kind(m);
    if (st == STINT_OK)
        st = read_recipe(m);
    if (st == STINT_OK)
        st = read_classes(m);
    if (st == STINT_OK)
        st = read_image(m);
    if (st == STINT_OK) {
        read_facts(m);
        st = build_single(m);
    }
    if (st == STINT_OK)
        st = check_weights(m);
    if (st != STINT_OK) {
        stint_model_close(m);
        return st;
    }
    *model_out = m;
    return STINT_OK;
}

void stint_model_close(stint_model_file *m)
{
    if (!m)
        return;
    sti_crew_destroy(m->single_crew);
    sti_network_fini(&m->single);
    sti_free(m->pixels);
    stint_recipe_destroy(m->recipe);
    sti_tensor_file_close(m->file);
    sti_arena_destroy(m->arena);
}

void stint_model_describe(const stint_model_file *m, stint_model_facts *facts)
{
    *facts = (stint_model_facts){.network = m->network.name,
                                 .classes = (int32_t)m->network.model.classes,
                                 .class_names = m->class_names,
                                 .height = m->network.height,
                                 .width = m->network.width,
                                 .channels = m->network.channels,
                                 .parameters = m->parameters,
                                 .tensors = sti_tensor_file_count(m->file),
                                 .recipe = m->recipe_text,
                                 .step = m->step,
                                 .test_accuracy = m->test_accuracy};
    snprintf(facts->weights_sha256, sizeof facts->weights_sha256, "%s",
             m->weights_sha256 ? m->weights_sha256 : "");
}

static stint_status prepare_single(stint_model_file *m)
{
    sti_crew_desc desc = {.eval = &m->single, .threads = 1, .lanes = 1, .shards = 1};
    const sti_network_desc *net = &m->network;
    if (m->single_crew)
        return STINT_OK;
    sti_free(m->pixels);
    m->pixels = sti_alloc_array(net->height * net->width * net->channels, 1, "pixels");
    if (!m->pixels)
        return STINT_E_MEMORY;
    stint_status st = sti_crew_create(&desc, &m->single_crew);
    if (st == STINT_OK)
        st = sti_model_load(m, &m->single, m->single_crew);
    if (st != STINT_OK) {
        sti_crew_destroy(m->single_crew);
        m->single_crew = NULL;
    }
    return st;
}

stint_status stint_predict(stint_model_file *m, const char *image_path,
                           float *probabilities_out)
{
    const sti_network_desc *net = &m->network;
    stint_status st = prepare_single(m);
    if (st == STINT_OK)
        st = sti_data_read_image(image_path, net->height, net->width, net->channels,
                                 m->pixels);
    if (st != STINT_OK)
        return st;
    sti_exec *exec = m->single_crew->lanes[0].eval;
    float *x = sti_exec_address(exec, m->single.input);
    int32_t *label = sti_exec_address(exec, m->single.labels);
    int64_t count = net->height * net->width * net->channels;
    for (int64_t i = 0; i < count; i++) {
        int64_t c = i % net->channels;
        x[i] = ((float)m->pixels[i] / 255.0f - m->norm.mean[c]) / m->norm.deviation[c];
    }
    *label = -1;
    sti_exec_run(exec, &m->single_crew->lane_team, &(sti_step){0, 0, 0});
    memcpy(probabilities_out, sti_exec_address(exec, m->single.probabilities),
           (size_t)net->model.classes * sizeof *probabilities_out);
    return STINT_OK;
}
