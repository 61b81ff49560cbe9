/* Logarithm of the softmax over the last axis, for policies and likelihoods: finite
 * where the probability itself has become 0. */
#include "kernel/maths/maths.h"
#include "op/op_priv.h"

enum { ROWS = 256 }; /* of a piece */

static stint_status infer_log_softmax(const stint_graph *graph, const sti_node *node,
                                      stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    out[0] = *sti_op_in_shape(graph, node, 0);
    if (out[0].rank < 1)
        return sti_fail(STINT_E_INPUT,
                        "log_softmax: x is a scalar, wanted [..., classes]");
    return STINT_OK;
}

typedef struct row_work {
    int64_t rows, n;
    const float *x;
    float *y;
} row_work;

/* y = x - max - log sum exp(x - max), the sum in float64, ascending. */
static void log_softmax_row(int64_t n, const float *x, float *y)
{
    float max = x[0];
    double sum = 0;
    for (int64_t j = 1; j < n; j++)
        max = x[j] > max ? x[j] : max;
    for (int64_t j = 0; j < n; j++)
        sum += (double)sti_exp_f32(x[j] - max);
    const float log_sum = sti_log_f32((float)sum);
    for (int64_t j = 0; j < n; j++)
        y[j] = x[j] - max - log_sum;
}

static void run_rows(void *arg, int64_t piece, int worker)
{
    const row_work *work = arg;
    (void)worker;
    const int64_t end =
        (piece + 1) * ROWS < work->rows ? (piece + 1) * ROWS : work->rows;
    for (int64_t i = piece * ROWS; i < end; i++)
        log_softmax_row(work->n, work->x + i * work->n, work->y + i * work->n);
}

static void run_log_softmax(const sti_call *call)
{
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    row_work work = {.n = x->dim[x->rank - 1], .x = call->in[0], .y = call->out[0]};
    work.rows = stint_shape_count(x) / work.n;
    sti_team_run(call->team, (work.rows + ROWS - 1) / ROWS, run_rows, &work);
}

/* dx = dy - exp(y) sum dy */
static stint_status grad_log_softmax(stint_graph *g, const sti_node *node,
                                     const stint_value *dy, const bool *need,
                                     stint_value *dx)
{
    const int last = sti_op_out_shape(g, node, 0)->rank - 1;
    if (need[0]) {
        const stint_value sum = stint_sum(g, dy[0], 1u << last, true);
        dx[0] = stint_sub(g, dy[0], stint_mul(g, stint_exp(g, node->out[0]), sum));
    }
    return STINT_OK;
}

/* Largest, difference, exp (about 20), sum, differences. */
static sti_cost cost_log_softmax(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 25.0);
}

const sti_op sti_op_log_softmax = {
    .name = "log_softmax",
    .n_out = 1,
    .infer = infer_log_softmax,
    .grad = grad_log_softmax,
    .cost = cost_log_softmax,
    .run = {[STI_CPU] = run_log_softmax},
};

stint_value stint_log_softmax(stint_graph *g, stint_value x)
{
    return sti_op_add1(g, &sti_op_log_softmax, NULL, x);
}
