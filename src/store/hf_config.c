#include "store/hf_config.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "kernel/maths/smooth.h"
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

/* ---- rotary positions ---- */

/* YaRN's gain where the file names none: 0.1 ln factor + 1, with mscale of both kinds.
 */
static double yarn_gain(config_reader *r, const json_t *rope, double factor)
{
    const double scale = number_of(r, rope, "mscale", 0);
    const double all = number_of(r, rope, "mscale_all_dim", 0);
    const double given = number_of(r, rope, "attention_factor", 0);
    const double depth = factor > 1 ? 0.1 * sti_smooth_log(factor) : 0;
    if (given > 0)
        return given;
    return scale > 0 && all > 0 ? (scale * depth + 1) / (all * depth + 1) : depth + 1;
}

static void read_stretch(config_reader *r, const json_t *rope, stint_rotary_kind kind,
                         sti_hf_config *c)
{
    const bool yarn = kind == STINT_ROTARY_YARN;
    const double original = number_of(r, rope, "original_max_position_embeddings",
                                      yarn ? (double)c->context : 0);
    const double factor =
        number_of(r, rope, "factor", yarn ? (double)c->context / original : 0);
    const double low = number_of(r, rope, yarn ? "beta_slow" : "low_freq_factor", 1);
    const double high =
        number_of(r, rope, yarn ? "beta_fast" : "high_freq_factor", yarn ? 32 : 4);
    const json_t *truncate = json_object_get(rope, "truncate");
    if (r->status != STINT_OK)
        return;
    if (!(factor > 0) || original > (double)COUNT_MAX ||
        (kind == STINT_ROTARY_LLAMA3 && !(original > 0)) || !(high > low) ||
        json_is_false(truncate)) {
        r->status =
            sti_fail(STINT_E_UNSUPPORTED,
                     "%s: rotary positions are stretched by \"factor\" %g from "
                     "%g positions, between %g and %g turns; wanted a factor and "
                     "positions above 0, rising turns, and no \"truncate\" false",
                     r->where, factor, original, low, high);
        return;
    }
    c->model.rotary_scaling =
        (stint_rotary_scaling){.kind = kind, .factor = (float)factor};
    if (kind == STINT_ROTARY_LINEAR)
        return;
    c->model.rotary_scaling.low = (float)low;
    c->model.rotary_scaling.high = (float)high;
    c->model.rotary_scaling.original = (float)original;
    if (yarn)
        c->model.rotary_scaling.attention = (float)yarn_gain(r, rope, factor);
}

/* Within the context that a file states, "dynamic" waves are not stretched. */
static void read_rope(config_reader *r, const char *key, const json_t *rope,
                      sti_hf_config *c)
{
    static const struct {
        const char *word;
        stint_rotary_kind kind;
    } kinds[] = {{"default", STINT_ROTARY_PLAIN},
                 {"dynamic", STINT_ROTARY_PLAIN},
                 {"linear", STINT_ROTARY_LINEAR},
                 {"llama3", STINT_ROTARY_LLAMA3},
                 {"yarn", STINT_ROTARY_YARN}};
    const json_t *type = json_object_get(rope, "rope_type");
    if (!type)
        type = json_object_get(rope, "type");
    const char *word = type ? json_string_value(type) : "default";
    if (number_of(r, rope, "partial_rotary_factor", 1) != 1)
        word = "partial_rotary_factor";
    for (size_t i = 0; word && i < sizeof kinds / sizeof *kinds; i++)
        if (json_is_object(rope) && strcmp(kinds[i].word, word) == 0) {
            if (kinds[i].kind != STINT_ROTARY_PLAIN)
                read_stretch(r, rope, kinds[i].kind, c);
            return;
        }
    if (r->status == STINT_OK)
        r->status = sti_fail(STINT_E_UNSUPPORTED,
                             "%s: \"%s\" asks for '%.40s'; rotary positions are known "
                             "plain, linear, dynamic, llama3 and yarn",
                             r->where, key, word ? word : "(no text)");
}

