/* Batch normalisation by running statistics into the convolution before it: one node
 * that normalises, adds the residual and cuts off at zero piece by piece, while results
 * are in a cache. Only where nobody reads what is in between, no gradient either (so in
 * graphs for use, and below the lowest trained parameter), and where the convolution's
 * algorithm finishes its results by pieces, which its shape decides. Bits stay. */
#include "op/op.h"
#include "op/op_norm_slots.h"
#include "pass/pass_priv.h"

static bool only_y_is_read(const sti_node *norm, const sti_uses *uses)
{
    for (int i = MEAN; i <= BITS; i++)
        if (uses->count[norm->out[i]] > 0)
            return false;
    return true;
}

/* The convolution that a normalisation may follow in pieces; NULL: none. (What joining
 * has made is not in `uses`; no convolution makes it.) */
static sti_node *convolution_of(const stint_graph *g, const sti_node *norm,
                                const sti_uses *uses, sti_conv_norm_attr *attr)
{
    const sti_batch_norm_attr *a = norm->attr;
    if (norm->op != &sti_op_batch_norm || !a->eval || norm->n_in <= RUN_VARIANCE)
        return NULL;
    sti_node *conv = sti_graph_value(g, norm->in[X])->producer;
    if (!conv || !sti_op_conv_takes_norm(g, conv, attr) ||
        !only_y_is_read(norm, uses) || uses->count[norm->in[X]] != 1 ||
        uses->count[conv->out[1]] > 0)
        return NULL;
    attr->epsilon = a->epsilon;
    attr->has_residual = a->has_residual;
    attr->relu = a->relu;
    return conv;
}

static void join(stint_graph *g, sti_node *norm, sti_node *conv,
                 const sti_conv_norm_attr *attr)
{
    const stint_value bias = attr->conv.has_bias ? conv->in[2] : STI_NO_INPUT;
    const stint_value in[] = {
        conv->in[0],        conv->in[1],           bias,
        norm->in[SCALE],    norm->in[SHIFT],       norm->in[RESIDUAL],
        norm->in[RUN_MEAN], norm->in[RUN_VARIANCE]};
    const stint_value y = sti_graph_add(g, &sti_op_conv2d_norm, attr,
                                        (int)(sizeof in / sizeof in[0]), in);
    if (y < 0)
        return;
    sti_graph_value(g, y)->producer->scope = conv->scope;
    const char *name = sti_graph_value(g, norm->out[Y])->name;
    if (name)
        sti_graph_set_name(g, y, name);
    sti_graph_replace(g, norm->out[Y], y);
    sti_graph_kill(g, norm);
    sti_graph_kill(g, conv);
}

stint_status sti_pass_norm_behind(stint_graph *graph, sti_pass_note *note)
{
    const int32_t nodes = sti_graph_node_count(graph);
    int joined = 0;
    sti_uses uses;
    sti_pass_clear_inplace(graph);
    stint_status st = sti_uses_create(graph, &uses);
    for (int32_t n = 0; n < nodes && st == STINT_OK; n++) {
        sti_conv_norm_attr attr;
        sti_node *norm = sti_graph_node(graph, n);
        sti_node *conv = convolution_of(graph, norm, &uses, &attr);
        if (conv) {
            join(graph, norm, conv, &attr);
            joined++;
        }
        st = sti_graph_status(graph);
    }
    sti_uses_destroy(&uses);
    if (st == STINT_OK && joined > 0 && (st = sti_graph_sweep(graph)) == STINT_OK)
        st = sti_graph_sort(graph);
    sti_pass_note_set(note, "%d normalisations behind their convolutions", joined);
    return st;
}
