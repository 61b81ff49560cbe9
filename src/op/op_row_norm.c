/* Layer-norm and RMS-norm over the last axis. Backward reads x again; all that is saved
 * beside it is a mean and an inverse deviation a row. */
#include "base/memory.h"
#include "kernel/norm/row_norm.h"
#include "op/op_priv.h"

/* layer_norm: x, scale, shift -> y, mean, inv.  rms_norm: x, scale -> y, inv.
 * layer_norm_grad: dy, x, scale, mean, inv -> dx, dscale, dshift.
 * rms_norm_grad: dy, x, scale, inv -> dx, dscale. */

static int64_t last(const stint_shape *x)
{
    return x->dim[x->rank - 1];
}

static stint_shape rows_shape(const stint_shape *x)
{
    const int64_t rows = last(x) ? stint_shape_count(x) / last(x) : 0;
    return STINT_SHAPE(rows);
}

/* x, scale and (layer) shift. */
static stint_status check_inputs(const stint_graph *graph, const sti_node *node, int x,
                                 bool shift)
{
    stint_status st = sti_op_check_f32(graph, node, x);
    if (st != STINT_OK)
        return st;
    const stint_shape *shape = sti_op_in_shape(graph, node, x);
    if (shape->rank < 1 || last(shape) < 1)
        return sti_fail(STINT_E_INPUT, "%s: x is %s, wanted [..., n]", node->op->name,
                        sti_shape_text(shape));
    const stint_shape row = STINT_SHAPE(last(shape));
    st = sti_op_check_shape(graph, node, x + 1, &row);
    return st == STINT_OK && shift ? sti_op_check_shape(graph, node, x + 2, &row) : st;
}

static stint_status infer_norm(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const bool layer = node->op == &sti_op_layer_norm;
    stint_status st = sti_op_check_count(node, layer ? 3 : 2);
    if (st != STINT_OK || (st = check_inputs(graph, node, 0, layer)) != STINT_OK)
        return st;
    out[0] = *sti_op_in_shape(graph, node, 0);
    out[1] = rows_shape(&out[0]);
    if (layer)
        out[2] = out[1];
    return STINT_OK;
}

static stint_status infer_norm_grad(const stint_graph *graph, const sti_node *node,
                                    stint_shape *out)
{
    const bool layer = node->op == &sti_op_layer_norm_grad;
    stint_status st = sti_op_check_count(node, layer ? 5 : 4);
    if (st != STINT_OK || (st = check_inputs(graph, node, 1, false)) != STINT_OK)
        return st;
    out[0] = *sti_op_in_shape(graph, node, 1);
    out[1] = *sti_op_in_shape(graph, node, 2);
    if (layer)
        out[2] = out[1];
    const stint_shape rows = rows_shape(&out[0]);
    if ((st = sti_op_check_shape(graph, node, 0, &out[0])) != STINT_OK ||
        (st = sti_op_check_shape(graph, node, 3, &rows)) != STINT_OK)
        return st;
    return layer ? sti_op_check_shape(graph, node, 4, &rows) : STINT_OK;
}

static sti_row_norm args_of(const sti_call *call, int x)
{
    const sti_row_norm_attr *attr = call->node->attr;
    const stint_shape *shape = sti_op_in_shape(call->graph, call->node, x);
    return (sti_row_norm){.rows = rows_shape(shape).dim[0],
                          .n = last(shape),
                          .epsilon = attr->epsilon,
                          .scale = call->in[x + 1]};
}

/* Statistics that nobody reads. */
static size_t norm_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    const stint_shape rows = rows_shape(sti_op_in_shape(graph, node, 0));
    (void)threads;
    return 2 * STI_ALIGN_UP(stint_shape_bytes(&rows), 64);
}

static void run_layer_norm(const sti_call *call)
{
    sti_row_norm args = args_of(call, 0);
    float *spare = call->scratch;
    args.shift = call->in[2];
    sti_row_norm_f32(call->team, &args, call->in[0], call->out[0],
                     call->out[1] ? call->out[1] : spare,
                     call->out[2] ? call->out[2] : spare + args.rows);
}

static void run_rms_norm(const sti_call *call)
{
    const sti_row_norm args = args_of(call, 0);
    sti_row_norm_f32(call->team, &args, call->in[0], call->out[0], NULL,
                     call->out[1] ? call->out[1] : call->scratch);
}

static size_t norm_grad_scratch(const stint_graph *graph, const sti_node *node,
                                int threads)
{
    const stint_shape *x = sti_op_in_shape(graph, node, 1);
    const sti_row_norm args = {.rows = rows_shape(x).dim[0], .n = last(x)};
    (void)threads;
    return sti_row_norm_scratch_bytes(&args);
}

static void run_norm_grad(const sti_call *call)
{
    const bool layer = call->node->op == &sti_op_layer_norm_grad;
    const sti_row_norm args = args_of(call, 1);
    const sti_row_norm_grads grads = {.dx = call->out[0],
                                      .dscale = call->out[1],
                                      .dshift = layer ? call->out[2] : NULL};
    sti_row_norm_grad_f32(call->team, &args, call->in[0], call->in[1],
                          layer ? call->in[3] : NULL, call->in[layer ? 4 : 3], &grads,
                          call->scratch);
}

