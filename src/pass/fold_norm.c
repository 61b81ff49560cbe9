/* Frozen batch normalisations in the frozen convolutions before them, in training:
 *
 *     scale (x W - mean) / sqrt(variance + epsilon) + shift  =  x (W f) + (shift - mean
 * f) with f = scale / sqrt(variance + epsilon),
 *
 * so that a pass over the images goes, and the ReLU behind it with it, into the
 * convolution's epilogue. W f and what is added are nodes like any other: with
 * sti_graph_keep_constants they are made once, and a shift may still be trained.
 * Products are rounded elsewhere, so results differ in their last bits; pass/affine
 * does the same with numbers, for graphs whose weights are constants. */
#include "op/op.h"
#include "op/op_norm_slots.h"
#include "pass/pass_priv.h"

static bool is_frozen(const stint_graph *g, stint_value v, const sti_train_set *set)
{
    const sti_value_row *row = sti_graph_value(g, v);
    sti_train_share share = {.count = 0};
    return row->role == STI_ROLE_PARAM && !set->trains(set->user, row, &share);
}

/* The convolution that a frozen normalisation may become part of; NULL: none. Values
 * that folding has made are not in `uses`: none of them is a convolution's own. */
static sti_node *convolution_of(const stint_graph *g, const sti_node *norm,
                                const sti_uses *uses, const sti_train_set *set,
                                bool bytes)
{
    const sti_batch_norm_attr *attr = norm->attr;
    if (norm->op != &sti_op_batch_norm || !attr->eval || attr->has_residual ||
        attr->relu || norm->n_in <= RUN_VARIANCE)
        return NULL;
    sti_node *conv = sti_graph_value(g, norm->in[X])->producer;
    if (!conv || conv->op != &sti_op_conv2d || uses->count[norm->in[X]] != 1 ||
        !is_frozen(g, conv->in[1], set) || !is_frozen(g, norm->in[SCALE], set))
        return NULL;
    const sti_conv2d_attr *window = conv->attr;
    const bool deep = sti_graph_value(g, conv->in[1])->shape.dim[2] > 1;
    return window->has_bias || window->relu || (bytes && deep) ? NULL : conv;
}

static void fold(stint_graph *g, sti_node *norm, sti_node *conv)
{
    const int32_t before = sti_graph_node_count(g);
    const sti_batch_norm_attr *attr = norm->attr;
    const stint_value variance =
        stint_add_scalar(g, norm->in[RUN_VARIANCE], attr->epsilon);
    const stint_value factor = stint_div(g, norm->in[SCALE], stint_sqrt(g, variance));
    const stint_value weight = stint_mul(g, conv->in[1], factor);
    const stint_value shift =
        stint_sub(g, norm->in[SHIFT], stint_mul(g, norm->in[RUN_MEAN], factor));
    stint_value y = sti_op_conv(g, conv->in[0], weight, STI_NO_INPUT, conv->attr);
    y = stint_bias(g, y, shift);
    if (y < 0)
        return;
    for (int32_t n = before; n < sti_graph_node_count(g); n++)
        sti_graph_node(g, n)->scope = norm->scope;
    sti_graph_replace(g, norm->out[Y], y);
    sti_graph_kill(g, norm);
    sti_graph_kill(g, conv);
}

stint_status sti_pass_fold_norm(stint_graph *graph, const sti_train_set *set,
                                bool bytes)
{
    const int32_t nodes = sti_graph_node_count(graph);
    sti_uses uses;
    stint_status st = sti_uses_create(graph, &uses);
    for (int32_t n = 0; n < nodes && st == STINT_OK; n++) {
        sti_node *norm = sti_graph_node(graph, n);
        sti_node *conv = convolution_of(graph, norm, &uses, set, bytes);
        if (conv)
            fold(graph, norm, conv);
        st = sti_graph_status(graph);
    }
    sti_uses_destroy(&uses);
    if (st == STINT_OK)
        st = sti_graph_sweep(graph);
    return st == STINT_OK ? sti_graph_sort(graph) : st;
}
