/* Element-wise operators one after the other, in one pass over memory
 * (kernel/elementwise/chain.h). Made by pass/elementwise_chain alone, of graphs for
 * use: it has no gradient. */
#include "kernel/elementwise/chain.h"
#include "op/op_priv.h"

/* An input against the result: of its size, a row of its channels, or one number. */
static bool form_of(const stint_shape *in, const stint_shape *out, sti_chain_form *form)
{
    const int64_t count = stint_shape_count(in);
    const int64_t columns = out->rank > 0 ? out->dim[out->rank - 1] : 1;
    *form = count == stint_shape_count(out) ? STI_CHAIN_WHOLE
            : count == 1                    ? STI_CHAIN_ONE
                                            : STI_CHAIN_ROW;
    return *form != STI_CHAIN_ROW ||
           (count == columns && in->rank > 0 && in->dim[in->rank - 1] == columns);
}

/* The result has the shape of the largest input; of two, that with more axes. */
static stint_status infer_chain(const stint_graph *graph, const sti_node *node,
                                stint_shape *out)
{
    const sti_chain *chain = node->attr;
    sti_chain_form form;
    if (!sti_chain_is_sound(chain) || node->n_in != chain->inputs)
        return sti_fail(STINT_E_BUG, "chain: its steps do not go together");
    for (int i = 0; i < node->n_in; i++) {
        stint_status st = sti_op_check_f32(graph, node, i);
        if (st != STINT_OK)
            return st;
        const stint_shape *in = sti_op_in_shape(graph, node, i);
        const int64_t more =
            i == 0 ? 1 : stint_shape_count(in) - stint_shape_count(out);
        if (more > 0 || (more == 0 && in->rank > out->rank))
            *out = *in;
    }
    for (int i = 0; i < node->n_in; i++)
        if (!form_of(sti_op_in_shape(graph, node, i), out, &form))
            return sti_fail(STINT_E_BUG, "chain: input %d is no row of the result", i);
    return STINT_OK;
}

static void run_chain(const sti_call *call)
{
    const sti_chain *chain = call->node->attr;
    const stint_shape *out = sti_op_out_shape(call->graph, call->node, 0);
    const int64_t columns = out->rank > 0 ? out->dim[out->rank - 1] : 1;
    sti_chain_form form[STI_CHAIN_INPUTS];
    const float *in[STI_CHAIN_INPUTS];
    for (int i = 0; i < chain->inputs; i++) {
        (void)form_of(sti_op_in_shape(call->graph, call->node, i), out, &form[i]);
        in[i] = call->in[i];
    }
    sti_chain_f32(call->team, chain, stint_shape_count(out) / columns, columns, form,
                  in, call->out[0], call->scratch);
}

static sti_cost cost_chain(const stint_graph *graph, const sti_node *node)
{
    const sti_chain *chain = node->attr;
    return sti_op_cost_bytes(graph, node, chain->steps);
}

static size_t scratch_chain(const stint_graph *graph, const sti_node *node, int threads)
{
    (void)graph;
    return sti_chain_scratch_bytes(node->attr, threads);
}

static void print_chain(const sti_node *node, sti_text *out)
{
    const sti_chain *chain = node->attr;
    sti_text_printf(out, "%d steps", (int)chain->steps);
}

const sti_op sti_op_chain = {.name = "chain",
                             .n_out = 1,
                             .attr_bytes = sizeof(sti_chain),
                             .flags =
                                 STI_OP_INPLACE_0 | STI_OP_INPLACE_1 | STI_OP_NO_GRAD,
                             .infer = infer_chain,
                             .cost = cost_chain,
                             .scratch_bytes = scratch_chain,
                             .run = {[STI_CPU] = run_chain},
                             .print = print_chain};
