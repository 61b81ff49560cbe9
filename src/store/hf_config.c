#include "store/hf_config.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "model/text_model.h"

/* Far above every published model: what is larger is a damaged number. */
#define COUNT_MAX (INT64_C(1) << 31)

/* A config while it is read: the first complaint stays. */
typedef struct config_reader {
    const json_t *root;
    const char *where;
    stint_status status;
} config_reader;

static const json_t *find(const config_reader *r, const char *key)
{
    const json_t *value = json_object_get(r->root, key);
    return json_is_null(value) ? NULL : value;
}

/* 0 where it is absent and may be. */
static int64_t count_of(config_reader *r, const char *key, bool required)
{
    const json_t *value = find(r, key);
    const json_int_t n = json_integer_value(value);
    if (r->status != STINT_OK || (!value && !required))
        return 0;
    if (!json_is_integer(value) || n < 1 || n > COUNT_MAX)
        r->status =
            sti_fail(STINT_E_INPUT, "%s: \"%s\" %s; wanted a whole number from 1",
                     r->where, key, value ? "is no count" : "is missing");
    return r->status == STINT_OK ? (int64_t)n : 0;
}

static double number_of(config_reader *r, const json_t *from, const char *key,
                        double otherwise)
{
    const json_t *value = json_object_get(from, key);
    if (r->status != STINT_OK || !value || json_is_null(value))
        return otherwise;
    const double x = json_number_value(value);
    if (!json_is_number(value) || !(x > 0) || !isfinite((float)x))
        r->status =
            sti_fail(STINT_E_INPUT, "%s: \"%s\" is no number above 0", r->where, key);
    return x;
}

static bool flag_of(config_reader *r, const char *key, bool otherwise)
{
    const json_t *value = find(r, key);
    if (value && !json_is_boolean(value) && r->status == STINT_OK)
        r->status =
            sti_fail(STINT_E_INPUT, "%s: \"%s\" is not true or false", r->where, key);
    return value ? json_is_true(value) : otherwise;
}

static void want_flag(config_reader *r, const char *key, bool want)
{
    if (flag_of(r, key, want) != want && r->status == STINT_OK)
        r->status = sti_fail(
            STINT_E_UNSUPPORTED, "%s: \"%s\" is %s; only models with %s are known here",
            r->where, key, want ? "false" : "true", want ? "true" : "false");
}

/* One of the words, NULL-ended; absent is fine. */
static void want_word(config_reader *r, const char *key, const char *const *words)
{
    const char *word = json_string_value(find(r, key));
    if (r->status != STINT_OK || !find(r, key))
        return;
    for (int i = 0; words[i] && word; i++)
        if (strcmp(words[i], word) == 0)
            return;
    r->status =
        sti_fail(STINT_E_UNSUPPORTED, "%s: \"%s\" is '%.40s'; only '%s' is known here",
                 r->where, key, word ? word : "(no text)", words[0]);
}

static stint_text_head head_of(config_reader *r, bool otherwise)
{
    return flag_of(r, "tie_word_embeddings", otherwise) ? STINT_TEXT_HEAD_TIED
                                                        : STINT_TEXT_HEAD_OWN;
}

static void read_gpt2(config_reader *r, sti_hf_config *c)
{
    static const char *const curves[] = {"gelu_new", "gelu_pytorch_tanh", NULL};
    stint_text_model_desc *m = &c->model;
    c->name = "gpt";
    m->vocabulary = count_of(r, "vocab_size", true);
    c->context = count_of(r, find(r, "n_positions") ? "n_positions" : "n_ctx", true);
    m->width = count_of(r, "n_embd", true);
    m->depth = count_of(r, "n_layer", true);
    m->heads = count_of(r, "n_head", true);
    m->hidden = count_of(r, "n_inner", false);
    m->epsilon = (float)number_of(r, r->root, "layer_norm_epsilon", 1e-5);
    m->head = head_of(r, true);
    want_word(r, "activation_function", curves);
    want_flag(r, "scale_attn_weights", true);
    want_flag(r, "scale_attn_by_inverse_layer_idx", false);
    want_flag(r, "add_cross_attention", false);
}

/* Plain rotary positions only; newer files keep the base among "rope_parameters". */
static void read_rotary(config_reader *r, sti_hf_config *c)
{
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    double base = number_of(r, r->root, "rope_theta", 10000.0);
    for (int i = 0; i < 2; i++) {
        const json_t *rope = find(r, keys[i]);
        const json_t *type = json_object_get(rope, "rope_type");
        if (!type)
            type = json_object_get(rope, "type");
        const char *word = json_string_value(type);
        if (!rope || r->status != STINT_OK)
            continue;
        base = number_of(r, rope, "rope_theta", base);
        if (!json_is_object(rope) || (type && !word) ||
            (word && strcmp(word, "default") != 0))
            r->status = sti_fail(STINT_E_UNSUPPORTED,
                                 "%s: \"%s\" asks for '%.40s'; only plain rotary "
                                 "positions are known here",
                                 r->where, keys[i], word ? word : "(no text)");
    }
    c->model.rotary_base = (float)base;
}

