/* Operators that work element by element. */
#include <math.h>

#include "exchange/lower_priv.h"

/* ---- of one ---- */

typedef stint_value unary_builder(stint_graph *g, stint_value x);

static stint_status lower_unary(sti_lowering *l, const sti_exchange_node *n,
                                unary_builder *build)
{
    sti_lane_value x;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK)
        return st;
    const sti_lane_value f = sti_lane_f32(l, &x);
    sti_lane_value y = f;
    y.value = build(l->graph, f.value);
    y = sti_lane_typed(l, &y, x.type);
    return sti_lower_result(l, n, 0, &y, y.value);
}

static stint_value not_of(stint_graph *g, stint_value x)
{
    return stint_add_scalar(g, sti_op_negate(g, x), 1.0f);
}

#define UNARY(name, builder)                                                   \
    stint_status sti_lower_##name(sti_lowering *l, const sti_exchange_node *n) \
    {                                                                          \
        return lower_unary(l, n, builder);                                     \
    }

UNARY(abs, stint_abs)
UNARY(ceil, stint_ceil)
UNARY(cos, stint_cos)
UNARY(erf, stint_erf)
UNARY(exp, stint_exp)
UNARY(floor, stint_floor)
UNARY(log, stint_log)
UNARY(neg, sti_op_negate)
UNARY(not, not_of)
UNARY(reciprocal, stint_reciprocal)
UNARY(relu, stint_relu)
UNARY(round, stint_round)
UNARY(sigmoid, stint_sigmoid)
UNARY(sin, stint_sin)
UNARY(softplus, stint_softplus)
UNARY(sqrt, stint_sqrt)
UNARY(tanh, stint_tanh)

stint_status sti_lower_leaky_relu(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    const float slope = sti_exchange_attr_float(n, "alpha", 0.01f);
    const stint_status st = sti_lower_lane(l, n, 0, &x);
    return st == STINT_OK ? sti_lower_result(l, n, 0, &x,
                                             stint_leaky_relu(l->graph, x.value, slope))
                          : st;
}

/* Identity, and Dropout as networks in use have it, whose mask is all ones. */
stint_status sti_lower_identity(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    const sti_slot *training = sti_lower_in(l, n, 2);
    if (st == STINT_OK && sti_lower_has(n, 2) &&
        (training->kind != STI_SLOT_KNOWN || sti_known_word(training->known, 0) != 0))
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "a Dropout in training; export the network for use");
    if (st == STINT_OK && n->n_out > 1 && n->out[1][0]) {
        const stint_shape shape = stint_value_shape(l->graph, x.value);
        sti_lane_value mask = x;
        mask.type = STI_EXCHANGE_BOOL;
        mask.value = sti_op_fill(l->graph, &shape, 1.0f);
        st = sti_lower_result(l, n, 1, &mask, mask.value);
    }
    return st == STINT_OK ? sti_lower_result(l, n, 0, &x, x.value) : st;
}

static stint_status cast_to(sti_lowering *l, const sti_exchange_node *n, int to)
{
    sti_lane_value x;
    const stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK)
        return st;
    if (!sti_exchange_type_bytes(to))
        return sti_lower_refuse(
            l, STINT_E_UNSUPPORTED,
            "to ONNX's element type %d, which is not one of numbers", to);
    if (to == STI_EXCHANGE_BOOL && x.type != STI_EXCHANGE_BOOL) {
        sti_lane_value y = sti_lane_f32(l, &x);
        const stint_value zero = sti_lower_scalar(l, 0.0f);
        y.value = not_of(l->graph, stint_equal(l->graph, y.value, zero));
        y.type = to;
        return sti_lower_result(l, n, 0, &y, y.value);
    }
    const sti_lane_value y = sti_lane_typed(l, &x, to);
    return sti_lower_result(l, n, 0, &y, y.value);
}

stint_status sti_lower_cast(sti_lowering *l, const sti_exchange_node *n)
{
    return cast_to(l, n, (int)sti_exchange_attr_int(n, "to", 0));
}

stint_status sti_lower_cast_like(sti_lowering *l, const sti_exchange_node *n)
{
    const sti_slot *like = sti_lower_in(l, n, 1);
    return cast_to(l, n,
                   like->kind == STI_SLOT_KNOWN ? like->known->type : like->lane.type);
}

/* ---- of two ---- */

typedef stint_value binary_builder(stint_graph *g, stint_value a, stint_value b);

static stint_status join(sti_lowering *l, sti_lane_value a, sti_lane_value b,
                         binary_builder *build, int type, sti_lane_value *out)
{
    const int of = type ? type : a.type;
    a = sti_lane_f32(l, &a);
    b = sti_lane_f32(l, &b);
    const stint_status st = sti_lower_pair(l, &a, &b);
    if (st != STINT_OK)
        return st;
    sti_lane_value y = a;
    y.value = build(l->graph, a.value, b.value);
    y.type = of;
    *out = sti_lane_typed(l, &y, of);
    return out->value < 0 ? sti_graph_status(l->graph) : STINT_OK;
}

/* type STI_EXCHANGE_NONE: the operands'. */
static stint_status lower_binary(sti_lowering *l, const sti_exchange_node *n,
                                 binary_builder *build, int type)
{
    sti_lane_value a, b, y;
    stint_status st = sti_lower_lane(l, n, 0, &a);
    if (st != STINT_OK || (st = sti_lower_lane(l, n, 1, &b)) != STINT_OK ||
        (st = join(l, a, b, build, type, &y)) != STINT_OK)
        return st;
    return sti_lower_result(l, n, 0, &y, y.value);
}

