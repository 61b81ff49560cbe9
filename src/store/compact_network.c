#include "store/compact_network.h"

#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "codec/weight_find.h"
#include "codec/weights.h"
#include "store/checkpoint_file.h"
#include "store/model_meta.h"

/* ---- one tensor ---- */

static float *scales(sti_arena *arena, int64_t count)
{
    return sti_arena_alloc(arena, (size_t)count * sizeof(float) + 1);
}

/* Factors of another tensor than this would change what the file computes. */
static bool is_product(sti_arena *arena, const sti_weight_form *form, const float *x,
                       const sti_compact_factors *f)
{
    const size_t bytes = (size_t)(form->rows * form->columns) * sizeof *x;
    float *product = f && f->rank > 0 ? sti_arena_alloc(arena, bytes + 1) : NULL;
    if (!product)
        return false;
    sti_weight_multiply(form->rows, f->rank, form->columns, f->left, f->right, product);
    return memcmp(product, x, bytes) == 0;
}

stint_status sti_compact_describe(sti_arena *arena, int rank, const int64_t *dim,
                                  const float *x, const sti_compact_factors *factors,
                                  sti_weight *weight)
{
    const int64_t columns = rank > 0 ? dim[rank - 1] : 1;
    float *scale = scales(arena, columns);
    float *left_scale = scales(arena, factors ? factors->rank : 0);
    if (!scale || !left_scale)
        return STINT_E_MEMORY;
    *weight = (sti_weight){.form = sti_weight_form_plain(rank, dim),
                           .x = x,
                           .scale = scale,
                           .left_scale = left_scale};
    if (is_product(arena, &weight->form, x, factors)) {
        weight->left = factors->left;
        weight->right = factors->right;
        weight->form = sti_weight_form_find_product(
            rank, dim, factors->rank, factors->left, factors->right, left_scale, scale);
    } else {
        weight->form = sti_weight_form_find(rank, dim, x, scale);
    }
    return STINT_OK;
}

/* ---- a network ---- */

typedef struct maker {
    const sti_compact_source *source;
    sti_arena *arena;
    sti_tensor_list list;
    sti_compact_tensor *tensor;
    double *bits; /* [list.count], or NULL */
} maker;

static const sti_compact_factors *factors_of(const sti_compact_source *s,
                                             const char *name)
{
    for (int i = 0; i < s->factor_count; i++)
        if (strcmp(s->factors[i].name, name) == 0)
            return &s->factors[i];
    return NULL;
}

static stint_status take_tensors(maker *m)
{
    const size_t count = (size_t)m->list.count;
    m->tensor = sti_arena_alloc(m->arena, count * sizeof *m->tensor + 1);
    m->bits = sti_arena_alloc(m->arena, count * sizeof *m->bits + 1);
    if (!m->tensor || !m->bits)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < m->list.count; i++) {
        const sti_tensor_row *row = &m->list.rows[i];
        sti_compact_tensor *t = &m->tensor[i];
        *t = (sti_compact_tensor){.name = row->name, .rank = row->rank};
        memcpy(t->dim, row->dim, sizeof t->dim);
        const stint_status st =
            sti_compact_describe(m->arena, row->rank, row->dim, row->data,
                                 factors_of(m->source, row->name), &t->weight);
        if (st != STINT_OK)
            return st;
    }
    sti_compact_choose_planar(m->tensor, m->list.count);
    return STINT_OK;
}

/* The model's texts with the hash of these weights. */
static sti_tensor_text *texts_of(maker *m, char sha[65], int64_t *count)
{
    sti_sha256 state;
    const sti_tensor_text *texts = sti_tensor_file_texts(m->source->file, count);
    sti_tensor_text *all =
        sti_arena_alloc(m->arena, (size_t)(*count + 1) * sizeof *all);
    int64_t at = 0;
    if (!all)
        return NULL;
    sti_sha256_init(&state);
    sti_tensor_list_add_sha256(&m->list, 0, m->list.count, &state);
    sti_sha256_hex(&state, sha);
    for (int64_t i = 0; i < *count; i++)
        if (strcmp(texts[i].key, STI_META_WEIGHTS) != 0)
            all[at++] = texts[i];
    all[at++] = (sti_tensor_text){STI_META_WEIGHTS, sha};
    *count = at;
    return all;
}

static void tell_bits(const maker *m, double *value_bits)
{
    const stint_graph *g = m->source->network->graph;
    for (int32_t v = 0; v < sti_graph_value_count(g); v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        value_bits[v] = 0;
        for (int64_t i = 0; row->name && i < m->list.count; i++)
            if (strcmp(row->name, m->list.rows[i].name) == 0)
                value_bits[v] = m->bits[i];
    }
}

static stint_status make(maker *m, const char *path, int64_t *bytes, double *value_bits)
{
    const sti_compact_source *s = m->source;
    const sti_network *net = s->network;
    sti_compact_sizes sizes = {0};
    sti_text out = {0};
    char sha[65];
    int64_t texts;
    stint_status st;
    STI_TRY(sti_tensor_list_init(&m->list, m->arena,
                                 2 * sti_graph_value_count(net->graph) + 2));
    STI_TRY(sti_tensor_list_add_network(&m->list, net, STI_ROLE_PARAM, "", s->params));
    STI_TRY(sti_tensor_list_add_network(&m->list, net, STI_ROLE_STATE, "", s->states));
    STI_TRY(take_tensors(m));
    const sti_tensor_text *text = texts_of(m, sha, &texts);
    if (!text)
        STI_TRY(STINT_E_MEMORY);
    sizes.tensor_bits = m->bits;
    STI_TRY(sti_compact_make(text, texts, m->tensor, m->list.count, &out, &sizes));
    *bytes = (int64_t)out.length;
    if (value_bits)
        tell_bits(m, value_bits);
    if (path)
        STI_TRY(sti_file_write(path, out.data, out.length));
out:
    sti_text_fini(&out);
    return st;
}

stint_status sti_compact_network(const sti_compact_source *source, const char *path,
                                 int64_t *bytes, double *value_bits)
{
    maker m = {.source = source, .arena = sti_arena_create("compact")};
    const stint_status st =
        m.arena ? make(&m, path, bytes, value_bits) : STINT_E_MEMORY;
    sti_arena_destroy(m.arena);
    return st;
}