/* Newer files keep the base among "rope_parameters". */
static void read_rotary(config_reader *r, sti_hf_config *c)
{
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    double base = number_of(r, r->root, "rope_theta", 10000.0);
    for (int i = 0; i < 2; i++) {
        const json_t *rope = find(r, keys[i]);
        if (!rope || r->status != STINT_OK)
            continue;
        base = number_of(r, rope, "rope_theta", base);
        read_rope(r, keys[i], rope, c);
    }
    c->model.rotary_base = (float)base;
}

/* ---- families ---- */

/* A family of Llama's, and what its files leave out where it is as usual. */
typedef struct family {
    const char *type;
    int64_t kv_heads, head_size; /* 0: the heads; width / heads */
    bool qkv_bias, qk_norm, windows;
    int64_t window; /* where no "sliding_window" is there */
} family;

static const family families[] = {
    {.type = "llama"},
    {.type = "mistral", .kv_heads = 8, .windows = true, .window = 4096},
    {.type = "qwen2", .kv_heads = 32, .qkv_bias = true, .windows = true},
    {.type = "qwen3",
     .kv_heads = 32,
     .head_size = 128,
     .qk_norm = true,
     .windows = true},
};

/* The first of the blocks that look through a window; those before it see all. */
static int64_t first_window(config_reader *r, const sti_hf_config *c)
{
    const json_t *types = find(r, "layer_types");
    const int64_t depth = c->model.depth;
    int64_t first = 0;
    if (!types) {
        first = count_of(r, "max_window_layers", false);
        return first || find(r, "max_window_layers") ? first : 28;
    }
    for (int64_t i = 0, windows = 0; i < depth && r->status == STINT_OK; i++) {
        const char *word = json_string_value(json_array_get(types, (size_t)i));
        const bool window = word && strcmp(word, "sliding_attention") == 0;
        if (!word || (!window && strcmp(word, "full_attention") != 0) ||
            (windows && !window))
            r->status = sti_fail(STINT_E_UNSUPPORTED,
                                 "%s: \"layer_types\" of block %" PRId64 " is '%.40s'; "
                                 "known are full_attention blocks and then "
                                 "sliding_attention ones",
                                 r->where, i, word ? word : "(no text)");
        windows += window;
        first += !window;
    }
    return first;
}

static void read_window(config_reader *r, const family *f, sti_hf_config *c)
{
    const bool mistral = f->window > 0;
    const bool named = json_object_get(r->root, "sliding_window") != NULL;
    if (!f->windows || (!mistral && !flag_of(r, "use_sliding_window", false)))
        return;
    const int64_t window = named     ? count_of(r, "sliding_window", false)
                           : mistral ? f->window
                                     : 4096;
    const int64_t first = mistral ? 0 : first_window(r, c);
    if (window == 0 || window >= c->context || first >= c->model.depth)
        return; /* it hides nothing */
    c->model.window = window;
    c->model.window_from = first;
}

static void read_biases(config_reader *r, const family *f, sti_hf_config *c)
{
    const bool attention = flag_of(r, "attention_bias", false);
    c->model.qkv_bias = attention || f->qkv_bias;
    c->model.proj_bias = attention && !f->qkv_bias;
    c->model.mlp_bias = flag_of(r, "mlp_bias", false);
    c->model.qk_norm = f->qk_norm;
}

static void read_llama(config_reader *r, const family *f, sti_hf_config *c)
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
        m->kv_heads = f->kv_heads ? f->kv_heads : m->heads;
    m->head_size = count_of(r, "head_dim", false);
    if (!m->head_size)
        m->head_size = f->head_size;
    m->epsilon = (float)number_of(r, r->root, "rms_norm_eps", 1e-6);
    m->head = head_of(r, false);
    read_rotary(r, c);
    read_biases(r, f, c);
    read_window(r, f, c);
    want_word(r, "hidden_act", curves);
}

