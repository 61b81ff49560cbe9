/* Operators on quantised numbers, in float32: the numbers are those that whole-number
 * arithmetic has wherever they stay below 2^24. */
#include <math.h>
#include <string.h>

#include "exchange/lower_priv.h"

/* Scale or zero point, which is one number or one an axis of x. */
static stint_status spread(sti_lowering *l, const sti_exchange_node *n, int i, int axis,
                           const sti_lane_value *x, stint_value *out)
{
    sti_lane_value v;
    const stint_status st = sti_lower_lane(l, n, i, &v);
    if (st != STINT_OK)
        return st;
    v = sti_lane_f32(l, &v);
    *out = v.value;
    const stint_shape shape = stint_value_shape(l->graph, v.value);
    if (stint_shape_count(&shape) == 1) {
        const stint_shape scalar = stint_shape_make(STINT_F32, 0, NULL);
        *out = stint_reshape(l->graph, v.value, &scalar);
        return STINT_OK;
    }
    if (v.rank != 1)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "with scales in blocks");
    stint_shape to = {.rank = x->rank, .dtype = STINT_F32};
    for (int k = 0; k < x->rank; k++)
        to.dim[k] = k == sti_lane_axis(x, axis) ? shape.dim[0] : 1;
    *out = stint_reshape(l->graph, v.value, &to);
    return STINT_OK;
}

static stint_status read_axis(sti_lowering *l, const sti_exchange_node *n,
                              const sti_lane_value *x, int *axis)
{
    const int64_t asked = sti_exchange_attr_int(n, "axis", 1);
    *axis = sti_known_axis(asked, x->rank); /* not looked at for one scale */
    *axis = *axis < 0 ? 0 : *axis;
    (void)l;
    return STINT_OK;
}

static void range_of(int type, float *low, float *high)
{
    *low = type == STI_EXCHANGE_I8    ? -128.0f
           : type == STI_EXCHANGE_I16 ? -32768.0f
                                      : 0.0f;
    *high = type == STI_EXCHANGE_I8    ? 127.0f
            : type == STI_EXCHANGE_I16 ? 32767.0f
            : type == STI_EXCHANGE_U16 ? 65535.0f
                                       : 255.0f;
}

stint_status sti_lower_quantize_linear(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    stint_value scale, zero;
    int axis, type = STI_EXCHANGE_U8;
    float low, high;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = read_axis(l, n, &x, &axis)) != STINT_OK ||
        (st = spread(l, n, 1, axis, &x, &scale)) != STINT_OK)
        return st;
    x = sti_lane_f32(l, &x);
    stint_value y = stint_round(l->graph, stint_div(l->graph, x.value, scale));
    if (sti_lower_has(n, 2)) {
        const sti_slot *slot = sti_lower_in(l, n, 2);
        type = slot->kind == STI_SLOT_KNOWN ? slot->known->type : slot->lane.type;
        if ((st = spread(l, n, 2, axis, &x, &zero)) != STINT_OK)
            return st;
        y = stint_add(l->graph, y, zero);
    } else if (sti_exchange_attr_int(n, "output_dtype", 0)) {
        type = (int)sti_exchange_attr_int(n, "output_dtype", 0);
    }
    if (type != STI_EXCHANGE_U8 && type != STI_EXCHANGE_I8 &&
        type != STI_EXCHANGE_U16 && type != STI_EXCHANGE_I16)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "to ONNX's element type %d",
                                type);
    range_of(type, &low, &high);
    sti_lane_value out = x;
    out.value =
        stint_minimum(l->graph, stint_maximum(l->graph, y, sti_lower_scalar(l, low)),
                      sti_lower_scalar(l, high));
    out = sti_lane_typed(l, &out, type);
    return sti_lower_result(l, n, 0, &out, out.value);
}

