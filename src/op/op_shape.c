/* Operators that move or make elements without arithmetic: fill, reshape, transpose,
 * concat, slice and its inverse, pad. All but fill and reshape are one
 * strided copy. Elements of 4 bytes (f32, i32) move; gradients flow through f32 only.
 */
#include <inttypes.h>
#include <string.h>

#include "kernel/elementwise/elementwise.h"
#include "op/jet_rule.h"
#include "op/op_priv.h"

enum { JET_PARTS = 16 }; /* of a concatenation of series */

typedef struct shape_attr {
    stint_shape shape;
} shape_attr;

typedef struct fill_attr {
    stint_shape shape;
    float value;
    int32_t zero; /* no padding: attributes are compared by bytes */
} fill_attr;

typedef struct axes_attr {
    int32_t axis[STINT_MAX_RANK];
} axes_attr;

typedef struct concat_attr {
    int64_t axis;
} concat_attr;

typedef struct slice_attr {
    int64_t axis, begin, end, step;
} slice_attr;

typedef struct pad_attr {
    int64_t axis, begin, step, length; /* of the result's axis */
} pad_attr;

/* Only what counts, so that equal shapes are equal bytes. */
static stint_shape clean_shape(const stint_shape *shape)
{
    return stint_shape_make(shape->dtype, shape->rank, shape->dim);
}

static stint_status check_axis(const sti_node *node, const stint_shape *x, int64_t axis)
{
    if (axis < 0 || axis >= x->rank)
        return sti_fail(STINT_E_INPUT, "%s: axis %" PRId64 " of %s", node->op->name,
                        axis, sti_shape_text(x));
    return STINT_OK;
}

static void print_shape(const sti_node *node, sti_text *out)
{
    const shape_attr *attr = node->attr;
    sti_text_add(out, sti_shape_text(&attr->shape));
}

/* ---- fill */

static stint_status infer_fill(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const fill_attr *attr = node->attr;
    (void)graph;
    if (attr->shape.dtype != STINT_F32)
        return sti_fail(STINT_E_INPUT, "fill: %s, wanted f32",
                        sti_shape_text(&attr->shape));
    *out = attr->shape;
    return sti_op_check_count(node, 0);
}

static void run_fill(const sti_call *call)
{
    const fill_attr *attr = call->node->attr;
    sti_fill_f32(call->team, sti_op_out_count(call, 0), attr->value, call->out[0]);
}

static void print_fill(const sti_node *node, sti_text *out)
{
    const fill_attr *attr = node->attr;
    sti_text_printf(out, "%.9g", (double)attr->value);
}

const sti_op sti_op_fill_value = {
    .name = "fill",
    .n_out = 1,
    .attr_bytes = sizeof(fill_attr),
    .flags = STI_OP_NO_GRAD,
    .infer = infer_fill,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_fill},
    .print = print_fill,
};

bool sti_op_is_fill(const sti_node *node, float value)
{
    return node->op == &sti_op_fill_value &&
           ((const fill_attr *)node->attr)->value == value;
}

stint_value sti_op_fill(stint_graph *g, const stint_shape *shape, float value)
{
    fill_attr attr = {.shape = clean_shape(shape), .value = value};
    return sti_graph_add(g, &sti_op_fill_value, &attr, 0, NULL);
}

/* ---- reshape */

static stint_status infer_reshape(const stint_graph *graph, const sti_node *node,
                                  stint_shape *out)
{
    const shape_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    *out = attr->shape;
    out->dtype = x->dtype;
    if (stint_shape_count(x) != stint_shape_count(out))
        return sti_fail(STINT_E_INPUT, "reshape: %s to %s changes the count",
                        sti_shape_text(x), sti_shape_text(out));
    return STINT_OK;
}

static stint_status grad_reshape(stint_graph *g, const sti_node *node,
                                 const stint_value *dy, const bool *need,
                                 stint_value *dx)
{
    stint_shape shape = *sti_op_in_shape(g, node, 0);
    if (need[0])
        dx[0] = stint_reshape(g, dy[0], &shape);
    return STINT_OK;
}

/* The planner lays the result over the input; called only where it could not. */
static void run_reshape(const sti_call *call)
{
    if (call->out[0] != call->in[0])
        memcpy(call->out[0], call->in[0],
               stint_shape_bytes(sti_op_out_shape(call->graph, call->node, 0)));
}

const sti_op sti_op_reshape = {
    .name = "reshape",
    .n_out = 1,
    .attr_bytes = sizeof(shape_attr),
    .flags = STI_OP_VIEW,
    .infer = infer_reshape,
    .grad = grad_reshape,
    .cost = sti_op_cost_none,
    .run = {[STI_CPU] = run_reshape},
    .print = print_shape,
};

