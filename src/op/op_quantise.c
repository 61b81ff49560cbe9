/* Weights as a signed integer of few bits a weight and one scale an output channel
 * would hold them. Straight-through: the gradient of the rounding is 1 (Bengio et al.
 * 2013). */
#include "kernel/elementwise/round_columns.h"
#include "op/op_priv.h"

typedef struct quantise_attr {
    int64_t bits;
} quantise_attr;

enum { COLUMNS_A_PIECE = 64 };

static stint_status infer_quantise(const stint_graph *graph, const sti_node *node,
                                   stint_shape *out)
{
    const quantise_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    out[0] = *sti_op_in_shape(graph, node, 0);
    if (out[0].rank < 1)
        return sti_fail(STINT_E_INPUT,
                        "quantise: x is a scalar, wanted [..., channels]");
    if (attr->bits < 2 || attr->bits > 8)
        return sti_fail(STINT_E_INPUT, "quantise: %d bits, wanted 2 to 8",
                        (int)attr->bits);
    return STINT_OK;
}

static void quantise_piece(void *arg, int64_t piece, int worker)
{
    const sti_call *call = arg;
    const quantise_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    const int64_t n = x->dim[x->rank - 1], first = piece * COLUMNS_A_PIECE;
    const int64_t last = first + COLUMNS_A_PIECE < n ? first + COLUMNS_A_PIECE : n;
    const int64_t rows = stint_shape_count(x) / n;
    const float *from = (const float *)call->in[0] + first;
    float *to = (float *)call->out[0] + first;
    float largest[COLUMNS_A_PIECE] = {0};
    (void)worker;
    sti_columns_largest_f32(rows, last - first, n, from, largest);
    sti_columns_round_f32(rows, last - first, n, (int)attr->bits, largest, from, to);
}

static void run_quantise(const sti_call *call)
{
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    const int64_t n = x->dim[x->rank - 1];
    sti_call args = *call;
    sti_team_run(call->team, (n + COLUMNS_A_PIECE - 1) / COLUMNS_A_PIECE,
                 quantise_piece, &args);
}

static stint_status grad_quantise(stint_graph *g, const sti_node *node,
                                  const stint_value *dy, const bool *need,
                                  stint_value *dx)
{
    (void)g, (void)node;
    if (need[0])
        dx[0] = dy[0];
    return STINT_OK;
}

static sti_cost cost_quantise(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 6.0);
}

static void print_quantise(const sti_node *node, sti_text *out)
{
    const quantise_attr *attr = node->attr;
    sti_text_printf(out, "bits %d", (int)attr->bits);
}

const sti_op sti_op_quantise = {
    .name = "quantise",
    .n_out = 1,
    .attr_bytes = sizeof(quantise_attr),
    .infer = infer_quantise,
    .grad = grad_quantise,
    .cost = cost_quantise,
    .run = {[STI_CPU] = run_quantise},
    .print = print_quantise,
};

stint_value stint_quantise(stint_graph *g, stint_value x, int bits)
{
    return sti_op_add1(g, &sti_op_quantise, &(quantise_attr){bits}, x);
}