static void read_llama(config_reader *r, sti_hf_config *c)
{
    static const char *const curves[] = {"silu", "swish", NULL};
    stint_text_model_desc *m = &c->model;
    c->name = "llama";
    m->vocabulary = count_of(r, "vocab_size", true);
    c->context = count_of(r, "max_position_embeddings", true);
    m->width = count_of(r, "hidden_size", true);
    m->hidden = count_of(r, "intermediate_size", true);
    m->depth = count_of(r, "num_hidden_layers", true);
    m->heads = count_of(r, "num_attention_heads", true);
    m->kv_heads = count_of(r, "num_key_value_heads", false);
    if (!m->kv_heads)
        m->kv_heads = m->heads;
    m->epsilon = (float)number_of(r, r->root, "rms_norm_eps", 1e-6);
    m->head = head_of(r, false);
    read_rotary(r, c);
    want_word(r, "hidden_act", curves);
    want_flag(r, "attention_bias", false);
    want_flag(r, "mlp_bias", false);
    const int64_t size = count_of(r, "head_dim", false);
    if (r->status == STINT_OK && size && size * m->heads != m->width)
        r->status =
            sti_fail(STINT_E_UNSUPPORTED,
                     "%s: \"head_dim\" %" PRId64 " times %" PRId64
                     " heads is not \"hidden_size\" %" PRId64 ", as it must be here",
                     r->where, size, m->heads, m->width);
}

static void read_family(config_reader *r, sti_hf_config *c)
{
    const char *type = json_string_value(find(r, "model_type"));
    if (type && strcmp(type, "gpt2") == 0)
        read_gpt2(r, c);
    else if (type && strcmp(type, "llama") == 0)
        read_llama(r, c);
    else
        r->status = sti_fail(STINT_E_UNSUPPORTED,
                             "%s: \"model_type\" is '%.40s'; there are gpt2 and llama",
                             r->where, type ? type : "(none)");
}

stint_status sti_hf_config_parse(const char *json, size_t n_bytes, const char *where,
                                 sti_hf_config *config_out)
{
    json_error_t error;
    sti_hf_config c = {0};
    bool llama;
    json_t *root = json_loadb(json, n_bytes, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(root)) {
        json_decref(root);
        return sti_fail(STINT_E_INPUT, "%s: line %d: %s; wanted one JSON object", where,
                        root ? 1 : error.line, root ? "no object" : error.text);
    }
    config_reader r = {.root = root, .where = where};
    read_family(&r, &c);
    const json_t *end = find(&r, "eos_token_id"); /* may be a list: then the first */
    if (json_is_array(end))
        end = json_array_get(end, 0);
    const json_int_t token = json_is_integer(end) ? json_integer_value(end) : -1;
    c.end_token = token >= 0 && token < c.model.vocabulary ? (int64_t)token : -1;
    json_decref(root);
    if (r.status == STINT_OK &&
        (r.status = sti_text_model_resolve(c.name, &c.model, &llama)) != STINT_OK)
        r.status = sti_fail_context(r.status, "%s", where);
    if (r.status == STINT_OK)
        *config_out = c;
    return r.status;
}

/* ---- writing ---- */

static void print_gpt2(const sti_hf_config *c, sti_json *j)
{
    const stint_text_model_desc *m = &c->model;
    sti_json_text(j, "model_type", "gpt2");
    sti_json_begin_array(j, "architectures");
    sti_json_text(j, NULL, "GPT2LMHeadModel");
    sti_json_end_array(j);
    sti_json_int(j, "vocab_size", m->vocabulary);
    sti_json_int(j, "n_positions", c->context);
    sti_json_int(j, "n_embd", m->width);
    sti_json_int(j, "n_layer", m->depth);
    sti_json_int(j, "n_head", m->heads);
    sti_json_int(j, "n_inner", m->hidden);
    sti_json_text(j, "activation_function", "gelu_new");
    sti_json_float(j, "layer_norm_epsilon", (double)m->epsilon);
    sti_json_float(j, "resid_pdrop", (double)m->dropout);
    sti_json_float(j, "embd_pdrop", (double)m->dropout);
    sti_json_float(j, "attn_pdrop", 0.0);
}

static void print_llama(const sti_hf_config *c, sti_json *j)
{
    const stint_text_model_desc *m = &c->model;
    sti_json_text(j, "model_type", "llama");
    sti_json_begin_array(j, "architectures");
    sti_json_text(j, NULL, "LlamaForCausalLM");
    sti_json_end_array(j);
    sti_json_int(j, "vocab_size", m->vocabulary);
    sti_json_int(j, "max_position_embeddings", c->context);
    sti_json_int(j, "hidden_size", m->width);
    sti_json_int(j, "intermediate_size", m->hidden);
    sti_json_int(j, "num_hidden_layers", m->depth);
    sti_json_int(j, "num_attention_heads", m->heads);
    sti_json_int(j, "num_key_value_heads", m->kv_heads);
    sti_json_int(j, "head_dim", m->width / m->heads);
    sti_json_float(j, "rms_norm_eps", (double)m->epsilon);
    sti_json_float(j, "rope_theta", (double)m->rotary_base);
    sti_json_text(j, "hidden_act", "silu");
    sti_json_bool(j, "attention_bias", false);
    sti_json_bool(j, "mlp_bias", false);
}

void sti_hf_config_print(const sti_hf_config *c, sti_text *out)
{
    sti_json j = {.out = out, .pretty = true};
    sti_json_begin_object(&j, NULL);
    if (strcmp(c->name, "gpt") == 0)
        print_gpt2(c, &j);
    else
        print_llama(c, &j);
    sti_json_bool(&j, "tie_word_embeddings", c->model.head == STINT_TEXT_HEAD_TIED);
    sti_json_text(&j, "torch_dtype", "float32");
    if (c->end_token >= 0)
        sti_json_int(&j, "eos_token_id", c->end_token);
    else
        sti_json_text(&j, "eos_token_id", NULL);
    sti_json_text(&j, "bos_token_id", NULL);
    sti_json_end_object(&j);
    sti_text_add(out, "\n");
}
