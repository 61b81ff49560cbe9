/* Generalised advantage estimation (Schulman et al. 2016, arXiv 1506.02438), cut where
 * episodes end; with lambda 1 returns of as many steps as there are.
 *
 * in: reward, discount (0 behind an end), weight (0: a step that is none), each [steps,
 * sequences]; values [steps + 1, sequences]. out: targets (advantage + value),
 * advantages. Both are constants for the gradient. */
#include "op/op_returns.h"

typedef struct gae_attr {
    float lambda;
} gae_attr;

static stint_status infer_gae(const stint_graph *graph, const sti_node *node,
                              stint_shape *out)
{
    const gae_attr *attr = node->attr;
    if (!(attr->lambda >= 0.0f && attr->lambda <= 1.0f))
        return sti_fail(STINT_E_INPUT, "gae: lambda %g, wanted 0 to 1",
                        (double)attr->lambda);
    return sti_op_returns_infer(graph, node, 4, out);
}

/* From the last step to the first: A = w (r + d V' - V + d lambda A'). */
static void run_gae(const sti_call *call)
{
    const gae_attr *attr = call->node->attr;
    const stint_shape *shape = sti_op_in_shape(call->graph, call->node, 0);
    const int64_t steps = shape->dim[0], n = shape->dim[1];
    const float *reward = call->in[0], *discount = call->in[1], *weight = call->in[2];
    const float *value = call->in[3];
    float *target = call->out[0], *advantage = call->out[1];
    for (int64_t b = 0; b < n; b++) {
        float next = 0.0f;
        for (int64_t t = steps - 1; t >= 0; t--) {
            const int64_t i = t * n + b;
            const float delta = reward[i] + discount[i] * value[i + n] - value[i];
            next = weight[i] * (delta + discount[i] * attr->lambda * next);
            advantage[i] = next;
            target[i] = next + value[i];
        }
    }
}

static sti_cost cost_gae(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 8.0);
}

static void print_gae(const sti_node *node, sti_text *out)
{
    const gae_attr *attr = node->attr;
    sti_text_printf(out, "lambda %.9g", (double)attr->lambda);
}

const sti_op sti_op_gae = {
    .name = "gae",
    .n_out = 2,
    .attr_bytes = sizeof(gae_attr),
    .flags = STI_OP_NO_GRAD,
    .infer = infer_gae,
    .cost = cost_gae,
    .run = {[STI_CPU] = run_gae},
    .print = print_gae,
};

stint_value stint_gae(stint_graph *g, const stint_returns_in *in, float lambda,
                      stint_value *advantage_out)
{
    const gae_attr attr = {lambda};
    const stint_value inputs[] = {in->reward, in->discount, in->weight, in->value};
    const stint_value target = sti_graph_add(g, &sti_op_gae, &attr, 4, inputs);
    *advantage_out = target < 0 ? -1 : target + 1;
    return target;
}
