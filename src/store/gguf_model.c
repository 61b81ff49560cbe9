#include "store/gguf_model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "model/text_model.h"

enum { NAME = 160 };
#define COUNT_MAX (INT64_C(1) << 31)

/* ---- names ---- */

typedef struct name_pair {
    const char *ours, *theirs;
} name_pair;

static const name_pair whole_names[] = {
    {"wte.weight", "token_embd.weight"},  {"wpe.weight", "position_embd.weight"},
    {"ln_f.scale", "output_norm.weight"}, {"ln_f.shift", "output_norm.bias"},
    {"lm_head.weight", "output.weight"},  {NULL, NULL}};
/* Names within a block, without the word behind the last dot. */
static const name_pair block_names[] = {{"ln_1", "attn_norm"},
                                        {"ln_2", "ffn_norm"},
                                        {"attn.c_proj", "attn_output"},
                                        {"attn.q_norm", "attn_q_norm"},
                                        {"attn.k_norm", "attn_k_norm"},
                                        {"mlp.c_fc", "ffn_up"},
                                        {"mlp.c_proj", "ffn_down"},
                                        {"mlp.gate", "ffn_gate"},
                                        {"mlp.up", "ffn_up"},
                                        {"mlp.down", "ffn_down"},
                                        {NULL, NULL}};

static const char *find_pair(const name_pair *pairs, const char *name, size_t length)
{
    for (; pairs->ours; pairs++)
        if (strlen(pairs->ours) == length && memcmp(pairs->ours, name, length) == 0)
            return pairs->theirs;
    return NULL;
}

static bool is_packed(const char *name)
{
    return strstr(name, ".attn.c_attn.") != NULL;
}

bool sti_gguf_name(bool llama, const char *ours, int part, char *out, size_t out_bytes)
{
    static const char *const parts[] = {"attn_q", "attn_k", "attn_v"};
    int block, used = 0;
    const char *theirs = find_pair(whole_names, ours, strlen(ours));
    if (theirs) {
        snprintf(out, out_bytes, "%s", theirs);
        return true;
    }
    if (sscanf(ours, "h.%d.%n", &block, &used) != 1 || used == 0)
        return false;
    const char *dot = strrchr(ours, '.');
    const bool bias = strcmp(dot, ".bias") == 0 || strcmp(dot, ".shift") == 0;
    if (is_packed(ours))
        theirs = llama ? parts[part] : "attn_qkv";
    else
        theirs =
            find_pair(block_names, ours + used, (size_t)(dot - ours) - (size_t)used);
    if (theirs)
        snprintf(out, out_bytes, "blk.%d.%s.%s", block, theirs,
                 bias ? "bias" : "weight");
    return theirs != NULL;
}

/* ---- sizes ---- */

/* Keys while they are read: the first complaint stays. */
typedef struct key_reader {
    const sti_gguf *file;
    const char *family; /* "llama" */
    char key[NAME];
    stint_status status;
} key_reader;

static const char *key_of(key_reader *r, const char *rest)
{
    snprintf(r->key, sizeof r->key, "%s.%s", r->family, rest);
    return r->key;
}

/* 0 where it is absent and may be. */
static int64_t count_of(key_reader *r, const char *rest, bool required)
{
    int64_t n = 0;
    const char *key = key_of(r, rest);
    if (r->status != STINT_OK || (!required && !sti_gguf_has(r->file, key)))
        return 0;
    if (!sti_gguf_int(r->file, key, &n) || n < 1 || n > COUNT_MAX)
        r->status =
            sti_fail(STINT_E_INPUT, "%s: \"%s\" %s; wanted a whole number from 1",
                     sti_gguf_path(r->file), key,
                     sti_gguf_has(r->file, key) ? "is no count" : "is missing");
    return r->status == STINT_OK ? n : 0;
}

static double number_of(key_reader *r, const char *rest, double otherwise)
{
    double x = otherwise;
    const char *key = key_of(r, rest);
    if (r->status != STINT_OK || !sti_gguf_has(r->file, key))
        return otherwise;
    if (!sti_gguf_float(r->file, key, &x) || !(x > 0) || !isfinite((float)x))
        r->status = sti_fail(STINT_E_INPUT, "%s: \"%s\" is no number above 0",
                             sti_gguf_path(r->file), key);
    return x;
}

/* Llama 3's stretch is there as a tensor of divisors; what of it the usual numbers give
 * is taken as these. */
