/* Expressions as nodes of a graph. A number stays a number as long as it meets numbers
 * alone, so that a constant factor becomes one scale. */
#include <math.h>

#include "model/field_expression.h"
#include "model/field_function.h"
#include "op/op.h"

typedef struct term {
    stint_value value; /* -1: a number */
    double number;
} term;

static term of_value(stint_value value)
{
    return (term){value, 0};
}

static term of_number(double number)
{
    return (term){-1, number};
}

static term add_terms(stint_graph *g, term a, term b, bool minus)
{
    if (a.value < 0 && b.value < 0)
        return of_number(minus ? a.number - b.number : a.number + b.number);
    if (b.value < 0)
        return of_value(
            stint_add_scalar(g, a.value, (float)(minus ? -b.number : b.number)));
    if (a.value < 0) {
        const stint_value value = minus ? sti_op_negate(g, b.value) : b.value;
        return of_value(stint_add_scalar(g, value, (float)a.number));
    }
    return of_value(minus ? stint_sub(g, a.value, b.value)
                          : stint_add(g, a.value, b.value));
}

static term multiply_terms(stint_graph *g, term a, term b)
{
    if (a.value < 0 && b.value < 0)
        return of_number(a.number * b.number);
    if (a.value < 0)
        return of_value(stint_scale(g, b.value, (float)a.number));
    if (b.value < 0)
        return of_value(stint_scale(g, a.value, (float)b.number));
    return of_value(stint_mul(g, a.value, b.value));
}

static term divide_terms(stint_graph *g, term a, term b)
{
    if (b.value < 0)
        return multiply_terms(g, a, of_number(1 / b.number));
    if (a.value < 0)
        return multiply_terms(g, a, of_value(stint_reciprocal(g, b.value)));
    return of_value(stint_div(g, a.value, b.value));
}

/* x^n by squares; of a negative n the reciprocal. */
static term raise_term(stint_graph *g, term a, double power)
{
    const double size = fabs(power);
    stint_value result = -1, square = a.value;
    if (a.value < 0)
        return of_number(pow(a.number, power));
    if (power == 0)
        return of_number(1);
    if (size == 0.5)
        result = stint_sqrt(g, a.value);
    for (int n = (int)size; n > 0; n /= 2) {
        if (n % 2)
            result = result < 0 ? square : stint_mul(g, result, square);
        if (n > 1)
            square = stint_square(g, square);
    }
    return of_value(power < 0 ? stint_reciprocal(g, result) : result);
}

static term build_leaf(stint_graph *g, const sti_expression_node *n,
                       const sti_expression_scope *scope)
{
    if (n->kind == STI_EXPRESSION_NUMBER)
        return of_number(n->number);
    if (n->kind == STI_EXPRESSION_COORDINATE)
        return of_value(stint_slice(g, scope->points, 1, n->index, n->index + 1, 1));
    return of_value(n->kind == STI_EXPRESSION_OUTPUT
                        ? scope->output(scope->user, g, n)
                        : scope->target(scope->user, g, n));
}

static term build_node(stint_graph *g, const sti_expression_node *n, const term *v,
                       const sti_expression_scope *scope)
{
    if (n->left < 0)
        return build_leaf(g, n, scope);
    const term a = v[n->left];
    switch (n->kind) {
    case STI_EXPRESSION_ADD:
        return add_terms(g, a, v[n->right], false);
    case STI_EXPRESSION_SUBTRACT:
        return add_terms(g, a, v[n->right], true);
    case STI_EXPRESSION_MULTIPLY:
        return multiply_terms(g, a, v[n->right]);
    case STI_EXPRESSION_DIVIDE:
        return divide_terms(g, a, v[n->right]);
    case STI_EXPRESSION_NEGATE:
        return multiply_terms(g, a, of_number(-1));
    case STI_EXPRESSION_POWER:
        return raise_term(g, a, n->number);
    case STI_EXPRESSION_NUMBER:
    case STI_EXPRESSION_COORDINATE:
    case STI_EXPRESSION_OUTPUT:
    case STI_EXPRESSION_TARGET:
    case STI_EXPRESSION_FUNCTION:
    default:
        return a.value < 0 ? of_number(sti_field_function_value(n->index, a.number))
                           : of_value(sti_field_function_build(g, n->index, a.value));
    }
}

stint_value sti_expression_build(stint_graph *g, const sti_expression *e,
                                 const sti_expression_scope *scope)
{
    const stint_shape points = stint_value_shape(g, scope->points);
    const stint_shape column = STINT_SHAPE(points.dim[0], 1);
    term v[STI_EXPRESSION_NODES];
    for (int i = 0; i < e->count; i++) {
        v[i] = build_node(g, &e->node[i], v, scope);
        if (sti_graph_status(g) != STINT_OK)
            return -1;
    }
    return v[e->root].value < 0 ? sti_op_fill(g, &column, (float)v[e->root].number)
                                : v[e->root].value;
}
