/* Activations that are made of other operators, and sums of many. */
#include <math.h>

#include "exchange/lower_priv.h"

static stint_value constant(sti_lowering *l, float value)
{
    return sti_lower_scalar(l, value);
}

static stint_value clipped(sti_lowering *l, stint_value x, float low, float high)
{
    return stint_minimum(l->graph, stint_maximum(l->graph, x, constant(l, low)),
                         constant(l, high));
}

/* What each rule makes of x. */
typedef stint_value shape_fn(sti_lowering *l, const sti_exchange_node *n,
                             stint_value x);

static stint_status lower_with(sti_lowering *l, const sti_exchange_node *n,
                               shape_fn *make)
{
    sti_lane_value x;
    const stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK)
        return st;
    sti_lane_value y = sti_lane_f32(l, &x);
    y.value = make(l, n, y.value);
    y = sti_lane_typed(l, &y, x.type);
    return sti_lower_result(l, n, 0, &y, y.value);
}

static stint_value hard_sigmoid(sti_lowering *l, const sti_exchange_node *n,
                                stint_value x)
{
    const float alpha = sti_exchange_attr_float(n, "alpha", 0.2f),
                beta = sti_exchange_attr_float(n, "beta", 0.5f);
    const stint_value line =
        stint_add_scalar(l->graph, stint_scale(l->graph, x, alpha), beta);
    return clipped(l, line, 0.0f, 1.0f);
}

static stint_value hard_swish(sti_lowering *l, const sti_exchange_node *n,
                              stint_value x)
{
    (void)n;
    const stint_value line =
        stint_add_scalar(l->graph, stint_scale(l->graph, x, 1.0f / 6.0f), 0.5f);
    return stint_mul(l->graph, x, clipped(l, line, 0.0f, 1.0f));
}

static stint_value swish(sti_lowering *l, const sti_exchange_node *n, stint_value x)
{
    const float alpha = sti_exchange_attr_float(n, "alpha", 1.0f);
    if (alpha == 1.0f)
        return stint_silu(l->graph, x);
    return stint_mul(l->graph, x,
                     stint_sigmoid(l->graph, stint_scale(l->graph, x, alpha)));
}

/* The exact form by erf, or the tanh form. */
static stint_value gelu(sti_lowering *l, const sti_exchange_node *n, stint_value x)
{
    if (sti_exchange_attr_text(n, "approximate", "none")[0] == 't')
        return stint_gelu(l->graph, x);
    const stint_value e = stint_erf(l->graph, stint_scale(l->graph, x, 0x1.6a09e6p-1f));
    return stint_mul(l->graph, stint_scale(l->graph, x, 0.5f),
                     stint_add_scalar(l->graph, e, 1.0f));
}

static stint_value mish(sti_lowering *l, const sti_exchange_node *n, stint_value x)
{
    (void)n;
    return stint_mul(l->graph, x, stint_tanh(l->graph, stint_softplus(l->graph, x)));
}

/* e^min(x, 0) - 1, which is 0 above 0. */
static stint_value bend(sti_lowering *l, stint_value x)
{
    const stint_value low = stint_minimum(l->graph, x, constant(l, 0.0f));
    return stint_add_scalar(l->graph, stint_exp(l->graph, low), -1.0f);
}

static stint_value elu(sti_lowering *l, const sti_exchange_node *n, stint_value x)
{
    const float alpha = sti_exchange_attr_float(n, "alpha", 1.0f);
    return stint_add(l->graph, stint_relu(l->graph, x),
                     stint_scale(l->graph, bend(l, x), alpha));
}

static stint_value selu(sti_lowering *l, const sti_exchange_node *n, stint_value x)
{
    const float alpha = sti_exchange_attr_float(n, "alpha", 1.67326319217681884765625f),
                gamma = sti_exchange_attr_float(n, "gamma", 1.05070102214813232421875f);
    const stint_value low = stint_scale(l->graph, bend(l, x), alpha);
    return stint_scale(l->graph, stint_add(l->graph, stint_relu(l->graph, x), low),
                       gamma);
}

static stint_value celu(sti_lowering *l, const sti_exchange_node *n, stint_value x)
{
    const float alpha = sti_exchange_attr_float(n, "alpha", 1.0f);
    const stint_value low = bend(l, stint_scale(l->graph, x, 1.0f / alpha));
    return stint_add(l->graph, stint_relu(l->graph, x),
                     stint_scale(l->graph, low, alpha));
}