static void read_divisors(key_reader *r, const sti_gguf_tensor *t, sti_hf_config *c)
{
    enum { MOST = 1024 };
    float divisor[MOST];
    stint_text_model_desc *m = &c->model;
    stint_rotary_scaling s = {
        .kind = STINT_ROTARY_LLAMA3, .low = 1, .high = 4, .original = 8192};
    const int64_t half = m->head_size / 2;
    if (t->rank != 1 || t->dim[0] != half || half > MOST || half < 1)
        r->status = sti_fail(STINT_E_UNSUPPORTED,
                             "%s: 'rope_freqs.weight' is no divisor "
                             "for each half of a head",
                             sti_gguf_path(r->file));
    else
        r->status = sti_gguf_read(r->file, t, 0, half, divisor);
    for (int64_t i = 0; i < half && r->status == STINT_OK; i++)
        s.factor = divisor[i] > s.factor ? divisor[i] : s.factor;
    for (int64_t i = 0; i < half && r->status == STINT_OK; i++) {
        const double f =
            pow((double)m->rotary_base, -2.0 * (double)i / (double)(2 * half));
        double keep = ((double)s.original * f / 6.283185307179586 - 1) / 3;
        keep = keep < 0 ? 0 : keep > 1 ? 1 : keep;
        if (fabs((keep + (1 - keep) / (double)s.factor) * (double)divisor[i] - 1) >
            1e-3)
            r->status =
                sti_fail(STINT_E_UNSUPPORTED,
                         "%s: 'rope_freqs.weight' stretches waves in another way "
                         "than Llama 3.1 from 8192 positions",
                         sti_gguf_path(r->file));
    }
    if (r->status == STINT_OK && s.factor > 1)
        m->rotary_scaling = s;
}

static void read_rotary(key_reader *r, sti_hf_config *c)
{
    stint_text_model_desc *m = &c->model;
    const char *type = sti_gguf_text(r->file, key_of(r, "rope.scaling.type"));
    const sti_gguf_tensor *divisors = sti_gguf_find(r->file, "rope_freqs.weight");
    const int64_t turned = count_of(r, "rope.dimension_count", false);
    m->rotary_base = (float)number_of(r, "rope.freq_base", 10000.0);
    if (r->status == STINT_OK && turned && turned != m->head_size)
        r->status = sti_fail(STINT_E_UNSUPPORTED,
                             "%s: %" PRId64 " columns of a head of %" PRId64
                             " are turned; only whole heads are known here",
                             sti_gguf_path(r->file), turned, m->head_size);
    if (type && strcmp(type, "linear") == 0)
        m->rotary_scaling = (stint_rotary_scaling){
            .kind = STINT_ROTARY_LINEAR,
            .factor = (float)number_of(r, "rope.scaling.factor", 1)};
    else if (type && strcmp(type, "none") != 0 && r->status == STINT_OK)
        r->status =
            sti_fail(STINT_E_UNSUPPORTED,
                     "%s: \"%s.rope.scaling.type\" is '%.40s'; none and linear are "
                     "known here",
                     sti_gguf_path(r->file), r->family, type);
    if (divisors && r->status == STINT_OK)
        read_divisors(r, divisors, c);
}

static bool has_tensor(const key_reader *r, const char *name)
{
    return sti_gguf_find(r->file, name) != NULL;
}

static void read_llama(key_reader *r, sti_hf_config *c)
{
    stint_text_model_desc *m = &c->model;
    c->name = "llama";
    m->heads = count_of(r, "attention.head_count", true);
    m->kv_heads = count_of(r, "attention.head_count_kv", false);
    if (!m->kv_heads)
        m->kv_heads = m->heads;
    m->head_size = count_of(r, "attention.key_length", false);
    if (!m->head_size && m->heads && m->width % m->heads == 0)
        m->head_size = m->width / m->heads;
    const int64_t values = count_of(r, "attention.value_length", false);
    if (values && values != m->head_size && r->status == STINT_OK)
        r->status = sti_fail(STINT_E_UNSUPPORTED,
                             "%s: heads of %" PRId64 " keys and %" PRId64
                             " values; only as many of either are known here",
                             sti_gguf_path(r->file), m->head_size, values);
    m->epsilon = (float)number_of(r, "attention.layer_norm_rms_epsilon", 1e-5);
    read_rotary(r, c);
    m->qkv_bias = has_tensor(r, "blk.0.attn_q.bias");
    m->proj_bias = has_tensor(r, "blk.0.attn_output.bias");
    m->mlp_bias = has_tensor(r, "blk.0.ffn_up.bias");
    m->qk_norm = has_tensor(r, "blk.0.attn_q_norm.weight");
    const int64_t experts = count_of(r, "expert_count", false);
    const int64_t window = count_of(r, "attention.sliding_window", false);
    if (window && window < c->context)
        m->window = window;
    if (experts && r->status == STINT_OK)
        r->status =
            sti_fail(STINT_E_UNSUPPORTED,
                     "%s: a mixture of %" PRId64 " experts, which is not known here",
                     sti_gguf_path(r->file), experts);
}

