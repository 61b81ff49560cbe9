#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "model/decoder_priv.h"
#include "model/text_model.h"

enum {
    SLICE = 64, /* rows or columns of a matrix that are loaded at a time */
    NAME = 64,  /* bytes of a tensor's name */
    LINE = 16   /* floats; parts of the block begin on a cache line */
};
/* Bounds within which no size overflows. */
#define VOCABULARY_MAX (INT64_C(1) << 24)
#define CONTEXT_MAX    (INT64_C(1) << 24)
#define WIDTH_MAX      (INT64_C(1) << 20)
#define DEPTH_MAX      (INT64_C(1) << 12)

/* ---- layout: all parts in one pass, with a block or only counted ---- */

typedef struct layout {
    float *block; /* NULL: count */
    int64_t used; /* floats */
} layout;

static float *take(layout *l, int64_t floats)
{
    float *at = l->block ? l->block + l->used : NULL;
    l->used += (floats + LINE - 1) / LINE * LINE;
    return at;
}

static void take_norm(const sti_decoder *d, layout *l, int64_t n, norm_weights *norm)
{
    norm->scale = take(l, n);
    norm->shift = d->llama ? NULL : take(l, n);
}

static void take_matrix(const sti_decoder *d, layout *l, int64_t k, int64_t n,
                        sti_decoder_matrix *w)
{
    const int bits = d->desc.weight_bits;
    *w = sti_decoder_matrix_in(k, n, bits,
                               take(l, sti_decoder_matrix_floats(k, n, bits)));
}

static void take_linear(const sti_decoder *d, layout *l, int64_t k, int64_t n,
                        bool biased, linear_weights *linear)
{
    take_matrix(d, l, k, n, &linear->w);
    linear->bias = biased ? take(l, n) : NULL;
}

/* Which linear layers have a bias. */
typedef struct bias_set {
    bool qkv, proj, mlp;
} bias_set;

static bias_set biases_of(const sti_decoder *d)
{
    const stint_text_model_desc *m = &d->desc.model;
    return (bias_set){.qkv = !d->llama || m->qkv_bias,
                      .proj = !d->llama || m->proj_bias,
                      .mlp = !d->llama || m->mlp_bias};
}

static void take_layer(const sti_decoder *d, layout *l, decoder_layer *layer)
{
    const stint_text_model_desc *m = &d->desc.model;
    const bias_set biased = biases_of(d);
    take_norm(d, l, m->width, &layer->norm[0]);
    take_linear(d, l, m->width, d->packed, biased.qkv, &layer->qkv);
    if (m->qk_norm) {
        take_norm(d, l, d->size, &layer->query_norm);
        take_norm(d, l, d->size, &layer->key_norm);
    }
    take_linear(d, l, m->heads * d->size, m->width, biased.proj, &layer->proj);
    take_norm(d, l, m->width, &layer->norm[1]);
    take_linear(d, l, m->width, m->hidden, biased.mlp, &layer->gate);
    if (d->llama)
        take_linear(d, l, m->width, m->hidden, biased.mlp, &layer->up);
    take_linear(d, l, m->hidden, m->width, biased.mlp, &layer->down);
}

static void take_weights(sti_decoder *d, layout *l)
{
    const stint_text_model_desc *m = &d->desc.model;
    decoder_layer counted;
    take_matrix(d, l, m->width, m->vocabulary, &d->words);
    if (!d->llama)
        d->positions = take(l, d->desc.context * m->width);
    for (int64_t i = 0; i < m->depth; i++)
        take_layer(d, l, d->layer ? &d->layer[i] : &counted);
    take_norm(d, l, m->width, &d->last);
    d->head = d->words;
    if (m->head == STINT_TEXT_HEAD_OWN)
        take_matrix(d, l, m->width, m->vocabulary, &d->head);
}

static sti_attention_cache cache_of(const sti_decoder *d, int64_t layer)
{
    const stint_text_model_desc *m = &d->desc.model;
    const int64_t pages =
        d->desc.pages ? d->desc.pages : (d->desc.capacity + BLOCK - 1) / BLOCK;
    return (sti_attention_cache){.window = layer < m->window_from ? 0 : m->window,
                                 .heads = d->desc.model.heads,
                                 .kv_heads = d->desc.model.kv_heads,
                                 .size = d->size,
                                 .capacity = pages * BLOCK};
}

