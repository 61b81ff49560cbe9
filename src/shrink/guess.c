#include "shrink/guess.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "store/compact_network.h"
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

static stint_status create_projection(const sti_guess *g, double share,
                                      sti_projection **p)
{
    const sti_shrink_values *shrink = sti_shrink_section_of(g->recipe);
    sti_shrink_scheme scheme;
    sti_text text = {0};
    stint_status st = STINT_E_MEMORY;
    sti_scheme_settle(g->scheme, &share, 1, &text);
    if (!text.failed && text.data)
        st = sti_scheme_parse(text.data, &scheme);
    sti_text_fini(&text);
    const sti_projection_desc desc = {.scheme = &scheme,
                                      .keep = shrink->keep,
                                      .fixed_shapes =
                                          shrink->patterns == STI_PATTERNS_FIXED,
                                      .quiet = true}; /* (only looks at shares) */
    return st == STINT_OK ? sti_projection_create(&desc, &g->model->single, p) : st;
}

/* What the projection holds as products. */
static int list_factors(const sti_projection *p, sti_compact_factors *factors)
{
    int count = 0;
    for (int i = 0; i < p->count; i++) {
        const sti_target *t = &p->target[i];
        if (t->left)
            factors[count++] =
                (sti_compact_factors){t->name, t->rank, t->left, t->right};
    }
    return count;
}

stint_status sti_guess_bytes(sti_guess *g, double share, const char *path,
                             int64_t *bytes, int64_t *nonzeros)
{
    sti_compact_factors factors[STI_SCHEME_TARGETS];
    sti_projection *p = NULL;
    int64_t ignored, weights;
    stint_status st = create_projection(g, share, &p);
    if (st == STINT_OK) {
        memcpy(g->work, g->params, g->param_bytes);
        sti_project(p, g->work);
        sti_projection_count(p, g->work, nonzeros ? nonzeros : &ignored, &weights);
        const sti_compact_source source = {.file = g->model->file,
                                           .network = &g->model->single,
                                           .params = g->work,
                                           .states = g->states,
                                           .factors = factors,
                                           .factor_count = list_factors(p, factors)};
        st = sti_compact_network(&source, path, bytes, NULL);
    }
    sti_projection_destroy(p);
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
    if (st == STINT_OK)
        st = sti_guess_bytes(g, low, NULL, &now, NULL);
    if (st == STINT_OK && (double)now <= bytes)
        high = low; /* all fits */
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