static stint_status grad_layer_norm(stint_graph *g, const sti_node *node,
                                    const stint_value *dy, const bool *need,
                                    stint_value *dx)
{
    const stint_value in[5] = {dy[0], node->in[0], node->in[1], node->out[1],
                               node->out[2]};
    const stint_value first =
        sti_graph_add(g, &sti_op_layer_norm_grad, node->attr, 5, in);
    for (int i = 0; i < 3; i++)
        if (need[i] && first >= 0)
            dx[i] = first + i;
    return STINT_OK;
}

static stint_status grad_rms_norm(stint_graph *g, const sti_node *node,
                                  const stint_value *dy, const bool *need,
                                  stint_value *dx)
{
    const stint_value in[4] = {dy[0], node->in[0], node->in[1], node->out[1]};
    const stint_value first =
        sti_graph_add(g, &sti_op_rms_norm_grad, node->attr, 4, in);
    for (int i = 0; i < 2; i++)
        if (need[i] && first >= 0)
            dx[i] = first + i;
    return STINT_OK;
}

/* The gradients in primitive operators: with z = dy scale and n = (x - mean) inverse,
 *     dx = inverse (z - mean(z) - n mean(z n)), without the first mean for RMS-norm.
 * The statistics are made from x again, so that the gradient of this gradient finds all
 * of x; the inputs for them are then not read. */
static stint_status expand_norm_grad(stint_graph *g, const sti_node *node,
                                     stint_value *out)
{
    const sti_row_norm_attr *attr = node->attr;
    const bool layer = node->op == &sti_op_layer_norm_grad;
    const stint_shape row = *sti_op_in_shape(g, node, 2);
    const unsigned axis = 1u << (sti_op_in_shape(g, node, 1)->rank - 1);
    const stint_value dy = node->in[0];
    stint_value x = node->in[1];
    if (layer)
        x = stint_sub(g, x, stint_mean(g, x, axis, true));
    const stint_value power = stint_mean(g, stint_square(g, x), axis, true);
    const stint_value inverse =
        stint_reciprocal(g, stint_sqrt(g, stint_add_scalar(g, power, attr->epsilon)));
    const stint_value n = stint_mul(g, x, inverse);
    const stint_value z = stint_mul(g, dy, node->in[2]);
    const stint_value along =
        stint_mul(g, n, stint_mean(g, stint_mul(g, z, n), axis, true));
    stint_value rest = stint_sub(g, z, along);
    if (layer)
        rest = stint_sub(g, rest, stint_mean(g, z, axis, true));
    out[0] = stint_mul(g, rest, inverse);
    out[1] = sti_op_reduce_to(g, stint_mul(g, dy, n), &row);
    if (layer)
        out[2] = sti_op_reduce_to(g, dy, &row);
    return STINT_OK;
}

static sti_cost cost_norm(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 8.0);
}

static sti_cost cost_norm_grad(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 16.0);
}

static void print_norm(const sti_node *node, sti_text *out)
{
    const sti_row_norm_attr *attr = node->attr;
    sti_text_printf(out, "epsilon %.9g", (double)attr->epsilon);
}

#define NORM_ROW(row, outs, optional, gradient, ...) \
    const sti_op sti_op_##row = {                    \
        .name = #row,                                \
        .n_out = (outs),                             \
        .optional_out = (optional),                  \
        .attr_bytes = sizeof(sti_row_norm_attr),     \
        .infer = infer_norm##gradient,               \
        .cost = cost_norm##gradient,                 \
        .scratch_bytes = norm##gradient##_scratch,   \
        .print = print_norm,                         \
        __VA_ARGS__,                                 \
    };

NORM_ROW(layer_norm, 3, 6, , .flags = STI_OP_INPLACE_0, .grad = grad_layer_norm,
         .run = {[STI_CPU] = run_layer_norm})
NORM_ROW(rms_norm, 2, 2, , .flags = STI_OP_INPLACE_0, .grad = grad_rms_norm,
         .run = {[STI_CPU] = run_rms_norm})
NORM_ROW(layer_norm_grad, 3, 0, _grad, .flags = STI_OP_INPLACE_0,
         .expand = expand_norm_grad, .run = {[STI_CPU] = run_norm_grad})
NORM_ROW(rms_norm_grad, 2, 0, _grad, .flags = STI_OP_INPLACE_0,
         .expand = expand_norm_grad, .run = {[STI_CPU] = run_norm_grad})

/* ---- builders ---- */

static stint_value norm_param(stint_graph *g, stint_value x, const char *name,
                              stint_init init)
{
    const stint_shape shape = stint_value_shape(g, x);
    const int64_t n = shape.rank > 0 ? last(&shape) : 1;
    const stint_shape row = STINT_SHAPE(n);
    return stint_param(g, name, &row,
                       &(stint_param_desc){.init = init, .no_decay = true});
}

stint_value stint_layer_norm(stint_graph *g, stint_value x, float epsilon)
{
    const sti_row_norm_attr attr = {epsilon > 0.0f ? epsilon : 1e-5f};
    if (x < 0)
        return -1;
    const stint_value in[3] = {x, norm_param(g, x, "scale", STINT_INIT_ONE),
                               norm_param(g, x, "shift", STINT_INIT_ZERO)};
    return sti_graph_add(g, &sti_op_layer_norm, &attr, 3, in);
}

stint_value stint_rms_norm(stint_graph *g, stint_value x, float epsilon)
{
    const sti_row_norm_attr attr = {epsilon > 0.0f ? epsilon : 1e-5f};
    if (x < 0)
        return -1;
    const stint_value in[2] = {x, norm_param(g, x, "scale", STINT_INIT_ONE)};
    return sti_graph_add(g, &sti_op_rms_norm, &attr, 2, in);
}
