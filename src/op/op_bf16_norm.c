/* Batch normalisation of bfloat16 activations; see op_batch_norm.c. */
#include "kernel/norm_bf16.h"
#include "op/op_bf16_priv.h"
#include "op/op_norm_priv.h"

static size_t kernel_bytes(const stint_shape *x)
{
    return sti_norm_bf16_scratch_bytes(sti_norm_rows(x), sti_norm_channels(x));
}

static stint_status infer_norm(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    return sti_norm_infer(graph, node, STINT_BF16, out);
}

static size_t forward_scratch(const stint_graph *graph, const sti_node *node,
                              int threads)
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
        sti_norm_bf16_statistics(call->team, n, c, attr->epsilon, call->in[X], at.mean,
                                 at.inverse, call->out[UNBIASED], call->scratch);
    const sti_norm_bf16_forward_args args = {
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
    sti_norm_bf16_forward(call->team, &args);
}

const sti_op sti_op_batch_norm_bf16 = {
    .name = "batch_norm_bf16",
    .n_out = 5,
    .attr_bytes = sizeof(sti_batch_norm_attr),
    .flags = STI_OP_INPLACE_0,
    .optional_out = 1u << MEAN | 1u << INVERSE | 1u << UNBIASED | 1u << BITS,
    .infer = infer_norm,
    .cost = sti_norm_cost,
    .scratch_bytes = forward_scratch,
    .run = {[STI_CPU] = run_norm},
    .print = sti_norm_print,
};

/* ---- the gradient ---- */

/* in: dy, x, scale, mean, inverse, bits or none. out: dx, dscale, dshift, dresidual. */
static stint_status infer_grad(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    return sti_norm_infer_grad(graph, node, STINT_BF16, out);
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
    const sti_norm_bf16_backward_args args = {
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
    sti_norm_bf16_backward(call->team, &args, call->scratch);
}

const sti_op sti_op_batch_norm_bf16_grad = {
    .name = "batch_norm_bf16_grad",
    .n_out = 4,
    .attr_bytes = sizeof(sti_batch_norm_attr),
    .flags = STI_OP_INPLACE_0 | STI_OP_INPLACE_1,
    .optional_out = 1u << X | 1u << SCALE | 1u << SHIFT | 1u << RESIDUAL,
    .infer = infer_grad,
    .cost = sti_norm_grad_cost,
    .scratch_bytes = grad_scratch,
    .run = {[STI_CPU] = run_grad},
    .print = sti_norm_print,
};
