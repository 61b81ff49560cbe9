#include "train/click.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "train/click_priv.h"
#include "train/prune.h"
#include "train/recipe_view.h"
#include "train/run.h"
#include "train/shapes.h"
#include "train/shrink_recipe.h"

sti_click_phases sti_click_phases_of(const sti_run *run)
{
    const sti_shrink_values *shrink = sti_shrink_section_of(run->recipe);
    const double steps = (double)run->job.steps;
    sti_click_phases p = {.select = (int64_t)(shrink->select * steps),
                          .hard = (int64_t)(shrink->hard * steps)};
    p.gather = p.select - shrink->importance_batches;
    p.gather = p.gather > 0 ? p.gather : 0;
    return p;
}

stint_status sti_click_check(const stint_recipe *recipe, const sti_projection *p,
                             int64_t steps)
{
    const sti_shrink_values *shrink = sti_shrink_section_of(recipe);
    const int64_t select = (int64_t)(shrink->select * (double)steps);
    const int64_t hard = (int64_t)(shrink->hard * (double)steps);
    if (sti_shrink_method_of(recipe) != STI_SHRINK_CLICK)
        return STINT_OK;
    if (select >= 2 && hard > select && hard < steps)
        return sti_click_check_ratio(recipe, p);
    return sti_fail(STINT_E_INPUT,
                    "shrink: a run of %" PRId64 " steps has no room for its phases: "
                    "what goes is chosen after step %" PRId64 " and zero after step "
                    "%" PRId64 "; train longer, or set shrink.select and shrink.hard "
                    "otherwise",
                    steps, select, hard);
}

/* ---- importance ---- */

void sti_click_gather(int64_t n, float scale, const float *w, const float *g,
                      float *sum)
{
    for (int64_t i = 0; i < n; i++) {
        const float x = w[i] * (g[i] * scale);
        sum[i] += x * x;
    }
}

static float *numbers(void *block, const sti_target *t)
{
    return sti_target_numbers(t, block);
}

static bool is_clicked(const sti_projection *p, const sti_target *t)
{
    return sti_click_word(p, t, STI_SCHEME_KERNEL) ||
           sti_click_word(p, t, STI_SCHEME_PATTERN);
}

static void random_numbers(uint64_t seed, int target, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t word[4];
        sti_random4(seed, STI_STREAM_SUBSET, (uint64_t)target + 1, (uint64_t)i, word);
        out[i] = sti_uniform(word[0]);
    }
}

/* The importance of each number into the first shadow. */
static void settle_importance(sti_run *run)
{
    sti_projection *p = run->projection;
    const int kind = sti_shrink_section_of(run->recipe)->importance;
    for (int i = 0; i < p->count; i++) {
        const sti_target *t = &p->target[i];
        const float *w = numbers(run->engine->params, t);
        float *a = numbers(run->engine->shadow[0], t);
        const float *b = numbers(run->engine->shadow[1], t);
        if (!is_clicked(p, t))
            continue;
        if (kind == STI_IMPORTANCE_RANDOM)
            random_numbers(sti_recipe_seed(run->recipe, STI_STREAM_INIT), i, t->count,
                           a);
        for (int64_t n = 0; n < t->count && kind != STI_IMPORTANCE_RANDOM; n++)
            a[n] = kind == STI_IMPORTANCE_MAGNITUDE ? w[n] * w[n] : a[n] + b[n];
    }
}

/* ---- rank correlation ---- */

typedef struct ranked {
    float value;
    int32_t index;
} ranked;

static int by_value(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void rank(int64_t n, const float *x, ranked *sorted, float *rank_out)
{
    for (int64_t i = 0; i < n; i++)
        sorted[i] = (ranked){x[i], (int32_t)i};
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    for (int64_t i = 0, end; i < n; i = end) {
        end = i;
        while (end < n && sorted[end].value == sorted[i].value)
            end++;
        for (int64_t k = i; k < end; k++)
            rank_out[sorted[k].index] = 0.5f * (float)(i + end - 1);
    }
}

double sti_click_correlation(int64_t n, const float *a, const float *b, float *scratch)
{
    ranked *sorted = (ranked *)(void *)(scratch + 2 * n);
    rank(n, a, sorted, scratch);
    rank(n, b, sorted, scratch + n);
    const double mean = 0.5 * (double)(n - 1);
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)scratch[i] - mean, y = (double)scratch[n + i] - mean;
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 1;
}

