#include "train/penalty.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "store/checkpoint_file.h"
#include "store/model_file.h"
#include "train/click.h"
#include "train/prune.h"
#include "train/recipe_view.h"
#include "train/run.h"
#include "train/shrink_recipe.h"

/* ---- compressing ---- */

static sti_shrink_method method_of(const sti_run *run)
{
    return sti_shrink_method_of(run->recipe);
}

/* Is a learning step, from 1, one of method lc that draws weights to theta? */
static bool draws(const sti_run *run, int64_t learning)
{
    return method_of(run) == STI_SHRINK_LC && !sti_lc_finishes(&run->lc, learning);
}

static float *at(void *block, const sti_span *span)
{
    return (float *)(void *)((char *)block + span->offset);
}

/* The network computes with theta, and the weights lie in its place. */
static void swap_blocks(sti_step_engine *engine)
{
    char *a = engine->params, *b = engine->shadow[0], part[4096];
    for (size_t from = 0; from < engine->sizes.params; from += sizeof part) {
        const size_t left = engine->sizes.params - from;
        const size_t bytes = left < sizeof part ? left : sizeof part;
        memcpy(part, a + from, bytes);
        memcpy(a + from, b + from, bytes);
        memcpy(b + from, part, bytes);
    }
}

static stint_status held_out_loss(sti_run *run, double *loss)
{
    *loss = (double)NAN;
    if (run->job.inputs.validation_count == 0)
        return STINT_OK;
    stint_status st = sti_step_engine_evaluate(
        run->engine, STI_EVALUATE_VALIDATION, &run->norm, &run->validation, NULL, NULL);
    if (st == STINT_OK)
        *loss = run->validation.loss;
    return st;
}

/* The engine holds the compression: is it the best so far? Then it is the run's model.
 * Without images to judge by, the last one is. */
static stint_status judge(sti_run *run, double *loss)
{
    sti_position *p = &run->position;
    stint_status st = held_out_loss(run, loss);
    const bool better = p->shrink_step == 0 || isnan(*loss) || *loss < p->shrink_loss;
    if (st != STINT_OK || !better)
        return st;
    p->shrink_step = p->step + 1;
    p->shrink_loss = *loss;
    return sti_run_is_first(run) ? sti_saver_write_model(run->saver, p, run->model_path)
                                 : STINT_OK;
}

static void project_weights(sti_run *run, double mu, bool lc)
{
    sti_step_engine *engine = run->engine;
    memcpy(engine->shadow[0], engine->params, engine->sizes.params);
    for (int i = 0; i < run->projection->spans && lc; i++) {
        const sti_span *span = &run->projection->span[i];
        sti_lc_target(&engine->team, span->count, mu, at(engine->params, span),
                      at(engine->shadow[1], span), at(engine->shadow[0], span));
    }
    sti_project(run->projection, engine->shadow[0]);
}

static void measure_gap(const sti_run *run, bool lc, sti_log_shrink *line)
{
    const sti_step_engine *engine = run->engine;
    sti_lc_norms norms = {0};
    for (int i = 0; i < run->projection->spans; i++) {
        const sti_span *span = &run->projection->span[i];
        sti_lc_add_norms(span->count, at(engine->params, span),
                         at(engine->shadow[0], span),
                         lc ? at(engine->shadow[1], span) : NULL, &norms);
    }
    line->distance = norms.weights > 0 ? sqrt(norms.gap / norms.weights) : 0;
    line->multipliers = sqrt(norms.multipliers);
    sti_projection_count(run->projection, engine->shadow[0], &line->nonzeros,
                         &line->weights);
}

static void next_multipliers(sti_run *run, double mu)
{
    sti_step_engine *engine = run->engine;
    for (int i = 0; i < run->projection->spans && mu > 0; i++) {
        const sti_span *span = &run->projection->span[i];
        sti_lc_multipliers(&engine->team, span->count, mu, at(engine->params, span),
                           at(engine->shadow[0], span), at(engine->shadow[1], span));
    }
    for (int i = 0; i < engine->desc.moments; i++)
        memset(engine->moments[i], 0, engine->sizes.moments);
}

static void mask_zeros(sti_run *run)
{
    for (int i = 0; i < run->projection->spans && run->engine->mask; i++)
        sti_prune_mask_zeros(run->engine, run->projection->span[i].offset,
                             run->projection->span[i].count);
}

/* From here on what the best compression left is trained. */
static void begin_finish(sti_run *run)
{
    sti_step_engine *engine = run->engine;
    memcpy(engine->params, engine->shadow[2], engine->sizes.params);
    memcpy(engine->shadow[0], engine->shadow[2], engine->sizes.params);
    memset(engine->shadow[1], 0, engine->sizes.params);
    mask_zeros(run);
}

