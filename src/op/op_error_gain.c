/* What the policy for error bounds has to know about a gradient
 * (kernel/fold/error_gain.h), found only in the few steps that collect. */
#include <string.h>

#include "kernel/fold/error_gain.h"
#include "kernel/fold/fold.h"
#include "op/op_bf16.h"
#include "op/op_priv.h"

/* FACTOR of batch-norm: the gradient of its scale. */
enum { X, DY, BOUNDS, STATS, FACTOR, BITS };

typedef enum gain_kind { GAIN_CONV, GAIN_DENSE, GAIN_NORM } gain_kind;

typedef struct gain_attr {
    int64_t stride, pad, groups, height, width;
    int32_t row, kind;
} gain_attr;

static bool is_norm(const sti_node *node)
{
    return ((const gain_attr *)node->attr)->kind == GAIN_NORM;
}

static sti_conv_shape conv_shape(const stint_graph *graph, const sti_node *node)
{
    const gain_attr *attr = node->attr;
    const stint_shape *x = sti_op_in_shape(graph, node, X);
    const stint_shape *dy = sti_op_in_shape(graph, node, DY);
    if (attr->kind == GAIN_DENSE)
        return (sti_conv_shape){.n = x->dim[0],
                                .h = 1,
                                .w = 1,
                                .ci = x->dim[1],
                                .co = dy->dim[1],
                                .kh = 1,
                                .kw = 1,
                                .stride = 1,
                                .groups = 1,
                                .oh = 1,
                                .ow = 1};
    return (sti_conv_shape){.n = x->dim[0],
                            .h = x->dim[1],
                            .w = x->dim[2],
                            .ci = x->dim[3],
                            .co = dy->dim[3],
                            .kh = attr->height,
                            .kw = attr->width,
                            .stride = attr->stride,
                            .pad = attr->pad,
                            .groups = attr->groups,
                            .oh = dy->dim[1],
                            .ow = dy->dim[2]};
}

/* The rows of dy of a batch-norm. */
static int64_t columns(const stint_shape *dy)
{
    return dy->dim[dy->rank - 1];
}

/* Both kinds of numbers are taken. */
static stint_status check_numbers(const stint_graph *graph, const sti_node *node, int i)
{
    return sti_op_in_shape(graph, node, i)->dtype == STINT_BF16
               ? STINT_OK
               : sti_op_check_f32(graph, node, i);
}

static stint_status infer_gain(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const gain_attr *attr = node->attr;
    const stint_shape stats = STINT_SHAPE(STI_PACK_STATS);
    stint_status st = sti_op_check_count(node, 6);
    if (st != STINT_OK || (st = check_numbers(graph, node, DY)) != STINT_OK ||
        (st = sti_op_check_f32(graph, node, BOUNDS)) != STINT_OK ||
        (st = sti_op_check_shape(graph, node, STATS, &stats)) != STINT_OK)
        return st;
    const int rank = attr->kind == GAIN_CONV ? 4 : 2;
    out[0] = STINT_SHAPE(STI_GAIN_FIELDS);
    if (is_norm(node))
        return sti_op_check_f32(graph, node, FACTOR);
    if ((st = check_numbers(graph, node, X)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, X);
    if (x->rank != rank || sti_op_in_shape(graph, node, DY)->rank != rank)
        return sti_fail(STINT_E_INPUT, "error_gain: x is %s, wanted rank %d",
                        sti_shape_text(x), rank);
    const stint_shape row = STINT_SHAPE(columns(x));
    return sti_op_has_in(node, FACTOR) ? sti_op_check_shape(graph, node, FACTOR, &row)
                                       : STINT_OK;
}

static size_t gain_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    const stint_shape *dy = sti_op_in_shape(graph, node, DY);
    if (is_norm(node))
        return sti_error_gain_norm_scratch_bytes(stint_shape_count(dy) / columns(dy),
                                                 columns(dy));
    const sti_conv_shape shape = conv_shape(graph, node);
    return sti_error_gain_scratch_bytes(&shape, threads);
}

static sti_gain_values values_of(const sti_call *call, int i)
{
    const stint_shape *shape = sti_op_in_shape(call->graph, call->node, i);
    return shape->dtype == STINT_BF16 ? (sti_gain_values){.bf16 = call->in[i]}
                                      : (sti_gain_values){.f32 = call->in[i]};
}