static stint_value thresholded_relu(sti_lowering *l, const sti_exchange_node *n,
                                    stint_value x)
{
    const float alpha = sti_exchange_attr_float(n, "alpha", 1.0f);
    return stint_select(l->graph, stint_less(l->graph, constant(l, alpha), x), x,
                        constant(l, 0.0f));
}

static stint_value softsign(sti_lowering *l, const sti_exchange_node *n, stint_value x)
{
    (void)n;
    return stint_div(l->graph, x,
                     stint_add_scalar(l->graph, stint_abs(l->graph, x), 1.0f));
}

static stint_value sign(sti_lowering *l, const sti_exchange_node *n, stint_value x)
{
    const stint_value zero = constant(l, 0.0f);
    (void)n;
    return stint_sub(l->graph, stint_less(l->graph, zero, x),
                     stint_less(l->graph, x, zero));
}

static stint_value tan_of(sti_lowering *l, const sti_exchange_node *n, stint_value x)
{
    (void)n;
    return stint_div(l->graph, stint_sin(l->graph, x), stint_cos(l->graph, x));
}

static stint_value shrink(sti_lowering *l, const sti_exchange_node *n, stint_value x)
{
    const float lambd = sti_exchange_attr_float(n, "lambd", 0.5f),
                bias = sti_exchange_attr_float(n, "bias", 0.0f);
    const stint_value zero = constant(l, 0.0f);
    const stint_value high =
        stint_select(l->graph, stint_less(l->graph, constant(l, lambd), x),
                     stint_add_scalar(l->graph, x, -bias), zero);
    return stint_select(l->graph, stint_less(l->graph, x, constant(l, -lambd)),
                        stint_add_scalar(l->graph, x, bias), high);
}

#define ACTIVATION(name)                                                       \
    stint_status sti_lower_##name(sti_lowering *l, const sti_exchange_node *n) \
    {                                                                          \
        return lower_with(l, n, name);                                         \
    }
ACTIVATION(hard_sigmoid)
ACTIVATION(hard_swish)
ACTIVATION(swish)
ACTIVATION(gelu)
ACTIVATION(mish)
ACTIVATION(elu)
ACTIVATION(selu)
ACTIVATION(celu)
ACTIVATION(thresholded_relu)
ACTIVATION(softsign)
ACTIVATION(sign)
ACTIVATION(shrink)

stint_status sti_lower_tan(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_with(l, n, tan_of);
}

/* max(x, 0) + slope min(x, 0); the slope's axes count from the last one. */
stint_status sti_lower_prelu(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x, slope;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_lane(l, n, 1, &slope)) != STINT_OK ||
        (st = sti_lower_pair(l, &x, &slope)) != STINT_OK)
        return st;
    const stint_value low = stint_minimum(l->graph, x.value, constant(l, 0.0f));
    return sti_lower_result(l, n, 0, &x,
                            stint_add(l->graph, stint_relu(l->graph, x.value),
                                      stint_mul(l->graph, slope.value, low)));
}

stint_status sti_lower_is_nan(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    const stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK)
        return st;
    const stint_value same = stint_equal(l->graph, x.value, x.value);
    x.type = STI_EXCHANGE_BOOL;
    return sti_lower_result(
        l, n, 0, &x, stint_add_scalar(l->graph, sti_op_negate(l->graph, same), 1.0f));
}

/* a - b floor(a / b), or towards 0 with fmod. */
stint_status sti_lower_mod(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value a, b;
    stint_status st = sti_lower_lane(l, n, 0, &a);
    if (st != STINT_OK || (st = sti_lower_lane(l, n, 1, &b)) != STINT_OK)
        return st;
    const int type = a.type;
    a = sti_lane_f32(l, &a);
    b = sti_lane_f32(l, &b);
    if ((st = sti_lower_pair(l, &a, &b)) != STINT_OK)
        return st;
    stint_value q = stint_div(l->graph, a.value, b.value);
    q = sti_exchange_attr_int(n, "fmod", 0)
            ? stint_to_f32(l->graph, stint_to_i32(l->graph, q))
            : stint_floor(l->graph, q);
    sti_lane_value y = a;
    y.value = stint_sub(l->graph, a.value, stint_mul(l->graph, q, b.value));
    y = sti_lane_typed(l, &y, type);
    return sti_lower_result(l, n, 0, &y, y.value);
}
