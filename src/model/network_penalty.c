/* A penalty on the gradient of the loss by what goes into the network. */
#include <string.h>

#include "base/fail.h"
#include "model/network_parts.h"
#include "pass/pass.h"
#include "stint/op.h"

/* What the gradient is taken by: the images, or what the tokens of a text are looked up
 * as (before positions are added), since tokens themselves have no gradient. A
 * reference looks the same tokens up in a table of its own. */
static stint_value penalised(const sti_network *net)
{
    const stint_graph *g = net->graph;
    if (net->context == 0)
        return net->input;
    for (int32_t n = 0; n < sti_graph_node_count(g); n++) {
        const sti_node *node = sti_graph_node(g, n);
        if (strcmp(node->op->name, "embedding") == 0 && node->in[0] == net->input &&
            sti_graph_value(g, node->in[1])->role != STI_ROLE_FIXED)
            return node->out[0];
    }
    return -1;
}

stint_status sti_network_add_penalty(const sti_network_desc *desc,
                                     const sti_network *net, stint_value loss,
                                     stint_value *objective)
{
    stint_graph *g = net->graph;
    const float scale = desc->gradient_penalty * (float)net->images;
    const stint_value by = penalised(net);
    stint_value gradient = -1;
    if (by < 0)
        return sti_fail(STINT_E_BUG, "%s looks its tokens up nowhere", desc->name);
    const stint_status st = sti_pass_gradient(g, loss, &by, 1, &gradient);
    if (st != STINT_OK || gradient < 0)
        return st;
    const stint_shape shape = stint_value_shape(g, gradient);
    const stint_value squares =
        stint_sum(g, stint_mul(g, gradient, gradient), (1u << shape.rank) - 1, false);
    *objective = stint_add(g, *objective, stint_scale(g, squares, scale));
    return stint_graph_check(g);
}
