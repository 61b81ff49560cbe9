/* Gains by short trainings: what a tensor, or a share of it, is worth to the user's
 * data beside the classifier alone ("contribution analysis" of arXiv 2206.15472). */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/stop.h"
#include "train/gains_priv.h"
#include "train/recipe_view.h"

/* Steps of a training, and batches that its loss is taken of. */
enum { STEPS = 8, LOSS_BATCHES = 4 };

typedef struct measurer {
    sti_job *job;
    const sti_gains_measuring *how;
    int32_t *order; /* of the samples */
    int64_t batches;
    size_t *tried_bytes; /* highest planned peak so far */
} measurer;

static stint_status run_batch(const measurer *m, sti_step_engine *engine,
                              int64_t number, sti_step_result *result)
{
    const sti_inputs *in = &m->job->inputs;
    const int64_t at = number % m->batches;
    const sti_step_batch batch = {.samples = m->order + at * m->job->setup.batch,
                                  .norm = in->text ? NULL : &in->start->norm,
                                  .class_weights = in->class_weights,
                                  .seed =
                                      sti_recipe_seed(in->recipe, STI_STREAM_DROPOUT),
                                  .step = number};
    if (sti_stop_asked() != STINT_OK)
        return sti_fail(sti_stop_asked(),
                        "stopped while gains were measured; the same command goes on");
    return sti_step_engine_run(engine, &batch, result);
}

/* A few steps, then the loss of batches that were not among them (of few data, of the
 * first ones again). */
static stint_status train(const measurer *m, sti_step_engine *engine, double *loss_out)
{
    const sti_optimizer_values *optimizer =
        sti_optimizer_section_of(m->job->inputs.recipe);
    sti_step_result result;
    double sum = 0;
    stint_status st;
    STI_TRY(sti_gains_begin_weights(m->job, engine));
    for (int64_t step = 0; step < STEPS; step++) {
        STI_TRY(run_batch(m, engine, step, &result));
        const double norm =
            sqrt(sti_step_engine_gradient_squares(engine, result.block)) /
            (double)engine->runs;
        sti_step_engine_update(engine, optimizer, optimizer->lr,
                               sti_update_clip(optimizer, norm), step, result.block);
    }
    for (int64_t i = 0; i < LOSS_BATCHES; i++) {
        STI_TRY(run_batch(m, engine, STEPS + i, &result));
        sum += result.loss;
    }
    *loss_out = sum / LOSS_BATCHES;
out:
    return st;
}

/* *loss_out: NaN where the training does not fit, or went astray. */
static stint_status measure_set(const measurer *m, const sti_update_set *set,
                                double *loss_out)
{
    sti_job *job = m->job;
    sti_step_engine *engine = NULL;
    sti_step_engine_desc desc;
    size_t peak = 0;
    stint_status st;
    *loss_out = (double)NAN;
    job->inputs.network.update = set;
    STI_TRY(sti_setup_build(&job->setup));
    STI_TRY(sti_step_peak_with(&job->setup, NULL, 0, &peak));
    if (m->how->budget_bytes > 0 && peak > m->how->budget_bytes)
        goto out;
    if (peak > *m->tried_bytes)
        *m->tried_bytes = peak;
    desc = sti_setup_engine(&job->setup, 1);
    desc.eval = NULL;
    STI_TRY(sti_step_engine_create(&desc, &engine));
    STI_TRY(train(m, engine, loss_out));
out:
    sti_step_engine_destroy(engine);
    sti_setup_fini(&job->setup);
    job->inputs.network.update = NULL;
    return st;
}

static stint_status measure_one(const measurer *m, int tensor, int eighths,
                                double *loss_out)
{
    sti_update_set set = {.count = 0};
    stint_status st = m->how->set(m->how->user, tensor, eighths, &set);
    if (st == STINT_OK)
        st = measure_set(m, &set, loss_out);
    sti_update_set_fini(&set);
    return st;
}

/* What an earlier command came to, if it was of this very model, data and optimiser:
 * the classifier alone then ends at the same loss. */
static void take_kept(const char *path, sti_gains *gains)
{
    sti_gains kept = {.count = 0};
    if (!path || !sti_path_is_file(path) || sti_gains_read(path, &kept) != STINT_OK)
        return;
    const bool same = kept.measured && kept.base_loss == gains->base_loss &&
                      strcmp(kept.start_sha256, gains->start_sha256) == 0;
    for (int i = 0; same && i < gains->count; i++) {
        const sti_gain *then = sti_gains_find(&kept, gains->tensor[i].name);
        if (then && then->channels == gains->tensor[i].channels)
            memcpy(gains->tensor[i].share, then->share, sizeof then->share);
    }
    sti_gains_fini(&kept);
}

static stint_status measure_tensor(const measurer *m, sti_gains *gains, int tensor)
{
    static const int eighths[STI_GAIN_SHARES] = {1, 2, 4, 8};
    sti_gain *gain = &gains->tensor[tensor];
    stint_status st = STINT_OK;
    if (isfinite(gain->share[STI_GAIN_SHARES - 1])) /* kept */
        return STINT_OK;
    for (int k = gain->channels > 1 ? 0 : STI_GAIN_SHARES - 1;
         k < STI_GAIN_SHARES && st == STINT_OK; k++) {
        double loss = (double)NAN;
        st = measure_one(m, tensor, eighths[k], &loss);
        gain->share[k] = loss < gains->base_loss ? gains->base_loss - loss : 0;
    }
    return st == STINT_OK && m->how->path ? sti_gains_write(gains, m->how->path) : st;
}

static stint_status measurer_init(measurer *m)
{
    const sti_inputs *in = &m->job->inputs;
    m->batches = in->train_count / m->job->setup.batch;
    m->order = sti_alloc_array(in->train_count, sizeof *m->order, "gains");
    if (!m->order)
        return STINT_E_MEMORY;
    sti_shuffle(sti_recipe_seed(in->recipe, STI_STREAM_SHUFFLE), STI_STREAM_SHUFFLE, 0,
                in->train_count, m->order);
    return STINT_OK;
}

stint_status sti_gains_measure(sti_job *job, const sti_gains_measuring *how,
                               sti_gains *gains)
{
    const sti_update_rule at_once = job->inputs.network.at_once;
    const bool keeps = job->inputs.network.keeps, folds = job->inputs.network.fold_norm;
    measurer m = {.job = job, .how = how, .tried_bytes = &gains->tried_bytes};
    stint_status st;
    job->inputs.network.at_once = (sti_update_rule){.op = NULL};
    job->inputs.network.keeps = job->inputs.network.fold_norm = false;
    STI_TRY(measurer_init(&m));
    STI_TRY(measure_one(&m, -1, 0, &gains->base_loss));
    if (!isfinite(gains->base_loss))
        STI_TRY(
            sti_fail(STINT_E_FAILED,
                     "gains: training the classifier alone does not fit the budget, "
                     "or its loss is not finite; try a lower optimizer.lr"));
    gains->measured = true;
    take_kept(how->path, gains);
    for (int i = 0; i < gains->count; i++)
        STI_TRY(measure_tensor(&m, gains, i));
out:
    job->inputs.network.at_once = at_once;
    job->inputs.network.keeps = keeps;
    job->inputs.network.fold_norm = folds;
    sti_free(m.order);
    return st;
}