static void read_gpt2(key_reader *r, sti_hf_config *c)
{
    stint_text_model_desc *m = &c->model;
    c->name = "gpt";
    m->heads = count_of(r, "attention.head_count", true);
    m->kv_heads = m->heads;
    m->epsilon = (float)number_of(r, "attention.layer_norm_epsilon", 1e-5);
}

/* The part of a block's name between its number and the last dot. */
static bool is_block_part(const char *part, size_t length)
{
    static const char *const packed[] = {"attn_q", "attn_k", "attn_v", "attn_qkv"};
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (strlen(packed[i]) == length && memcmp(packed[i], part, length) == 0)
            return true;
    for (const name_pair *p = block_names; p->ours; p++)
        if (strlen(p->theirs) == length && memcmp(p->theirs, part, length) == 0)
            return true;
    return false;
}

static bool is_used(const char *name, int64_t depth)
{
    long block;
    int used = 0;
    const char *dot = strrchr(name, '.');
    for (const name_pair *p = whole_names; p->ours; p++)
        if (strcmp(p->theirs, name) == 0)
            return true;
    if (strcmp(name, "rope_freqs.weight") == 0)
        return true;
    return sscanf(name, "blk.%9ld.%n", &block, &used) == 1 && used > 0 && block >= 0 &&
           block < depth && dot >= name + used &&
           is_block_part(name + used, (size_t)(dot - name) - (size_t)used);
}

stint_status sti_gguf_config(const sti_gguf *file, sti_hf_config *config_out)
{
    static const char *const known[] = {"llama", "qwen2", "qwen3", "gpt2"};
    const char *family = sti_gguf_text(file, "general.architecture");
    const sti_gguf_tensor *words = sti_gguf_find(file, "token_embd.weight");
    sti_hf_config c = {.end_token = -1};
    bool is_known = false, llama;
    for (size_t i = 0; family && i < sizeof known / sizeof *known; i++)
        is_known |= strcmp(family, known[i]) == 0;
    if (!is_known)
        return sti_fail(
            STINT_E_UNSUPPORTED,
            "%s: \"general.architecture\" is '%.40s'; there are llama, qwen2, "
            "qwen3 and gpt2",
            sti_gguf_path(file), family ? family : "(none)");
    if (!words || words->rank != 2)
        return sti_fail(STINT_E_INPUT, "%s: there is no table 'token_embd.weight'",
                        sti_gguf_path(file));
    key_reader r = {.file = file, .family = family};
    c.model.vocabulary = words->dim[0];
    c.model.head =
        has_tensor(&r, "output.weight") ? STINT_TEXT_HEAD_OWN : STINT_TEXT_HEAD_TIED;
    c.context = count_of(&r, "context_length", true);
    c.model.width = count_of(&r, "embedding_length", true);
    c.model.depth = count_of(&r, "block_count", true);
    c.model.hidden = count_of(&r, "feed_forward_length", true);
    if (strcmp(family, "gpt2") == 0)
        read_gpt2(&r, &c);
    else
        read_llama(&r, &c);
    int64_t end;
    if (sti_gguf_int(file, "tokenizer.ggml.eos_token_id", &end) && end >= 0 &&
        end < c.model.vocabulary)
        c.end_token = end;
    if (r.status == STINT_OK &&
        (r.status = sti_text_model_resolve(c.name, &c.model, &llama)) != STINT_OK)
        r.status = sti_fail_context(r.status, "%s", sti_gguf_path(file));
    if (r.status == STINT_OK)
        *config_out = c;
    return r.status;
}

stint_status sti_gguf_check_names(const sti_gguf *file, int64_t depth)
{
    for (int64_t i = 0; i < sti_gguf_tensor_count(file); i++) {
        const char *name = sti_gguf_tensor_at(file, i)->name;
        if (!is_used(name, depth))
            return sti_fail(STINT_E_UNSUPPORTED,
                            "%s: '%.80s' is no part of a network of this architecture "
                            "with %" PRId64 " blocks, as it is known here",
                            sti_gguf_path(file), name, depth);
    }
    return STINT_OK;
}

/* ---- weights ---- */

