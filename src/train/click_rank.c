/* What method click ranks: kernels by the importance of their taps, shapes by what they
 * keep of it. */
#include <math.h>
#include <string.h>

#include "train/click_priv.h"
#include "train/run.h"
#include "train/shapes.h"
#include "train/threshold.h"

static float *numbers(void *block, const sti_target *t)
{
    return sti_target_numbers(t, block);
}

const sti_scheme_word *sti_click_word(const sti_projection *p, const sti_target *t,
                                      sti_scheme_kind kind)
{
    for (int w = 0; w < p->scheme.count; w++)
        if (p->scheme.word[w].kind == kind && (t->takes >> w & 1))
            return &p->scheme.word[w];
    return NULL;
}

void sti_click_sum_taps(const sti_target *t, const float *importance, float *kernel)
{
    const int64_t n = sti_click_kernels(t);
    for (int64_t k = 0; k < n; k++) {
        double sum = 0;
        for (int64_t tap = 0; tap < t->form.taps; tap++)
            sum += (double)importance[tap * n + k];
        kernel[k] = (float)sum;
    }
}

typedef struct span {
    const float *x;
    int64_t n;
} span;

static void visit(void *user, sti_threshold_counter *counter)
{
    const span *s = user;
    sti_threshold_count(counter, s->x, s->n);
}

void sti_click_rank_kernels(sti_projection *p, const sti_target *t, double share,
                            const float *importance, float *stays)
{
    const int64_t n = sti_click_kernels(t);
    const int64_t wanted = (int64_t)ceil(share * (double)n - 1e-9 * (double)(n + 1));
    const int64_t k = wanted < n ? wanted : n - 1;
    span s = {p->score, n};
    sti_click_sum_taps(t, importance, p->score);
    sti_threshold threshold = {0};
    if (k > 0)
        threshold = sti_threshold_find(k, visit, &s);
    for (int64_t i = 0; i < n; i++)
        stays[i] = k > 0 && sti_threshold_cuts(&threshold, p->score[i]) ? 0.0f : 1.0f;
    for (int64_t tap = 1; tap < t->form.taps; tap++)
        memcpy(stays + tap * n, stays, (size_t)n * sizeof *stays);
}

/* Shapes are chosen by the kernels that stay: the importance of the others is left out,
 * in the scratch. */
void sti_click_choose_shapes(sti_run *run)
{
    sti_projection *p = run->projection;
    sti_shape_kernels layer[STI_SCHEME_TARGETS];
    int layers = 0, count = 0;
    float *at = p->score;
    for (int i = 0; i < p->count; i++) {
        const sti_target *t = &p->target[i];
        const sti_scheme_word *word = sti_click_word(p, t, STI_SCHEME_PATTERN);
        const float *importance = numbers(run->engine->shadow[0], t);
        const float *stays = numbers(run->engine->shadow[1], t);
        if (!word)
            continue;
        count = word->patterns;
        for (int64_t n = 0; n < t->count; n++)
            at[n] = importance[n] * stays[n];
        layer[layers++] = (sti_shape_kernels){at, sti_click_kernels(t)};
        at += t->count;
    }
    if (layers == 0)
        return;
    if (p->fixed_shapes)
        sti_shapes_published(count, p->shapes.shape);
    else
        sti_shapes_choose(layer, layers, count, p->shapes.shape);
    p->shapes.known = 1;
}