stint_value stint_reshape(stint_graph *g, stint_value x, const stint_shape *shape)
{
    if (x < 0)
        return -1;
    shape_attr attr = {clean_shape(shape)};
    stint_shape from = stint_value_shape(g, x);
    int64_t known = 1;
    int open = -1;
    attr.shape.dtype = from.dtype;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] >= 0)
            known *= shape->dim[i];
        else if (open < 0)
            open = i;
        else
            return sti_graph_fail(
                g, sti_fail(STINT_E_INPUT, "reshape: more than one open axis (-1)"));
    }
    if (open >= 0)
        attr.shape.dim[open] = known > 0 ? stint_shape_count(&from) / known : 0;
    return sti_op_add1(g, &sti_op_reshape, &attr, x);
}

stint_value stint_flatten(stint_graph *g, stint_value x)
{
    if (x < 0)
        return -1;
    stint_shape from = stint_value_shape(g, x);
    stint_shape to = STINT_SHAPE(from.rank > 0 ? from.dim[0] : 1, -1);
    return stint_reshape(g, x, &to);
}

/* ---- transpose */

static stint_status infer_transpose(const stint_graph *graph, const sti_node *node,
                                    stint_shape *out)
{
    const axes_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_words(graph, node, 0)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    unsigned seen = 0;
    *out = *x;
    for (int i = 0; i < x->rank; i++) {
        if ((st = check_axis(node, x, attr->axis[i])) != STINT_OK)
            return st;
        if (seen >> attr->axis[i] & 1)
            return sti_fail(STINT_E_INPUT, "transpose: axis %d twice",
                            (int)attr->axis[i]);
        seen |= 1u << attr->axis[i];
        out->dim[i] = x->dim[attr->axis[i]];
    }
    return STINT_OK;
}

static void run_transpose(const sti_call *call)
{
    const axes_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    const stint_shape *y = sti_op_out_shape(call->graph, call->node, 0);
    int64_t from[STINT_MAX_RANK], in[STINT_MAX_RANK], to[STINT_MAX_RANK];
    sti_op_row_strides(x, in);
    sti_op_row_strides(y, to);
    for (int i = 0; i < y->rank; i++)
        from[i] = in[attr->axis[i]];
    sti_copy_strided_32(call->team, y->rank, y->dim, from, to, call->in[0],
                        call->out[0]);
}

static stint_status grad_transpose(stint_graph *g, const sti_node *node,
                                   const stint_value *dy, const bool *need,
                                   stint_value *dx)
{
    const axes_attr *attr = node->attr;
    int back[STINT_MAX_RANK] = {0};
    for (int i = 0; i < sti_op_in_shape(g, node, 0)->rank; i++)
        back[attr->axis[i]] = i;
    if (need[0])
        dx[0] = stint_transpose(g, dy[0], back);
    return STINT_OK;
}

static void print_axes(const sti_node *node, sti_text *out)
{
    const axes_attr *attr = node->attr;
    int used = STINT_MAX_RANK; /* what lies behind the rank is 0 */
    while (used > 1 && attr->axis[used - 1] == 0)
        used--;
    for (int i = 0; i < used; i++)
        sti_text_printf(out, "%s%d", i ? "," : "axes ", (int)attr->axis[i]);
}

const sti_op sti_op_transpose = {
    .name = "transpose",
    .n_out = 1,
    .attr_bytes = sizeof(axes_attr),
    .infer = infer_transpose,
    .grad = grad_transpose,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_transpose},
    .print = print_axes,
};

stint_value stint_transpose(stint_graph *g, stint_value x, const int *axes)
{
    axes_attr attr = {{0}};
    if (x < 0)
        return -1;
    for (int i = 0; i < stint_value_shape(g, x).rank; i++)
        attr.axis[i] = axes[i];
    return sti_op_add1(g, &sti_op_transpose, &attr, x);
}

/* ---- concat */

static stint_status infer_concat(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const concat_attr *attr = node->attr;
    stint_status st;
    if (node->n_in < 1)
        return sti_fail(STINT_E_INPUT, "concat: no inputs");
    for (int i = 0; i < node->n_in; i++) {
        if ((st = sti_op_check_words(graph, node, i)) != STINT_OK)
            return st;
        stint_shape x = *sti_op_in_shape(graph, node, i);
        if ((st = check_axis(node, &x, attr->axis)) != STINT_OK)
            return st;
        if (i == 0) {
            *out = x;
            continue;
        }
        int64_t length = x.dim[attr->axis];
        x.dim[attr->axis] = out->dim[attr->axis];
        if (!sti_shape_equal(&x, out))
            return sti_fail(STINT_E_INPUT,
                            "concat: input %d is %s, unlike those before it away from "
                            "axis %" PRId64,
                            i, sti_shape_text(sti_op_in_shape(graph, node, i)),
                            attr->axis);
        out->dim[attr->axis] += length;
    }
    return STINT_OK;
}

