/* Gains collected: a few batches through the network, as many layers at a time as fit.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/rng.h"
#include "base/stop.h"
#include "train/gains_priv.h"
#include "train/recipe_view.h"

/* ---- gradients ---- */

typedef struct collector {
    sti_job *job;
    size_t budget_bytes;
    sti_gains *gains;
    int32_t *order; /* of the samples */
    int64_t batches;
} collector;

/* Squares of a gradient's numbers into its channels; of a bias, into one. */
static void add_gradient(const stint_shape *shape, const float *x, double factor,
                         sti_gain *gain)
{
    const int axis = gain->channels > 1 ? sti_share_axis(shape) : -1;
    const int64_t count = stint_shape_count(shape);
    int64_t inner = 1;
    for (int i = axis + 1; i < shape->rank && axis >= 0; i++)
        inner *= shape->dim[i];
    for (int64_t i = 0; i < count; i++) {
        const double d = (double)x[i] * factor;
        gain->channel[axis < 0 ? 0 : i / inner % gain->channels] += d * d;
    }
}

static stint_status add_block(const collector *c, const sti_step_engine *engine,
                              const char *block)
{
    const sti_network *net = &c->job->setup.train;
    for (int32_t i = 0; i < sti_graph_output_count(net->graph); i++) {
        const sti_output *output = &sti_graph_outputs(net->graph)[i];
        if (output->kind != STI_OUTPUT_GRADIENT)
            continue;
        const stint_shape shape = stint_value_shape(net->graph, output->value);
        sti_gain *gain = (sti_gain *)(uintptr_t)sti_gains_find(c->gains, output->name);
        const size_t offset = net->plan->allocation[output->value].offset;
        add_gradient(&shape, (const float *)(const void *)(block + offset),
                     1 / (double)engine->runs, gain);
        if (!isfinite(sti_gain_sum(gain)))
            return sti_fail(STINT_E_FAILED,
                            "gains: the gradient of %s is not finite; the model does "
                            "not go with these data",
                            output->name);
    }
    return STINT_OK;
}

static stint_status run_batch(const collector *c, sti_step_engine *engine,
                              int64_t number)
{
    const sti_inputs *in = &c->job->inputs;
    const sti_step_batch batch = {.samples = c->order + number * c->job->setup.batch,
                                  .norm = in->text ? NULL : &in->start->norm,
                                  .class_weights = in->class_weights,
                                  .seed =
                                      sti_recipe_seed(in->recipe, STI_STREAM_DROPOUT),
                                  .step = number};
    sti_step_result result;
    if (sti_stop_asked() != STINT_OK)
        return sti_fail(sti_stop_asked(), "stopped while gains were collected");
    const stint_status st = sti_step_engine_run(engine, &batch, &result);
    return st == STINT_OK ? add_block(c, engine, result.block) : st;
}

stint_status sti_gains_begin_weights(const sti_job *job, sti_step_engine *engine)
{
    const sti_inputs *in = &job->inputs;
    const sti_network *net = &job->setup.train;
    stint_status st = STINT_OK;
    if (in->new_classifier)
        st = sti_network_init_weights(net, &engine->team,
                                      sti_recipe_seed(in->recipe, STI_STREAM_INIT),
                                      engine->params, engine->states);
    return st == STINT_OK
               ? sti_model_start(in->start, &in->network, net, in->new_classifier,
                                 engine->params, engine->states)
               : st;
}

static stint_status run_batches(const collector *c)
{
    sti_step_engine_desc desc = sti_setup_engine(&c->job->setup, 1);
    sti_step_engine *engine = NULL;
    stint_status st;
    desc.eval = NULL;
    STI_TRY(sti_step_engine_create(&desc, &engine));
    STI_TRY(sti_gains_begin_weights(c->job, engine));
    for (int64_t b = 0; b < c->batches; b++)
        STI_TRY(run_batch(c, engine, b));
out:
    sti_step_engine_destroy(engine);
    return st;
}

