#include "op/op_planar.h"

#include <inttypes.h>

#include "kernel/conv/conv.h"
#include "op/op_priv.h"

static int64_t groups_of(int64_t n)
{
    const int64_t lanes = sti_planar_lanes(n);
    return (n + lanes - 1) / lanes;
}

static stint_status check_rank(const stint_graph *graph, const sti_node *node,
                               const char *layout)
{
    stint_status st = sti_op_check_f32(graph, node, 0);
    if (st != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    return x->rank == 4 ? STINT_OK
                        : sti_fail(STINT_E_INPUT, "%s: x is %s, wanted %s",
                                   node->op->name, sti_shape_text(x), layout);
}

/* ---- layouts ---- */

static stint_status infer_from(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = check_rank(graph, node, "[n, h, w, c]")) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    out[0] = STINT_SHAPE(groups_of(x->dim[0]) * x->dim[3], x->dim[1], x->dim[2],
                         sti_planar_lanes(x->dim[0]));
    return STINT_OK;
}

static void run_from(const sti_call *call)
{
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    sti_planar_from_f32(call->team, x->dim[0], x->dim[1] * x->dim[2], x->dim[3],
                        sti_planar_lanes(x->dim[0]), call->in[0], call->out[0]);
}

const sti_op sti_op_planar_from = {
    .name = "planar_from",
    .n_out = 1,
    .flags = STI_OP_NO_GRAD,
    .infer = infer_from,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_from},
};

static stint_status infer_to(const stint_graph *graph, const sti_node *node,
                             stint_shape *out)
{
    const sti_planar_to_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK ||
        (st = check_rank(graph, node, "[groups * c, h, w, lanes]")) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    const int64_t groups = groups_of(attr->n);
    if (groups < 1 || x->dim[0] % groups || x->dim[3] != sti_planar_lanes(attr->n))
        return sti_fail(STINT_E_INPUT, "planar_to: %s are no %" PRId64 " images",
                        sti_shape_text(x), attr->n);
    out[0] = STINT_SHAPE(attr->n, x->dim[1], x->dim[2], x->dim[0] / groups);
    return STINT_OK;
}

static void run_to(const sti_call *call)
{
    const stint_shape *y = sti_op_out_shape(call->graph, call->node, 0);
    sti_planar_to_f32(call->team, y->dim[0], y->dim[1] * y->dim[2], y->dim[3],
                      sti_planar_lanes(y->dim[0]), call->in[0], call->out[0]);
}

const sti_op sti_op_planar_to = {
    .name = "planar_to",
    .n_out = 1,
    .attr_bytes = sizeof(sti_planar_to_attr),
    .flags = STI_OP_NO_GRAD,
    .infer = infer_to,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_to},
};

/* ---- convolution ---- */

enum { X, PACKED, SCALE, SHIFT, RESIDUAL };

sti_planar_shape sti_op_planar_shape(const sti_planar_conv_attr *a, int64_t h,
                                     int64_t w)
{
    return (sti_planar_shape){.n = a->n,
                              .h = h,
                              .w = w,
                              .channels = a->channels,
                              .filters = a->filters,
                              .kh = a->kh,
                              .kw = a->kw,
                              .stride = a->stride,
                              .pad = a->pad,
                              .pool = a->pool,
                              .oh = sti_conv_out_length(h, a->kh, a->stride, a->pad),
                              .ow = sti_conv_out_length(w, a->kw, a->stride, a->pad)};
}

static sti_planar_plan plan_of(const stint_graph *graph, const sti_node *node,
                               int threads)
{
    const sti_planar_conv_attr *a = node->attr;
    const stint_shape *x = sti_op_in_shape(graph, node, X);
    const sti_planar_shape shape = sti_op_planar_shape(a, x->dim[1], x->dim[2]);
    return sti_planar_plan_of(&shape, &a->zeros, threads);
}

static stint_status check_rows(const stint_graph *graph, const sti_node *node,
                               const stint_shape *y)
{
    const sti_planar_conv_attr *a = node->attr;
    const stint_shape row = STINT_SHAPE(a->filters);
    stint_status st = STINT_OK;
    for (int i = SCALE; i <= SHIFT && st == STINT_OK; i++)
        if (sti_op_has_in(node, i))
            st = sti_op_check_shape(graph, node, i, &row);
    if (st == STINT_OK && sti_op_has_in(node, RESIDUAL))
        st = sti_op_check_shape(graph, node, RESIDUAL, y);
    if (st == STINT_OK && sti_op_has_in(node, SCALE) && !sti_op_has_in(node, SHIFT))
        st = sti_fail(STINT_E_INPUT, "planar_conv: a scale wants a shift");
    return st;
}