static void read_family(config_reader *r, sti_hf_config *c)
{
    const char *type = json_string_value(find(r, "model_type"));
    if (find(r, "quantization_config"))
        r->status = sti_fail(STINT_E_UNSUPPORTED,
                             "%s: its weights are quantised (\"quantization_config\"); "
                             "take the model whose weights are F32, F16 or BF16",
                             r->where);
    if (type && strcmp(type, "gpt2") == 0) {
        read_gpt2(r, c);
        return;
    }
    for (size_t i = 0; type && i < sizeof families / sizeof *families; i++)
        if (strcmp(type, families[i].type) == 0) {
            read_llama(r, &families[i], c);
            return;
        }
    r->status = sti_fail(STINT_E_UNSUPPORTED,
                         "%s: \"model_type\" is '%.40s'; there are gpt2, llama, "
                         "mistral, qwen2 and qwen3",
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

/* The model type whose `transformers` class computes this, and that class. */
static const char *const *class_of(const stint_text_model_desc *m)
{
    static const char *const qwen3[] = {"qwen3", "Qwen3ForCausalLM"};
    static const char *const qwen2[] = {"qwen2", "Qwen2ForCausalLM"};
    static const char *const mistral[] = {"mistral", "MistralForCausalLM"};
    static const char *const llama[] = {"llama", "LlamaForCausalLM"};
    if (m->qk_norm)
        return qwen3;
    if (m->qkv_bias && !m->proj_bias)
        return qwen2;
    return m->window ? mistral : llama;
}

bool sti_hf_config_has_class(const stint_text_model_desc *m)
{
    const char *type = class_of(m)[0];
    if (strcmp(type, "qwen2") == 0)
        return !m->mlp_bias;
    const bool attention = m->qkv_bias == m->proj_bias;
    if (strcmp(type, "qwen3") == 0)
        return attention && !m->mlp_bias;
    if (strcmp(type, "mistral") == 0)
        return !m->qkv_bias && !m->proj_bias && !m->mlp_bias && m->window_from == 0;
    return attention;
}

static void print_stretch(const stint_rotary_scaling *s, sti_json *j)
{
    static const char *const words[] = {"default", "linear", "llama3", "yarn"};
    const bool yarn = s->kind == STINT_ROTARY_YARN;
    sti_json_begin_object(j, "rope_scaling");
    sti_json_text(j, "rope_type", words[s->kind]);
    sti_json_float(j, "factor", (double)s->factor);
    if (s->kind != STINT_ROTARY_LINEAR) {
        sti_json_float(j, yarn ? "beta_slow" : "low_freq_factor", (double)s->low);
        sti_json_float(j, yarn ? "beta_fast" : "high_freq_factor", (double)s->high);
        sti_json_int(j, "original_max_position_embeddings", (int64_t)s->original);
    }
    if (yarn)
        sti_json_float(j, "attention_factor", (double)s->attention);
    sti_json_end_object(j);
}

static void print_extras(const stint_text_model_desc *m, const char *type, sti_json *j)
{
    const bool mistral = strcmp(type, "mistral") == 0;
    if (m->rotary_scaling.kind != STINT_ROTARY_PLAIN)
        print_stretch(&m->rotary_scaling, j);
    if (strcmp(type, "qwen2") != 0) {
        sti_json_bool(j, "attention_bias", m->proj_bias);
        sti_json_bool(j, "mlp_bias", m->mlp_bias);
    }
    if (m->window) {
        sti_json_int(j, "sliding_window", m->window);
        if (!mistral) {
            sti_json_bool(j, "use_sliding_window", true);
            sti_json_int(j, "max_window_layers", m->window_from);
        }
    }
}

static void print_llama(const sti_hf_config *c, sti_json *j)
{
    const stint_text_model_desc *m = &c->model;
    const char *const *named = class_of(m);
    sti_json_text(j, "model_type", named[0]);
    sti_json_begin_array(j, "architectures");
    sti_json_text(j, NULL, named[1]);
    sti_json_end_array(j);
    sti_json_int(j, "vocab_size", m->vocabulary);
    sti_json_int(j, "max_position_embeddings", c->context);
    sti_json_int(j, "hidden_size", m->width);
    sti_json_int(j, "intermediate_size", m->hidden);
    sti_json_int(j, "num_hidden_layers", m->depth);
    sti_json_int(j, "num_attention_heads", m->heads);
    sti_json_int(j, "num_key_value_heads", m->kv_heads);
    sti_json_int(j, "head_dim", m->head_size);
    sti_json_float(j, "rms_norm_eps", (double)m->epsilon);
    sti_json_float(j, "rope_theta", (double)m->rotary_base);
    sti_json_text(j, "hidden_act", "silu");
    print_extras(m, named[0], j);
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
