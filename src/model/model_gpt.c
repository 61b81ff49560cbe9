/* Transformers for text: GPT-2 (Radford et al. 2019) and the Llama form of it (Touvron
 * et al. 2023: RMS-norm, rotary positions, gated feed-forward, shared keys and values).
 * Names and layouts of GPT-2's parameters are those of its published weights. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "model/model_priv.h"
#include "model/text_model.h"
#include "op/op_attention.h"

#define DEVIATION                                                      \
    0.02f /* of all weights; those that end a residual branch get less \
           */

enum { HEADS_MAX = 1 << 16, HEAD_MAX = 1 << 16 };

typedef struct text_model {
    stint_graph *g;
    stint_text_model_desc d;
    bool llama;
    int64_t batch, context, rows;
    float residual; /* deviation of weights that end a branch */
} text_model;

/* x [rows, k] -> [rows, units]. A gpt has every bias. */
static stint_value linear(const text_model *m, stint_value x, const char *scope,
                          int64_t units, float deviation, bool biased)
{
    const stint_shape shape = stint_value_shape(m->g, x);
    const stint_shape weight = STINT_SHAPE(shape.dim[1], units);
    const stint_shape bias = STINT_SHAPE(units);
    if (x < 0)
        return -1;
    stint_scope_begin(m->g, "%s", scope);
    stint_value w =
        stint_param(m->g, "weight", &weight,
                    &(stint_param_desc){.init = STINT_INIT_NORMAL, .scale = deviation});
    x = stint_matmul(m->g, x, w, false, false);
    if (biased || !m->llama)
        x = stint_bias(m->g, x,
                       stint_param(m->g, "bias", &bias,
                                   &(stint_param_desc){.init = STINT_INIT_ZERO,
                                                       .no_decay = true}));
    stint_scope_end(m->g);
    return x;
}

static stint_value norm(const text_model *m, stint_value x, const char *scope)
{
    stint_scope_begin(m->g, "%s", scope);
    x = m->llama ? stint_rms_norm(m->g, x, m->d.epsilon)
                 : stint_layer_norm(m->g, x, m->d.epsilon);
    stint_scope_end(m->g);
    return x;
}

static stint_value dropout(const text_model *m, stint_value x)
{
    return m->d.dropout > 0 ? stint_dropout(m->g, x, m->d.dropout) : x;
}

/* Columns first .. first + heads * size of x [rows, width], each head normalised. */
static stint_value norm_heads(const text_model *m, stint_value x, int64_t first,
                              int64_t heads, const char *scope)
{
    const int64_t size = m->d.head_size;
    const stint_shape each = STINT_SHAPE(m->rows * heads, size);
    const stint_shape rows = STINT_SHAPE(m->rows, heads * size);
    x = stint_slice(m->g, x, 1, first, first + heads * size, 1);
    x = norm(m, stint_reshape(m->g, x, &each), scope);
    return stint_reshape(m->g, x, &rows);
}

static stint_value norm_packed(const text_model *m, stint_value x)
{
    const int64_t queries = m->d.heads * m->d.head_size;
    const int64_t keys = m->d.kv_heads * m->d.head_size;
    const stint_value parts[] = {
        norm_heads(m, x, 0, m->d.heads, "q_norm"),
        norm_heads(m, x, queries, m->d.kv_heads, "k_norm"),
        stint_slice(m->g, x, 1, queries + keys, queries + 2 * keys, 1)};
    return stint_concat(m->g, parts, 3, 1);
}