static stint_value greater(stint_graph *g, stint_value a, stint_value b)
{
    return stint_less(g, b, a);
}

static stint_value greater_or_equal(stint_graph *g, stint_value a, stint_value b)
{
    return stint_less_equal(g, b, a);
}

static stint_value xor_of(stint_graph *g, stint_value a, stint_value b)
{
    return not_of(g, stint_equal(g, a, b));
}

#define BINARY(name, builder, type)                                            \
    stint_status sti_lower_##name(sti_lowering *l, const sti_exchange_node *n) \
    {                                                                          \
        return lower_binary(l, n, builder, type);                              \
    }

BINARY(add, stint_add, STI_EXCHANGE_NONE)
BINARY(sub, stint_sub, STI_EXCHANGE_NONE)
BINARY(mul, stint_mul, STI_EXCHANGE_NONE)
BINARY(equal, stint_equal, STI_EXCHANGE_BOOL)
BINARY(less, stint_less, STI_EXCHANGE_BOOL)
BINARY(less_or_equal, stint_less_equal, STI_EXCHANGE_BOOL)
BINARY(greater, greater, STI_EXCHANGE_BOOL)
BINARY(greater_or_equal, greater_or_equal, STI_EXCHANGE_BOOL)
BINARY(and, stint_mul, STI_EXCHANGE_BOOL)
BINARY(or, stint_maximum, STI_EXCHANGE_BOOL)
BINARY(xor, xor_of, STI_EXCHANGE_BOOL)

/* The quotient of whole numbers is cut towards 0, which the conversion back does. */
stint_status sti_lower_div(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_binary(l, n, stint_div, STI_EXCHANGE_NONE);
}

static stint_status lower_many(sti_lowering *l, const sti_exchange_node *n,
                               binary_builder *build)
{
    sti_lane_value y, next;
    stint_status st = sti_lower_lane(l, n, 0, &y);
    for (int i = 1; i < n->n_in && st == STINT_OK; i++) {
        st = sti_lower_lane(l, n, i, &next);
        if (st == STINT_OK)
            st = join(l, y, next, build, STI_EXCHANGE_NONE, &y);
    }
    return st == STINT_OK ? sti_lower_result(l, n, 0, &y, y.value) : st;
}

stint_status sti_lower_max(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_many(l, n, stint_maximum);
}

stint_status sti_lower_min(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_many(l, n, stint_minimum);
}

stint_status sti_lower_sum(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_many(l, n, stint_add);
}

stint_status sti_lower_mean(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value y, next;
    stint_status st = sti_lower_lane(l, n, 0, &y);
    for (int i = 1; i < n->n_in && st == STINT_OK; i++) {
        st = sti_lower_lane(l, n, i, &next);
        if (st == STINT_OK)
            st = join(l, y, next, stint_add, STI_EXCHANGE_NONE, &y);
    }
    if (st == STINT_OK && n->n_in > 1)
        y.value = stint_scale(l->graph, y.value, 1.0f / (float)n->n_in);
    return st == STINT_OK ? sti_lower_result(l, n, 0, &y, y.value) : st;
}

/* Powers that are usual have operators of their own, which are exact for a negative
 * base. */
static stint_value power_of(stint_graph *g, stint_value x, double p)
{
    if (p == 1.0)
        return x;
    if (p == 2.0)
        return stint_square(g, x);
    if (p == 3.0)
        return stint_mul(g, stint_square(g, x), x);
    if (p == 4.0)
        return stint_square(g, stint_square(g, x));
    if (p == 0.5)
        return stint_sqrt(g, x);
    if (p == -1.0)
        return stint_reciprocal(g, x);
    if (p == -0.5)
        return stint_reciprocal(g, stint_sqrt(g, x));
    return -1;
}

stint_status sti_lower_pow(sti_lowering *l, const sti_exchange_node *n)
{
    const sti_slot *exponent = sti_lower_in(l, n, 1);
    sti_lane_value x;
    const stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st == STINT_OK && exponent->kind == STI_SLOT_KNOWN &&
        exponent->known->count == 1 && exponent->known->rank <= x.rank &&
        sti_exchange_is_float(x.type)) {
        const stint_value y =
            power_of(l->graph, x.value, sti_known_number(exponent->known, 0));
        if (y >= 0)
            return sti_lower_result(l, n, 0, &x, y);
    }
    return st == STINT_OK ? lower_binary(l, n, stint_power, STI_EXCHANGE_NONE) : st;
}

/* ---- limits ---- */

/* A limit is an attribute (before opset 11) or an operand, and may be left out. */
static stint_status limit(sti_lowering *l, const sti_exchange_node *n, int i,
                          const char *name, binary_builder *build, sti_lane_value *y)
{
    const sti_exchange_attr *a = sti_exchange_attr_find(n, name);
    sti_lane_value bound;
    stint_status st = STINT_OK;
    if (sti_lower_has(n, i)) {
        if ((st = sti_lower_lane(l, n, i, &bound)) == STINT_OK)
            st = join(l, *y, bound, build, y->type, y);
    } else if (a && a->kind == STI_EXCHANGE_FLOAT) {
        y->value = build(l->graph, y->value, sti_lower_scalar(l, a->f));
    }
    return st;
}

stint_status sti_lower_clip(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value y;
    stint_status st = sti_lower_lane(l, n, 0, &y);
    if (st == STINT_OK)
        st = limit(l, n, 1, "min", stint_maximum, &y);
    if (st == STINT_OK)
        st = limit(l, n, 2, "max", stint_minimum, &y);
    return st == STINT_OK ? sti_lower_result(l, n, 0, &y, y.value) : st;
}