/* Compression j, of weights that learnt with mu. Nothing that the next step depends on
 * changes before the images have been looked at, which a stop may cut short. */
static stint_status compress(sti_run *run, int64_t j, double mu)
{
    const bool lc = draws(run, j);
    sti_log_shrink line = {.step = run->position.step, .number = j, .mu = mu};
    project_weights(run, mu, lc);
    stint_status st = lc && mu > 0 ? held_out_loss(run, &line.loss) : STINT_OK;
    if (st != STINT_OK)
        return st;
    if (!lc || mu == 0)
        line.loss = (double)NAN;
    swap_blocks(run->engine);
    st = judge(run, &line.compressed_loss);
    swap_blocks(run->engine);
    if (st != STINT_OK)
        return st;
    if (lc)
        next_multipliers(run, mu);
    measure_gap(run, lc, &line);
    run->position.shrink_done = j + 1;
    line.chosen = run->position.shrink_step == run->position.step + 1;
    if (line.chosen && run->engine->desc.shadows > 2)
        memcpy(run->engine->shadow[2], run->engine->shadow[0],
               run->engine->sizes.params);
    if (lc && sti_lc_finishes(&run->lc, j + 1) && j + 1 < run->lc.steps)
        begin_finish(run);
    return run->log ? sti_run_log_shrink(run->log, &line) : STINT_OK;
}

/* ---- when ---- */

/* The number of the compression that is due after so many steps; -1: none is. */
static int64_t due(const sti_run *run)
{
    const int64_t step = run->position.step, epoch = run->job.steps_per_epoch;
    if (step == 0)
        return 0;
    if (method_of(run) != STI_SHRINK_LC)
        return step % epoch == 0 || step == run->job.steps ? (step + epoch - 1) / epoch
                                                           : -1;
    const sti_lc_place last = sti_lc_place_of(&run->lc, step - 1);
    return last.index + 1 == last.count ? last.step : -1;
}

stint_status sti_shrink_begin(sti_run *run)
{
    run->lc = sti_shrink_lc_plan(run->recipe, run->job.steps_per_epoch);
    return run->projection && method_of(run) == STI_SHRINK_CLICK
               ? sti_click_take_over(run)
               : STINT_OK;
}

stint_status sti_shrink_init(sti_run *run)
{
    if (!run->projection)
        return STINT_OK;
    const sti_shrink_method method = method_of(run);
    sti_step_engine *engine = run->engine;
    if (engine->mask)
        sti_prune_mask_all(engine);
    for (int i = 0; i < engine->desc.shadows; i++)
        memset(engine->shadow[i], 0, engine->sizes.params);
    run->projection->shapes.known = 0;
    if (method == STI_SHRINK_CLICK)
        return sti_click_init(run);
    if (method == STI_SHRINK_LC)
        return STINT_OK;
    sti_project(run->projection, engine->params);
    mask_zeros(run);
    return STINT_OK;
}

stint_status sti_shrink_between(sti_run *run)
{
    if (!run->projection || method_of(run) == STI_SHRINK_DIRECT)
        return STINT_OK;
    if (method_of(run) == STI_SHRINK_CLICK)
        return sti_click_between(run);
    const int64_t j = due(run);
    if (j < 0 || run->position.shrink_done > j)
        return STINT_OK;
    return compress(run, j, j > 0 && draws(run, j) ? sti_lc_mu(&run->lc, j) : 0);
}

/* ---- within a step ---- */

/* The number of a span that begins at this offset, or NULL. */
static const sti_span *span_at(const sti_projection *p, size_t offset)
{
    for (int i = 0; i < p->spans; i++)
        if (p->span[i].offset == offset)
            return &p->span[i];
    return NULL;
}

/* Velocities of Condensa's optimiser have the rate in them: v = m v - lr g. Ours have
 * not, so they are brought to the new rate, and the steps are the same. */
static void follow_rate(sti_run *run, int64_t step)
{
    const sti_optimizer_values *o = sti_optimizer_section_of(run->recipe);
    if (o->name != STI_OPTIMIZER_SGD || run->engine->desc.moments == 0 ||
        sti_shrink_optimizer_step(run, step) == 0)
        return;
    const double before = sti_shrink_rate(run, step - 1, o->lr);
    const double now = sti_shrink_rate(run, step, o->lr);
    if (before != now)
        sti_lc_scale(&run->engine->team,
                     (int64_t)(run->engine->sizes.moments / sizeof(float)),
                     before / now, run->engine->moments[0]);
}

