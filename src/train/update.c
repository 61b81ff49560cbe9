/* The step's end: parameters by the optimiser, running statistics by their momentum.
 *
 * Parameters, moments and gradients are flat blocks of one layout, so the update is a
 * few long loops: neighbours that share a decay are one segment. */
#include "base/clock.h"
#include "op/op_update.h"
#include "train/optimizer_section.h"
#include "train/step_engine.h"

typedef struct segment {
    size_t param, gradient, moment, bytes; /* offsets */
    bool decay;
} segment;

typedef struct updater {
    sti_step_engine *engine;
    const sti_optimizer_values *optimizer;
    const char *block;
    float lr;
    float gradient_scale; /* of the sum over micro-batches, clipping included */
    float scale;          /* 1 / micro-batches */
    double correction1, correction2;
} updater;

int sti_update_moments(const sti_optimizer_values *optimizer)
{
    if (optimizer->name == STI_OPTIMIZER_RMSPROP)
        return 1;
    if (optimizer->name != STI_OPTIMIZER_SGD)
        return 2;
    return optimizer->momentum > 0 ? 1 : 0;
}

static float *at(void *base, size_t offset)
{
    return (float *)(void *)((char *)base + offset);
}

static sti_optimizer_rule rule_of(const updater *u)
{
    const sti_optimizer_values *o = u->optimizer;
    if (o->name == STI_OPTIMIZER_SGD)
        return (sti_optimizer_rule){.kind = STI_RULE_SGD,
                                    .sgd = {.lr = u->lr,
                                            .momentum = (float)o->momentum,
                                            .decay = (float)o->weight_decay,
                                            .gradient_scale = u->gradient_scale,
                                            .nesterov = o->nesterov,
                                            .decoupled = o->decoupled}};
    if (o->name == STI_OPTIMIZER_RMSPROP)
        return (sti_optimizer_rule){.kind = STI_RULE_RMSPROP,
                                    .rmsprop = {.lr = u->lr,
                                                .decay = (float)o->weight_decay,
                                                .gradient_scale = u->gradient_scale,
                                                .epsilon = (float)o->epsilon,
                                                .alpha = o->alpha,
                                                .decoupled = o->decoupled}};
    return (sti_optimizer_rule){
        .kind = STI_RULE_ADAM,
        .adam = {.lr = u->lr,
                 .decay = (float)o->weight_decay,
                 .gradient_scale = u->gradient_scale,
                 .epsilon = (float)o->epsilon,
                 .beta1 = o->beta1,
                 .beta2 = o->beta2,
                 .correction1 = u->correction1,
                 .correction2 = u->correction2,
                 .decoupled = o->decoupled || o->name == STI_OPTIMIZER_ADAMW}};
}

const sti_op *sti_update_op(const sti_optimizer_values *optimizer)
{
    return optimizer->name == STI_OPTIMIZER_SGD       ? &sti_op_sgd_update
           : optimizer->name == STI_OPTIMIZER_RMSPROP ? &sti_op_rmsprop_update
                                                      : &sti_op_adam_update;
}

static void run_segment(const updater *u, const segment *s)
{
    const sti_optimizer_rule rule = rule_of(u);
    float *moment[2] = {NULL, NULL};
    if (s->bytes == 0)
        return;
    for (int i = 0; i < 2; i++)
        if (u->engine->moments[i])
            moment[i] = at(u->engine->moments[i], s->moment);
    sti_optimizer_f32(&u->engine->team, &rule, s->decay,
                      (int64_t)(s->bytes / sizeof(float)),
                      at(u->engine->params, s->param),
                      (const float *)(const void *)(u->block + s->gradient), moment);
}

/* Some channels of a parameter. */
static void run_channels(const updater *u, const sti_output *output, bool decay,
                         const float *gradient, size_t moment)
{
    const sti_network *net = u->engine->desc.train;
    const stint_shape shape = sti_graph_value(net->graph, output->target)->shape;
    const sti_optimizer_rule rule = rule_of(u);
    const sti_update_attr attr = {.moment = (int64_t)moment,
                                  .count = output->channel_count,
                                  .channels = output->channels,
                                  .axis = output->channel_axis,
                                  .decays = decay};
    char *const blocks[2] = {u->engine->moments[0], u->engine->moments[1]};
    sti_update_param(
        &sti_team_serial, &rule, &attr, &shape,
        at(u->engine->params, net->plan->allocation[output->target].offset), gradient,
        blocks);
}

