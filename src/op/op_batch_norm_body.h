/* Forward and gradient of batch normalisation for one type of activations; see
 * op_batch_norm.c. Included where these are defined: NORM_TYPE, and of its kernel
 * NORM_SCRATCH_BYTES, NORM_STATISTICS, NORM_FORWARD with NORM_FORWARD_ARGS, and
 * NORM_BACKWARD with NORM_BACKWARD_ARGS. */
#include "op/op_norm_priv.h"

static size_t kernel_bytes(const stint_shape *x)
{
    return NORM_SCRATCH_BYTES(sti_norm_rows(x), sti_norm_channels(x));
}

static stint_status infer_norm(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    return sti_norm_infer(graph, node, NORM_TYPE, out);
}

static size_t norm_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    (void)threads;
    return sti_norm_forward_scratch(graph, node,
                                    kernel_bytes(sti_op_in_shape(graph, node, X)));
}

static void run_norm(const sti_call *call)
{
    const sti_batch_norm_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, X);
    const int64_t n = sti_norm_rows(x), c = sti_norm_channels(x);
    const sti_norm_places at = sti_norm_place(call, kernel_bytes(x));
    if (!attr->eval)
        NORM_STATISTICS(call->team, n, c, attr->epsilon, call->in[X], at.mean,
                        at.inverse, call->out[UNBIASED], call->scratch);
    const NORM_FORWARD_ARGS args = {
        .rows = n,
        .c = c,
        .relu = attr->relu != 0,
        .x = call->in[X],
        .mean = at.used_mean,
        .inv = at.inverse,
        .scale = call->in[SCALE],
        .shift = call->in[SHIFT],
        .residual = attr->has_residual ? call->in[RESIDUAL] : NULL,
        .y = call->out[Y],
        .bits = call->out[BITS],
    };
    NORM_FORWARD(call->team, &args);
}

/* in: dy, x, scale, mean, inverse, bits or none. out: dx, dscale, dshift, dresidual. */
static stint_status infer_grad(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    return sti_norm_infer_grad(graph, node, NORM_TYPE, out);
}

static size_t grad_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    (void)threads;
    return kernel_bytes(sti_op_in_shape(graph, node, GRAD_X));
}

static void run_grad(const sti_call *call)
{
    const sti_batch_norm_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, GRAD_X);
    const NORM_BACKWARD_ARGS args = {
        .rows = sti_norm_rows(x),
        .c = sti_norm_channels(x),
        .dy = call->in[DY],
        .x = call->in[GRAD_X],
        .scale = call->in[GRAD_SCALE],
        .mean = call->in[GRAD_MEAN],
        .inv = call->in[GRAD_INVERSE],
        .bits = attr->relu ? call->in[GRAD_BITS] : NULL,
        .dx = call->out[X],
        .dscale = call->out[SCALE],
        .dshift = call->out[SHIFT],
        .dresidual = call->out[RESIDUAL],
    };
    NORM_BACKWARD(call->team, &args, call->scratch);
}
