/* Batch normalisation with fused residual add and ReLU, and its gradient. Backward
 * reads x again and saves nothing of its size: the normalised x is made anew from the
 * [c] statistics, and a fused ReLU is saved as sign bits. */
#include "kernel/norm/norm.h"
#include "op/op_priv.h"

#define NORM_TYPE          STINT_F32
#define NORM_SCRATCH_BYTES sti_norm_scratch_bytes
#define NORM_STATISTICS    sti_norm_statistics_f32
#define NORM_FORWARD       sti_norm_forward_f32
#define NORM_FORWARD_ARGS  sti_norm_forward
#define NORM_BACKWARD      sti_norm_backward_f32
#define NORM_BACKWARD_ARGS sti_norm_backward
#include "op/op_batch_norm_body.h"

/* ---- gradient of the forward ---- */

/* Constants instead of statistics: an affine map of x. */
static void grad_eval(stint_graph *g, const sti_node *node, stint_value d,
                      const bool *need, stint_value *dx)
{
    const sti_batch_norm_attr *attr = node->attr;
    const stint_shape row = *sti_op_in_shape(g, node, SCALE);
    stint_value variance = stint_add_scalar(g, node->in[RUN_VARIANCE], attr->epsilon);
    stint_value inverse = stint_reciprocal(g, stint_sqrt(g, variance));
    if (need[X])
        dx[X] = stint_mul(g, d, stint_mul(g, node->in[SCALE], inverse));
    if (need[SCALE]) {
        stint_value centred = stint_sub(g, node->in[X], node->in[RUN_MEAN]);
        stint_value normal = stint_mul(g, centred, inverse);
        dx[SCALE] = sti_op_reduce_to(g, stint_mul(g, d, normal), &row);
    }
    if (need[SHIFT])
        dx[SHIFT] = sti_op_reduce_to(g, d, &row);
    if (attr->has_residual && need[RESIDUAL])
        dx[RESIDUAL] = d;
}

static stint_status grad_batch_norm(stint_graph *g, const sti_node *node,
                                    const stint_value *dy, const bool *need,
                                    stint_value *dx)
{
    const sti_batch_norm_attr *attr = node->attr;
    if (dy[MEAN] >= 0 || dy[INVERSE] >= 0 || dy[UNBIASED] >= 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "batch_norm in %s: no gradient through the statistics that it "
                        "gives out; compute them with stint_mean",
                        node->scope);
    if (dy[Y] < 0)
        return STINT_OK;
    if (attr->eval) {
        stint_value d = dy[Y];
        if (attr->relu)
            d = sti_op_add2(g, &sti_op_relu_grad, NULL, d, node->out[BITS]);
        grad_eval(g, node, d, need, dx);
        return STINT_OK;
    }
    const stint_value in[6] = {dy[Y],
                               node->in[X],
                               node->in[SCALE],
                               node->out[MEAN],
                               node->out[INVERSE],
                               attr->relu ? node->out[BITS] : STI_NO_INPUT};
    const stint_value d = sti_graph_add(g, &sti_op_batch_norm_grad, attr, 6, in);
    if (d < 0)
        return STINT_OK; /* the graph has the failure */
    for (int i = X; i <= SHIFT; i++)
        if (need[i])
            dx[i] = d + i;
    if (attr->has_residual && need[RESIDUAL])
        dx[RESIDUAL] = attr->relu ? d + RESIDUAL : dy[Y];
    return STINT_OK;
}

const sti_op sti_op_batch_norm = {
    .name = "batch_norm",
    .n_out = 5,
    .attr_bytes = sizeof(sti_batch_norm_attr),
    .flags = STI_OP_INPLACE_0,
    .optional_out = 1u << MEAN | 1u << INVERSE | 1u << UNBIASED | 1u << BITS,
    .infer = infer_norm,
    .grad = grad_batch_norm,
    .cost = sti_norm_cost,
    .scratch_bytes = norm_scratch,
    .run = {[STI_CPU] = run_norm},
    .print = sti_norm_print,
};