stint_status sti_lower_dequantize_linear(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x;
    stint_value scale, zero;
    int axis;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = read_axis(l, n, &x, &axis)) != STINT_OK ||
        (st = spread(l, n, 1, axis, &x, &scale)) != STINT_OK)
        return st;
    sti_lane_value y = sti_lane_f32(l, &x);
    if (sti_lower_has(n, 2)) {
        if ((st = spread(l, n, 2, axis, &x, &zero)) != STINT_OK)
            return st;
        y.value = stint_sub(l->graph, y.value, zero);
    }
    y.value = stint_mul(l->graph, y.value, scale);
    y.type = STI_EXCHANGE_F32;
    return sti_lower_result(l, n, 0, &y, y.value);
}

/* The range of x, with 0 in it, on 256 steps. */
stint_status sti_lower_dynamic_quantize_linear(sti_lowering *l,
                                               const sti_exchange_node *n)
{
    sti_lane_value x;
    stint_graph *g = l->graph;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK)
        return st;
    const unsigned all = (1u << x.rank) - 1;
    const stint_value nought = sti_lower_scalar(l, 0.0f),
                      most = sti_lower_scalar(l, 255.0f);
    stint_value high = x.value, low = sti_op_negate(g, x.value);
    if (x.rank > 0) {
        high = stint_max(g, high, all, false);
        low = stint_max(g, low, all, false);
    }
    high = stint_maximum(g, high, nought);
    low = sti_op_negate(g, stint_maximum(g, low, nought));
    const stint_value scale = stint_div(g, stint_sub(g, high, low), most);
    stint_value zero = stint_round(g, stint_div(g, sti_op_negate(g, low), scale));
    zero = stint_minimum(g, stint_maximum(g, zero, nought), most);
    stint_value y = stint_add(g, stint_round(g, stint_div(g, x.value, scale)), zero);
    y = stint_minimum(g, stint_maximum(g, y, nought), most);
    sti_lane_value out = x, one = sti_lane_plain(l, scale, STI_EXCHANGE_F32);
    out.value = y;
    out = sti_lane_typed(l, &out, STI_EXCHANGE_U8);
    if ((st = sti_lower_result(l, n, 0, &out, out.value)) != STINT_OK ||
        (st = sti_lower_result(l, n, 1, &one, scale)) != STINT_OK)
        return st;
    one.value = zero;
    one = sti_lane_typed(l, &one, STI_EXCHANGE_U8);
    return sti_lower_result(l, n, 2, &one, one.value);
}

/* ---- nodes that are several ---- */

/* A node of float operators between others, by the names of its operands. */
typedef struct inner_node {
    const char *op;
    const char *in[3], *out;
    bool attrs; /* with those of the node that it is part of */
} inner_node;

static stint_status run_inner(sti_lowering *l, const sti_exchange_node *of,
                              const inner_node *inner, sti_lower_fn *rule)
{
    sti_exchange_node *n = sti_arena_alloc(l->arena, sizeof *n);
    const char **names = sti_arena_alloc(l->arena, 4 * sizeof *names);
    if (!n || !names)
        return STINT_E_MEMORY;
    *n = (sti_exchange_node){.op = inner->op, .name = of->name, .domain = ""};
    n->in = names;
    n->out = names + 3;
    n->n_out = 1;
    names[3] = inner->out;
    for (int i = 0; i < 3; i++) {
        names[i] = inner->in[i] ? inner->in[i] : "";
        if (inner->in[i])
            n->n_in = i + 1;
    }
    if (inner->attrs) {
        n->attr = of->attr;
        n->n_attr = of->n_attr;
    }
    return rule(l, n);
}

static const char *operand(const sti_exchange_node *n, int i)
{
    return sti_lower_has(n, i) ? n->in[i] : NULL;
}

static const char *inner_name(sti_lowering *l, const char *what)
{
    return sti_arena_printf(l->arena, "%s:%s", l->node->out[0], what);
}

