/* kernel: the kh * kw numbers of a pair of channels. pattern: four taps of each kernel
 * of 3 x 3, in one of K shapes that serve all layers. The shapes are chosen by the
 * first projection, by the squares of its weights, and stay: so a kernel moves from one
 * shape to another as its weights do, and the set of shapes does not. */
#include "base/fail.h"
#include "train/project_priv.h"
#include "train/shapes.h"

/* ---- kernel ---- */

/* Kernel k is that of input channel k / columns and output channel k % columns. */
static int64_t count_kernels(const sti_scheme_word *word, const sti_target *t)
{
    (void)word;
    return t->form.channels * t->form.columns;
}

static void score_kernels(const sti_scheme_word *word, const sti_target *t,
                          const float *x, float *score)
{
    const int64_t n = count_kernels(word, t);
    for (int64_t k = 0; k < n; k++) {
        sti_scorer s;
        sti_scorer_begin(&s, word->criterion);
        sti_scorer_add(&s, x + k, t->form.taps, n);
        score[k] = sti_scorer_end(&s);
    }
}

static void cut_kernel(const sti_scheme_word *word, const sti_target *t, void *params,
                       int64_t unit)
{
    float *x = sti_target_numbers(t, params);
    const int64_t n = count_kernels(word, t);
    for (int64_t tap = 0; tap < t->form.taps; tap++)
        x[tap * n + unit] = 0;
}

stint_status sti_project_check_kernel(const sti_scheme_word *word, const sti_target *t)
{
    if (!t->depthwise)
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "scheme: %s: %s is a depthwise convolution: without one of its "
                    "kernels a channel is lost; leave it out by shrink.keep",
                    sti_scheme_kind_name(word->kind), t->name);
}

void sti_project_kernel(sti_projection *p, int word, void *params)
{
    static const sti_cutter cutter = {.units = count_kernels,
                                      .score = score_kernels,
                                      .cut = cut_kernel,
                                      .round_up = true};
    sti_project_cut(p, word, &cutter, params);
    for (int i = 0; i < p->count; i++)
        if (p->target[i].takes >> word & 1)
            p->target[i].form.kernels = true;
}

/* ---- pattern ---- */

/* Squares of all kernels that the word takes, one after another in the scratch. */
static int score_taps(sti_projection *p, int word, void *params,
                      sti_shape_kernels *layer)
{
    int layers = 0;
    float *at = p->score;
    for (int i = 0; i < p->count; i++) {
        const sti_target *t = &p->target[i];
        const float *x = sti_target_numbers(t, params);
        if (!(t->takes >> word & 1))
            continue;
        for (int64_t n = 0; n < t->count; n++)
            at[n] = x[n] * x[n];
        layer[layers++] = (sti_shape_kernels){at, t->count / STI_SHAPE_TAPS};
        at += t->count;
    }
    return layers;
}

static void cut_taps(const sti_projection *p, int count, int64_t kernels,
                     const float *importance, float *x)
{
    for (int64_t k = 0; k < kernels; k++) {
        const int best =
            sti_shapes_best(p->shapes.shape, count, importance + k, kernels);
        for (int t = 0; t < STI_SHAPE_TAPS; t++)
            if (!(p->shapes.shape[best] >> t & 1))
                x[t * kernels + k] = 0;
    }
}

void sti_project_pattern(sti_projection *p, int word, void *params)
{
    sti_shape_kernels layer[STI_SCHEME_TARGETS];
    const int count = p->scheme.word[word].patterns;
    const int layers = score_taps(p, word, params, layer);
    if (!p->shapes.known && p->fixed_shapes)
        sti_shapes_published(count, p->shapes.shape);
    else if (!p->shapes.known)
        sti_shapes_choose(layer, layers, count, p->shapes.shape);
    p->shapes.known = 1;
    for (int i = 0, l = 0; i < p->count; i++) {
        sti_target *t = &p->target[i];
        if (!(t->takes >> word & 1))
            continue;
        cut_taps(p, count, layer[l].kernels, layer[l].importance,
                 sti_target_numbers(t, params));
        l++;
        t->form.patterns = count;
        for (int s = 0; s < count; s++)
            t->form.pattern[s] = p->shapes.shape[s];
    }
}