/* Mean over the layers, of kernels by the two halves of the batches. */
static double correlation_of_halves(sti_run *run)
{
    sti_projection *p = run->projection;
    double sum = 0;
    int layers = 0;
    for (int i = 0; i < p->count; i++) {
        const sti_target *t = &p->target[i];
        const int64_t n = sti_click_kernels(t);
        if (!is_clicked(p, t))
            continue;
        sti_click_sum_taps(t, numbers(run->engine->shadow[0], t), p->score);
        sti_click_sum_taps(t, numbers(run->engine->shadow[1], t), p->score + n);
        sum += sti_click_correlation(n, p->score, p->score + n, p->score + 2 * n);
        layers++;
    }
    return layers > 0 ? sum / layers : 1;
}

/* ---- the choice ---- */

static void choose_kernels(sti_run *run, const double *automatic)
{
    sti_projection *p = run->projection;
    for (int i = 0, layer = 0; i < p->count; i++) {
        const sti_target *t = &p->target[i];
        float *stays = numbers(run->engine->shadow[1], t);
        const sti_scheme_word *word = sti_click_word(p, t, STI_SCHEME_KERNEL);
        for (int64_t n = 0; n < t->count && !word; n++)
            stays[n] = 1;
        if (!word)
            continue;
        sti_click_rank_kernels(p, t,
                               word->automatic
                                   ? automatic[layer]
                                   : word->share[word->shares > 1 ? layer : 0],
                               numbers(run->engine->shadow[0], t), stays);
        layer++;
    }
}

/* The best shape of every kernel, in place of its importance. */
static void shape_kernels(sti_run *run)
{
    const sti_projection *p = run->projection;
    for (int i = 0; i < p->count; i++) {
        const sti_target *t = &p->target[i];
        float *x = numbers(run->engine->shadow[0], t);
        const sti_scheme_word *word = sti_click_word(p, t, STI_SCHEME_PATTERN);
        const int64_t kernels = sti_click_kernels(t);
        for (int64_t n = 0; n < t->count && !word; n++)
            x[n] = 1;
        for (int64_t k = 0; word && k < kernels; k++) {
            const int best =
                sti_shapes_best(p->shapes.shape, word->patterns, x + k, kernels);
            for (int tap = 0; tap < STI_SHAPE_TAPS; tap++)
                x[tap * kernels + k] = (float)(p->shapes.shape[best] >> tap & 1);
        }
    }
}

/* ---- phases ---- */

static stint_status log_phase(sti_run *run, const sti_log_shrink *line)
{
    return run->log ? sti_run_log_shrink(run->log, line) : STINT_OK;
}

static stint_status choose(sti_run *run)
{
    sti_log_shrink line = {.step = run->position.step,
                           .phase = "select",
                           .loss = (double)NAN,
                           .compressed_loss = (double)NAN};
    double share[STI_SCHEME_TARGETS];
    line.correlation = correlation_of_halves(run);
    settle_importance(run);
    if (sti_scheme_is_automatic(&run->projection->scheme)) {
        const stint_status st = sti_click_share_out(run, share);
        if (st != STINT_OK)
            return st;
    }
    choose_kernels(run, share);
    sti_click_choose_shapes(run);
    shape_kernels(run);
    run->position.shrink_done = 1;
    return log_phase(run, &line);
}

