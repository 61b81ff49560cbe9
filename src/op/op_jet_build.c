/* Builders of operators on series, for the rules of others. Which operators those are
 * the space says, so that rules stand below them: their gradients are made of the
 * operators that have such rules. */
#include "op/jet_rule.h"
#include "op/op_priv.h"

int sti_jet_rows_of(stint_graph *g, stint_value value)
{
    return value < 0 ? 0 : (int)stint_value_shape(g, value).dim[0];
}

sti_jet sti_jet_of(stint_graph *g, stint_value value)
{
    return (sti_jet){value, sti_jet_rows_of(g, value)};
}

sti_jet sti_jet_add_unary(stint_graph *g, const sti_jet_space *space, sti_jet_kind kind,
                          float factor, sti_jet x, stint_value bias)
{
    const sti_jet_unary_attr attr = {.variables = space->variables,
                                     .order = space->order,
                                     .kind = (int32_t)kind,
                                     .has_bias = bias >= 0,
                                     .factor = factor};
    const stint_value in[2] = {x.value, bias};
    return sti_jet_of(
        g, sti_graph_add(g, space->ops->unary, &attr, bias >= 0 ? 2 : 1, in));
}

sti_jet sti_jet_add_mul(stint_graph *g, const sti_jet_space *space, sti_jet a,
                        sti_jet b)
{
    const sti_jet_attr attr = {.variables = space->variables, .order = space->order};
    return sti_jet_of(g, sti_op_add2(g, space->ops->mul, &attr, a.value, b.value));
}

sti_jet sti_jet_add_sum(stint_graph *g, const sti_jet_space *space, sti_jet a,
                        sti_jet b, float sign)
{
    const sti_jet_attr attr = {.variables = space->variables,
                               .order = space->order,
                               .sign = sign,
                               .rows = a.rows > b.rows ? a.rows : b.rows};
    return sti_jet_of(g, sti_op_add2(g, space->ops->sum, &attr, a.value, b.value));
}

sti_jet sti_jet_pad(stint_graph *g, const sti_jet_space *space, sti_jet x, int rows)
{
    const sti_jet_attr attr = {
        .variables = space->variables, .order = space->order, .rows = rows};
    return x.rows == rows
               ? x
               : sti_jet_of(g, sti_op_add1(g, space->ops->sum, &attr, x.value));
}

sti_jet sti_jet_add_bias(stint_graph *g, const sti_jet_space *space, sti_jet x,
                         stint_value bias)
{
    return sti_jet_of(g, sti_op_add2(g, space->ops->bias, NULL, x.value, bias));
}

stint_status sti_jet_rule_linear(stint_graph *g, const sti_node *node,
                                 const sti_jet_rule *rule)
{
    const stint_value x = rule->in[0].value;
    *rule->out =
        (sti_jet){sti_graph_add(g, node->op, node->attr, 1, &x), rule->in[0].rows};
    return sti_graph_status(g);
}