/* Two operands as float, a product, and back: QLinearMatMul and QLinearConv. */
static stint_status lower_quantised(sti_lowering *l, const sti_exchange_node *n,
                                    const char *op, sti_lower_fn *rule)
{
    const char *a = inner_name(l, "a"), *b = inner_name(l, "b"),
               *y = inner_name(l, "y"), *bias = inner_name(l, "bias"),
               *scales = inner_name(l, "scales");
    const bool conv = op[0] == 'C', has_bias = conv && sti_lower_has(n, 8);
    const inner_node left = {
        "DequantizeLinear", {n->in[0], n->in[1], operand(n, 2)}, a, 0};
    const inner_node right = {
        "DequantizeLinear", {n->in[3], n->in[4], operand(n, 5)}, b, 0};
    /* Weights have their scales along the filters, whose axis is 0. */
    static const sti_exchange_attr filters = {.name = "axis", .kind = STI_EXCHANGE_INT};
    sti_exchange_node of = *n;
    if (!a || !b || !y || !bias || !scales)
        return STINT_E_MEMORY;
    stint_status st = run_inner(l, n, &left, sti_lower_dequantize_linear);
    if (conv) {
        of.attr = (sti_exchange_attr *)(uintptr_t)&filters;
        of.n_attr = 1;
    }
    inner_node weights = right;
    weights.attrs = conv;
    if (st == STINT_OK)
        st = run_inner(l, &of, &weights, sti_lower_dequantize_linear);
    if (st == STINT_OK && has_bias) {
        const inner_node scale = {"Mul", {n->in[1], n->in[4], NULL}, scales, 0},
                         cast = {"DequantizeLinear", {n->in[8], scales, NULL}, bias, 1};
        st = run_inner(l, n, &scale, sti_lower_mul);
        if (st == STINT_OK)
            st = run_inner(l, &of, &cast, sti_lower_dequantize_linear);
    }
    const inner_node middle = {op, {a, b, has_bias ? bias : NULL}, y, true};
    if (st == STINT_OK)
        st = run_inner(l, n, &middle, rule);
    const inner_node last = {
        "QuantizeLinear", {y, n->in[6], operand(n, 7)}, n->out[0], 0};
    return st == STINT_OK ? run_inner(l, n, &last, sti_lower_quantize_linear) : st;
}

stint_status sti_lower_qlinear_matmul(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_quantised(l, n, "MatMul", sti_lower_matmul);
}

stint_status sti_lower_qlinear_conv(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_quantised(l, n, "Conv", sti_lower_conv);
}

/* Operand i less its zero point, as float. */
static stint_status centred(sti_lowering *l, const sti_exchange_node *n, int i,
                            int zero, int axis, const char *name)
{
    sti_lane_value x;
    stint_value z;
    stint_status st = sti_lower_lane(l, n, i, &x);
    if (st != STINT_OK)
        return st;
    sti_lane_value y = sti_lane_f32(l, &x);
    if (sti_lower_has(n, zero)) {
        if ((st = spread(l, n, zero, axis, &x, &z)) != STINT_OK)
            return st;
        y.value = stint_sub(l->graph, y.value, z);
    }
    y.type = STI_EXCHANGE_F32;
    return y.value < 0 ? sti_graph_status(l->graph) : sti_lower_set(l, name, &y);
}

static stint_status lower_integer(sti_lowering *l, const sti_exchange_node *n,
                                  const char *op, sti_lower_fn *rule)
{
    const char *a = inner_name(l, "a"), *b = inner_name(l, "b"),
               *y = inner_name(l, "y");
    if (!a || !b || !y)
        return STINT_E_MEMORY;
    stint_status st = centred(l, n, 0, 2, 0, a);
    if (st == STINT_OK)
        st = centred(l, n, 1, 3, op[0] == 'C' ? 0 : 1, b);
    const inner_node middle = {op, {a, b, NULL}, y, true};
    if (st == STINT_OK)
        st = run_inner(l, n, &middle, rule);
    if (st != STINT_OK)
        return st;
    sti_lane_value out = l->slot[sti_slot_of(l, y)].lane;
    out = sti_lane_typed(l, &out, STI_EXCHANGE_I32);
    return sti_lower_result(l, n, 0, &out, out.value);
}

stint_status sti_lower_matmul_integer(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_integer(l, n, "MatMul", sti_lower_matmul);
}

stint_status sti_lower_conv_integer(sti_lowering *l, const sti_exchange_node *n)
{
    return lower_integer(l, n, "Conv", sti_lower_conv);
}