/* ---- the gradient as an operator ---- */

/* The same in primitive operators. The statistics are made from x again, so that the
 * gradient of this gradient finds all of x; the inputs mean and inverse are then not
 * read. */
static stint_status expand_grad(stint_graph *g, const sti_node *node, stint_value *out)
{
    const sti_batch_norm_attr *attr = node->attr;
    const stint_shape shape = *sti_op_in_shape(g, node, GRAD_X);
    const unsigned axes = (1u << (shape.rank - 1)) - 1u;
    const stint_value x = node->in[GRAD_X];
    stint_value z = node->in[DY];
    if (attr->relu)
        z = sti_op_add2(g, &sti_op_relu_grad, NULL, z, node->in[GRAD_BITS]);

    const stint_value centred = stint_sub(g, x, stint_mean(g, x, axes, true));
    stint_value variance = stint_mean(g, stint_square(g, centred), axes, true);
    variance = stint_add_scalar(g, variance, attr->epsilon);
    const stint_value inverse = stint_reciprocal(g, stint_sqrt(g, variance));
    const stint_value normal = stint_mul(g, centred, inverse);
    const stint_value cross = stint_mul(g, z, normal);

    const stint_value along = stint_mul(g, normal, stint_mean(g, cross, axes, true));
    const stint_value rest =
        stint_sub(g, stint_sub(g, z, stint_mean(g, z, axes, true)), along);
    out[X] = stint_mul(g, rest, stint_mul(g, inverse, node->in[GRAD_SCALE]));
    out[SCALE] = stint_sum(g, cross, axes, false);
    out[SHIFT] = stint_sum(g, z, axes, false);
    out[RESIDUAL] = z;
    return STINT_OK;
}

const sti_op sti_op_batch_norm_grad = {
    .name = "batch_norm_grad",
    .n_out = 4,
    .attr_bytes = sizeof(sti_batch_norm_attr),
    .flags = STI_OP_INPLACE_0 | STI_OP_INPLACE_1,
    .optional_out = 1u << X | 1u << SCALE | 1u << SHIFT | 1u << RESIDUAL,
    .infer = infer_grad,
    .expand = expand_grad,
    .cost = sti_norm_grad_cost,
    .scratch_bytes = grad_scratch,
    .run = {[STI_CPU] = run_grad},
    .print = sti_norm_print,
};

/* ---- the second half alone, for recomputation ---- */

enum { APPLY_X, APPLY_SCALE, APPLY_SHIFT, APPLY_RESIDUAL, APPLY_MEAN, APPLY_INVERSE };
enum { APPLY_Y, APPLY_BITS };

static stint_status infer_apply(const stint_graph *graph, const sti_node *node,
                                stint_shape *out)
{
    const sti_batch_norm_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 6);
    if (st != STINT_OK ||
        (st = sti_norm_check_x(graph, node, APPLY_X, STINT_F32)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, APPLY_X);
    const stint_shape row = STINT_SHAPE(sti_norm_channels(x));
    static const int rows_at[] = {APPLY_SCALE, APPLY_SHIFT, APPLY_MEAN, APPLY_INVERSE};
    for (int i = 0; i < 4; i++)
        if ((st = sti_op_check_shape(graph, node, rows_at[i], &row)) != STINT_OK)
            return st;
    if (attr->has_residual &&
        (st = sti_op_check_shape(graph, node, APPLY_RESIDUAL, x)) != STINT_OK)
        return st;
    out[APPLY_Y] = *x;
    out[APPLY_BITS] = sti_op_bits_shape(x);
    return STINT_OK;
}