static void update_params(const updater *u)
{
    const sti_network *net = u->engine->desc.train;
    segment run = {0};
    size_t moment = 0; /* of the next parameter: they are in the gradients' order */
    for (int32_t i = 0; i < sti_graph_output_count(net->graph); i++) {
        const sti_output *output = &sti_graph_outputs(net->graph)[i];
        if (output->kind != STI_OUTPUT_GRADIENT)
            continue;
        const sti_allocation *param = &net->plan->allocation[output->target];
        const sti_allocation *gradient = &net->plan->allocation[output->value];
        const sti_value_row *row = sti_graph_value(net->graph, output->target);
        bool decay = !row->drawn && (u->optimizer->decay_all || !row->param.no_decay);
        if (output->channel_count > 0) {
            run_channels(u, output, decay,
                         (const float *)(const void *)(u->block + gradient->offset),
                         moment);
            moment += gradient->bytes;
            continue;
        }
        if (run.bytes && run.param + run.bytes == param->offset &&
            run.moment + run.bytes == moment &&
            run.gradient + run.bytes == gradient->offset && run.decay == decay) {
            run.bytes += param->bytes;
            moment += param->bytes;
            continue;
        }
        run_segment(u, &run);
        run = (segment){param->offset, gradient->offset, moment, param->bytes, decay};
        moment += param->bytes;
    }
    run_segment(u, &run);
}

/* new = (1 - momentum) old + momentum * mean over micro-batches of the contributions */
static void update_states(const updater *u)
{
    const sti_network *net = u->engine->desc.train;
    for (int32_t i = 0; i < sti_graph_output_count(net->graph); i++) {
        const sti_output *output = &sti_graph_outputs(net->graph)[i];
        if (output->kind != STI_OUTPUT_STATE)
            continue;
        float *state =
            at(u->engine->states, net->plan->allocation[output->target].offset);
        const float *sum =
            (const float *)(const void *)(u->block +
                                          net->plan->allocation[output->value].offset);
        int64_t count =
            stint_shape_count(&sti_graph_value(net->graph, output->target)->shape);
        for (int64_t k = 0; k < count; k++)
            state[k] = (1 - output->momentum) * state[k] +
                       output->momentum * (sum[k] * u->scale);
    }
}

/* base^exponent by squaring: a fixed sequence of multiplications. */
static double power(double base, int64_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

/* As torch.nn.utils.clip_grad_norm_ has it. */
double sti_update_clip(const sti_optimizer_values *optimizer, double norm)
{
    const double max_norm = optimizer->clip;
    return max_norm > 0 && norm > max_norm ? max_norm / (norm + 1e-6) : 1;
}

static updater updater_of(const sti_optimizer_values *optimizer, double lr,
                          int64_t step, double clip, int64_t runs)
{
    return (updater){.optimizer = optimizer,
                     .lr = (float)lr,
                     .gradient_scale = (float)(clip / (double)runs),
                     .scale = (float)(1.0 / (double)runs),
                     .correction1 = 1 - power(optimizer->beta1, step + 1),
                     .correction2 = 1 - power(optimizer->beta2, step + 1)};
}

void sti_step_engine_update(sti_step_engine *engine,
                            const sti_optimizer_values *optimizer, double lr,
                            double clip, int64_t step, const char *block)
{
    updater u = updater_of(optimizer, lr, step, clip, engine->runs);
    int64_t start = engine->profile ? sti_clock_ns() : 0;
    u.engine = engine;
    u.block = block;
    if (!sti_graph_update_rule(engine->desc.train->graph)) /* else they have changed */
        update_params(&u);
    update_states(&u);
    if (engine->profile)
        engine->profile->part_ns[STI_PROFILE_UPDATE] += sti_clock_ns() - start;
}

sti_update_step sti_step_engine_update_step(const sti_step_engine *engine,
                                            const sti_optimizer_values *optimizer,
                                            double lr, int64_t step,
                                            sti_update_seen *seen)
{
    const updater u = updater_of(optimizer, lr, step, 1, 1);
    *seen = (sti_update_seen){.squares = 0};
    return (sti_update_step){.rule = rule_of(&u),
                             .moment = {engine->moments[0], engine->moments[1]},
                             .seen = seen};
}

void sti_update_numbers(const sti_optimizer_values *optimizer, double lr, int64_t step,
                        int64_t n, float *x, const float *gradient, float *first,
                        float *second)
{
    const updater u = updater_of(optimizer, lr, step, 1, 1);
    const sti_optimizer_rule rule = rule_of(&u);
    float *moment[2] = {first, second};
    sti_optimizer_f32(&sti_team_serial, &rule, false, n, x, gradient, moment);
}