static stint_value attend(const text_model *m, stint_value x, int64_t layer)
{
    const int64_t size = m->d.head_size;
    const int64_t width = (m->d.heads + 2 * m->d.kv_heads) * size;
    const stint_shape packed = STINT_SHAPE(m->batch, m->context, width);
    const stint_shape rows = STINT_SHAPE(m->rows, m->d.heads * size);
    const stint_attention_desc desc = {.heads = m->d.heads,
                                       .kv_heads = m->d.kv_heads,
                                       .window =
                                           layer < m->d.window_from ? 0 : m->d.window};
    const stint_rotary_desc rotary = {.heads = m->d.heads + m->d.kv_heads,
                                      .size = size,
                                      .base = m->d.rotary_base,
                                      .scaling = m->d.rotary_scaling};
    x = linear(m, x, "c_attn", width, DEVIATION, m->d.qkv_bias);
    if (m->d.qk_norm)
        x = norm_packed(m, x);
    x = stint_reshape(m->g, x, &packed);
    if (m->llama)
        x = stint_rotary(m->g, x, &rotary);
    x = stint_reshape(m->g, stint_attention(m->g, x, &desc), &rows);
    return linear(m, x, "c_proj", m->d.width, m->residual, m->d.proj_bias);
}

static stint_value feed_forward(const text_model *m, stint_value x)
{
    const int64_t hidden = m->d.hidden;
    const bool biased = m->d.mlp_bias;
    if (m->llama) {
        stint_value gate = linear(m, x, "gate", hidden, DEVIATION, biased);
        gate = stint_silu(m->g, gate);
        x = stint_mul(m->g, gate, linear(m, x, "up", hidden, DEVIATION, biased));
        return linear(m, x, "down", m->d.width, m->residual, biased);
    }
    x = stint_gelu(m->g, linear(m, x, "c_fc", hidden, DEVIATION, true));
    return linear(m, x, "c_proj", m->d.width, m->residual, true);
}

static stint_value block(const text_model *m, stint_value x, int64_t i)
{
    stint_scope_begin(m->g, "h.%" PRId64, i);
    stint_value branch = norm(m, x, "ln_1");
    stint_scope_begin(m->g, "attn");
    branch = attend(m, branch, i);
    stint_scope_end(m->g);
    x = stint_add(m->g, x, dropout(m, branch));
    branch = norm(m, x, "ln_2");
    stint_scope_begin(m->g, "mlp");
    branch = feed_forward(m, branch);
    stint_scope_end(m->g);
    x = stint_add(m->g, x, dropout(m, branch));
    stint_scope_end(m->g);
    return x;
}

/* [count, width]; the published models do not let embeddings decay. */
static stint_value table(const text_model *m, const char *scope, int64_t count,
                         bool decay)
{
    const stint_shape shape = STINT_SHAPE(count, m->d.width);
    stint_scope_begin(m->g, "%s", scope);
    const stint_value weight = stint_param(
        m->g, "weight", &shape,
        &(stint_param_desc){
            .init = STINT_INIT_NORMAL, .scale = DEVIATION, .no_decay = !decay});
    stint_scope_end(m->g);
    return weight;
}

/* Rows for the positions that there are of a table for as many as the model takes. */
static stint_value positions(const text_model *m)
{
    const int64_t all = m->d.positions > m->context ? m->d.positions : m->context;
    const stint_value rows = table(m, "wpe", all, false);
    return all > m->context ? stint_slice(m->g, rows, 0, 0, m->context, 1) : rows;
}

static stint_value embed(const text_model *m, stint_value tokens, stint_value words)
{
    const stint_shape rows = STINT_SHAPE(m->rows, m->d.width);
    stint_value x = stint_lookup(m->g, tokens, words);
    if (!m->llama)
        x = stint_add(m->g, x, positions(m));
    return dropout(m, stint_reshape(m->g, x, &rows));
}

/* ---- names and sizes ---- */

static const stint_model_info text_infos[] = {
#define STI_TEXT_MODEL(name, llama, help) {name, help},
#include "model/text_model_list.h"
#undef STI_TEXT_MODEL
    {NULL, NULL},
};
static const bool text_llama[] = {
#define STI_TEXT_MODEL(name, llama, help) llama,
#include "model/text_model_list.h"
#undef STI_TEXT_MODEL
};

