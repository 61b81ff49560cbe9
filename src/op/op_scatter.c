#include "op/op_scatter.h"

#include "op/op_priv.h"

typedef struct scatter_attr {
    int64_t kind;
} scatter_attr;

static stint_status infer_scatter(const stint_graph *graph, const sti_node *node,
                                  stint_shape *out)
{
    const scatter_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 3);
    if (st != STINT_OK || (st = sti_op_check_words(graph, node, 0)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0),
                      *index = sti_op_in_shape(graph, node, 1),
                      *updates = sti_op_in_shape(graph, node, 2);
    const bool fits = x->rank == 2 && index->rank == 1 && updates->rank == 2 &&
                      index->dtype == STINT_I32 && updates->dtype == x->dtype &&
                      updates->dim[0] == index->dim[0] && updates->dim[1] == x->dim[1];
    if (!fits || (attr->kind != STI_SCATTER_SET && x->dtype != STINT_F32))
        return sti_fail(STINT_E_INPUT,
                        "scatter: %s with %s at %s, wanted [rows, inner], [count, "
                        "inner] and [count] i32",
                        sti_shape_text(x), sti_shape_text(updates),
                        sti_shape_text(index));
    *out = *x;
    return STINT_OK;
}

static void run_scatter(const sti_call *call)
{
    const scatter_attr *attr = call->node->attr;
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    sti_scatter_32(call->team, (sti_scatter_kind)attr->kind, x->dim[0], x->dim[1],
                   sti_op_in_count(call, 1), call->in[1], call->in[0], call->in[2],
                   call->out[0]);
}

static stint_status grad_scatter(stint_graph *g, const sti_node *node,
                                 const stint_value *dy, const bool *need,
                                 stint_value *dx)
{
    const scatter_attr *attr = node->attr;
    if (attr->kind != STI_SCATTER_SET && attr->kind != STI_SCATTER_ADD)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "scatter: products, maxima and minima have no gradient here");
    if (need[0] && attr->kind == STI_SCATTER_ADD)
        dx[0] = dy[0];
    else if (need[0])
        dx[0] = sti_op_scatter_rows(g, dy[0], node->in[1],
                                    sti_op_fill(g, sti_op_in_shape(g, node, 2), 0.0f),
                                    STI_SCATTER_SET);
    if (need[2])
        dx[2] = stint_take(g, dy[0], node->in[1], 0);
    return STINT_OK;
}

static void print_scatter(const sti_node *node, sti_text *out)
{
    static const char *const words[STI_SCATTER_KINDS] = {"set", "add", "multiply",
                                                         "max", "min"};
    sti_text_add(out, words[((const scatter_attr *)node->attr)->kind]);
}

const sti_op sti_op_scatter = {
    .name = "scatter",
    .n_out = 1,
    .attr_bytes = sizeof(scatter_attr),
    .infer = infer_scatter,
    .grad = grad_scatter,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_scatter},
    .print = print_scatter,
};

stint_value sti_op_scatter_rows(stint_graph *g, stint_value x, stint_value index,
                                stint_value updates, sti_scatter_kind kind)
{
    const scatter_attr attr = {kind};
    const stint_value in[3] = {x, index, updates};
    return sti_graph_add(g, &sti_op_scatter, &attr, 3, in);
}
