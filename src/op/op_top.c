/* The k largest (or smallest) elements of each row of the last axis, in order, with
 * their places; of equal ones the first. */
#include <inttypes.h>

#include "op/op_priv.h"

typedef struct top_attr {
    int64_t k;
    int64_t smallest;
} top_attr;

static stint_status infer_top(const stint_graph *graph, const sti_node *node,
                              stint_shape *out)
{
    const top_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    out[0] = *sti_op_in_shape(graph, node, 0);
    const int64_t length = out[0].rank > 0 ? out[0].dim[out[0].rank - 1] : 0;
    if (attr->k < 1 || attr->k > length)
        return sti_fail(STINT_E_INPUT, "top: %" PRId64 " elements of rows of %s",
                        attr->k, sti_shape_text(&out[0]));
    out[0].dim[out[0].rank - 1] = attr->k;
    out[1] = out[0];
    out[1].dtype = STINT_I32;
    return STINT_OK;
}

typedef struct top_job {
    int64_t length, k;
    bool smallest;
    const float *x;
    float *y;
    int32_t *index;
} top_job;

/* Does element a of the row come before b? NaN counts as the largest. */
static bool before(const top_job *j, const float *x, int32_t a, int32_t b)
{
    const float u = x[a], v = x[b];
    if (u != u || v != v)
        return u != u && v != v ? a < b : (u != u) != j->smallest;
    return u != v ? (u > v) != j->smallest : a < b;
}

/* A heap whose root comes last of those that it holds. */
static void sink(const top_job *j, const float *x, int32_t *heap, int64_t count,
                 int64_t at)
{
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count)
            return;
        if (child + 1 < count && before(j, x, heap[child], heap[child + 1]))
            child++;
        if (before(j, x, heap[child], heap[at]))
            return;
        const int32_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

static void top_row(void *arg, int64_t row, int worker)
{
    const top_job *j = arg;
    const float *x = j->x + row * j->length;
    int32_t *heap = j->index + row * j->k;
    (void)worker;
    for (int64_t i = 0; i < j->k; i++)
        heap[i] = (int32_t)i;
    for (int64_t i = j->k / 2; i-- > 0;)
        sink(j, x, heap, j->k, i);
    for (int64_t i = j->k; i < j->length; i++)
        if (before(j, x, (int32_t)i, heap[0])) {
            heap[0] = (int32_t)i;
            sink(j, x, heap, j->k, 0);
        }
    for (int64_t n = j->k - 1; n > 0; n--) { /* the last one goes behind the others */
        const int32_t last = heap[0];
        heap[0] = heap[n];
        heap[n] = last;
        sink(j, x, heap, n, 0);
    }
    for (int64_t i = 0; i < j->k; i++)
        j->y[row * j->k + i] = x[heap[i]];
}

static void run_top(const sti_call *call)
{
    const top_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    const int64_t length = x->dim[x->rank - 1];
    top_job job = {length,      attr->k,      attr->smallest != 0,
                   call->in[0], call->out[0], call->out[1]};
    sti_team_run(call->team, stint_shape_count(x) / length, top_row, &job);
}

static void print_top(const sti_node *node, sti_text *out)
{
    const top_attr *attr = node->attr;
    sti_text_printf(out, "%" PRId64 "%s", attr->k, attr->smallest ? " smallest" : "");
}

const sti_op sti_op_top = {
    .name = "top",
    .n_out = 2,
    .attr_bytes = sizeof(top_attr),
    .flags = STI_OP_NO_GRAD,
    .infer = infer_top,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_top},
    .print = print_top,
};

stint_value stint_top(stint_graph *g, stint_value x, int64_t k, bool smallest,
                      stint_value *index_out)
{
    const stint_value y = sti_op_add1(g, &sti_op_top, &(top_attr){k, smallest}, x);
    *index_out = y < 0 ? -1 : y + 1;
    return y;
}
