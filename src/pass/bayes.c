/* Weights of convolutions and dense layers become distributions: what reads a weight
 * reads one that is drawn anew in every run ("Weight Uncertainty in Neural Networks",
 * Blundell et al. 2015). */
#include <stdio.h>

#include "base/fail.h"
#include "op/op_bayes.h"
#include "pass/pass.h"

static sti_noise_attr attr_of(const sti_bayes_desc *desc, int32_t layer)
{
    return (sti_noise_attr){.generator = desc->generator,
                            .layer = layer,
                            .prior = desc->prior,
                            .deviation = desc->deviation,
                            .narrow = desc->narrow,
                            .wide_share = desc->wide_share};
}

static stint_value add_spread(stint_graph *graph, const sti_bayes_desc *desc,
                              stint_value weight)
{
    char name[512];
    const sti_value_row *row = sti_graph_value(graph, weight);
    const stint_param_desc param = {.init = STINT_INIT_CONSTANT,
                                    .scale =
                                        sti_spread_of_deviation((double)desc->sigma),
                                    .no_decay = true};
    if (snprintf(name, sizeof name, "%s.rho", row->name) >= (int)sizeof name)
        return sti_graph_fail(graph, sti_fail(STINT_E_INPUT,
                                              "bayes: '%.80s...' is too long a "
                                              "name for a weight",
                                              row->name));
    const stint_value rho = stint_param(graph, name, &row->shape, &param);
    if (rho >= 0)
        sti_graph_set_spread(graph, weight, rho);
    return rho;
}

/* The node reads the weight; everything else reads the node. */
static stint_value draw_weight(stint_graph *graph, const sti_noise_attr *attr,
                               stint_value mu, stint_value rho)
{
    const stint_value drawn = sti_op_add_noise(graph, attr, mu, rho);
    if (drawn >= 0) {
        sti_graph_replace(graph, mu, drawn);
        sti_graph_value(graph, drawn)->producer->in[STI_NOISE_MU] = mu;
    }
    return drawn;
}

/* The product that a layer makes, of other operands and without its bias. */
static stint_value product(stint_graph *graph, const sti_node *layer, stint_value x,
                           stint_value w)
{
    if (layer->op == &sti_op_matmul)
        return sti_graph_add(graph, layer->op, layer->attr, 2, (stint_value[]){x, w});
    sti_conv2d_attr attr = *(const sti_conv2d_attr *)layer->attr;
    attr.has_bias = 0;
    return sti_op_conv(graph, x, w, STI_NO_INPUT, &attr);
}

/* A layer's outputs have the variance x^2 sigma^2: the same product of squares. */
static stint_value draw_output(stint_graph *graph, const sti_noise_attr *attr,
                               const sti_node *layer, stint_value rho)
{
    const stint_value y = layer->out[0];
    const stint_value sigma = stint_softplus(graph, rho);
    const stint_value variance = product(
        graph, layer, stint_square(graph, layer->in[0]), stint_square(graph, sigma));
    const stint_value drawn = sti_op_add_output_noise(graph, attr, y, variance);
    if (drawn >= 0) {
        sti_graph_replace(graph, y, drawn);
        sti_graph_value(graph, drawn)->producer->in[0] = y;
    }
    return drawn;
}

/* The layer that alone reads the weight, as a product of x with it; NULL: it is used
 * otherwise. */
static const sti_node *layer_of(const stint_graph *graph, stint_value weight)
{
    const sti_node *layer = NULL;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; i < node->n_in; i++) {
            if (node->in[i] != weight)
                continue;
            if (layer || i != 1 ||
                (node->op != &sti_op_conv2d && node->op != &sti_op_matmul))
                return NULL;
            layer = node;
        }
    }
    return layer;
}

static stint_status draw(stint_graph *graph, const sti_bayes_desc *desc, int32_t number,
                         stint_value mu, stint_value rho)
{
    const sti_noise_attr attr = attr_of(desc, number);
    const sti_node *layer = layer_of(graph, mu);
    stint_value drawn;
    if (desc->estimator == STI_ESTIMATOR_WEIGHT)
        drawn = draw_weight(graph, &attr, mu, rho);
    else if (layer)
        drawn = draw_output(graph, &attr, layer, rho);
    else
        return sti_fail(STINT_E_UNSUPPORTED,
                        "bayes.estimator: local wants layers with a weight of their "
                        "own, and '%s' is not read by one layer; use weight",
                        sti_graph_value(graph, mu)->name);
    return drawn < 0 ? sti_graph_status(graph) : STINT_OK;
}

stint_status sti_pass_bayes(stint_graph *graph, const sti_bayes_desc *desc, bool draws)
{
    const int32_t values = sti_graph_value_count(graph);
    stint_status status = STINT_OK;
    int32_t number = 0;
    if (desc->samples == 0)
        return STINT_OK;
    for (stint_value v = 0; v < values && status == STINT_OK; v++) {
        const sti_value_row *row = sti_graph_value(graph, v);
        if (row->role != STI_ROLE_PARAM || !sti_graph_is_weight(row))
            continue;
        const stint_value rho = add_spread(graph, desc, v);
        if (rho < 0)
            status = sti_graph_status(graph);
        else if (draws)
            status = draw(graph, desc, number, v, rho);
        number++;
    }
    return status == STINT_OK ? sti_graph_sort(graph) : status;
}

/* KL of one weight: of the node that draws it, or of a node of its own. */
static stint_value divergence(stint_graph *graph, const sti_bayes_desc *desc,
                              int32_t number, stint_value mu)
{
    const stint_value rho = sti_graph_value(graph, mu)->spread;
    const sti_noise_attr attr = attr_of(desc, number);
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        if (node->op == &sti_op_noise && node->in[STI_NOISE_RHO] == rho)
            return node->out[STI_NOISE_KL];
    }
    return sti_op_add_kl(graph, &attr, mu, rho);
}

stint_status sti_pass_bayes_loss(stint_graph *graph, const sti_bayes_desc *desc,
                                 stint_value loss, stint_value *objective_out)
{
    const stint_shape scalar = stint_shape_make(STINT_F32, 0, NULL);
    const int32_t values = sti_graph_value_count(graph);
    const stint_value weight = stint_input(graph, "kl_weight", &scalar);
    stint_value sum = -1;
    int32_t number = 0;
    for (stint_value v = 0; v < values; v++) {
        if (sti_graph_value(graph, v)->spread == 0)
            continue;
        const stint_value kl = divergence(graph, desc, number++, v);
        sum = sum < 0 ? kl : stint_add(graph, sum, kl);
    }
    *objective_out =
        sum < 0 ? loss : stint_add(graph, loss, stint_mul(graph, sum, weight));
    return sti_graph_status(graph);
}
