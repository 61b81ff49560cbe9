/* Drawn weights for the backward half. A layer's data gradient wants the weights that
 * its forward run drew; the gradient of the drawing, which makes their numbers again
 * anyway, hands them over, and the forward half's die where it has read them. The same
 * holds for the state of shift registers: what a layer left behind is what the gradient
 * of the layer after it gives back. What the gradient of the drawing itself waits for,
 * as gradients do that are part of the loss, goes on reading the forward half's. */
#include <string.h>

#include "base/memory.h"
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

/* Mark, by their ids, the nodes that a node waits for, and itself. stack: room for all
 * nodes. */
static void mark_waited_for(const stint_graph *graph, const sti_node *of,
                            uint8_t *marked, int32_t *stack)
{
    int32_t depth = 0;
    memset(marked, 0, (size_t)sti_graph_node_count(graph));
    marked[of->id] = 1;
    stack[depth++] = of->id;
    while (depth > 0) {
        const sti_node *node = sti_graph_node(graph, stack[--depth]);
        for (int32_t i = 0; i < node->n_in; i++) {
            const sti_value_row *row = sti_graph_value(graph, node->in[i]);
            if (!row || !row->producer || marked[row->producer->id])
                continue;
            marked[row->producer->id] = 1;
            stack[depth++] = row->producer->id;
        }
    }
}

static int32_t read_again(const stint_graph *graph, const uint8_t *waited_for,
                          stint_value drawn, stint_value again)
{
    int32_t reads = 0;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; i < node->n_in && node->backward && !waited_for[n]; i++)
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

static stint_status read_all_again(stint_graph *graph, int32_t *reads)
{
    const int32_t nodes = sti_graph_node_count(graph);
    uint8_t *waited_for =
        sti_alloc_array(nodes, sizeof *waited_for, "pass.noise_again");
    int32_t *stack = sti_alloc_array(nodes, sizeof *stack, "pass.noise_again");
    for (int32_t n = 0; n < nodes && waited_for && stack; n++) {
        const sti_node *noise = sti_graph_node(graph, n);
        const drawing *d = drawing_of(noise);
        const sti_node *gradient = d ? gradient_of(graph, d, noise) : NULL;
        if (!gradient)
            continue;
        mark_waited_for(graph, gradient, waited_for, stack);
        *reads +=
            read_again(graph, waited_for, noise->out[d->w], gradient->out[d->w_again]);
    }
    const stint_status st = waited_for && stack ? STINT_OK : STINT_E_MEMORY;
    sti_free(waited_for);
    sti_free(stack);
    return st;
}

stint_status sti_pass_noise_again(stint_graph *graph, sti_pass_note *note)
{
    int32_t reads = 0;
    sti_pass_clear_inplace(graph);
    stint_status st = read_all_again(graph, &reads);
    if (st == STINT_OK)
        st = chain_states(graph);
    sti_pass_note_set(note, "%d reads of weights drawn again", (int)reads);
    return st == STINT_OK ? sti_graph_sort(graph) : st;
}
