/* Batch normalisation of bfloat16 activations; see op_batch_norm.c. */
#include <string.h>

#include "base/memory.h"
#include "kernel/norm.h"
#include "kernel/norm_bf16.h"
#include "op/op_bf16_priv.h"

enum { X, SCALE, SHIFT, RESIDUAL, RUN_MEAN, RUN_VARIANCE }; /* inputs */
enum { Y, MEAN, INVERSE, UNBIASED, BITS };                  /* outputs */
enum { DY, GRAD_X, GRAD_SCALE, GRAD_MEAN, GRAD_INVERSE, GRAD_BITS };

/* x [rows, c]. */
static int64_t channels(const stint_shape *x)
{
    return x->dim[x->rank - 1];
}

static int64_t rows(const stint_shape *x)
{
    return stint_shape_count(x) / channels(x);
}

static size_t norm_scratch(const stint_graph *graph, const sti_node *node, int i)
{
    const stint_shape *x = sti_op_in_shape(graph, node, i);
    return STI_ALIGN_UP(sti_norm_bf16_scratch_bytes(rows(x), channels(x)), 64);
}

static stint_status check_rows(const stint_graph *graph, const sti_node *node,
                               int first, int last, const stint_shape *row)
{
    stint_status st = STINT_OK;
    for (int i = first; i <= last && st == STINT_OK; i++)
        st = sti_op_check_shape(graph, node, i, row);
    return st;
}

static stint_status check_images(const stint_graph *graph, const sti_node *node, int i)
{
    stint_status st = sti_op_check_bf16(graph, node, i, 0);
    if (st == STINT_OK && sti_op_in_shape(graph, node, i)->rank < 2)
        st = sti_fail(STINT_E_INPUT, "%s: x is %s, wanted [..., channels]",
                      node->op->name, sti_shape_text(sti_op_in_shape(graph, node, i)));
    return st;
}

static stint_status infer_norm(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const sti_batch_norm_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, attr->eval ? 6 : 4);
    if (st != STINT_OK || (st = check_images(graph, node, X)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, X);
    const stint_shape row = STINT_SHAPE(channels(x));
    if ((st = check_rows(graph, node, SCALE, SHIFT, &row)) != STINT_OK ||
        (attr->has_residual &&
         (st = sti_op_check_shape(graph, node, RESIDUAL, x)) != STINT_OK) ||
        (attr->eval &&
         (st = check_rows(graph, node, RUN_MEAN, RUN_VARIANCE, &row)) != STINT_OK))
        return st;
    out[Y] = *x;
    out[MEAN] = out[INVERSE] = out[UNBIASED] = row;
    out[BITS] = sti_op_bits_shape(x);
    return STINT_OK;
}

/* That of the kernel, then mean and inverse where nobody reads them. */
static size_t forward_scratch(const stint_graph *graph, const sti_node *node,
                              int threads)
{
    (void)threads;
    return norm_scratch(graph, node, X) +
           2 * stint_shape_bytes(sti_op_in_shape(graph, node, SCALE));
}

static sti_cost forward_cost(const stint_graph *graph, const sti_node *node)
{
    const sti_batch_norm_attr *attr = node->attr;
    sti_cost cost = sti_op_cost_bytes(graph, node, attr->eval ? 4.0 : 8.0);
    if (!attr->eval) /* x is read twice */
        cost.read_bytes += (double)stint_shape_bytes(sti_op_in_shape(graph, node, X));
    return cost;
}

/* Running statistics instead of the batch's; the outputs repeat them. */
static void use_running(const sti_call *call, int64_t c, float epsilon, float *inverse)
{
    const size_t bytes = (size_t)c * sizeof(float);
    sti_norm_inverse_f32(c, epsilon, call->in[RUN_VARIANCE], inverse);
    if (call->out[MEAN])
        memcpy(call->out[MEAN], call->in[RUN_MEAN], bytes);
    if (call->out[UNBIASED])
        memcpy(call->out[UNBIASED], call->in[RUN_VARIANCE], bytes);
}