static void run_concat(const sti_call *call)
{
    const concat_attr *attr = call->node->attr;
    const stint_shape *y = sti_op_out_shape(call->graph, call->node, 0);
    int64_t from[STINT_MAX_RANK], to[STINT_MAX_RANK];
    uint32_t *at = call->out[0];
    sti_op_row_strides(y, to);
    for (int i = 0; i < call->node->n_in; i++) {
        const stint_shape *x = sti_op_in_shape(call->graph, call->node, i);
        sti_op_row_strides(x, from);
        sti_copy_strided_32(call->team, x->rank, x->dim, from, to, call->in[i], at);
        at += x->dim[attr->axis] * to[attr->axis];
    }
}

static stint_status grad_concat(stint_graph *g, const sti_node *node,
                                const stint_value *dy, const bool *need,
                                stint_value *dx)
{
    const concat_attr *attr = node->attr;
    int64_t begin = 0;
    for (int i = 0; i < node->n_in; i++) {
        int64_t end = begin + sti_op_in_shape(g, node, i)->dim[attr->axis];
        if (need[i])
            dx[i] = stint_slice(g, dy[0], (int)attr->axis, begin, end, 1);
        begin = end;
    }
    return STINT_OK;
}

static void print_concat(const sti_node *node, sti_text *out)
{
    const concat_attr *attr = node->attr;
    sti_text_printf(out, "axis %" PRId64, attr->axis);
}

/* Columns of series: all get the rows of the longest. */
static stint_status jet_concat(stint_graph *g, const sti_node *node,
                               const sti_jet_rule *rule)
{
    const concat_attr *attr = node->attr;
    const concat_attr moved = {attr->axis + 1};
    stint_value in[JET_PARTS];
    int rows = 0;
    for (int i = 0; i < node->n_in && i < JET_PARTS; i++)
        rows = rule->in[i].rows > rows ? rule->in[i].rows : rows;
    if (attr->axis < 1 || node->n_in > JET_PARTS)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "concat%s%s: series are joined by columns, at most %d of them",
                        *node->scope ? " in " : "", node->scope, JET_PARTS);
    for (int i = 0; i < node->n_in; i++) {
        if (rule->in[i].rows == 0)
            return sti_fail(STINT_E_UNSUPPORTED,
                            "concat%s%s: part %d does not depend on the points",
                            *node->scope ? " in " : "", node->scope, i);
        in[i] = sti_jet_pad(g, &rule->space, rule->in[i], rows).value;
    }
    *rule->out =
        (sti_jet){sti_graph_add(g, &sti_op_concat, &moved, node->n_in, in), rows};
    return sti_graph_status(g);
}

const sti_op sti_op_concat = {
    .name = "concat",
    .n_out = 1,
    .attr_bytes = sizeof(concat_attr),
    .infer = infer_concat,
    .grad = grad_concat,
    .jet = jet_concat,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_concat},
    .print = print_concat,
};

stint_value stint_concat(stint_graph *g, const stint_value *x, int count, int axis)
{
    return sti_graph_add(g, &sti_op_concat, &(concat_attr){axis}, count, x);
}

/* ---- slice and pad, each the other's gradient */

static stint_status infer_slice(const stint_graph *graph, const sti_node *node,
                                stint_shape *out)
{
    const slice_attr *a = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_words(graph, node, 0)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    if ((st = check_axis(node, x, a->axis)) != STINT_OK)
        return st;
    if (a->begin < 0 || a->end <= a->begin || a->end > x->dim[a->axis] || a->step < 1)
        return sti_fail(STINT_E_INPUT,
                        "slice: [%" PRId64 ", %" PRId64 ") by %" PRId64
                        " of axis %" PRId64 " of %s",
                        a->begin, a->end, a->step, a->axis, sti_shape_text(x));
    *out = *x;
    out->dim[a->axis] = (a->end - a->begin + a->step - 1) / a->step;
    return STINT_OK;
}

static void run_slice(const sti_call *call)
{
    const slice_attr *a = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    const stint_shape *y = sti_op_out_shape(call->graph, call->node, 0);
    int64_t from[STINT_MAX_RANK], to[STINT_MAX_RANK];
    sti_op_row_strides(x, from);
    sti_op_row_strides(y, to);
    const uint32_t *src = (const uint32_t *)call->in[0] + a->begin * from[a->axis];
    from[a->axis] *= a->step;
    sti_copy_strided_32(call->team, y->rank, y->dim, from, to, src, call->out[0]);
}

