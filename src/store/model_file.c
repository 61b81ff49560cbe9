#include "store/model_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/recipe.h"
#include "base/units.h"
#include "data/tokenizer.h"
#include "model/network_recipe.h"
#include "store/byte_weight.h"
#include "store/compact_file.h"
#include "store/field_facts.h"
#include "store/hf_folder.h"
#include "store/model_load.h"
#include "store/model_meta.h"
#include "store/text_sizes.h"

#define CLASSES_MAX (1 << 20)
#define SIDE_MAX    65535 /* pixels */

static stint_status broken(const stint_model_file *m, const char *what)
{
    return sti_fail(STINT_E_INPUT, "%s: %s; it was not written by stint train",
                    sti_tensor_file_path(m->file), what);
}

stint_status sti_model_not_finite(const stint_model_file *m)
{
    return sti_fail(STINT_E_INPUT,
                    "%s: its answers are no finite numbers: its weights or running "
                    "statistics are too large, or a variance among them is negative; "
                    "take another copy, or train it anew",
                    sti_tensor_file_path(m->file));
}

static const char *text_of(const stint_model_file *m, const char *key)
{
    return sti_tensor_file_text(m->file, key);
}

stint_status sti_model_read_classes(stint_model_file *m)
{
    const char *text = text_of(m, STI_META_CLASSES);
    json_t *list = text ? json_loads(text, 0, NULL) : NULL;
    size_t count = json_array_size(list);
    const bool clicks = text_of(m, STI_META_CLICKS), agent = text_of(m, STI_META_PLAY);
    if (!text && (clicks || agent))
        return sti_fail(STINT_E_UNSUPPORTED, "%s: is %s take",
                        sti_tensor_file_path(m->file),
                        agent ? "the model of an agent, which stint eval and report"
                              : "a model of clicks, which stint eval, run, report and "
                                "export embeddings");
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

const char *sti_norm_fault(const sti_data_norm *norm, int64_t channels)
{
    for (int64_t i = 0; i < channels; i++) {
        const float mean = norm->mean[i], deviation = norm->deviation[i];
        if (!isfinite(mean))
            return STI_META_MEAN;
        if (!isfinite(deviation) || !(deviation > 0) || !isfinite(1.0f / deviation) ||
            !isfinite(mean / deviation) || !isfinite((1.0f - mean) / deviation))
            return STI_META_DEVIATION;
    }
    return NULL;
}

/* Sizes count things. */
static bool all_whole(const double *numbers, int count)
{
    for (int i = 0; i < count; i++)
        if (numbers[i] != floor(numbers[i]))
            return false;
    return true;
}

static stint_status read_norm(stint_model_file *m)
{
    double mean[3], deviation[3];
    const int channels = (int)m->network.channels;
    if (!sti_meta_numbers(text_of(m, STI_META_MEAN), channels, mean) ||
        !sti_meta_numbers(text_of(m, STI_META_DEVIATION), channels, deviation))
        return broken(m, "it has no normalisation of its images");
    for (int i = 0; i < channels; i++) {
        m->norm.mean[i] = (float)mean[i];
        m->norm.deviation[i] = (float)deviation[i];
    }
    const char *fault = sti_norm_fault(&m->norm, channels);
    if (!fault)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s: '%s' in its metadata is '%.80s', with which a normalised "
                    "pixel is no finite number; take another copy",
                    sti_tensor_file_path(m->file), fault, text_of(m, fault));
}

static stint_status read_image(stint_model_file *m)
{
    double image[3];
    if (!sti_meta_numbers(text_of(m, STI_META_IMAGE), 3, image) || !(image[0] >= 1) ||
        !(image[1] >= 1) || image[0] > SIDE_MAX || image[1] > SIDE_MAX ||
        !(image[2] == 1 || image[2] == 3) || !all_whole(image, 2))
        return broken(m, "it does not say what images it takes ('" STI_META_IMAGE
                         "' in its metadata: height, width, channels)");
    m->network.height = (int64_t)image[0];
    m->network.width = (int64_t)image[1];
    m->network.channels = (int64_t)image[2];
    return read_norm(m);
}

static stint_status read_recipe(stint_model_file *m)
{
    m->recipe_text = text_of(m, STI_META_RECIPE);
    if (!m->recipe_text)
        return broken(m, "it holds no recipe");
    stint_status st = sti_recipe_parse_stored(
        m->recipe_text, sti_tensor_file_path(m->file), &m->recipe);
    if (st != STINT_OK)
        return st;
    const sti_network_desc of_recipe = sti_recipe_network_desc(m->recipe);
    m->network.name = of_recipe.name;
    m->network.bf16 = of_recipe.bf16;
    m->network.weight_bits = of_recipe.weight_bits;
    if (sti_recipe_is_text(m->recipe) || sti_recipe_is_field(m->recipe))
        return STINT_OK; /* sizes, or names, come from the file */
    m->network.model = of_recipe.model;
    m->network.bayes = of_recipe.bayes;
    const char *numerics = text_of(m, STI_META_NUMERICS);
    const bool older =
        numerics && strcmp(numerics, "1") == 0; /* knew direct sums only */
    m->network.winograd = of_recipe.winograd && !older;
    return STINT_OK;
}

