#include "store/text_model_file.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "model/network_recipe.h"
#include "model/text_model.h"

/* ---- weights of a model file of ours: names and layout are those of the graph ---- */

static bool never_by_columns(void *user, const char *name)
{
    (void)user, (void)name;
    return false;
}

static stint_status read_runs(void *user, const char *name, int64_t runs, int64_t each,
                              int64_t first, int64_t count, float *out)
{
    const stint_model_file *m = user;
    const sti_tensor_row *row = sti_tensor_file_find(m->file, name);
    const bool vector = row && row->rank == 1 && runs == 1 && row->dim[0] == each;
    const bool matrix =
        row && row->rank == 2 && row->dim[0] == runs && row->dim[1] == each;
    if (!vector && !matrix)
        return sti_fail(STINT_E_INPUT, "%s: %s '%s' of the network's shape",
                        sti_tensor_file_path(m->file),
                        row ? "no tensor" : "there is no", name);
    return sti_tensor_file_read_f32(m->file, row, first * each, count * each, out);
}

static sti_weight_source plain_source(const stint_text_model *model)
{
    if (model->folder)
        return sti_hf_folder_source(model->folder);
    if (model->gguf) {
        stint_text_model *m = (stint_text_model *)(uintptr_t)model;
        return sti_gguf_source(&m->gguf_weights);
    }
    const sti_weight_source plain = {
        .user = model->file, .by_columns = never_by_columns, .read = read_runs};
    return model->rounding ? sti_text_rounding_source(model->rounding, plain) : plain;
}

/* ---- with an adapter ---- */

static bool adapted_by_columns(void *user, const char *name)
{
    const sti_weight_source source = plain_source(user);
    return source.by_columns(source.user, name);
}

static bool is_matrix(const char *name)
{
    return strncmp(name, "h.", 2) == 0 && strstr(name, ".weight") != NULL;
}

static stint_status read_adapted(void *user, const char *name, int64_t runs,
                                 int64_t each, int64_t first, int64_t count, float *out)
{
    const stint_text_model *m = user;
    const sti_weight_source source = plain_source(m);
    const stint_status st =
        source.read(source.user, name, runs, each, first, count, out);
    if (st == STINT_OK && count > 0 && is_matrix(name))
        sti_adapter_add(m->adapter, name, source.by_columns(source.user, name), each,
                        first, count, out);
    return st;
}

sti_weight_source sti_text_model_source(const stint_text_model *model)
{
    if (!model->adapter)
        return plain_source(model);
    return (sti_weight_source){.user = (void *)(uintptr_t)model,
                               .by_columns = adapted_by_columns,
                               .read = read_adapted};
}

/* ---- opening ---- */

sti_decoder_desc sti_text_model_decoder(const stint_text_model *m)
{
    const bool ours = m->file && m->file->recipe;
    return (sti_decoder_desc){
        .name = m->facts.family,
        .weight_bits = ours ? sti_recipe_generation_bits(m->file->recipe) : 0,
        .model = m->facts.sizes,
        .context = m->facts.context,
        .capacity = 1,
        .threads = 1};
}

/* A tokeniser that we cannot follow is no obstacle: token identities still work. */
static stint_status read_tokenizer(stint_text_model *m, const char *path)
{
    stint_status st = m->gguf ? sti_gguf_tokenizer(m->gguf, &m->tokenizer)
                              : stint_tokenizer_read(path, &m->tokenizer);
    if (st == STINT_E_UNSUPPORTED || st == STINT_E_IO) {
        snprintf(m->why, sizeof m->why, "%s", stint_last_error());
        return STINT_OK;
    }
    if (st != STINT_OK)
        return st;
    const int64_t has = stint_tokenizer_describe(m->tokenizer)->vocabulary;
    if (has > m->facts.sizes.vocabulary)
        return sti_fail(STINT_E_INPUT,
                        "%s: its tokeniser has %lld tokens, but the model %lld: they "
                        "belong to different models",
                        path, (long long)has, (long long)m->facts.sizes.vocabulary);
    m->facts.tokenizer = m->tokenizer;
    return STINT_OK;
}

