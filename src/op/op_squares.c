/* The sum of squares of all elements, in double precision until it is stored: what a
 * gradient's length is measured by while its elements stay where they are. */
#include "kernel/reduce/squares.h"
#include "op/op_priv.h"

static stint_status infer_squares(const stint_graph *graph, const sti_node *node,
                                  stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 1);
    if (st == STINT_OK)
        st = sti_op_check_f32(graph, node, 0);
    *out = stint_shape_make(STINT_F32, 0, NULL);
    return st;
}

/* dx = 2 dy x */
static stint_status grad_squares(stint_graph *g, const sti_node *node,
                                 const stint_value *dy, const bool *need,
                                 stint_value *dx)
{
    const stint_shape shape = *sti_op_in_shape(g, node, 0);
    stint_shape ones = shape;
    if (!need[0])
        return STINT_OK;
    for (int i = 0; i < ones.rank; i++)
        ones.dim[i] = 1;
    const stint_value each = stint_broadcast(g, stint_reshape(g, dy[0], &ones), &shape);
    dx[0] = stint_mul(g, stint_scale(g, node->in[0], 2.0f), each);
    return STINT_OK;
}

static sti_cost cost_squares(const stint_graph *graph, const sti_node *node)
{
    sti_cost cost = sti_op_cost_move(graph, node);
    cost.flop = 2 * (double)stint_shape_count(sti_op_in_shape(graph, node, 0));
    return cost;
}

static size_t squares_scratch(const stint_graph *graph, const sti_node *node,
                              int threads)
{
    (void)threads;
    return (size_t)sti_squares_pieces(
               stint_shape_count(sti_op_in_shape(graph, node, 0))) *
           sizeof(double);
}

static void run_squares(const sti_call *call)
{
    float *out = call->out[0];
    *out = (float)sti_squares_f32(call->team, sti_op_in_count(call, 0), call->in[0],
                                  call->scratch);
}

const sti_op sti_op_squares = {
    .name = "squares",
    .n_out = 1,
    .infer = infer_squares,
    .grad = grad_squares,
    .cost = cost_squares,
    .scratch_bytes = squares_scratch,
    .run = {[STI_CPU] = run_squares},
};

stint_value stint_squares(stint_graph *g, stint_value x)
{
    return sti_op_add1(g, &sti_op_squares, NULL, x);
}