static void take_cache(sti_decoder *d, layout *l)
{
    for (int64_t i = 0; i < d->desc.model.depth; i++) {
        sti_attention_cache cache = cache_of(d, i);
        cache.keys = take(l, sti_attention_cache_floats(&cache));
        cache.values = take(l, sti_attention_cache_floats(&cache));
        if (d->layer)
            d->layer[i].cache = cache;
    }
}

static void take_work(sti_decoder *d, layout *l)
{
    const stint_text_model_desc *m = &d->desc.model;
    decoder_work *w = &d->work;
    const sti_attention_cache cache = cache_of(d, 0);
    const int64_t attended = m->heads * d->size; /* columns that attention gives */
    const int64_t wide = attended > m->width ? attended : m->width;
    const int64_t normed = TILE * (m->qk_norm ? m->heads : 1); /* rows at once */
    const sti_rotary rotary = sti_decoder_rotary(d, TILE, 0);
    size_t scratch = sti_attention_cache_scratch_bytes(&cache, TILE, d->desc.threads);
    if (sti_rotary_scratch_bytes(&rotary) > scratch)
        scratch = sti_rotary_scratch_bytes(&rotary);
    w->x = take(l, TILE * m->width);
    w->a = take(l, TILE * wide);
    w->branch = take(l, TILE * m->width);
    w->qkv = take(l, TILE * d->packed);
    w->hidden = take(l, TILE * m->hidden);
    w->other = d->llama ? take(l, TILE * m->hidden) : NULL;
    w->mean = take(l, TILE);
    w->inv = take(l, normed);
    w->heads = m->qk_norm ? take(l, TILE * attended) : NULL;
    w->logits = take(l, (d->desc.wanted ? d->desc.wanted : 1) * m->vocabulary);
    w->scratch = take(l, (int64_t)(scratch / sizeof(float)));
    int64_t longest = d->packed > m->hidden ? d->packed : m->hidden;
    longest = m->width > longest ? m->width : longest;
    d->slice = take(l, SLICE * longest);
}

/* Sizes within bounds, so that none of the products above overflows. */
static stint_status begin(const sti_decoder_desc *desc, sti_decoder *d)
{
    stint_text_model_desc *m = &d->desc.model;
    d->desc = *desc;
    stint_status st = sti_text_model_resolve(desc->name, m, &d->llama);
    if (st != STINT_OK)
        return st;
    if (m->vocabulary > VOCABULARY_MAX || m->width > WIDTH_MAX ||
        m->hidden > WIDTH_MAX || m->heads * m->head_size > WIDTH_MAX ||
        m->depth > DEPTH_MAX || desc->context < 1 || desc->context > CONTEXT_MAX ||
        desc->capacity < 1 || desc->capacity > desc->context || desc->threads < 1 ||
        desc->pages < 0 || desc->pages > CONTEXT_MAX || desc->wanted < 0 ||
        desc->wanted > TILE ||
        (desc->weight_bits != 0 && desc->weight_bits != 4 && desc->weight_bits != 8 &&
         desc->weight_bits != 16))
        return sti_fail(STINT_E_INPUT,
                        "%s: vocabulary %" PRId64 ", depth %" PRId64 ", width %" PRId64
                        ", context %" PRId64 ", cache of %" PRId64 " are out of range",
                        desc->name, m->vocabulary, m->depth, m->width, desc->context,
                        desc->capacity);
    d->size = m->head_size;
    d->packed = (m->heads + 2 * m->kv_heads) * d->size;
    d->team.threads = desc->threads;
    if (d->llama && d->size % 2 != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: heads of %" PRId64
                        " numbers; rotary positions want an even count",
                        desc->name, d->size);
    return STINT_OK;
}

static void sizes_of(sti_decoder *d, layout *l, sti_decoder_sizes *sizes)
{
    take_weights(d, l);
    const int64_t weights = l->used;
    take_cache(d, l);
    const int64_t cached = l->used;
    take_work(d, l);
    *sizes = (sti_decoder_sizes){
        .weights_bytes = (size_t)weights * sizeof(float),
        .cache_bytes = (size_t)(cached - weights) * sizeof(float),
        .work_bytes = (size_t)(l->used - cached) * sizeof(float) +
                      (size_t)d->desc.model.depth * sizeof(decoder_layer) + sizeof *d,
    };
    sizes->total_bytes = sizes->weights_bytes + sizes->cache_bytes + sizes->work_bytes;
}