/* A part of a parameter: `runs` runs of it are this tensor. */
typedef struct part_request {
    int64_t runs, each;
    bool vector;
    int64_t turned; /* rows of a head whose halves lie in turns; 0: none do */
    int64_t first, count;
    float *out;
} part_request;

static stint_status read_rows(const sti_gguf *f, const sti_gguf_tensor *t,
                              const part_request *p)
{
    stint_status st = STINT_OK;
    if (!p->turned)
        return sti_gguf_read(f, t, p->first * p->each, p->count * p->each, p->out);
    for (int64_t i = 0; i < p->count && st == STINT_OK; i++) {
        const int64_t row = p->first + i, head = row / p->turned * p->turned;
        const int64_t from = head + sti_gguf_turned_row(row - head, p->turned);
        st = sti_gguf_read(f, t, from * p->each, p->each, p->out + i * p->each);
    }
    return st;
}

static stint_status read_part(const sti_gguf *f, const char *name,
                              const part_request *p)
{
    const sti_gguf_tensor *t = sti_gguf_find(f, name);
    if (!t)
        return sti_fail(STINT_E_INPUT, "%s: there is no tensor '%s'", sti_gguf_path(f),
                        name);
    const bool fits =
        p->vector ? t->rank == 1 && t->dim[0] == p->runs * p->each
                  : t->rank == 2 && t->dim[0] == p->runs && t->dim[1] == p->each;
    if (!fits)
        return sti_fail(STINT_E_INPUT,
                        "%s: '%s' is [%" PRId64 ", %" PRId64
                        "], but the keys want [%" PRId64 ", %" PRId64 "]",
                        sti_gguf_path(f), name, t->rank == 2 ? t->dim[0] : 1,
                        t->dim[t->rank - 1], p->runs, p->each);
    if (!t->type)
        return sti_gguf_read(f, t, 0, 0, NULL); /* its complaint */
    if (p->vector && t->type->block != 1)
        return sti_fail(STINT_E_UNSUPPORTED, "%s: '%s' is a vector in blocks",
                        sti_gguf_path(f), name);
    return p->count == 0 ? STINT_OK : read_rows(f, t, p);
}

/* Queries, keys and values are three tensors: each serves its runs, which of a bias are
 * single numbers. */
static stint_status read_packed(const sti_gguf_weights *w, const char *name,
                                int64_t each, bool vector, int64_t first, int64_t count,
                                float *out)
{
    const stint_text_model_desc *m = &w->config->model;
    const char *family = sti_gguf_text(w->file, "general.architecture");
    const bool turned = family && strcmp(family, "llama") == 0;
    const int64_t size = m->head_size;
    const int64_t runs[3] = {m->heads * size, m->kv_heads * size, m->kv_heads * size};
    char theirs[NAME];
    int64_t begin = 0;
    stint_status st = STINT_OK;
    for (int i = 0; i < 3 && st == STINT_OK; begin += runs[i++]) {
        const int64_t from = first > begin ? first - begin : 0;
        const int64_t end = first + count - begin;
        const int64_t to = end < runs[i] ? end : runs[i];
        part_request p = {.runs = runs[i],
                          .each = each,
                          .vector = vector,
                          .turned = turned && i < 2 ? size : 0,
                          .first = from,
                          .count = to > from ? to - from : 0};
        p.out = out ? out + (begin + from - first) * each : NULL;
        (void)sti_gguf_name(true, name, i, theirs, sizeof theirs);
        st = read_part(w->file, theirs, &p);
    }
    return st;
}

static stint_status read_runs(void *user, const char *name, int64_t runs, int64_t each,
                              int64_t first, int64_t count, float *out)
{
    const sti_gguf_weights *w = user;
    const bool llama = strcmp(w->config->name, "llama") == 0;
    const size_t length = strlen(name);
    const bool vector =
        runs == 1 && (length < 7 || strcmp(name + length - 7, ".weight") != 0);
    char theirs[NAME];
    if (llama && is_packed(name))
        return vector ? read_packed(w, name, 1, true, 0, count ? each : 0, out)
                      : read_packed(w, name, each, false, first, count, out);
    if (!sti_gguf_name(llama, name, 0, theirs, sizeof theirs))
        return sti_fail(STINT_E_BUG, "'%s' has no name in this format", name);
    const part_request p = {runs, each, vector, 0, first, count, out};
    return read_part(w->file, theirs, &p);
}

static bool by_columns(void *user, const char *name)
{
    (void)user, (void)name;
    return true;
}

sti_weight_source sti_gguf_source(sti_gguf_weights *weights)
{
    return (sti_weight_source){
        .user = weights, .by_columns = by_columns, .read = read_runs};
}
