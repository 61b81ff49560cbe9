/* Slices along an axis by index, the choice between two tensors, and conversions
 * between whole numbers and f32: operators that move or rename elements by data. */
#include <inttypes.h>

#include "kernel/elementwise/elementwise.h"
#include "kernel/embedding/take.h"
#include "op/op_priv.h"

/* take: x [..., length, ...], index [...] i32 -> x with the axis replaced by those of
 * the index. take_grad: index, dy -> x's shape. */
typedef struct take_attr {
    int64_t axis;
    stint_shape of; /* of x, for the gradient */
} take_attr;

static stint_status check_index(const stint_graph *graph, const sti_node *node, int i)
{
    const stint_shape *index = sti_op_in_shape(graph, node, i);
    if (index->dtype != STINT_I32)
        return sti_fail(STINT_E_INPUT, "%s: indices are %s, wanted [...] i32",
                        node->op->name, sti_shape_text(index));
    return STINT_OK;
}

static stint_status taken_shape(const sti_node *node, const stint_shape *x,
                                const stint_shape *index, int64_t axis,
                                stint_shape *out)
{
    if (axis < 0 || axis >= x->rank || x->rank - 1 + index->rank > STINT_MAX_RANK)
        return sti_fail(STINT_E_INPUT, "%s: axis %" PRId64 " of %s by indices %s",
                        node->op->name, axis, sti_shape_text(x), sti_shape_text(index));
    *out = (stint_shape){.dtype = x->dtype};
    for (int i = 0; i < axis; i++)
        out->dim[out->rank++] = x->dim[i];
    for (int i = 0; i < index->rank; i++)
        out->dim[out->rank++] = index->dim[i];
    for (int i = (int)axis + 1; i < x->rank; i++)
        out->dim[out->rank++] = x->dim[i];
    return STINT_OK;
}

static stint_status infer_take(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const take_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = sti_op_check_words(graph, node, 0)) != STINT_OK ||
        (st = check_index(graph, node, 1)) != STINT_OK)
        return st;
    return taken_shape(node, sti_op_in_shape(graph, node, 0),
                       sti_op_in_shape(graph, node, 1), attr->axis, out);
}

static stint_status infer_take_grad(const stint_graph *graph, const sti_node *node,
                                    stint_shape *out)
{
    const take_attr *attr = node->attr;
    stint_shape want;
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = check_index(graph, node, 0)) != STINT_OK ||
        (st = taken_shape(node, &attr->of, sti_op_in_shape(graph, node, 0), attr->axis,
                          &want)) != STINT_OK)
        return st;
    *out = attr->of;
    return sti_op_check_shape(graph, node, 1, &want);
}

static sti_take_shape shape_of(const stint_shape *x, int64_t axis, int64_t count)
{
    sti_take_shape s = {1, x->dim[axis], 1, count};
    for (int i = 0; i < x->rank; i++) {
        s.outer *= i < axis ? x->dim[i] : 1;
        s.inner *= i > axis ? x->dim[i] : 1;
    }
    return s;
}

static void run_take(const sti_call *call)
{
    const take_attr *attr = call->node->attr;
    const sti_take_shape shape = shape_of(sti_op_in_shape(call->graph, call->node, 0),
                                          attr->axis, sti_op_in_count(call, 1));
    sti_take_32(call->team, &shape, call->in[1], call->in[0], call->out[0]);
}

static void run_take_grad(const sti_call *call)
{
    const take_attr *attr = call->node->attr;
    const sti_take_shape shape =
        shape_of(&attr->of, attr->axis, sti_op_in_count(call, 0));
    sti_take_grad_f32(call->team, &shape, call->in[0], call->in[1], call->out[0]);
}

static stint_status grad_take(stint_graph *g, const sti_node *node,
                              const stint_value *dy, const bool *need, stint_value *dx)
{
    take_attr attr = *(const take_attr *)node->attr;
    const stint_shape *x = sti_op_in_shape(g, node, 0);
    attr.of = stint_shape_make(x->dtype, x->rank, x->dim);
    if (need[0])
        dx[0] = sti_op_add2(g, &sti_op_take_grad, &attr, node->in[1], dy[0]);
    return STINT_OK;
}

/* A sum of slices: the gradient of a slice is what it was added to. */
static stint_status grad_take_grad(stint_graph *g, const sti_node *node,
                                   const stint_value *dy, const bool *need,
                                   stint_value *dx)
{
    const take_attr *attr = node->attr;
    if (need[1])
        dx[1] = stint_take(g, dy[0], node->in[0], (int)attr->axis);
    return STINT_OK;
}

static sti_cost cost_take(const stint_graph *graph, const sti_node *node)
{
    const double bytes = (double)stint_shape_bytes(sti_op_out_shape(graph, node, 0));
    return (sti_cost){.read_bytes = bytes, .write_bytes = bytes};
}

static void print_take(const sti_node *node, sti_text *out)
{
    sti_text_printf(out, "axis %" PRId64, ((const take_attr *)node->attr)->axis);
}

const sti_op sti_op_take = {
    .name = "take",
    .n_out = 1,
    .attr_bytes = sizeof(take_attr),
    .infer = infer_take,
    .grad = grad_take,
    .cost = cost_take,
    .run = {[STI_CPU] = run_take},
    .print = print_take,
};

const sti_op sti_op_take_grad = {
    .name = "take_grad",
    .n_out = 1,
    .attr_bytes = sizeof(take_attr),
    .infer = infer_take_grad,
    .grad = grad_take_grad,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_take_grad},
    .print = print_take,
};