static stint_status infer_conv(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const sti_planar_conv_attr *a = node->attr;
    stint_status st = sti_op_check_count(node, 5);
    if (st != STINT_OK ||
        (st = check_rank(graph, node, "[groups * c, h, w, lanes]")) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, X);
    const stint_shape *packed = sti_op_in_shape(graph, node, PACKED);
    const sti_planar_plan p = plan_of(graph, node, 1);
    if (x->dim[0] != p.groups * a->channels || x->dim[3] != p.lanes || p.shape.oh < 1 ||
        p.shape.ow < 1)
        return sti_fail(STINT_E_INPUT,
                        "planar_conv: x is %s, wanted %" PRId64 " images of %" PRId64
                        " channels that kernels of %" PRId64 " x %" PRId64 " fit into",
                        sti_shape_text(x), a->n, a->channels, a->kh, a->kw);
    if (packed->dtype != STINT_U8 || stint_shape_bytes(packed) != p.weights_bytes)
        return sti_fail(STINT_E_INPUT, "planar_conv: weights of %s, wanted %zu bytes",
                        sti_shape_text(packed), p.weights_bytes);
    if (a->pool && (!p.outer || p.shape.oh < 2 || p.shape.ow < 2))
        return sti_fail(STINT_E_BUG, "planar_conv: pools what it cannot");
    out[0] = STINT_SHAPE(p.groups * a->filters, p.shape.oh, p.shape.ow, p.lanes);
    st = check_rows(graph, node, &out[0]);
    if (a->pool) {
        out[0].dim[1] /= 2;
        out[0].dim[2] /= 2;
    }
    return st;
}

static sti_cost cost_conv(const stint_graph *graph, const sti_node *node)
{
    const sti_planar_conv_attr *a = node->attr;
    const stint_shape *y = sti_op_out_shape(graph, node, 0);
    sti_cost cost = sti_op_cost_bytes(graph, node, 0.0);
    const double pixels = (double)(y->dim[1] * y->dim[2] * a->n) * (a->pool ? 4 : 1);
    cost.flop = 2.0 * (double)a->zeros.kept * pixels;
    return cost;
}

static size_t scratch_conv(const stint_graph *graph, const sti_node *node, int threads)
{
    return plan_of(graph, node, threads).scratch_bytes;
}

static void run_conv(const sti_call *call)
{
    const sti_planar_conv_attr *a = call->node->attr;
    const sti_planar_plan p = plan_of(call->graph, call->node, call->team->threads);
    const sti_planar_epilogue epilogue = {
        .scale = sti_op_has_in(call->node, SCALE) ? call->in[SCALE] : NULL,
        .shift = sti_op_has_in(call->node, SHIFT) ? call->in[SHIFT] : NULL,
        .residual = sti_op_has_in(call->node, RESIDUAL) ? call->in[RESIDUAL] : NULL,
        .relu = a->relu != 0};
    sti_planar_conv_f32(call->team, &p, call->in[X], call->in[PACKED], &epilogue,
                        call->out[0], call->scratch);
}

static void print_conv(const sti_node *node, sti_text *out)
{
    const sti_planar_conv_attr *a = node->attr;
    sti_text_printf(out,
                    "%" PRId64 " x %" PRId64 " stride %" PRId64 " pad %" PRId64
                    " kept %" PRId64 " of %" PRId64 "%s%s",
                    a->kh, a->kw, a->stride, a->pad, a->zeros.kept,
                    a->kh * a->kw * a->channels * a->filters, a->relu ? " relu" : "",
                    a->pool ? " pool" : "");
}

const sti_op sti_op_planar_conv = {
    .name = "planar_conv",
    .n_out = 1,
    .attr_bytes = sizeof(sti_planar_conv_attr),
    .flags = STI_OP_NO_GRAD,
    .infer = infer_conv,
    .cost = cost_conv,
    .scratch_bytes = scratch_conv,
    .run = {[STI_CPU] = run_conv},
    .print = print_conv,
};

/* ---- builders ---- */

stint_value sti_op_add_planar_from(stint_graph *g, stint_value x)
{
    return sti_op_add1(g, &sti_op_planar_from, NULL, x);
}

stint_value sti_op_add_planar_to(stint_graph *g, stint_value planar, int64_t n)
{
    return sti_op_add1(g, &sti_op_planar_to, &(sti_planar_to_attr){n}, planar);
}

stint_value sti_op_add_planar_conv(stint_graph *g, const sti_planar_conv_attr *attr,
                                   const stint_value in[5])
{
    return sti_graph_add(g, &sti_op_planar_conv, attr, 5, in);
}
