#include "shrink/guess.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "codec/weight_find.h"
#include "store/checkpoint_file.h"
#include "store/compact_file.h"
#include "store/model_meta.h"
#include "train/recipe_view.h"
#include "train/shrink_recipe.h"

/* ---- life ---- */

stint_status sti_guess_create(const stint_model_file *model, const stint_recipe *recipe,
                              const char *scheme, sti_guess *g)
{
    const sti_plan *plan = model->single.plan;
    *g = (sti_guess){.model = model,
                     .recipe = recipe,
                     .scheme = scheme,
                     .param_bytes = plan->region_bytes[STI_REGION_PARAM]};
    g->params = sti_alloc(g->param_bytes, "weights");
    g->work = sti_alloc(g->param_bytes, "weights");
    g->states = sti_alloc(plan->region_bytes[STI_REGION_STATE], "states");
    stint_status st = g->params && g->work && g->states ? STINT_OK : STINT_E_MEMORY;
    return st == STINT_OK ? sti_model_load(model, &model->single, g->params, g->states)
                          : st;
}

void sti_guess_fini(sti_guess *g)
{
    sti_free(g->params);
    sti_free(g->work);
    sti_free(g->states);
    *g = (sti_guess){.model = NULL};
}

/* ---- the projected file ---- */

static stint_status project(sti_guess *g, double share, int64_t *nonzeros)
{
    const sti_shrink_values *shrink = sti_shrink_section_of(g->recipe);
    sti_shrink_scheme scheme;
    sti_projection *p = NULL;
    sti_text text = {0};
    int64_t weights;
    stint_status st = STINT_E_MEMORY;
    sti_scheme_settle(g->scheme, &share, 1, &text);
    if (!text.failed && text.data)
        st = sti_scheme_parse(text.data, &scheme);
    sti_text_fini(&text);
    if (st != STINT_OK)
        return st;
    const sti_projection_desc desc = {.scheme = &scheme,
                                      .keep = shrink->keep,
                                      .fixed_shapes =
                                          shrink->patterns == STI_PATTERNS_FIXED};
    st = sti_projection_create(&desc, &g->model->single, &p);
    if (st == STINT_OK) {
        memcpy(g->work, g->params, g->param_bytes);
        sti_project(p, g->work);
        sti_projection_count(p, g->work, nonzeros, &weights);
    }
    sti_projection_destroy(p);
    return st;
}

typedef struct maker {
    sti_arena *arena;
    sti_tensor_list list;
    sti_compact_tensor *tensor;
} maker;

static stint_status take_tensors(maker *m)
{
    m->tensor =
        sti_arena_alloc(m->arena, (size_t)m->list.count * sizeof *m->tensor + 1);
    if (!m->tensor)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < m->list.count; i++) {
        const sti_tensor_row *row = &m->list.rows[i];
        const int64_t columns = row->rank > 0 ? row->dim[row->rank - 1] : 1;
        float *scale = sti_arena_alloc(m->arena, (size_t)columns * sizeof *scale);
        if (!scale)
            return STINT_E_MEMORY;
        sti_compact_tensor *t = &m->tensor[i];
        *t = (sti_compact_tensor){.name = row->name, .rank = row->rank};
        memcpy(t->dim, row->dim, sizeof t->dim);
        t->weight = (sti_weight){
            .form = sti_weight_form_find(row->rank, row->dim, row->data, scale),
            .x = row->data,
            .scale = scale};
    }
    return STINT_OK;
}

/* The model's texts with the hash of the projected weights. */
static sti_tensor_text *texts_of(const sti_guess *g, maker *m, char sha[65],
                                 int64_t *count)
{
    sti_sha256 state;
    const sti_tensor_text *texts = sti_tensor_file_texts(g->model->file, count);
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

static stint_status make(const sti_guess *g, maker *m, const char *path, int64_t *bytes)
{
    const sti_network *net = &g->model->single;
    sti_compact_sizes sizes = {0};
    sti_text out = {0};
    char sha[65];
    int64_t texts;
    stint_status st;
    STI_TRY(sti_tensor_list_init(&m->list, m->arena,
                                 2 * sti_graph_value_count(net->graph) + 2));
    STI_TRY(sti_tensor_list_add_network(&m->list, net, STI_ROLE_PARAM, "", g->work));
    STI_TRY(sti_tensor_list_add_network(&m->list, net, STI_ROLE_STATE, "", g->states));
    STI_TRY(take_tensors(m));
    const sti_tensor_text *text = texts_of(g, m, sha, &texts);
    if (!text)
        STI_TRY(STINT_E_MEMORY);
    STI_TRY(sti_compact_make(text, texts, m->tensor, m->list.count, &out, &sizes));
    *bytes = (int64_t)out.length;
    if (path)
        STI_TRY(sti_file_write(path, out.data, out.length));
out:
    sti_text_fini(&out);
    return st;
}

stint_status sti_guess_bytes(sti_guess *g, double share, const char *path,
                             int64_t *bytes, int64_t *nonzeros)
{
    int64_t ignored;
    maker m = {.arena = sti_arena_create("guess")};
    stint_status st =
        m.arena ? project(g, share, nonzeros ? nonzeros : &ignored) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = make(g, &m, path, bytes);
    sti_arena_destroy(m.arena);
    return st;
}

stint_status sti_guess_share(sti_guess *g, double high, double bytes, double *share)
{
    double low = 0;
    int64_t now;
    stint_status st = sti_guess_bytes(g, high, NULL, &now, NULL);
    if (st == STINT_OK && (double)now > bytes)
        return sti_fail(
            STINT_E_BUDGET,
            "shrink: a file of %s is out of reach of this scheme: the least "
            "is about %s; allow more, or give another scheme",
            sti_bytes_text((size_t)bytes), sti_bytes_text((size_t)now));
    while (st == STINT_OK && high - low > 1e-4) {
        const double middle = 0.5 * (low + high);
        st = sti_guess_bytes(g, middle, NULL, &now, NULL);
        if ((double)now > bytes)
            low = middle;
        else
            high = middle;
    }
    *share = high;
    return st;
}
