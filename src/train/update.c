/* The step's end: parameters by the optimiser, running statistics by their momentum.
 *
 * Parameters, moments and gradients are flat blocks of one layout, so the update is a
 * few long loops: neighbours that share a decay are one segment. */
#include "base/clock.h"
#include "kernel/optimizer.h"
#include "train/crew.h"

typedef struct segment {
    size_t param, gradient, bytes; /* offsets */
    bool decay;
} segment;

typedef struct updater {
    sti_crew *crew;
    const sti_recipe_values *recipe;
    const char *block;
    float lr, scale;
    double correction1, correction2;
} updater;

int sti_update_moments(const sti_recipe_values *recipe)
{
    if (recipe->optimizer.name != STI_OPTIMIZER_SGD)
        return 2;
    return recipe->optimizer.momentum > 0 ? 1 : 0;
}

static float *at(void *base, size_t offset)
{
    return (float *)(void *)((char *)base + offset);
}

static void run_sgd(const updater *u, const segment *s)
{
    const sti_recipe_values *r = u->recipe;
    sti_sgd args = {.lr = u->lr,
                    .momentum = (float)r->optimizer.momentum,
                    .decay = s->decay ? (float)r->optimizer.weight_decay : 0,
                    .gradient_scale = u->scale,
                    .nesterov = r->optimizer.nesterov,
                    .decoupled = r->optimizer.decoupled};
    void *m = u->crew->moments[0];
    sti_sgd_f32(&u->crew->team, &args, (int64_t)(s->bytes / sizeof(float)),
                at(u->crew->params, s->param),
                (const float *)(const void *)(u->block + s->gradient),
                m ? at(m, s->param) : NULL);
}

static void run_adam(const updater *u, const segment *s)
{
    const sti_recipe_values *r = u->recipe;
    sti_adam args = {.lr = u->lr,
                     .decay = s->decay ? (float)r->optimizer.weight_decay : 0,
                     .gradient_scale = u->scale,
                     .epsilon = (float)r->optimizer.epsilon,
                     .beta1 = r->optimizer.beta1,
                     .beta2 = r->optimizer.beta2,
                     .correction1 = u->correction1,
                     .correction2 = u->correction2,
                     .decoupled = r->optimizer.decoupled ||
                                  r->optimizer.name == STI_OPTIMIZER_ADAMW};
    sti_adam_f32(&u->crew->team, &args, (int64_t)(s->bytes / sizeof(float)),
                 at(u->crew->params, s->param),
                 (const float *)(const void *)(u->block + s->gradient),
                 at(u->crew->moments[0], s->param), at(u->crew->moments[1], s->param));
}

static void run_segment(const updater *u, const segment *s)
{
    if (s->bytes == 0)
        return;
    if (u->recipe->optimizer.name == STI_OPTIMIZER_SGD)
        run_sgd(u, s);
    else
        run_adam(u, s);
}

static void update_params(const updater *u)
{
    const sti_network *net = u->crew->desc.train;
    segment run = {0};
    for (int32_t i = 0; i < sti_graph_output_count(net->graph); i++) {
        const sti_output *output = &sti_graph_outputs(net->graph)[i];
        if (output->kind != STI_OUTPUT_GRADIENT)
            continue;
        const sti_place *param = &net->plan->place[output->target];
        const sti_place *gradient = &net->plan->place[output->value];
        const sti_value_row *row = sti_graph_value(net->graph, output->target);
        bool decay = u->recipe->optimizer.decay_all || !row->param.no_decay;
        if (run.bytes && run.param + run.bytes == param->offset &&
            run.gradient + run.bytes == gradient->offset && run.decay == decay) {
            run.bytes += param->bytes;
            continue;
        }
        run_segment(u, &run);
        run = (segment){param->offset, gradient->offset, param->bytes, decay};
    }
    run_segment(u, &run);
}

/* new = (1 - momentum) old + momentum * mean over shards of the contributions */
static void update_states(const updater *u)
{
    const sti_network *net = u->crew->desc.train;
    for (int32_t i = 0; i < sti_graph_output_count(net->graph); i++) {
        const sti_output *output = &sti_graph_outputs(net->graph)[i];
        if (output->kind != STI_OUTPUT_STATE)
            continue;
        float *state = at(u->crew->states, net->plan->place[output->target].offset);
        const float *sum =
            (const float *)(const void *)(u->block +
                                          net->plan->place[output->value].offset);
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

void sti_crew_update(sti_crew *crew, const sti_recipe_values *recipe, double lr,
                     int64_t step, const char *block)
{
    updater u = {.crew = crew,
                 .recipe = recipe,
                 .block = block,
                 .lr = (float)lr,
                 .scale = (float)(1.0 / (double)crew->desc.shards),
                 .correction1 = 1 - power(recipe->optimizer.beta1, step + 1),
                 .correction2 = 1 - power(recipe->optimizer.beta2, step + 1)};
    int64_t start = crew->profile ? sti_clock_ns() : 0;
    update_params(&u);
    update_states(&u);
    if (crew->profile)
        crew->profile->part_ns[STI_PROFILE_UPDATE] += sti_clock_ns() - start;
}
