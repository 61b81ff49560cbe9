/* Transformers for text: GPT-2 (Radford et al. 2019) and the Llama form of it (Touvron
 * et al. 2023: RMS-norm, rotary positions, gated feed-forward, shared keys and values).
 * Names and layouts of GPT-2's parameters are those of its published weights. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "model/model_priv.h"
#include "model/text_model.h"

#define DEVIATION                                                      \
    0.02f /* of all weights; those that end a residual branch get less \
           */

typedef struct text_model {
    stint_graph *g;
    stint_text_model_desc d;
    bool llama;
    int64_t batch, context, rows;
    float residual; /* deviation of weights that end a branch */
} text_model;

/* x [rows, k] -> [rows, units]. */
static stint_value linear(const text_model *m, stint_value x, const char *scope,
                          int64_t units, float deviation)
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
    if (!m->llama)
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

static stint_value attend(const text_model *m, stint_value x)
{
    const int64_t size = m->d.width / m->d.heads;
    const int64_t width = (m->d.heads + 2 * m->d.kv_heads) * size;
    const stint_shape packed = STINT_SHAPE(m->batch, m->context, width);
    const stint_shape rows = STINT_SHAPE(m->rows, m->d.width);
    const stint_attention_desc desc = {.heads = m->d.heads, .kv_heads = m->d.kv_heads};
    const stint_rotary_desc rotary = {
        .heads = m->d.heads + m->d.kv_heads, .size = size, .base = m->d.rotary_base};
    x = linear(m, x, "c_attn", width, DEVIATION);
    x = stint_reshape(m->g, x, &packed);
    if (m->llama)
        x = stint_rotary(m->g, x, &rotary);
    x = stint_reshape(m->g, stint_attention(m->g, x, &desc), &rows);
    return linear(m, x, "c_proj", m->d.width, m->residual);
}

static stint_value feed_forward(const text_model *m, stint_value x)
{
    const int64_t hidden = m->d.hidden;
    if (m->llama) {
        stint_value gate = stint_silu(m->g, linear(m, x, "gate", hidden, DEVIATION));
        x = stint_mul(m->g, gate, linear(m, x, "up", hidden, DEVIATION));
        return linear(m, x, "down", m->d.width, m->residual);
    }
    x = stint_gelu(m->g, linear(m, x, "c_fc", hidden, DEVIATION));
    return linear(m, x, "c_proj", m->d.width, m->residual);
}

static stint_value block(const text_model *m, stint_value x, int64_t i)
{
    stint_scope_begin(m->g, "h.%" PRId64, i);
    stint_value branch = norm(m, x, "ln_1");
    stint_scope_begin(m->g, "attn");
    branch = attend(m, branch);
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

static stint_status check_sizes(const char *name, const stint_text_model_desc *d)
{
    if (d->vocabulary < 2 || d->depth < 1 || d->width < 1 || d->heads < 1 ||
        d->width % d->heads != 0 || d->kv_heads < 1 || d->heads % d->kv_heads != 0 ||
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
    return check_sizes(name, desc);
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

stint_value stint_text_model_build(stint_graph *graph, const char *name,
                                   const stint_text_model_desc *desc,
                                   stint_value tokens, stint_value labels)
{
    text_model m = {.g = graph, .d = *desc};
    if (tokens < 0 || labels < 0)
        return -1;
    const stint_shape shape = stint_value_shape(graph, tokens);
    stint_status status = check_tokens(name, &shape);
    if (status == STINT_OK)
        status = sti_text_model_resolve(name, &m.d, &m.llama);
    if (status != STINT_OK)
        return sti_graph_fail(graph, status);
    m.batch = shape.dim[0];
    m.context = shape.dim[1];
    m.rows = m.batch * m.context;
    m.residual = DEVIATION / sqrtf(2.0f * (float)m.d.depth);
    const stint_shape flat = stint_shape_make(STINT_I32, 1, &m.rows);
    const stint_value words = table(&m, "wte", m.d.vocabulary, false);
    stint_value x = embed(&m, tokens, words);
    for (int64_t i = 0; i < m.d.depth; i++)
        x = block(&m, x, i);
    x = norm(&m, x, "ln_f");
    const stint_value head = m.d.head == STINT_TEXT_HEAD_OWN
                                 ? table(&m, "lm_head", m.d.vocabulary, true)
                                 : words;
    return stint_linear_cross_entropy(graph, x, head,
                                      stint_reshape(graph, labels, &flat), 0);
}
