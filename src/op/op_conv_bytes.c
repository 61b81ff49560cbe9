/* Convolutions with a frozen weight that is held in bytes, and their gradients by the
 * image: the weight [kh, kw, ci, co], as a matrix of co columns, is widened into
 * scratch just before the convolution reads it. One layer's is there at a time. */
#include "kernel/gemm/byte_matrix.h"
#include "op/op_priv.h"

enum { WEIGHT = 1, INPUTS = 3, PIECE_ROWS = 64 };

static sti_byte_matrix matrix_of(const stint_graph *graph, const sti_node *node,
                                 const void *data)
{
    const stint_shape *w = sti_op_in_shape(graph, node, WEIGHT);
    const int64_t columns = w->dim[w->rank - 1];
    return sti_byte_matrix_at(data, stint_shape_count(w) / columns, columns);
}

static size_t wide_bytes(const stint_graph *graph, const sti_node *node)
{
    return STI_ALIGN_UP(stint_shape_bytes(sti_op_in_shape(graph, node, WEIGHT)), 64);
}

typedef struct widening {
    const sti_byte_matrix *m;
    float *out;
} widening;

static void widen_rows(void *arg, int64_t piece, int worker)
{
    const widening *w = arg;
    const int64_t end = (piece + 1) * PIECE_ROWS;
    (void)worker;
    for (int64_t i = piece * PIECE_ROWS; i < end && i < w->m->rows; i++)
        sti_byte_matrix_widen(w->m, i, 0, w->m->columns, w->out + i * w->m->columns);
}

/* The plain operator with the widened weight in the place of the other. */
static void run_wide(const sti_call *call, const sti_op *plain)
{
    const sti_byte_matrix m = matrix_of(call->graph, call->node, call->in[WEIGHT]);
    const size_t bytes = wide_bytes(call->graph, call->node);
    widening w = {&m, call->scratch};
    const void *in[INPUTS] = {NULL};
    sti_call inner = *call;
    sti_team_run(call->team, (m.rows + PIECE_ROWS - 1) / PIECE_ROWS, widen_rows, &w);
    for (int32_t i = 0; i < call->node->n_in; i++)
        in[i] = i == WEIGHT ? call->scratch : call->in[i];
    inner.in = in;
    inner.scratch = (char *)call->scratch + bytes;
    inner.scratch_bytes = call->scratch_bytes - bytes;
    plain->run[STI_CPU](&inner);
}

static stint_status check_weight(const stint_graph *graph, const sti_node *node)
{
    if (node->n_in > WEIGHT && node->in[WEIGHT] >= 0 &&
        sti_graph_value(graph, node->in[WEIGHT])->in_bytes)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT, "%s: wanted a parameter that is held in bytes",
                    node->op->name);
}

static stint_status refuse_weight(const stint_graph *g, const sti_node *node)
{
    return sti_fail(STINT_E_UNSUPPORTED,
                    "%s: a weight that is held in bytes is not trained",
                    stint_value_name(g, node->in[WEIGHT]));
}

/* ---- forward ---- */

static stint_status infer_conv(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const stint_status st = check_weight(graph, node);
    return st == STINT_OK ? sti_op_conv2d.infer(graph, node, out) : st;
}

static size_t conv_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    return wide_bytes(graph, node) + sti_op_conv2d.scratch_bytes(graph, node, threads);
}

static sti_cost conv_cost(const stint_graph *graph, const sti_node *node)
{
    return sti_op_conv2d.cost(graph, node);
}

static void run_conv(const sti_call *call)
{
    run_wide(call, &sti_op_conv2d);
}

/* The plain rule, whose node for the image's gradient then reads bytes, too. */
static stint_status grad_conv(stint_graph *g, const sti_node *node,
                              const stint_value *dy, const bool *need, stint_value *dx)
{
    if (need[WEIGHT])
        return refuse_weight(g, node);
    const stint_status st = sti_op_conv2d.grad(g, node, dy, need, dx);
    if (st == STINT_OK && need[0] && dx[0] >= 0)
        sti_graph_value(g, dx[0])->producer->op = &sti_op_conv2d_grad_x_bytes;
    return st;
}

static void print_conv(const sti_node *node, sti_text *out)
{
    sti_op_conv2d.print(node, out);
}

const sti_op sti_op_conv2d_bytes = {
    .name = "conv2d_bytes",
    .n_out = 2,
    .attr_bytes = sizeof(sti_conv2d_attr),
    .optional_out = 1u << 1,
    .infer = infer_conv,
    .grad = grad_conv,
    .cost = conv_cost,
    .scratch_bytes = conv_scratch,
    .run = {[STI_CPU] = run_conv},
    .print = print_conv,
};

/* ---- gradient by the image ---- */

static stint_status infer_grad(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const stint_status st = check_weight(graph, node);
    return st == STINT_OK ? sti_op_conv2d_grad_x.infer(graph, node, out) : st;
}

static size_t grad_scratch(const stint_graph *graph, const sti_node *node, int threads)
{
    return wide_bytes(graph, node) +
           sti_op_conv2d_grad_x.scratch_bytes(graph, node, threads);
}

static sti_cost grad_cost(const stint_graph *graph, const sti_node *node)
{
    return sti_op_conv2d_grad_x.cost(graph, node);
}

static void run_grad(const sti_call *call)
{
    run_wide(call, &sti_op_conv2d_grad_x);
}

/* The plain rule, whose convolution then reads bytes, too. */
static stint_status grad_grad(stint_graph *g, const sti_node *node,
                              const stint_value *dy, const bool *need, stint_value *dx)
{
    if (need[WEIGHT])
        return refuse_weight(g, node);
    const stint_status st = sti_op_conv2d_grad_x.grad(g, node, dy, need, dx);
    if (st == STINT_OK && need[0] && dx[0] >= 0)
        sti_graph_value(g, dx[0])->producer->op = &sti_op_conv2d_bytes;
    return st;
}

static void print_grad(const sti_node *node, sti_text *out)
{
    sti_op_conv2d_grad_x.print(node, out);
}

const sti_op sti_op_conv2d_grad_x_bytes = {
    .name = "conv2d_grad_x_bytes",
    .n_out = 1,
    .attr_bytes = sizeof(sti_conv2d_grad_attr),
    .infer = infer_grad,
    .grad = grad_grad,
    .cost = grad_cost,
    .scratch_bytes = grad_scratch,
    .run = {[STI_CPU] = run_grad},
    .print = print_grad,
};