static stint_status take_config(stint_text_model *m, const sti_hf_config *c,
                                const char *path)
{
    m->facts = (stint_text_model_facts){.family = c->name,
                                        .sizes = c->model,
                                        .context = c->context,
                                        .end_token = c->end_token};
    return read_tokenizer(m, path);
}

static stint_status open_folder(stint_text_model *m, const char *path)
{
    const stint_status st = sti_hf_folder_open(path, &m->folder);
    return st == STINT_OK ? take_config(m, sti_hf_folder_config(m->folder), path) : st;
}

static stint_status open_gguf(stint_text_model *m, const char *path)
{
    stint_status st = sti_gguf_open(path, &m->gguf);
    if (st == STINT_OK)
        st = sti_gguf_config(m->gguf, &m->gguf_config);
    m->gguf_weights = (sti_gguf_weights){m->gguf, &m->gguf_config};
    return st == STINT_OK ? take_config(m, &m->gguf_config, path) : st;
}

static stint_status open_file(stint_text_model *m, const char *path)
{
    stint_status st = stint_model_open(path, &m->file);
    if (st != STINT_OK)
        return st;
    if (!m->file->network.context)
        return sti_fail(STINT_E_INPUT,
                        "%s: a network for images ('%s'); text comes from text models",
                        path, m->file->network.name);
    m->facts = (stint_text_model_facts){
        .sizes = m->file->network.text,
        .context = m->file->network.context,
        .end_token = m->file->end_token,
        .tokenizer = m->file->tokenizer,
        .family = sti_text_model_family(m->file->network.name)};
    if (!m->file->tokenizer)
        snprintf(m->why, sizeof m->why, "the model holds no tokeniser");
    return m->file->network.weight_bits > 0
               ? sti_text_rounding_create(m->file, &m->rounding)
               : STINT_OK;
}

/* Every tensor is there, in the shape that the sizes say. */
static stint_status check(stint_text_model *m)
{
    const sti_decoder_desc desc = sti_text_model_decoder(m);
    const sti_weight_source source = sti_text_model_source(m);
    stint_status st = sti_decoder_check(&desc, &source);
    if (st == STINT_OK && m->gguf)
        st = sti_gguf_check_names(m->gguf, m->facts.sizes.depth);
    m->facts.parameters = st == STINT_OK ? sti_decoder_parameters(&desc) : 0;
    return st;
}

stint_status stint_text_model_open(const char *path, stint_text_model **model_out)
{
    char inside[4096];
    stint_text_model *m = sti_alloc(sizeof *m, "text model");
    if (!m)
        return STINT_E_MEMORY;
    const bool folder = sti_path_is_dir(path) && sti_hf_folder_is(path);
    const char *file = path;
    if (sti_path_is_dir(path)) {
        snprintf(inside, sizeof inside, "%s/model.safetensors", path);
        file = inside;
    }
    stint_status st = folder ? open_folder(m, path)
                      : !sti_path_is_dir(path) && sti_gguf_is(path)
                          ? open_gguf(m, path)
                          : open_file(m, file);
    if (st == STINT_OK)
        st = check(m);
    m->facts.no_tokenizer = m->why;
    if (st != STINT_OK) {
        stint_text_model_close(m);
        return st;
    }
    *model_out = m;
    return STINT_OK;
}

void stint_text_model_close(stint_text_model *m)
{
    if (!m)
        return;
    stint_model_close(m->file);
    sti_hf_folder_close(m->folder);
    sti_gguf_close(m->gguf);
    sti_text_rounding_destroy(m->rounding);
    sti_adapter_close(m->adapter);
    stint_tokenizer_close(m->tokenizer);
    sti_free(m);
}

void stint_text_model_describe(const stint_text_model *model,
                               stint_text_model_facts *facts)
{
    *facts = model->facts;
}