const stint_model_info *stint_text_model_list(void)
{
    return text_infos;
}

/* Row of a name, or -1. */
static int find_text_model(const char *name)
{
    for (int i = 0; text_infos[i].name; i++)
        if (strcmp(text_infos[i].name, name) == 0)
            return i;
    return -1;
}

bool stint_model_is_text(const char *name)
{
    return find_text_model(name) >= 0;
}

/* What only a llama can have. */
static stint_status check_extras(const char *name, const stint_text_model_desc *d,
                                 bool llama)
{
    const bool own_heads = d->head_size * d->heads != d->width;
    if (!llama && (own_heads || d->qkv_bias || d->proj_bias || d->mlp_bias ||
                   d->qk_norm || d->window || d->rotary_scaling.kind))
        return sti_fail(STINT_E_INPUT,
                        "%s: heads of a size of their own, biases, normalised heads, "
                        "windows and stretched waves are a llama's",
                        name);
    if (!sti_rotary_scaling_is_sound(&d->rotary_scaling))
        return sti_fail(
            STINT_E_INPUT,
            "%s: rotary positions are stretched by %g, between %g and %g turns "
            "in %g positions; wanted a factor of 0.001 to 1e6, rising turns "
            "and positions from 1",
            name, (double)d->rotary_scaling.factor, (double)d->rotary_scaling.low,
            (double)d->rotary_scaling.high, (double)d->rotary_scaling.original);
    if (d->head_size < 1 || d->head_size > HEAD_MAX || d->heads > HEADS_MAX ||
        d->window < 0 || d->window_from < 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: %" PRId64 " heads of %" PRId64
                        " columns, a window of %" PRId64 " from block %" PRId64
                        "; wanted at most %d of %d, and no number "
                        "below 0",
                        name, d->heads, d->head_size, d->window, d->window_from,
                        HEADS_MAX, HEAD_MAX);
    return STINT_OK;
}

static stint_status check_sizes(const char *name, const stint_text_model_desc *d)
{
    if (d->vocabulary < 2 || d->depth < 1 || d->width < 1 || d->heads < 1 ||
        d->head_size == 0 || d->kv_heads < 1 || d->heads % d->kv_heads != 0 ||
        d->hidden < 1)
        return sti_fail(STINT_E_INPUT,
                        "%s: vocabulary %" PRId64 ", depth %" PRId64 ", width %" PRId64
                        ", %" PRId64 " heads, %" PRId64 " of keys, %" PRId64
                        " hidden units; wanted a width that divides by the heads, and "
                        "heads that divide by those of keys (model.heads, "
                        "model.kv_heads)",
                        name, d->vocabulary, d->depth, d->width, d->heads, d->kv_heads,
                        d->hidden);
    if (!(d->dropout >= 0 && d->dropout < 1))
        return sti_fail(STINT_E_INPUT, "%s: dropout %g, wanted 0 or more and below 1",
                        name, (double)d->dropout);
    if (!(d->epsilon > 0 && d->epsilon < 1) ||
        !(d->rotary_base > 1 && isfinite(d->rotary_base)))
        return sti_fail(
            STINT_E_INPUT,
            "%s: epsilon %g and rotary base %g; wanted between 0 and 1, and "
            "above 1",
            name, (double)d->epsilon, (double)d->rotary_base);
    return STINT_OK;
}

static void set_if_zero(int64_t *size, int64_t published)
{
    if (*size == 0)
        *size = published;
}