static double find_gain(const sti_call *call)
{
    const stint_shape *dy = sti_op_in_shape(call->graph, call->node, DY);
    if (is_norm(call->node))
        return sti_error_gain_norm(call->team, stint_shape_count(dy) / columns(dy),
                                   columns(dy), values_of(call, DY), call->in[BITS],
                                   call->scratch);
    const sti_conv_shape shape = conv_shape(call->graph, call->node);
    return sti_error_gain_conv(call->team, &shape, values_of(call, X),
                               values_of(call, DY), call->in[FACTOR], call->scratch);
}

/* An error e in (x - mean) inverse reaches dx as e dscale / rows, beside dy there;
 * where the bit is not set it is coarser. (Channels are taken as of one weight.) */
static double find_reach(const sti_call *call, double gain)
{
    const stint_shape *dy = sti_op_in_shape(call->graph, call->node, DY);
    const float *dscale = call->in[FACTOR];
    const int64_t c = columns(dy), rows = stint_shape_count(dy) / c;
    const double coarse = call->in[BITS] ? 1.0 / (double)sti_fold_coarse(rows) : 1.0;
    const double squares = gain * 3.0 * (double)c; /* of dy, see error_gain.h */
    double sum = 0;
    for (int64_t k = 0; k < c; k++)
        sum += (double)dscale[k] * (double)dscale[k];
    return squares > 0 ? coarse * coarse / 3.0 * sum / ((double)rows * squares) : 0;
}

static void run_gain(const sti_call *call)
{
    const gain_attr *attr = call->node->attr;
    const float *bounds = call->in[BOUNDS], *stats = call->in[STATS];
    float *out = call->out[0];
    memset(out, 0, STI_GAIN_FIELDS * sizeof *out);
    if (bounds[(int64_t)attr->row * STI_BOUND_FIELDS + STI_BOUND_COLLECT] == 0.0f)
        return;
    const double gain = find_gain(call), bound = (double)stats[STI_PACK_BOUND];
    out[STI_GAIN_GAIN] = (float)gain;
    out[STI_GAIN_SQUARE] = (float)(gain * bound * bound);
    if (is_norm(call->node))
        out[STI_GAIN_REACH] = (float)find_reach(call, gain);
}

static void print_gain(const sti_node *node, sti_text *out)
{
    static const char *const kinds[] = {"conv", "dense", "norm"};
    const gain_attr *attr = node->attr;
    sti_text_printf(out, "row %d %s", (int)attr->row, kinds[attr->kind]);
}

const sti_op sti_op_error_gain = {
    .name = "error_gain",
    .n_out = 1,
    .attr_bytes = sizeof(gain_attr),
    .flags = STI_OP_NO_GRAD,
    .infer = infer_gain,
    .cost = sti_op_cost_none, /* nothing in most steps */
    .scratch_bytes = gain_scratch,
    .run = {[STI_CPU] = run_gain},
    .print = print_gain,
};

stint_value sti_op_add_error_gain(stint_graph *g, const sti_node *of, int operand,
                                  const sti_node *pack, stint_value factor)
{
    enum { NORM_DY = 0, NORM_BITS = 5, NORM_DSCALE = 1 };
    gain_attr attr = {.row = ((const sti_pack_attr *)pack->attr)->row};
    stint_value in[6] = {of->in[operand], of->in[1 - (operand & 1)],
                         pack->in[1],     pack->out[1],
                         factor,          STI_NO_INPUT};
    if (sti_op_is_conv2d_grad_w(of->op)) {
        const sti_conv2d_grad_attr *window = of->attr;
        attr.kind = GAIN_CONV;
        attr.stride = window->stride;
        attr.pad = window->pad;
        attr.groups = window->groups;
        attr.height = window->height;
        attr.width = window->width;
    } else if (sti_op_is_matmul(of->op)) {
        attr.kind = GAIN_DENSE;
    } else {
        attr.kind = GAIN_NORM;
        in[X] = STI_NO_INPUT;
        in[FACTOR] = of->out[NORM_DSCALE];
        in[DY] = of->in[NORM_DY];
        in[BITS] = of->in[NORM_BITS];
    }
    return sti_graph_add(g, &sti_op_error_gain, &attr, 6, in);
}
