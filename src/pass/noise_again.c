/* Drawn weights for the backward half. A layer's data gradient wants the weights that
 * its forward run drew; noise_grad, which makes their numbers again anyway, hands them
 * over, and the forward half's die where it has read them. */
#include "op/op_bayes.h"
#include "pass/pass_priv.h"

/* The gradient node of a noise node; NULL: none. */
static const sti_node *gradient_of(const stint_graph *graph, const sti_node *noise)
{
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        if (node->op == &sti_op_noise_grad &&
            node->in[STI_NOISE_RHO] == noise->in[STI_NOISE_RHO])
            return node;
    }
    return NULL;
}

static int32_t read_again(const stint_graph *graph, const sti_node *noise,
                          const sti_node *gradient)
{
    int32_t reads = 0;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; i < node->n_in && node->backward; i++)
            if (node->in[i] == noise->out[STI_NOISE_W]) {
                node->in[i] = gradient->out[STI_NOISE_GRAD_W];
                reads++;
            }
    }
    return reads;
}

stint_status sti_pass_noise_again(stint_graph *graph, sti_pass_note *note)
{
    int32_t reads = 0;
    sti_pass_clear_inplace(graph);
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *noise = sti_graph_node(graph, n);
        const sti_node *gradient =
            noise->op == &sti_op_noise ? gradient_of(graph, noise) : NULL;
        if (gradient)
            reads += read_again(graph, noise, gradient);
    }
    sti_pass_note_set(note, "%d reads of weights drawn again", (int)reads);
    return reads > 0 ? sti_graph_sort(graph) : STINT_OK;
}
