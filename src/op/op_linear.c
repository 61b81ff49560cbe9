/* Copy, negation, multiples and shifts of every element: functions of one number whose
 * gradients are made of each other alone, so that the rules of all others may be made
 * of them. */
#include "op/jet_rule.h"
#include "op/op_unary_row.h"

#define gradient_copy       d
#define gradient_neg        sti_op_negate(g, d)
#define gradient_scale      stint_scale(g, d, parameter_of(node))
#define gradient_add_scalar d

static float parameter_of(const sti_node *node)
{
    return ((const sti_unary_attr *)node->attr)->parameter;
}

static void print_parameter(const sti_node *node, sti_text *out)
{
    sti_text_printf(out, "%.9g", (double)parameter_of(node));
}

STI_UNARY_GRAD(copy)
STI_UNARY_GRAD(neg)
STI_UNARY_GRAD(scale)
STI_UNARY_GRAD(add_scalar)

/* A copy is of any type of 4 bytes: what leaves a graph may be whole numbers. */
static stint_status infer_copy(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 1);
    if (st == STINT_OK)
        st = sti_op_check_words(graph, node, 0);
    if (st == STINT_OK)
        *out = *sti_op_in_shape(graph, node, 0);
    return st;
}

static void run_copy_value(const sti_call *call)
{
    sti_op_run_unary(call, STI_UNARY_COPY);
}

const sti_op sti_op_copy_value = {
    .name = "copy",
    .n_out = 1,
    .flags = STI_OP_INPLACE_0,
    .infer = infer_copy,
    .grad = grad_copy,
    .jet = sti_jet_rule_linear,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_copy_value},
};

STI_UNARY_ROW(neg, STI_UNARY_NEG, .grad = grad_neg, .jet = sti_jet_rule_linear)
STI_UNARY_ROW(scale, STI_UNARY_SCALE, .grad = grad_scale, .jet = sti_jet_rule_linear,
              .attr_bytes = sizeof(sti_unary_attr), .print = print_parameter)

/* A number is the series of one coefficient. */
static stint_status jet_add_scalar(stint_graph *g, const sti_node *node,
                                   const sti_jet_rule *rule)
{
    stint_shape shape = stint_value_shape(g, rule->in[0].value);
    shape.dim[0] = 1;
    const float number = ((const sti_unary_attr *)node->attr)->parameter;
    const sti_jet constant = {sti_op_fill(g, &shape, number), 1};
    *rule->out = sti_jet_add_sum(g, &rule->space, rule->in[0], constant, 1);
    return sti_graph_status(g);
}

STI_UNARY_ROW(add_scalar, STI_UNARY_ADD_SCALAR, .grad = grad_add_scalar,
              .jet = jet_add_scalar, .attr_bytes = sizeof(sti_unary_attr),
              .print = print_parameter)

stint_value sti_op_copy(stint_graph *g, stint_value x)
{
    return sti_op_add1(g, &sti_op_copy_value, NULL, x);
}

stint_value sti_op_negate(stint_graph *g, stint_value x)
{
    return sti_op_add1(g, &sti_op_neg, NULL, x);
}

stint_value stint_scale(stint_graph *g, stint_value x, float factor)
{
    return sti_op_add1(g, &sti_op_scale, &(sti_unary_attr){factor}, x);
}

stint_value stint_add_scalar(stint_graph *g, stint_value x, float addend)
{
    return sti_op_add1(g, &sti_op_add_scalar, &(sti_unary_attr){addend}, x);
}
