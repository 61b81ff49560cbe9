/* V-trace (Espeholt et al. 2018, arXiv 1802.01561): targets of values and advantages of
 * actions from steps that an older policy took, cut where episodes end.
 *
 * in: log of the ratio of the policies' probabilities, reward, discount (0 behind an
 * end), weight (0: a step that is none), each [steps, sequences]; values [steps + 1,
 * sequences]. out: targets, advantages. Both are constants for the gradient. */
#include "kernel/maths/maths.h"
#include "op/op_returns.h"

typedef struct vtrace_attr {
    float rho, c, lambda;
} vtrace_attr;

static stint_status infer_vtrace(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const vtrace_attr *attr = node->attr;
    if (!(attr->rho > 0.0f && attr->c > 0.0f && attr->lambda >= 0.0f &&
          attr->lambda <= 1.0f))
        return sti_fail(STINT_E_INPUT,
                        "vtrace: rho %g, c %g and lambda %g, wanted above 0, above 0, "
                        "and 0 to 1",
                        (double)attr->rho, (double)attr->c, (double)attr->lambda);
    return sti_op_returns_infer(graph, node, 5, out);
}

static float smaller(float a, float b)
{
    return a < b ? a : b;
}

/* From the last step to the first:
 *     delta = w rho (r + d V' - V);  v = V + delta + w d c (v' - V')
 *     advantage = w rho (r + d v' - V) */
static void run_vtrace(const sti_call *call)
{
    const vtrace_attr *a = call->node->attr;
    const stint_shape *shape = sti_op_in_shape(call->graph, call->node, 0);
    const int64_t steps = shape->dim[0], n = shape->dim[1];
    const float *ratio = call->in[0], *reward = call->in[1], *discount = call->in[2];
    const float *weight = call->in[3], *value = call->in[4];
    float *target = call->out[0], *advantage = call->out[1];
    for (int64_t b = 0; b < n; b++) {
        float next = value[steps * n + b]; /* v' */
        for (int64_t t = steps - 1; t >= 0; t--) {
            const int64_t i = t * n + b;
            const float ahead = value[i + n], is = sti_exp_f32(ratio[i]);
            const float rho = weight[i] * smaller(a->rho, is);
            const float c = weight[i] * a->lambda * smaller(a->c, is);
            const float delta = rho * (reward[i] + discount[i] * ahead - value[i]);
            advantage[i] = rho * (reward[i] + discount[i] * next - value[i]);
            target[i] = value[i] + delta + discount[i] * c * (next - ahead);
            next = target[i];
        }
    }
}

static sti_cost cost_vtrace(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 40.0);
}

static void print_vtrace(const sti_node *node, sti_text *out)
{
    const vtrace_attr *a = node->attr;
    sti_text_printf(out, "rho %.9g c %.9g lambda %.9g", (double)a->rho, (double)a->c,
                    (double)a->lambda);
}

const sti_op sti_op_vtrace = {
    .name = "vtrace",
    .n_out = 2,
    .attr_bytes = sizeof(vtrace_attr),
    .flags = STI_OP_NO_GRAD,
    .infer = infer_vtrace,
    .cost = cost_vtrace,
    .run = {[STI_CPU] = run_vtrace},
    .print = print_vtrace,
};

stint_value stint_vtrace(stint_graph *g, const stint_returns_in *in,
                         stint_value log_ratio, const stint_vtrace_desc *desc,
                         stint_value *advantage_out)
{
    const vtrace_attr attr = {.rho = desc->rho > 0.0f ? desc->rho : 1.0f,
                              .c = desc->c > 0.0f ? desc->c : 1.0f,
                              .lambda = desc->lambda};
    const stint_value inputs[] = {log_ratio, in->reward, in->discount, in->weight,
                                  in->value};
    const stint_value target = sti_graph_add(g, &sti_op_vtrace, &attr, 5, inputs);
    *advantage_out = target < 0 ? -1 : target + 1;
    return target;
}