static stint_status expand_apply(stint_graph *g, const sti_node *node, stint_value *out)
{
    const sti_batch_norm_attr *attr = node->attr;
    const stint_value centred = stint_sub(g, node->in[APPLY_X], node->in[APPLY_MEAN]);
    const stint_value gain =
        stint_mul(g, node->in[APPLY_SCALE], node->in[APPLY_INVERSE]);
    stint_value y = stint_add(g, stint_mul(g, centred, gain), node->in[APPLY_SHIFT]);
    if (attr->has_residual)
        y = stint_add(g, y, node->in[APPLY_RESIDUAL]);
    out[APPLY_Y] = attr->relu ? stint_relu(g, y) : y;
    return STINT_OK;
}

static sti_cost apply_cost(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 4.0);
}

static void run_apply(const sti_call *call)
{
    const sti_batch_norm_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, APPLY_X);
    const sti_norm_forward args = {
        .rows = sti_norm_rows(x),
        .c = sti_norm_channels(x),
        .relu = attr->relu != 0,
        .x = call->in[APPLY_X],
        .mean = call->in[APPLY_MEAN],
        .inv = call->in[APPLY_INVERSE],
        .scale = call->in[APPLY_SCALE],
        .shift = call->in[APPLY_SHIFT],
        .residual = attr->has_residual ? call->in[APPLY_RESIDUAL] : NULL,
        .y = call->out[APPLY_Y],
        .bits = call->out[APPLY_BITS],
    };
    sti_norm_forward_f32(call->team, &args);
}

const sti_op sti_op_batch_norm_apply = {
    .name = "batch_norm_apply",
    .n_out = 2,
    .attr_bytes = sizeof(sti_batch_norm_attr),
    .flags = STI_OP_INPLACE_0,
    .optional_out = 1u << APPLY_BITS,
    .infer = infer_apply,
    .expand = expand_apply,
    .cost = apply_cost,
    .run = {[STI_CPU] = run_apply},
    .print = sti_norm_print,
};

/* ---- builder ---- */

stint_value stint_batch_norm(stint_graph *g, stint_value x,
                             const stint_batch_norm_desc *desc)
{
    if (x < 0)
        return -1;
    const stint_shape from = stint_value_shape(g, x);
    if (from.rank < 2)
        return sti_graph_fail(g, sti_fail(STINT_E_INPUT,
                                          "batch_norm: x is %s, wanted [..., channels]",
                                          sti_shape_text(&from)));
    const bool eval = stint_graph_mode(g) == STINT_EVAL || sti_graph_norm_frozen(g);
    const float momentum = desc->momentum > 0.0f ? desc->momentum : 0.1f;
    const stint_shape row = STINT_SHAPE(sti_norm_channels(&from));
    const stint_param_desc one = {.init = STINT_INIT_ONE, .no_decay = true};
    const stint_param_desc zero = {.init = STINT_INIT_ZERO, .no_decay = true};
    const sti_batch_norm_attr attr = {
        .epsilon = desc->epsilon > 0.0f ? desc->epsilon : 1e-5f, .eval = eval};

    stint_value in[6] = {x,
                         stint_param(g, "scale", &row, &one),
                         stint_param(g, "shift", &row, &zero),
                         STI_NO_INPUT,
                         stint_state(g, "mean", &row, 0.0f),
                         stint_state(g, "variance", &row, 1.0f)};
    const stint_value y = sti_graph_add(g, &sti_op_batch_norm, &attr, eval ? 6 : 4, in);
    if (y < 0 || eval)
        return y;
    const sti_output mean = {.kind = STI_OUTPUT_STATE,
                             .value = y + MEAN,
                             .target = in[RUN_MEAN],
                             .name = stint_value_name(g, in[RUN_MEAN]),
                             .momentum = momentum};
    const sti_output variance = {.kind = STI_OUTPUT_STATE,
                                 .value = y + UNBIASED,
                                 .target = in[RUN_VARIANCE],
                                 .name = stint_value_name(g, in[RUN_VARIANCE]),
                                 .momentum = momentum};
    sti_graph_output(g, &mean);
    sti_graph_output(g, &variance);
    return y;
}