stint_value stint_take(stint_graph *g, stint_value x, stint_value index, int axis)
{
    return sti_op_add2(g, &sti_op_take, &(take_attr){.axis = axis}, x, index);
}

/* ---- select: condition f32, a and b words, all of one shape */

static stint_status infer_select(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 3);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK ||
        (st = sti_op_check_words(graph, node, 1)) != STINT_OK)
        return st;
    *out = *sti_op_in_shape(graph, node, 1);
    const stint_shape *c = sti_op_in_shape(graph, node, 0);
    const stint_shape *b = sti_op_in_shape(graph, node, 2);
    stint_shape like = *c;
    like.dtype = out->dtype;
    if (!sti_shape_equal(b, out) || !sti_shape_equal(&like, out))
        return sti_fail(STINT_E_INPUT, "select: %s chooses between %s and %s",
                        sti_shape_text(c), sti_shape_text(out), sti_shape_text(b));
    return STINT_OK;
}

static void run_select(const sti_call *call)
{
    sti_select_32(call->team, sti_op_out_count(call, 0), call->in[0], call->in[1],
                  call->in[2], call->out[0]);
}

static stint_status grad_select(stint_graph *g, const sti_node *node,
                                const stint_value *dy, const bool *need,
                                stint_value *dx)
{
    const stint_shape shape = *sti_op_in_shape(g, node, 1);
    if (!need[1] && !need[2])
        return STINT_OK;
    const stint_value zero = sti_op_fill(g, &shape, 0.0f);
    if (need[1])
        dx[1] = stint_select(g, node->in[0], dy[0], zero);
    if (need[2])
        dx[2] = stint_select(g, node->in[0], zero, dy[0]);
    return STINT_OK;
}

const sti_op sti_op_select = {
    .name = "select",
    .n_out = 1,
    .flags = STI_OP_INPLACE_0 | STI_OP_INPLACE_1,
    .infer = infer_select,
    .grad = grad_select,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_select},
};

/* The shape that all three are repeated to, or what does not fit. */
static stint_status common_shape(const stint_shape *in, stint_shape *out)
{
    *out = (stint_shape){.dtype = STINT_F32};
    for (int k = 0; k < 3; k++)
        out->rank = in[k].rank > out->rank ? in[k].rank : out->rank;
    for (int i = 0; i < out->rank; i++) {
        int64_t *dim = &out->dim[out->rank - 1 - i];
        *dim = 1;
        for (int k = 0; k < 3; k++) {
            const int64_t own = i < in[k].rank ? in[k].dim[in[k].rank - 1 - i] : 1;
            if (own != 1 && *dim != 1 && own != *dim)
                return sti_fail(STINT_E_INPUT,
                                "select: %s, %s and %s do not go together",
                                sti_shape_text(&in[0]), sti_shape_text(&in[1]),
                                sti_shape_text(&in[2]));
            *dim = own == 1 ? *dim : own;
        }
    }
    return STINT_OK;
}

stint_value stint_select(stint_graph *g, stint_value condition, stint_value a,
                         stint_value b)
{
    stint_value in[3] = {condition, a, b};
    stint_shape shape[3], all;
    for (int k = 0; k < 3; k++) {
        if (in[k] < 0)
            return -1;
        shape[k] = stint_value_shape(g, in[k]);
    }
    const stint_status st = common_shape(shape, &all);
    if (st != STINT_OK)
        return sti_graph_fail(g, st);
    for (int k = 0; k < 3; k++) {
        all.dtype = shape[k].dtype;
        if (!sti_shape_equal(&shape[k], &all))
            in[k] = stint_broadcast(g, in[k], &all);
    }
    return sti_graph_add(g, &sti_op_select, NULL, 3, in);
}

/* ---- conversions */

static stint_status infer_converted(const stint_graph *graph, const sti_node *node,
                                    stint_shape *out)
{
    const bool to_f32 = node->op == &sti_op_to_f32;
    const stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK)
        return st;
    *out = *sti_op_in_shape(graph, node, 0);
    if (out->dtype != (to_f32 ? STINT_I32 : STINT_F32))
        return sti_fail(STINT_E_INPUT, "%s: input is %s", node->op->name,
                        sti_shape_text(out));
    out->dtype = to_f32 ? STINT_F32 : STINT_I32;
    return STINT_OK;
}

static void run_to_f32(const sti_call *call)
{
    sti_f32_from_i32(call->team, sti_op_out_count(call, 0), call->in[0], call->out[0]);
}

static void run_to_i32(const sti_call *call)
{
    sti_i32_from_f32(call->team, sti_op_out_count(call, 0), call->in[0], call->out[0]);
}

const sti_op sti_op_to_f32 = {
    .name = "to_f32",
    .n_out = 1,
    .flags = STI_OP_NO_GRAD,
    .infer = infer_converted,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_to_f32},
};

const sti_op sti_op_to_i32 = {
    .name = "to_i32",
    .n_out = 1,
    .flags = STI_OP_NO_GRAD,
    .infer = infer_converted,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_to_i32},
};

stint_value stint_to_f32(stint_graph *g, stint_value x)
{
    return sti_op_add1(g, &sti_op_to_f32, NULL, x);
}

stint_value stint_to_i32(stint_graph *g, stint_value x)
{
    return sti_op_add1(g, &sti_op_to_i32, NULL, x);
}