/* Published sizes where nothing was asked for. */
static void resolve(stint_text_model_desc *d, bool llama)
{
    set_if_zero(&d->vocabulary, 50257);
    set_if_zero(&d->depth, 12);
    set_if_zero(&d->width, 768);
    set_if_zero(&d->heads, d->width % 64 == 0 ? d->width / 64 : 12);
    set_if_zero(&d->kv_heads, llama && d->heads % 4 == 0 ? d->heads / 4 : d->heads);
    set_if_zero(&d->hidden, llama ? (d->width * 8 / 3 + 63) / 64 * 64 : 4 * d->width);
    if (d->heads > 0 && d->width % d->heads == 0)
        set_if_zero(&d->head_size, d->width / d->heads);
    if (d->epsilon == 0)
        d->epsilon = 1e-5f;
    if (d->rotary_base == 0)
        d->rotary_base = 10000.0f;
    if (d->head == STINT_TEXT_HEAD_AUTO)
        d->head = llama ? STINT_TEXT_HEAD_OWN : STINT_TEXT_HEAD_TIED;
}

stint_status sti_text_model_resolve(const char *name, stint_text_model_desc *desc,
                                    bool *llama_out)
{
    const int row = find_text_model(name);
    if (row < 0)
        return sti_fail(
            STINT_E_INPUT,
            "text model '%s' is unknown; there are gpt, llama and gpt2-124m", name);
    *llama_out = text_llama[row];
    resolve(desc, *llama_out);
    const stint_status st = check_sizes(name, desc);
    return st == STINT_OK ? check_extras(name, desc, *llama_out) : st;
}

const char *sti_text_model_family(const char *name)
{
    const int row = find_text_model(name);
    return row >= 0 && text_llama[row] ? "llama" : "gpt";
}

stint_status stint_text_model_resolve(const char *name, stint_text_model_desc *desc,
                                      int64_t *context)
{
    bool llama;
    set_if_zero(context, 1024);
    return sti_text_model_resolve(name, desc, &llama);
}

static stint_status check_tokens(const char *name, const stint_shape *tokens)
{
    if (tokens->rank != 2 || tokens->dtype != STINT_I32)
        return sti_fail(STINT_E_INPUT, "%s: wants tokens [batch, context] i32, got %s",
                        name, sti_shape_text(tokens));
    return STINT_OK;
}

sti_text_trunk sti_text_model_trunk(stint_graph *graph, const char *name,
                                    const stint_text_model_desc *desc,
                                    stint_value tokens)
{
    text_model m = {.g = graph, .d = *desc};
    const stint_shape shape = stint_value_shape(graph, tokens);
    stint_status status = check_tokens(name, &shape);
    if (status == STINT_OK)
        status = sti_text_model_resolve(name, &m.d, &m.llama);
    if (status != STINT_OK) {
        sti_graph_fail(graph, status);
        return (sti_text_trunk){-1, -1};
    }
    m.batch = shape.dim[0];
    m.context = shape.dim[1];
    m.rows = m.batch * m.context;
    m.residual = DEVIATION / sqrtf(2.0f * (float)m.d.depth);
    const stint_value words = table(&m, "wte", m.d.vocabulary, false);
    stint_value x = embed(&m, tokens, words);
    for (int64_t i = 0; i < m.d.depth; i++)
        x = block(&m, x, i);
    x = norm(&m, x, "ln_f");
    const stint_value head = m.d.head == STINT_TEXT_HEAD_OWN
                                 ? table(&m, "lm_head", m.d.vocabulary, true)
                                 : words;
    return (sti_text_trunk){x, head};
}

stint_value stint_text_model_build(stint_graph *graph, const char *name,
                                   const stint_text_model_desc *desc,
                                   stint_value tokens, stint_value labels)
{
    if (tokens < 0 || labels < 0)
        return -1;
    const sti_text_trunk trunk = sti_text_model_trunk(graph, name, desc, tokens);
    if (trunk.x < 0)
        return -1;
    const stint_shape x = stint_value_shape(graph, trunk.x);
    const stint_shape flat = stint_shape_make(STINT_I32, 1, x.dim);
    return stint_linear_cross_entropy(graph, trunk.x, trunk.table,
                                      stint_reshape(graph, labels, &flat), 0);
}
