/* Drawn weights for the backward half. A layer's data gradient wants the weights that
 * its forward run drew; the gradient of the drawing, which makes their numbers again
 * anyway, hands them over, and the forward half's die where it has read them. The same
 * holds for the state of shift registers: what a layer left behind is what the gradient
 * of the layer after it gives back. */
#include "op/op_bayes.h"
#include "pass/pass_priv.h"

/* An operator that draws and its gradient, with the places of what both have. */
typedef struct drawing {
    const sti_op *op, *gradient;
    int rho, w, w_again;
} drawing;

static const drawing drawings[] = {
    {&sti_op_noise, &sti_op_noise_grad, STI_NOISE_RHO, STI_NOISE_W, STI_NOISE_GRAD_W},
    {&sti_op_lfsr_noise, &sti_op_lfsr_noise_grad, STI_LFSR_RHO, STI_LFSR_W,
     STI_LFSR_GRAD_W}};

static const drawing *drawing_of(const sti_node *node)
{
    for (size_t i = 0; i < sizeof drawings / sizeof drawings[0]; i++)
        if (node->op == drawings[i].op)
            return &drawings[i];
    return NULL;
}

/* The gradient of a node that draws; NULL: none. */
static sti_node *gradient_of(const stint_graph *graph, const drawing *d,
                             const sti_node *noise)
{
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        sti_node *node = sti_graph_node(graph, n);
        if (node->op == d->gradient && node->in[d->rho] == noise->in[d->rho])
            return node;
    }
    return NULL;
}

static int32_t read_again(const stint_graph *graph, stint_value drawn,
                          stint_value again)
{
    int32_t reads = 0;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; i < node->n_in && node->backward; i++)
            if (node->in[i] == drawn) {
                node->in[i] = again;
                reads++;
            }
    }
    return reads;
}

/* The gradient of layer l takes the state from that of layer l + 1; after the first
 * layer's it is looked at. */
static stint_status chain_states(stint_graph *graph)
{
    sti_node *behind = NULL;
    for (int32_t n = sti_graph_node_count(graph) - 1; n >= 0; n--) {
        const sti_node *noise = sti_graph_node(graph, n);
        sti_node *gradient = noise->op == &sti_op_lfsr_noise
                                 ? gradient_of(graph, &drawings[1], noise)
                                 : NULL;
        if (!gradient)
            continue;
        if (behind)
            gradient->in[STI_LFSR_STATE] = behind->out[STI_LFSR_STATE];
        behind = gradient;
    }
    if (!behind)
        return STINT_OK;
    sti_graph_set_backward(graph, behind);
    const stint_value moved =
        sti_op_add_lfsr_end(graph, behind->attr, behind->out[STI_LFSR_STATE]);
    sti_graph_set_backward(graph, NULL);
    sti_graph_output(graph, &(sti_output){.kind = STI_OUTPUT_METRIC,
                                          .value = moved,
                                          .target = -1,
                                          .name = "lfsr_moved"});
    return sti_graph_status(graph);
}

stint_status sti_pass_noise_again(stint_graph *graph, sti_pass_note *note)
{
    int32_t reads = 0;
    sti_pass_clear_inplace(graph);
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *noise = sti_graph_node(graph, n);
        const drawing *d = drawing_of(noise);
        const sti_node *gradient = d ? gradient_of(graph, d, noise) : NULL;
        if (gradient)
            reads += read_again(graph, noise->out[d->w], gradient->out[d->w_again]);
    }
    const stint_status status = chain_states(graph);
    sti_pass_note_set(note, "%d reads of weights drawn again", (int)reads);
    return status == STINT_OK ? sti_graph_sort(graph) : status;
}
