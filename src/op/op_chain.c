/* Chains: what a run of element-wise nodes does, in one pass over memory. */
#include "op/op_chain.h"

#include <inttypes.h>

#include "op/op_priv.h"

/* The axes that `from` has as `to` has them must be side by side; before and behind it
 * repeats. Axes of length 1 in both are anything. */
bool sti_chain_fits(const stint_shape *from, const stint_shape *to,
                    sti_chain_input *input_out)
{
    int64_t repeat = 1, period = 1;
    bool inside = false, before = false;
    for (int axis = 1; axis <= to->rank; axis++) {
        const int64_t want = to->dim[to->rank - axis];
        const int64_t is = axis <= from->rank ? from->dim[from->rank - axis] : 1;
        if (want == 1 && is == 1)
            continue;
        if (is != want) {
            if (is != 1)
                return false;
            before = inside;
            repeat *= inside ? 1 : want;
            continue;
        }
        if (before)
            return false;
        inside = true;
        period *= want;
    }
    *input_out = (sti_chain_input){NULL, repeat, period};
    return from->rank <= to->rank && from->dtype == STINT_F32;
}

static stint_status infer_chain(const stint_graph *graph, const sti_node *node,
                                stint_shape *out)
{
    const sti_chain_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, attr->program.inputs);
    for (int i = 0; i < attr->program.inputs && st == STINT_OK; i++) {
        sti_chain_input input;
        const stint_shape *in = sti_op_in_shape(graph, node, i);
        if (!sti_chain_fits(in, &attr->shape, &input))
            st = sti_fail(STINT_E_INPUT, "chain: input %d is %s, wanted %s", i,
                          sti_shape_text(in), sti_shape_text(&attr->shape));
    }
    for (int o = 0; o < STI_CHAIN_OUTPUTS; o++)
        out[o] = attr->shape;
    return st;
}

static sti_cost chain_cost(const stint_graph *graph, const sti_node *node)
{
    const sti_chain_attr *attr = node->attr;
    const double bytes = (double)stint_shape_bytes(&attr->shape);
    sti_cost cost = sti_op_cost_bytes(graph, node, attr->program.steps);
    cost.write_bytes = bytes * attr->program.outputs;
    return cost;
}

static void run_chain(const sti_call *call)
{
    const sti_chain_attr *attr = call->node->attr;
    sti_chain_input in[STI_CHAIN_INPUTS];
    float *out[STI_CHAIN_OUTPUTS];
    for (int i = 0; i < attr->program.inputs; i++) {
        (void)sti_chain_fits(sti_op_in_shape(call->graph, call->node, i), &attr->shape,
                             &in[i]);
        in[i].data = call->in[i];
    }
    for (int o = 0; o < attr->program.outputs; o++)
        out[o] = call->out[o];
    sti_chain_f32(call->team, &attr->program, stint_shape_count(&attr->shape), in, out);
}

static void print_chain(const sti_node *node, sti_text *out)
{
    const sti_chain_attr *attr = node->attr;
    sti_text_printf(out, "%" PRId32 " steps, %" PRId32 " results", attr->program.steps,
                    attr->program.outputs);
}

const sti_op sti_op_chain = {
    .name = "chain",
    .n_out = STI_CHAIN_OUTPUTS,
    .attr_bytes = sizeof(sti_chain_attr),
    .flags = STI_OP_INPLACE_0,
    .optional_out = (1u << STI_CHAIN_OUTPUTS) - 1 - 1u,
    .infer = infer_chain,
    .cost = chain_cost,
    .run = {[STI_CPU] = run_chain},
    .print = print_chain,
};
