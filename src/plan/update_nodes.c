/* Parameters that change within a run: a graph whose order is final gets a node for
 * each, behind the node that makes its gradient and behind the last that reads its old
 * value, whatever passes have put there. So a step's bits are those of an update at its
 * end, and a gradient takes memory from where it is made to there. */
#include "base/fail.h"
#include "op/op_update.h"
#include "plan/plan_priv.h"

/* Moments are laid out as train/moments.h says: by gradients, in the parameters' order.
 */
static int64_t moment_before(const stint_graph *g, stint_value param)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < sti_graph_output_count(g); i++) {
        const sti_output *o = &sti_graph_outputs(g)[i];
        const stint_shape shape = stint_value_shape(g, o->value);
        if (o->kind == STI_OUTPUT_GRADIENT && o->target < param)
            bytes += (int64_t)STI_ALIGN_UP(stint_shape_bytes(&shape), STI_PLAN_ALIGN);
    }
    return bytes;
}

static void append_node(stint_graph *g, const sti_update_rule *rule,
                        const sti_output *output)
{
    const sti_value_row *row = sti_graph_value(g, output->target);
    const sti_update_attr attr = {.moment = moment_before(g, output->target),
                                  .count = output->channel_count,
                                  .channels = output->channels,
                                  .axis = output->channel_axis,
                                  .decays = !row->drawn &&
                                            (rule->decay_all || !row->param.no_decay)};
    const sti_node *maker = sti_graph_value(g, output->value)->producer;
    sti_graph_set_backward(g, maker);
    sti_graph_add(g, rule->op, &attr, 2,
                  (stint_value[]){output->value, output->target});
    sti_graph_set_backward(g, NULL);
}

/* The leaf or result that a value is, seen through views. */
static stint_value seen_through(const stint_graph *g, stint_value v)
{
    for (;;) {
        const sti_node *maker = v < 0 ? NULL : sti_graph_value(g, v)->producer;
        if (!maker || !(maker->op->flags & STI_OP_VIEW))
            return v;
        v = maker->in[0];
    }
}

/* last[v]: the node that reads or makes a value last, of the first `nodes`. */
static void find_last(const stint_graph *g, int32_t nodes, int32_t *last)
{
    for (int32_t v = 0; v < sti_graph_value_count(g); v++)
        last[v] = -1;
    for (int32_t n = 0; n < nodes; n++) {
        const sti_node *node = sti_graph_node(g, n);
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i] >= 0)
                last[seen_through(g, node->in[i])] = n;
        for (int32_t i = 0; i < node->n_out; i++)
            last[node->out[i]] = n;
    }
}

/* The nodes as they stand, and behind each the updates that nothing holds up then. */
static void place_nodes(const stint_graph *g, int32_t nodes, const int32_t *last,
                        int32_t *order)
{
    int32_t count = 0;
    for (int32_t n = 0; n < nodes; n++) {
        order[count++] = n;
        for (int32_t u = nodes; u < sti_graph_node_count(g); u++) {
            const sti_node *update = sti_graph_node(g, u);
            const int32_t made = sti_graph_value(g, update->in[0])->producer->id;
            const int32_t read = last[update->in[1]];
            if ((made > read ? made : read) == n)
                order[count++] = u;
        }
    }
}

stint_status sti_plan_update_nodes(stint_graph *g)
{
    const sti_update_rule *rule = sti_graph_update_rule(g);
    const int32_t nodes = sti_graph_node_count(g);
    const int32_t values = sti_graph_value_count(g);
    int32_t *last = sti_alloc_array(values, sizeof *last, "plan.updates");
    int32_t *order = NULL;
    stint_status st = last ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        find_last(g, nodes, last);
        for (int32_t i = 0; i < sti_graph_output_count(g); i++)
            if (sti_graph_outputs(g)[i].kind == STI_OUTPUT_GRADIENT)
                append_node(g, rule, &sti_graph_outputs(g)[i]);
        st = sti_graph_status(g);
    }
    if (st == STINT_OK) {
        sti_graph_drop_outputs(g, STI_OUTPUT_GRADIENT);
        order = sti_alloc_array(sti_graph_node_count(g), sizeof *order, "plan.updates");
        st = order ? STINT_OK : STINT_E_MEMORY;
    }
    if (st == STINT_OK) {
        place_nodes(g, nodes, last, order);
        st = sti_graph_reorder(g, order);
    }
    sti_free(last);
    sti_free(order);
    return st;
}