/* Sizes and tokeniser of a text model. What the sizes are worth shows when the network
 * is built and its tensors are looked for. */
static stint_status read_text(stint_model_file *m)
{
    const stint_text_model_desc *d = &m->network.text;
    const char *tokenizer = text_of(m, STI_META_TOKENIZER);
    const char *fault =
        sti_text_sizes_read(m->file, &m->network.context, &m->network.text);
    if (fault)
        return broken(m, fault);
    const char *end = text_of(m, STI_META_END_TOKEN);
    if (!end || sti_parse_int(end, &m->end_token) != STINT_OK || m->end_token < 0 ||
        m->end_token >= d->vocabulary)
        m->end_token = -1;
    if (!tokenizer) /* of weights that came from elsewhere */
        return STINT_OK;
    stint_status st = sti_tokenizer_parse(tokenizer, strlen(tokenizer),
                                          sti_tensor_file_path(m->file), &m->tokenizer);
    if (st == STINT_OK &&
        stint_tokenizer_describe(m->tokenizer)->vocabulary > d->vocabulary)
        st = broken(m, "its tokeniser has more tokens than the network");
    return st;
}

static double number_of(const stint_model_file *m, const char *key)
{
    const char *text = text_of(m, key);
    double number;
    return text && *text && sti_parse_float(text, &number) == STINT_OK ? number
                                                                       : (double)NAN;
}

static void read_facts(stint_model_file *m)
{
    const char *step = text_of(m, STI_META_STEP);
    m->weights_sha256 = text_of(m, STI_META_WEIGHTS);
    if (!step || sti_parse_int(step, &m->step) != STINT_OK)
        m->step = 0;
    m->test_accuracy = number_of(m, STI_META_ACCURACY);
    m->test_loss = number_of(m, STI_META_LOSS);
}

static stint_status check_kind(const stint_model_file *m)
{
    const char *kind = text_of(m, STI_META_KIND);
    if (!kind)
        return sti_fail(STINT_E_INPUT,
                        "%s: safetensors, but not a model of Stint: it does not name a "
                        "network",
                        sti_tensor_file_path(m->file));
    if (strcmp(kind, "network") == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: is an imported network; one of Stint's own is wanted here",
                        sti_tensor_file_path(m->file));
    return STINT_OK;
}

/* ---- the fast form of a compact file ---- */

static const void *constant_data(const void *user, const char *name,
                                 const stint_shape *shape)
{
    const sti_tensor_row *row = sti_tensor_file_find(user, name);
    return row && row->type == STI_TENSOR_F32 && row->rank == shape->rank &&
                   memcmp(row->dim, shape->dim,
                          (size_t)row->rank * sizeof row->dim[0]) == 0
               ? row->data
               : NULL;
}

static bool is_planar(const void *user, const char *weight)
{
    const sti_tensor_row *row = sti_tensor_file_find(user, weight);
    return row && row->planar;
}

