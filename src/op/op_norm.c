/* What batch normalisation of float32 and of bfloat16 activations share. */
#include "op/op_norm_priv.h"

#include <string.h>

#include "base/memory.h"
#include "kernel/norm/norm.h"
#include "op/op_bf16_priv.h"

/* ---- shapes ---- */

stint_status sti_norm_check_x(const stint_graph *graph, const sti_node *node, int i,
                              stint_dtype type)
{
    stint_status st = type == STINT_BF16 ? sti_op_check_bf16(graph, node, i, 0)
                                         : sti_op_check_f32(graph, node, i);
    if (st == STINT_OK && sti_op_in_shape(graph, node, i)->rank < 2)
        st = sti_fail(STINT_E_INPUT, "%s: x is %s, wanted [..., channels]",
                      node->op->name, sti_shape_text(sti_op_in_shape(graph, node, i)));
    return st;
}

static stint_status check_rows(const stint_graph *graph, const sti_node *node,
                               int first, int last, const stint_shape *row)
{
    stint_status st = STINT_OK;
    for (int i = first; i <= last && st == STINT_OK; i++)
        st = sti_op_check_shape(graph, node, i, row);
    return st;
}

stint_status sti_norm_infer(const stint_graph *graph, const sti_node *node,
                            stint_dtype type, stint_shape *out)
{
    const sti_batch_norm_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, attr->eval ? 6 : 4);
    if (st != STINT_OK || (st = sti_norm_check_x(graph, node, X, type)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, X);
    const stint_shape row = STINT_SHAPE(sti_norm_channels(x));
    if ((st = check_rows(graph, node, SCALE, SHIFT, &row)) != STINT_OK ||
        (attr->has_residual &&
         (st = sti_op_check_shape(graph, node, RESIDUAL, x)) != STINT_OK) ||
        (attr->eval &&
         (st = check_rows(graph, node, RUN_MEAN, RUN_VARIANCE, &row)) != STINT_OK))
        return st;
    if (!attr->eval && sti_norm_rows(x) < 2)
        return sti_fail(STINT_E_INPUT,
                        "%s: x is %s, one value a channel, which has no deviation; "
                        "train with at least 2 images a shard (larger batch or fewer "
                        "shards)",
                        node->op->name, sti_shape_text(x));
    out[Y] = *x;
    out[MEAN] = out[INVERSE] = out[UNBIASED] = row;
    out[BITS] = sti_op_bits_shape(x);
    return STINT_OK;
}

stint_status sti_norm_infer_grad(const stint_graph *graph, const sti_node *node,
                                 stint_dtype type, stint_shape *out)
{
    const sti_batch_norm_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 6);
    if (st != STINT_OK ||
        (st = sti_norm_check_x(graph, node, GRAD_X, type)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, GRAD_X);
    const stint_shape row = STINT_SHAPE(sti_norm_channels(x));
    const stint_shape bits = sti_op_bits_shape(x);
    if ((st = sti_op_check_shape(graph, node, DY, x)) != STINT_OK ||
        (st = check_rows(graph, node, GRAD_SCALE, GRAD_INVERSE, &row)) != STINT_OK ||
        (attr->relu &&
         (st = sti_op_check_shape(graph, node, GRAD_BITS, &bits)) != STINT_OK))
        return st;
    out[X] = out[RESIDUAL] = *x;
    out[SCALE] = out[SHIFT] = row;
    return STINT_OK;
}

/* ---- cost ---- */

sti_cost sti_norm_cost(const stint_graph *graph, const sti_node *node)
{
    const sti_batch_norm_attr *attr = node->attr;
    sti_cost cost = sti_op_cost_bytes(graph, node, attr->eval ? 4.0 : 9.0);
    if (!attr->eval) /* x is read twice */
        cost.read_bytes += (double)stint_shape_bytes(sti_op_in_shape(graph, node, X));
    return cost;
}

sti_cost sti_norm_grad_cost(const stint_graph *graph, const sti_node *node)
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

void sti_norm_print(const sti_node *node, sti_text *out)
{
    const sti_batch_norm_attr *attr = node->attr;
    sti_text_printf(out, "epsilon %.9g%s%s%s", (double)attr->epsilon,
                    attr->eval ? " eval" : "", attr->has_residual ? " residual" : "",
                    attr->relu ? " relu" : "");
}

/* ---- where statistics lie ---- */

size_t sti_norm_forward_scratch(const stint_graph *graph, const sti_node *node,
                                size_t kernel_bytes)
{
    return STI_ALIGN_UP(kernel_bytes, 64) +
           2 * stint_shape_bytes(sti_op_in_shape(graph, node, SCALE));
}

sti_norm_places sti_norm_place(const sti_call *call, size_t kernel_bytes)
{
    const sti_batch_norm_attr *attr = call->node->attr;
    const int64_t c = sti_norm_channels(sti_op_in_shape(call->graph, call->node, X));
    const size_t bytes = (size_t)c * sizeof(float);
    void *spare = (char *)call->scratch + STI_ALIGN_UP(kernel_bytes, 64);
    float *spare_mean = spare;
    sti_norm_places at = {.mean = call->out[MEAN] ? call->out[MEAN] : spare_mean,
                          .inverse =
                              call->out[INVERSE] ? call->out[INVERSE] : spare_mean + c};
    at.used_mean = at.mean;
    if (!attr->eval)
        return at;
    at.used_mean = call->in[RUN_MEAN];
    sti_norm_inverse_f32(c, attr->epsilon, call->in[RUN_VARIANCE], at.inverse);
    if (call->out[MEAN])
        memcpy(call->out[MEAN], call->in[RUN_MEAN], bytes);
    if (call->out[UNBIASED])
        memcpy(call->out[UNBIASED], call->in[RUN_VARIANCE], bytes);
    return at;
}
