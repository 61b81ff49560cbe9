/* Dropout. The mask is a function of (seed, step, shard, layer, element), so the
 * gradient is the same operator on dy, and nothing is saved. */
#include <inttypes.h>

#include "kernel/elementwise/dropout.h"
#include "op/op_priv.h"

typedef struct dropout_attr {
    float rate;
    int32_t layer;
    int32_t images; /* that have one mask, repeated; 1: all elements have their own */
} dropout_attr;

static void run_dropout(const sti_call *call)
{
    const dropout_attr *attr = call->node->attr;
    const sti_dropout_key key = {.seed = call->step->seed,
                                 .step = call->step->step | call->step->sample << 40,
                                 .shard = call->step->shard,
                                 .layer = attr->layer};
    const int64_t each = sti_op_out_count(call, 0) / attr->images;
    for (int64_t i = 0; i < attr->images; i++)
        sti_dropout_f32(call->team, &key, attr->rate, each,
                        (const float *)call->in[0] + i * each,
                        (float *)call->out[0] + i * each);
}

static stint_status grad_dropout(stint_graph *g, const sti_node *node,
                                 const stint_value *dy, const bool *need,
                                 stint_value *dx)
{
    if (need[0])
        dx[0] = sti_op_add1(g, &sti_op_dropout, node->attr, dy[0]);
    return STINT_OK;
}

/* Ten rounds of two multiplications and four other steps for four elements. */
static sti_cost cost_dropout(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 17.0);
}

static void print_dropout(const sti_node *node, sti_text *out)
{
    const dropout_attr *attr = node->attr;
    sti_text_printf(out, "rate %.9g layer %" PRId32, (double)attr->rate, attr->layer);
    if (attr->images > 1)
        sti_text_printf(out, " one mask for %" PRId32 " images", attr->images);
}

const sti_op sti_op_dropout = {
    .name = "dropout",
    .n_out = 1,
    .attr_bytes = sizeof(dropout_attr),
    .flags = STI_OP_INPLACE_0 | STI_OP_RANDOM,
    .infer = sti_op_infer_same,
    .grad = grad_dropout,
    .cost = cost_dropout,
    .run = {[STI_CPU] = run_dropout},
    .print = print_dropout,
};

/* A number that no other dropout of the graph has,
 * and that does not depend on passes. */
static int32_t next_layer(const stint_graph *g)
{
    int32_t layer = 0;
    for (int32_t i = 0; i < sti_graph_node_count(g); i++)
        layer += sti_graph_node(g, i)->op == &sti_op_dropout;
    return layer;
}

stint_value stint_dropout(stint_graph *g, stint_value x, float rate)
{
    if (x < 0)
        return -1;
    if (!(rate >= 0.0f && rate < 1.0f))
        return sti_graph_fail(g, sti_fail(STINT_E_INPUT,
                                          "dropout: rate %g, wanted at least 0 and "
                                          "below 1",
                                          (double)rate));
    const bool sampled = sti_graph_sampled(g);
    if ((stint_graph_mode(g) == STINT_EVAL && !sampled) || rate == 0.0f)
        return x;
    const int64_t images = sampled ? sti_graph_value(g, x)->shape.dim[0] : 1;
    const dropout_attr attr = {rate, next_layer(g), (int32_t)images};
    return sti_op_add1(g, &sti_op_dropout, &attr, x);
}