sti_network_desc sti_model_network_in_use(const stint_model_file *m)
{
    sti_network_desc desc = m->network;
    bool fast = false;
    for (int64_t i = 0; i < sti_tensor_file_count(m->file); i++)
        fast |= sti_tensor_file_row(m->file, i)->planar ||
                sti_tensor_file_row(m->file, i)->thin;
    if (fast && !desc.bf16)
        desc.constant = &m->weights;
    return desc;
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

/* Every tensor is there, and its bytes are those that training wrote. A model whose
 * file names no hash (a checkpoint) is taken as it is. */
static stint_status check_weights(stint_model_file *m)
{
    char hex[65];
    sti_sha256 hash;
    sti_model_loader l = {.model = m, .hash = &hash, .wants = m->network.name};
    sti_sha256_init(&hash);
    stint_status st =
        sti_network_each(&m->single, STI_ROLE_PARAM, sti_model_load_tensor, &l);
    if (st == STINT_OK)
        st = sti_network_each(&m->single, STI_ROLE_STATE, sti_model_load_tensor, &l);
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
                            void *params, void *states)
{
    const sti_model_loader l = {.model = model, .wants = model->network.name};
    return sti_model_load_all(l, network, params, states);
}

stint_status sti_model_reload(const char *path, int64_t step, const char *name,
                              const sti_network *network, void *params, void *states)
{
    stint_model_file m = {.network.name = name};
    stint_status st = sti_model_tensors_open(path, &m.file);
    if (st == STINT_OK) {
        read_facts(&m);
        if (m.step != step)
            st = sti_fail(STINT_E_INPUT,
                          "%s holds the weights after step %" PRId64
                          ", but those after step %" PRId64 " were chosen",
                          path, m.step, step);
    }
    if (st == STINT_OK)
        st = sti_model_load_all((sti_model_loader){.model = &m, .wants = name}, network,
                                params, states);
    sti_tensor_file_close(m.file);
    return st == STINT_OK ? st : sti_fail_context(st, "train.select");
}

stint_status sti_model_load_reference(const stint_model_file *model,
                                      const sti_network *network, void *fixed)
{
    sti_model_loader l = {.model = model,
                          .block = fixed,
                          .wants = model->network.name,
                          .scope = STI_REFERENCE_SCOPE};
    return sti_network_each(network, STI_ROLE_FIXED, sti_model_load_tensor, &l);
}

typedef struct fixed_hash {
    const sti_tensor_file *file;
    const sti_network *network;
    const char *fixed; /* the block */
    sti_sha256 hash;
} fixed_hash;

/* Tensor `of` of the model on its own, as it lies among the FIXED ones. */
static stint_status hash_fixed(void *user, const sti_value_row *of,
                               const sti_allocation *allocation)
{
    fixed_hash *h = user;
    const stint_graph *g = h->network->graph;
    const size_t skip = sizeof STI_REFERENCE_SCOPE;
    (void)allocation;
    if (sti_graph_is_spread(of)) /* stays in the file */
        return sti_tensor_file_add_finite_sha256(
            h->file, sti_tensor_file_find(h->file, of->name), &h->hash);
    for (int32_t v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        if (row->role == STI_ROLE_FIXED && strcmp(row->name + skip, of->name) == 0)
            sti_sha256_add(&h->hash, h->fixed + h->network->plan->allocation[v].offset,
                           stint_shape_bytes(&row->shape));
    }
    return STINT_OK;
}

void sti_model_reference_sha256(const stint_model_file *model,
                                const sti_network *network, const void *fixed,
                                char hex_out[65])
{
    fixed_hash h = {.file = model->file, .network = network, .fixed = fixed};
    sti_sha256_init(&h.hash);
    sti_network_each(&model->single, STI_ROLE_PARAM, hash_fixed, &h);
    sti_network_each(&model->single, STI_ROLE_STATE, hash_fixed, &h);
    sti_sha256_hex(&h.hash, hex_out);
}

stint_status sti_model_open_for(const char *key, const char *path,
                                stint_model_file **model_out)
{
    sti_arena *arena = sti_arena_create("model path");
    const char *file = path;
    stint_status st = arena ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK && sti_hf_folder_is(path))
        st = sti_fail(STINT_E_INPUT,
                      "%s is in Hugging Face's layout; make a model file of it with "
                      "`stint import hf %s --out FILE.safetensors`, and give that",
                      path, path);
    if (st == STINT_OK && sti_path_is_dir(path))
        file = sti_path_join(arena, path, "model.safetensors");
    if (st == STINT_OK)
        st = file ? stint_model_open(file, model_out) : STINT_E_MEMORY;
    sti_arena_destroy(arena);
    return st == STINT_OK ? st : sti_fail_context(st, "%s", key);
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
    stint_status st = sti_model_tensors_open(path, &m->file);
    m->weights = (sti_network_weights){
        .data = constant_data, .user = m->file, .fast = {is_planar, m->file}};
    if (st == STINT_OK)
        st = check_kind(m);
    if (st == STINT_OK)
        st = read_recipe(m);
    const bool text = st == STINT_OK && sti_recipe_is_text(m->recipe);
    const bool field = st == STINT_OK && sti_recipe_is_field(m->recipe);
    if (text)
        st = read_text(m);
    else if (field)
        st = sti_field_facts_read(m->file, m->recipe, &m->network);
    if (st == STINT_OK && !text && !field)
        st = sti_model_read_classes(m);
    if (st == STINT_OK && !text && !field)
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
    if (m->attached)
        m->destroy_attached(m->attached);
    sti_network_fini(&m->single);
    sti_adapter_close(m->adapter);
    stint_recipe_destroy(m->recipe);
    stint_tokenizer_close(m->tokenizer);
    sti_tensor_file_close(m->file);
    sti_arena_destroy(m->arena);
}

const stint_tokenizer *stint_model_tokenizer(const stint_model_file *m)
{
    return m->tokenizer;
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
                                 .test_accuracy = m->test_accuracy,
                                 .test_loss = m->test_loss,
                                 .context = m->network.context,
                                 .text = m->network.text,
                                 .field = m->network.field};
    snprintf(facts->weights_sha256, sizeof facts->weights_sha256, "%s",
             m->weights_sha256 ? m->weights_sha256 : "");
}