static stint_status harden(sti_run *run)
{
    sti_projection *p = run->projection;
    sti_log_shrink line = {.step = run->position.step,
                           .phase = "hard",
                           .loss = (double)NAN,
                           .compressed_loss = (double)NAN};
    for (int i = 0; i < p->count; i++) {
        const sti_target *t = &p->target[i];
        float *w = numbers(run->engine->params, t);
        const float *in_shape = numbers(run->engine->shadow[0], t);
        const float *stays = numbers(run->engine->shadow[1], t);
        if (!is_clicked(p, t))
            continue;
        for (int64_t n = 0; n < t->count; n++)
            w[n] = in_shape[n] * stays[n] != 0 ? w[n] : 0.0f;
        sti_prune_mask_zeros(run->engine, t->offset, t->count);
    }
    run->position.shrink_done = 2;
    sti_projection_count(p, run->engine->params, &line.nonzeros, &line.weights);
    return log_phase(run, &line);
}

stint_status sti_click_between(sti_run *run)
{
    const sti_click_phases phase = sti_click_phases_of(run);
    const sti_position *p = &run->position;
    stint_status st = STINT_OK;
    if (p->shrink_done == 0 && p->step >= phase.select)
        st = choose(run);
    if (st == STINT_OK && p->shrink_done == 1 && p->step >= phase.hard)
        st = harden(run);
    return st;
}

stint_status sti_click_init(sti_run *run)
{
    return run->settled_scheme ? STINT_OK : sti_click_check_limits(run);
}

stint_status sti_click_end(sti_run *run)
{
    sti_project(run->projection, run->engine->params);
    return sti_scheme_is_automatic(&run->projection->scheme) ? sti_click_check_size(run)
                                                             : STINT_OK;
}

/* ---- within a step ---- */

void sti_click_lasso(int64_t kernels, int64_t taps, double lasso, float scale,
                     const float *w, const float *in_shape, const float *stays,
                     float *g)
{
    for (int64_t k = 0; k < kernels; k++) {
        double outside = 0, all = 0;
        for (int64_t i = k; i < taps * kernels; i += kernels) {
            const double square = (double)w[i] * (double)w[i];
            all += square;
            outside += in_shape[i] == 0 ? square : 0;
        }
        const float of_shape = (float)(lasso / sqrt(outside + 1e-8)) * scale;
        const float of_kernel = (float)(lasso / sqrt(all + 1e-8)) * scale;
        for (int64_t i = k; i < taps * kernels; i += kernels) {
            if (in_shape[i] == 0)
                g[i] += of_shape * w[i];
            if (stays[i] == 0)
                g[i] += of_kernel * w[i];
        }
    }
}

static const sti_target *target_at(const sti_projection *p, size_t offset)
{
    for (int i = 0; i < p->count; i++)
        if (p->target[i].offset == offset && is_clicked(p, &p->target[i]))
            return &p->target[i];
    return NULL;
}

static void act(sti_run *run, int64_t step, const sti_click_phases *phase,
                const sti_target *t, float *g)
{
    const sti_step_engine *engine = run->engine;
    const sti_shrink_values *shrink = sti_shrink_section_of(run->recipe);
    const float *w = numbers(engine->params, t);
    const float shards = (float)engine->runs; /* that the block is the sum of */
    if (step < phase->select)
        sti_click_gather(t->count, 1 / shards, w, g,
                         numbers(engine->shadow[(step - phase->gather) & 1], t));
    else
        sti_click_lasso(sti_click_kernels(t), t->form.taps, shrink->lasso, shards, w,
                        numbers(engine->shadow[0], t), numbers(engine->shadow[1], t),
                        g);
}

void sti_click_gradients(sti_run *run, int64_t step, char *block)
{
    const sti_network *net = run->engine->desc.train;
    const sti_click_phases phase = sti_click_phases_of(run);
    if (step < phase.gather || step >= phase.hard)
        return;
    for (int32_t i = 0; i < sti_graph_output_count(net->graph); i++) {
        const sti_output *output = &sti_graph_outputs(net->graph)[i];
        const sti_target *t =
            output->kind == STI_OUTPUT_GRADIENT
                ? target_at(run->projection,
                            net->plan->allocation[output->target].offset)
                : NULL;
        if (t)
            act(run, step, &phase, t,
                (float *)(void *)(block + net->plan->allocation[output->value].offset));
    }
}