static stint_status grad_slice(stint_graph *g, const sti_node *node,
                               const stint_value *dy, const bool *need, stint_value *dx)
{
    const slice_attr *a = node->attr;
    pad_attr pad = {a->axis, a->begin, a->step,
                    sti_op_in_shape(g, node, 0)->dim[a->axis]};
    if (need[0])
        dx[0] = sti_op_add1(g, &sti_op_pad, &pad, dy[0]);
    return STINT_OK;
}

static void print_slice(const sti_node *node, sti_text *out)
{
    const slice_attr *a = node->attr;
    sti_text_printf(out, "axis %" PRId64 " [%" PRId64 ":%" PRId64 ":%" PRId64 "]",
                    a->axis, a->begin, a->end, a->step);
}

static stint_status jet_slice(stint_graph *g, const sti_node *node,
                              const sti_jet_rule *rule)
{
    slice_attr moved = *(const slice_attr *)node->attr;
    if (moved.axis++ < 1)
        return sti_fail(STINT_E_UNSUPPORTED, "slice%s%s: cuts points apart",
                        *node->scope ? " in " : "", node->scope);
    *rule->out =
        (sti_jet){sti_graph_add(g, &sti_op_slice, &moved, 1, &rule->in[0].value),
                  rule->in[0].rows};
    return sti_graph_status(g);
}

const sti_op sti_op_slice = {
    .name = "slice",
    .n_out = 1,
    .attr_bytes = sizeof(slice_attr),
    .infer = infer_slice,
    .grad = grad_slice,
    .jet = jet_slice,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_slice},
    .print = print_slice,
};

stint_value stint_slice(stint_graph *g, stint_value x, int axis, int64_t begin,
                        int64_t end, int64_t step)
{
    slice_attr attr = {axis, begin, end, step == 0 ? 1 : step};
    return sti_op_add1(g, &sti_op_slice, &attr, x);
}

static stint_status infer_pad(const stint_graph *graph, const sti_node *node,
                              stint_shape *out)
{
    const pad_attr *a = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_words(graph, node, 0)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    if ((st = check_axis(node, x, a->axis)) != STINT_OK)
        return st;
    int64_t last = a->begin + (x->dim[a->axis] - 1) * a->step;
    if (a->begin < 0 || a->step < 1 || last >= a->length)
        return sti_fail(STINT_E_INPUT,
                        "pad: axis %" PRId64 " of %s from %" PRId64 " by %" PRId64
                        " does not fit in %" PRId64,
                        a->axis, sti_shape_text(x), a->begin, a->step, a->length);
    *out = *x;
    out->dim[a->axis] = a->length;
    return STINT_OK;
}

static void run_pad(const sti_call *call)
{
    const pad_attr *a = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    const stint_shape *y = sti_op_out_shape(call->graph, call->node, 0);
    int64_t from[STINT_MAX_RANK], to[STINT_MAX_RANK];
    sti_op_row_strides(x, from);
    sti_op_row_strides(y, to);
    uint32_t *dst = (uint32_t *)call->out[0] + a->begin * to[a->axis];
    to[a->axis] *= a->step;
    sti_fill_f32(call->team, stint_shape_count(y), 0.0f, call->out[0]);
    sti_copy_strided_32(call->team, x->rank, x->dim, from, to, call->in[0], dst);
}

static stint_status grad_pad(stint_graph *g, const sti_node *node,
                             const stint_value *dy, const bool *need, stint_value *dx)
{
    const pad_attr *a = node->attr;
    int64_t count = sti_op_in_shape(g, node, 0)->dim[a->axis];
    int64_t end = a->begin + (count - 1) * a->step + 1;
    if (need[0])
        dx[0] = stint_slice(g, dy[0], (int)a->axis, a->begin, end, a->step);
    return STINT_OK;
}

static void print_pad(const sti_node *node, sti_text *out)
{
    const pad_attr *a = node->attr;
    sti_text_printf(out, "axis %" PRId64 " at %" PRId64 " by %" PRId64 " of %" PRId64,
                    a->axis, a->begin, a->step, a->length);
}

const sti_op sti_op_pad = {
    .name = "pad",
    .n_out = 1,
    .attr_bytes = sizeof(pad_attr),
    .infer = infer_pad,
    .grad = grad_pad,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_pad},
    .print = print_pad,
};

stint_value sti_op_pad_axis(stint_graph *g, stint_value x, int axis, int64_t begin,
                            int64_t step, int64_t length)
{
    return sti_op_add1(g, &sti_op_pad, &(pad_attr){axis, begin, step, length}, x);
}