stint_status sti_decoder_measure(const sti_decoder_desc *desc,
                                 sti_decoder_sizes *sizes_out)
{
    sti_decoder d = {0};
    layout count = {0};
    stint_status st = begin(desc, &d);
    if (st == STINT_OK)
        sizes_of(&d, &count, sizes_out);
    return st;
}

static int64_t linear_numbers(int64_t k, int64_t n, bool biased)
{
    return k * n + (biased ? n : 0);
}

int64_t sti_decoder_parameters(const sti_decoder_desc *desc)
{
    sti_decoder d = {0};
    if (begin(desc, &d) != STINT_OK)
        return 0;
    const stint_text_model_desc *m = &d.desc.model;
    const int64_t norm = d.llama ? m->width : 2 * m->width;
    const int64_t tables = m->head == STINT_TEXT_HEAD_OWN ? 2 : 1;
    const bias_set biased = biases_of(&d);
    const int64_t layer =
        2 * norm + (m->qk_norm ? 2 * d.size : 0) +
        linear_numbers(m->width, d.packed, biased.qkv) +
        linear_numbers(m->heads * d.size, m->width, biased.proj) +
        linear_numbers(m->width, m->hidden, biased.mlp) * (d.llama ? 2 : 1) +
        linear_numbers(m->hidden, m->width, biased.mlp);
    return tables * m->vocabulary * m->width +
           (d.llama ? 0 : desc->context * m->width) + m->depth * layer + norm;
}

size_t sti_decoder_token_bytes(const sti_decoder_desc *desc)
{
    sti_decoder d = {0};
    layout l = {0};
    if (begin(desc, &d) != STINT_OK)
        return 0;
    const stint_text_model_desc *m = &d.desc.model;
    take_weights(&d, &l);
    int64_t floats = l.used;
    if (!d.llama) /* all but a row of the tables that are looked up */
        floats -= (desc->context - 1) * m->width;
    if (m->head == STINT_TEXT_HEAD_OWN) {
        const int64_t all =
            sti_decoder_matrix_floats(m->width, m->vocabulary, desc->weight_bits);
        floats -= desc->weight_bits ? all - all / m->vocabulary
                                    : (m->vocabulary - 1) * m->width;
    }
    return (size_t)floats * sizeof(float);
}

/* ---- loading ---- */

/* Every tensor goes through one of these two, with memory or without. */
typedef struct loader {
    const sti_weight_source *source;
    bool fill;
    float *slice;
    char name[NAME];
    size_t scope; /* bytes of the name that stay */
    stint_status status;
} loader;

static const char *name_of(loader *l, const char *rest)
{
    snprintf(l->name + l->scope, sizeof l->name - l->scope, "%s", rest);
    return l->name;
}

static void load_runs(loader *l, const char *rest, int64_t runs, int64_t each,
                      float *out)
{
    const sti_weight_source *s = l->source;
    if (l->status == STINT_OK)
        l->status = s->read(s->user, name_of(l, rest), runs, each, 0,
                            l->fill ? runs : 0, l->fill ? out : NULL);
}

static void load_matrix(loader *l, const char *rest, bool table,
                        const sti_decoder_matrix *w)
{
    const sti_weight_source *s = l->source;
    const char *name = name_of(l, rest);
    const bool columns = table || s->by_columns(s->user, name);
    const int64_t runs = columns ? w->n : w->k, each = columns ? w->k : w->n;
    if (!l->fill) {
        load_runs(l, rest, runs, each, NULL);
        return;
    }
    for (int64_t i = 0, count; i < runs && l->status == STINT_OK; i += count) {
        count = runs - i < SLICE ? runs - i : SLICE;
        l->status = s->read(s->user, name, runs, each, i, count, l->slice);
        if (l->status != STINT_OK)
            return;
        sti_decoder_matrix_pack(w, columns, i, count, l->slice);
    }
}

static void load_norm(const sti_decoder *d, loader *l, const char *scope, int64_t n,
                      const norm_weights *norm)
{
    char rest[NAME];
    snprintf(rest, sizeof rest, "%s.scale", scope);
    load_runs(l, rest, 1, n, norm->scale);
    snprintf(rest, sizeof rest, "%s.shift", scope);
    if (!d->llama)
        load_runs(l, rest, 1, n, norm->shift);
}