static void add_multipliers(sti_run *run, int64_t step, char *block)
{
    const sti_step_engine *engine = run->engine;
    const sti_network *net = engine->desc.train;
    const sti_lc_place place = sti_lc_place_of(&run->lc, step);
    const double mu = sti_lc_mu(&run->lc, place.step);
    const bool drawn = draws(run, place.step);
    for (int32_t i = 0; drawn && i < sti_graph_output_count(net->graph); i++) {
        const sti_output *output = &sti_graph_outputs(net->graph)[i];
        const sti_span *span =
            output->kind == STI_OUTPUT_GRADIENT
                ? span_at(run->projection, net->plan->allocation[output->target].offset)
                : NULL;
        if (!span)
            continue;
        char *g = block + net->plan->allocation[output->value].offset;
        sti_lc_gradient(&engine->team, span->count, mu, (double)engine->runs,
                        at(engine->params, span), at(engine->shadow[0], span),
                        at(engine->shadow[1], span), (float *)(void *)g);
    }
    follow_rate(run, step);
}

void sti_shrink_gradients(sti_run *run, int64_t step, char *block)
{
    if (!run->projection)
        return;
    if (method_of(run) == STI_SHRINK_LC)
        add_multipliers(run, step, block);
    if (method_of(run) == STI_SHRINK_CLICK)
        sti_click_gradients(run, step, block);
}

double sti_shrink_rate(const sti_run *run, int64_t step, double lr)
{
    const double end = sti_shrink_section_of(run->recipe)->lr_end;
    const double first = sti_optimizer_section_of(run->recipe)->lr;
    if (!run->projection)
        return lr;
    if (method_of(run) == STI_SHRINK_FINE_TUNE)
        return sti_lc_rate(first, end, step, run->job.steps);
    if (method_of(run) != STI_SHRINK_LC)
        return lr;
    const sti_lc_place place = sti_lc_fall_of(&run->lc, step);
    return sti_lc_rate(first, end, place.index, place.count);
}

const char *sti_shrink_words(const sti_run *run, int64_t step)
{
    static _Thread_local char words[160];
    if (!run->projection || method_of(run) != STI_SHRINK_LC)
        return "";
    const sti_lc_place place = sti_lc_place_of(&run->lc, step);
    if (!draws(run, place.step))
        return "";
    snprintf(words, sizeof words,
             ", or a smaller shrink.mu or mu_factor (this was learning step %" PRId64
             " of %" PRId64 " with mu = %g)",
             place.step, run->lc.steps - 1, sti_lc_mu(&run->lc, place.step));
    return words;
}

int64_t sti_shrink_optimizer_step(const sti_run *run, int64_t step)
{
    return run->projection && method_of(run) == STI_SHRINK_LC
               ? sti_lc_fall_of(&run->lc, step).index
               : step;
}

/* ---- the end ---- */

static stint_status read_factor(const sti_tensor_file *f, const char *prefix,
                                const sti_target *t, int64_t count, float *numbers)
{
    char name[256];
    snprintf(name, sizeof name, "%s%s", prefix, t->name);
    const sti_tensor_row *row = sti_tensor_file_find(f, name);
    if (!row || row->bytes != (size_t)count * sizeof *numbers)
        return sti_fail(STINT_E_INPUT, "%s: has no '%s' of its weights any more",
                        sti_tensor_file_path(f), name);
    return sti_tensor_file_read(f, row, numbers);
}

/* The factors of the chosen compression, of which later ones have taken the place. */
static stint_status reload_factors(sti_run *run)
{
    const sti_projection *p = run->projection;
    sti_tensor_file *f = NULL;
    stint_status st = STINT_OK;
    if (sti_scheme_has(&p->scheme, STI_SCHEME_LOWRANK))
        st = sti_tensor_file_open(run->model_path, &f);
    for (int i = 0; f && i < p->count && st == STINT_OK; i++) {
        const sti_target *t = &p->target[i];
        if (!t->left)
            continue;
        st = read_factor(f, STI_TENSOR_LEFT, t, t->form.rows * t->rank, t->left);
        if (st == STINT_OK)
            st = read_factor(f, STI_TENSOR_RIGHT, t, t->rank * t->form.columns,
                             t->right);
    }
    sti_tensor_file_close(f);
    return st;
}

stint_status sti_shrink_end(sti_run *run)
{
    stint_status st = STINT_OK;
    if (run->projection && method_of(run) == STI_SHRINK_CLICK)
        return sti_run_agree(run, sti_click_end(run));
    if (!run->projection || !sti_shrink_chooses(run->recipe))
        return STINT_OK;
    if (sti_run_is_first(run))
        st = sti_model_reload(run->model_path, run->position.shrink_step - 1,
                              run->job.inputs.network.name, &run->job.setup.train,
                              run->engine->params, run->engine->states);
    if (st == STINT_OK && sti_run_is_first(run))
        st = reload_factors(run);
    st = sti_run_agree(run, st);
    run->evaluated = false; /* that was of the weights */
    return st == STINT_OK ? sti_run_share_weights(run) : st;
}