static void run_norm(const sti_call *call)
{
    const sti_batch_norm_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, X);
    const int64_t n = rows(x), c = channels(x);
    char *spare = (char *)call->scratch + norm_scratch(call->graph, call->node, X);
    float *spare_mean = (float *)(void *)spare;
    float *mean = call->out[MEAN] ? call->out[MEAN] : spare_mean;
    float *inverse = call->out[INVERSE] ? call->out[INVERSE] : spare_mean + c;
    if (attr->eval)
        use_running(call, c, attr->epsilon, inverse);
    else
        sti_norm_bf16_statistics(call->team, n, c, attr->epsilon, call->in[X], mean,
                                 inverse, call->out[UNBIASED], call->scratch);
    const sti_norm_bf16_forward_args args = {
        .rows = n,
        .c = c,
        .relu = attr->relu != 0,
        .x = call->in[X],
        .mean = attr->eval ? call->in[RUN_MEAN] : mean,
        .inv = inverse,
        .scale = call->in[SCALE],
        .shift = call->in[SHIFT],
        .residual = attr->has_residual ? call->in[RESIDUAL] : NULL,
        .y = call->out[Y],
        .bits = call->out[BITS],
    };
    sti_norm_bf16_forward(call->team, &args);
}

static void print_norm(const sti_node *node, sti_text *out)
{
    const sti_batch_norm_attr *attr = node->attr;
    sti_text_printf(out, "epsilon %.9g%s%s%s", (double)attr->epsilon,
                    attr->eval ? " eval" : "", attr->has_residual ? " residual" : "",
                    attr->relu ? " relu" : "");
}

const sti_op sti_op_batch_norm_bf16 = {
    .name = "batch_norm_bf16",
    .n_out = 5,
    .attr_bytes = sizeof(sti_batch_norm_attr),
    .flags = STI_OP_INPLACE_0,
    .optional_out = 1u << MEAN | 1u << INVERSE | 1u << UNBIASED | 1u << BITS,
    .infer = infer_norm,
    .cost = forward_cost,
    .scratch_bytes = forward_scratch,
    .run = {[STI_CPU] = run_norm},
    .print = print_norm,
};

/* ---- the gradient ---- */

/* in: dy, x, scale, mean, inverse, bits or none. out: dx, dscale, dshift, dresidual. */
static stint_status infer_grad(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const sti_batch_norm_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 6);
    if (st != STINT_OK || (st = check_images(graph, node, GRAD_X)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, GRAD_X);
    const stint_shape row = STINT_SHAPE(channels(x)), bits = sti_op_bits_shape(x);
    if ((st = sti_op_check_shape(graph, node, DY, x)) != STINT_OK ||
        (st = check_rows(graph, node, GRAD_SCALE, GRAD_INVERSE, &row)) != STINT_OK ||
        (attr->relu &&
         (st = sti_op_check_shape(graph, node, GRAD_BITS, &bits)) != STINT_OK))
        return st;
    out[X] = out[RESIDUAL] = *x;
    out[SCALE] = out[SHIFT] = row;
    return STINT_OK;
}

static size_t grad_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    (void)threads;
    return norm_scratch(graph, node, GRAD_X);
}

static sti_cost grad_cost(const stint_graph *graph, const sti_node *node)
{
    const sti_batch_norm_attr *attr = node->attr;
    const double x_bytes =
        (double)stint_shape_bytes(sti_op_in_shape(graph, node, GRAD_X));
    sti_cost cost = sti_op_cost_bytes(graph, node, 9.0);
    cost.read_bytes += 2.0 * x_bytes; /* x and dy are read twice */
    if (!attr->has_residual || !attr->relu)
        cost.write_bytes -= x_bytes;
    return cost;
}

static void run_grad(const sti_call *call)
{
    const sti_batch_norm_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, GRAD_X);
    const sti_norm_bf16_backward_args args = {
        .rows = rows(x),
        .c = channels(x),
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
    .cost = grad_cost,
    .scratch_bytes = grad_scratch,
    .run = {[STI_CPU] = run_grad},
    .print = print_norm,
};