static void load_linear(loader *l, const char *scope, bool biased,
                        const linear_weights *linear)
{
    char rest[NAME];
    snprintf(rest, sizeof rest, "%s.weight", scope);
    load_matrix(l, rest, false, &linear->w);
    snprintf(rest, sizeof rest, "%s.bias", scope);
    if (biased)
        load_runs(l, rest, 1, linear->w.n, linear->bias);
}

static void load_layer(const sti_decoder *d, loader *l, const decoder_layer *layer)
{
    const int64_t width = d->desc.model.width;
    const bias_set biased = biases_of(d);
    load_norm(d, l, "ln_1", width, &layer->norm[0]);
    load_linear(l, "attn.c_attn", biased.qkv, &layer->qkv);
    if (d->desc.model.qk_norm) {
        load_norm(d, l, "attn.q_norm", d->size, &layer->query_norm);
        load_norm(d, l, "attn.k_norm", d->size, &layer->key_norm);
    }
    load_linear(l, "attn.c_proj", biased.proj, &layer->proj);
    load_norm(d, l, "ln_2", width, &layer->norm[1]);
    load_linear(l, d->llama ? "mlp.gate" : "mlp.c_fc", biased.mlp, &layer->gate);
    if (d->llama)
        load_linear(l, "mlp.up", biased.mlp, &layer->up);
    load_linear(l, d->llama ? "mlp.down" : "mlp.c_proj", biased.mlp, &layer->down);
}

/* In the order of the graph. */
static stint_status load_all(const sti_decoder *d, const sti_weight_source *source,
                             bool fill)
{
    const stint_text_model_desc *m = &d->desc.model;
    loader l = {.source = source, .fill = fill, .slice = d->slice};
    load_matrix(&l, "wte.weight", true, &d->words);
    if (!d->llama)
        load_runs(&l, "wpe.weight", d->desc.context, m->width, d->positions);
    for (int64_t i = 0; i < m->depth && l.status == STINT_OK; i++) {
        l.scope = (size_t)snprintf(l.name, sizeof l.name, "h.%" PRId64 ".", i);
        load_layer(d, &l, &d->layer[fill ? i : 0]);
    }
    l.scope = 0;
    load_norm(d, &l, "ln_f", m->width, &d->last);
    if (m->head == STINT_TEXT_HEAD_OWN)
        load_matrix(&l, "lm_head.weight", true, &d->head);
    return l.status;
}

stint_status sti_decoder_check(const sti_decoder_desc *desc,
                               const sti_weight_source *source)
{
    decoder_layer layer;
    sti_decoder d = {0};
    layout count = {0};
    stint_status st = begin(desc, &d);
    if (st != STINT_OK)
        return st;
    take_weights(&d, &count);
    take_layer(&d, &count, &layer); /* the sizes of any layer */
    d.layer = &layer;
    return load_all(&d, source, false);
}

stint_status sti_decoder_create(const sti_decoder_desc *desc,
                                const sti_weight_source *source,
                                sti_decoder **decoder_out)
{
    sti_decoder_sizes sizes;
    layout l = {0};
    sti_decoder *d = sti_alloc(sizeof *d, "decoder");
    stint_status st = d ? begin(desc, d) : STINT_E_MEMORY;
    if (st == STINT_OK) {
        sizes_of(d, &l, &sizes);
        d->block = sti_alloc_array(l.used, sizeof(float), "weights and cache");
        d->layer = sti_alloc_array(d->desc.model.depth, sizeof *d->layer, "layers");
        st = d->block && d->layer ? STINT_OK : STINT_E_MEMORY;
    }
    if (st == STINT_OK) {
        sti_alloc_huge_pages(d->block);
        l = (layout){.block = d->block};
        sizes_of(d, &l, &sizes);
        st = load_all(d, source, true);
    }
    if (st != STINT_OK) {
        sti_decoder_destroy(d);
        return st;
    }
    *decoder_out = d;
    return STINT_OK;
}

void sti_decoder_destroy(sti_decoder *d)
{
    if (!d)
        return;
    sti_free(d->block);
    sti_free(d->layer);
    sti_free(d);
}