/* Parameters [first, end) of the set; *fits: within the budget. */
static stint_status try_part(const collector *c, const sti_update_set *all, int first,
                             int end, bool *fits)
{
    sti_job *job = c->job;
    const sti_update_set part = {.tensor = all->tensor + first, .count = end - first};
    size_t peak = 0;
    stint_status st;
    job->inputs.network.update = &part;
    STI_TRY(sti_setup_build(&job->setup));
    STI_TRY(sti_step_peak_with(&job->setup, NULL, 0, &peak));
    *fits = c->budget_bytes == 0 || peak <= c->budget_bytes;
    if (*fits) {
        if (peak > c->gains->tried_bytes)
            c->gains->tried_bytes = peak;
        STI_TRY(run_batches(c));
    }
out:
    sti_setup_fini(&job->setup);
    job->inputs.network.update = NULL;
    return st;
}

/* All at once, or halves. What does not fit alone cannot be trained either. */
static stint_status collect_part(const collector *c, const sti_update_set *all,
                                 int first, int end)
{
    bool fits = false;
    stint_status st = try_part(c, all, first, end, &fits);
    if (st != STINT_OK || fits || end - first == 1)
        return st;
    const int middle = first + (end - first) / 2;
    st = collect_part(c, all, first, middle);
    return st == STINT_OK ? collect_part(c, all, middle, end) : st;
}

static stint_status list_tensors(const stint_graph *g, const sti_update_set *of,
                                 sti_gains *gains)
{
    stint_status st = STINT_OK;
    for (int32_t v = 0; v < sti_graph_value_count(g) && st == STINT_OK; v++) {
        const sti_value_row *row = sti_graph_value(g, v);
        sti_gain *gain;
        if (row->role != STI_ROLE_PARAM || !sti_update_set_find(of, row->name))
            continue;
        const int axis = sti_graph_is_weight(row) ? sti_share_axis(&row->shape) : -1;
        st =
            sti_gains_add(gains, row->name, axis < 0 ? 1 : row->shape.dim[axis], &gain);
    }
    return st;
}

static stint_status collector_init(collector *c)
{
    const sti_inputs *in = &c->job->inputs;
    c->batches = in->train_count / c->job->setup.batch;
    if (c->batches > STI_GAINS_BATCHES)
        c->batches = STI_GAINS_BATCHES;
    c->order = sti_alloc_array(in->train_count, sizeof *c->order, "gains");
    if (!c->order)
        return STINT_E_MEMORY;
    sti_shuffle(sti_recipe_seed(in->recipe, STI_STREAM_SHUFFLE), STI_STREAM_SHUFFLE, 0,
                in->train_count, c->order);
    return STINT_OK;
}

/* Means over the batches. */
static void take_means(const sti_gains *gains, int64_t batches)
{
    for (int i = 0; i < gains->count; i++)
        for (int64_t c = 0; c < gains->tensor[i].channels; c++)
            gains->tensor[i].channel[c] /= (double)batches;
}

stint_status sti_gains_collect(sti_job *job, const sti_update_set *of,
                               size_t budget_bytes, sti_gains *gains)
{
    const char *sha = job->inputs.start->weights_sha256;
    const int moments = job->setup.moments;
    const sti_update_rule at_once = job->inputs.network.at_once;
    const bool keeps = job->inputs.network.keeps, folds = job->inputs.network.fold_norm;
    collector c = {.job = job, .budget_bytes = budget_bytes, .gains = gains};
    stint_status st;
    *gains = (sti_gains){.count = 0};
    job->setup.moments = 0;
    job->inputs.network.at_once = (sti_update_rule){.op = NULL};
    job->inputs.network.keeps = job->inputs.network.fold_norm = false;
    snprintf(gains->start_sha256, sizeof gains->start_sha256, "%s", sha ? sha : "");
    STI_TRY(list_tensors(job->setup.train.graph, of, gains));
    STI_TRY(collector_init(&c));
    if (of->count > 0)
        STI_TRY(collect_part(&c, of, 0, of->count));
    take_means(gains, c.batches);
out:
    job->setup.moments = moments;
    job->inputs.network.at_once = at_once;
    job->inputs.network.keeps = keeps;
    job->inputs.network.fold_norm = folds;
    sti_free(c.order);
    if (st != STINT_OK)
        sti_gains_fini(gains);
    return st;
}
