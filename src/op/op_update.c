/* An optimiser's step on one parameter as a node of the graph, so that its gradient
 * dies there instead of waiting for the end of the run. */
#include "op/op_update.h"

#include <math.h>

#include "kernel/reduce/squares.h"
#include "op/op_priv.h"

enum { GRADIENT, PARAM };

static stint_status infer(const stint_graph *graph, const sti_node *node,
                          stint_shape *out)
{
    const sti_update_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 2);
    if (st == STINT_OK)
        st = sti_op_check_f32(graph, node, PARAM);
    if (st != STINT_OK)
        return st;
    stint_shape wanted = *sti_op_in_shape(graph, node, PARAM);
    if (attr->count > 0)
        wanted.dim[attr->axis] = attr->count;
    *out = stint_shape_make(STINT_F32, 0, NULL);
    return sti_op_check_shape(graph, node, GRADIENT, &wanted);
}

static sti_cost cost(const stint_graph *graph, const sti_node *node)
{
    const double count = (double)stint_shape_count(sti_op_in_shape(graph, node, 0));
    return (sti_cost){.flop = 4 * count,
                      .read_bytes = 3 * sizeof(float) * count,
                      .write_bytes = 2 * sizeof(float) * count};
}

static size_t scratch_bytes(const stint_graph *graph, const sti_node *node, int threads)
{
    (void)threads;
    return (size_t)sti_squares_pieces(
               stint_shape_count(sti_op_in_shape(graph, node, GRADIENT))) *
           sizeof(double);
}

/* Runs of numbers that lie apart in the parameter, and next to each other in gradient
 * and moments. */
static void update_channels(const sti_optimizer_rule *rule, const sti_update_attr *attr,
                            const stint_shape *shape, float *param,
                            const float *gradient, float *state[2])
{
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < shape->rank; i++)
        if (i < attr->axis)
            outer *= shape->dim[i];
        else if (i > attr->axis)
            inner *= shape->dim[i];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t c = 0; c < attr->count; c++, gradient += inner) {
            const int64_t at = o * shape->dim[attr->axis] + attr->channels[c];
            sti_optimizer_f32(&sti_team_serial, rule, attr->decays != 0, inner,
                              param + at * inner, gradient, state);
            for (int i = 0; i < 2; i++)
                state[i] = state[i] ? state[i] + inner : NULL;
        }
}

void sti_update_param(const sti_team *team, const sti_optimizer_rule *rule,
                      const sti_update_attr *attr, const stint_shape *shape,
                      float *param, const float *gradient, char *const moment[2])
{
    float *state[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        if (moment[i])
            state[i] = (float *)(void *)(moment[i] + attr->moment);
    if (attr->count > 0)
        update_channels(rule, attr, shape, param, gradient, state);
    else
        sti_optimizer_f32(team, rule, attr->decays != 0, stint_shape_count(shape),
                          param, gradient, state);
}

/* A run without sti_step.update leaves all as it is. */
static void run(const sti_call *call)
{
    const sti_update_step *update = call->step->update;
    if (!update)
        return;
    const double squares = sti_squares_f32(call->team, sti_op_in_count(call, GRADIENT),
                                           call->in[GRADIENT], call->scratch);
    update->seen->squares += squares;
    update->seen->failed = update->seen->failed || !isfinite(squares);
    if (!update->seen->failed)
        sti_update_param(call->team, &update->rule, call->node->attr,
                         sti_op_in_shape(call->graph, call->node, PARAM),
                         (float *)(uintptr_t)call->in[PARAM], call->in[GRADIENT],
                         update->moment);
}

#define UPDATE_ROW(NAME)                       \
    const sti_op sti_op_##NAME = {             \
        .name = #NAME,                         \
        .n_out = 1,                            \
        .attr_bytes = sizeof(sti_update_attr), \
        .flags = STI_OP_NO_GRAD,               \
        .optional_out = 1u,                    \
        .infer = infer,                        \
        .cost = cost,                          \
        .scratch_bytes = scratch_bytes,        \
        .run = {[STI_CPU] = run},              \
    }

UPDATE_ROW(sgd_update);
UPDATE_ROW(adam_update);
UPDATE_ROW(rmsprop_update);
