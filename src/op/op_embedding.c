/* Embedding: rows of a table, one a token. */
#include "kernel/embedding/embedding.h"
#include "op/op_priv.h"

/* embedding: tokens [...] i32, table [vocabulary, n] -> [..., n].
 * embedding_grad: tokens, dy [..., n] -> [vocabulary, n]. */
typedef struct embedding_attr {
    int64_t vocabulary;
} embedding_attr;

static stint_status check_tokens(const stint_graph *graph, const sti_node *node,
                                 const stint_shape **tokens)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 1)) != STINT_OK)
        return st;
    *tokens = sti_op_in_shape(graph, node, 0);
    if ((*tokens)->dtype != STINT_I32 || (*tokens)->rank >= STINT_MAX_RANK)
        return sti_fail(STINT_E_INPUT, "%s: tokens are %s, wanted [...] i32",
                        node->op->name, sti_shape_text(*tokens));
    return STINT_OK;
}

static stint_shape with_columns(const stint_shape *tokens, int64_t n)
{
    stint_shape shape = *tokens;
    shape.dtype = STINT_F32;
    shape.dim[shape.rank++] = n;
    return shape;
}

static stint_status infer_embedding(const stint_graph *graph, const sti_node *node,
                                    stint_shape *out)
{
    const stint_shape *tokens;
    stint_status st = check_tokens(graph, node, &tokens);
    if (st != STINT_OK)
        return st;
    const stint_shape *table = sti_op_in_shape(graph, node, 1);
    if (table->rank != 2)
        return sti_fail(STINT_E_INPUT, "embedding: table is %s, wanted [vocabulary, n]",
                        sti_shape_text(table));
    *out = with_columns(tokens, table->dim[1]);
    return STINT_OK;
}

static stint_status infer_embedding_grad(const stint_graph *graph, const sti_node *node,
                                         stint_shape *out)
{
    const embedding_attr *attr = node->attr;
    const stint_shape *tokens;
    stint_status st = check_tokens(graph, node, &tokens);
    if (st != STINT_OK)
        return st;
    const stint_shape *dy = sti_op_in_shape(graph, node, 1);
    const int64_t n = dy->rank > 0 ? dy->dim[dy->rank - 1] : 0;
    const stint_shape want = with_columns(tokens, n);
    *out = STINT_SHAPE(attr->vocabulary, n);
    return sti_op_check_shape(graph, node, 1, &want);
}

static void run_embedding(const sti_call *call)
{
    const stint_shape *table = sti_op_in_shape(call->graph, call->node, 1);
    sti_embedding_f32(call->team, sti_op_in_count(call, 0), table->dim[0],
                      table->dim[1], call->in[0], call->in[1], call->out[0]);
}

static void run_embedding_grad(const sti_call *call)
{
    const stint_shape *table = sti_op_out_shape(call->graph, call->node, 0);
    sti_embedding_grad_f32(call->team, sti_op_in_count(call, 0), table->dim[0],
                           table->dim[1], call->in[0], call->in[1], call->out[0]);
}

static stint_status grad_embedding(stint_graph *g, const sti_node *node,
                                   const stint_value *dy, const bool *need,
                                   stint_value *dx)
{
    const embedding_attr attr = {sti_op_in_shape(g, node, 1)->dim[0]};
    if (need[1])
        dx[1] = sti_op_add2(g, &sti_op_embedding_grad, &attr, node->in[0], dy[0]);
    return STINT_OK;
}

/* A sum of rows: the gradient of a row is what it was added to. */
static stint_status grad_embedding_grad(stint_graph *g, const sti_node *node,
                                        const stint_value *dy, const bool *need,
                                        stint_value *dx)
{
    if (need[1])
        dx[1] = sti_op_add2(g, &sti_op_embedding, NULL, node->in[0], dy[0]);
    return STINT_OK;
}

/* Only the rows that occur are read. */
static sti_cost cost_embedding(const stint_graph *graph, const sti_node *node)
{
    const double bytes = (double)stint_shape_bytes(sti_op_out_shape(graph, node, 0));
    return (sti_cost){.read_bytes = bytes, .write_bytes = bytes};
}

const sti_op sti_op_embedding = {
    .name = "embedding",
    .n_out = 1,
    .infer = infer_embedding,
    .grad = grad_embedding,
    .cost = cost_embedding,
    .run = {[STI_CPU] = run_embedding},
};

const sti_op sti_op_embedding_grad = {
    .name = "embedding_grad",
    .n_out = 1,
    .attr_bytes = sizeof(embedding_attr),
    .infer = infer_embedding_grad,
    .grad = grad_embedding_grad,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_embedding_grad},
};

stint_value stint_embedding(stint_graph *g, stint_value tokens,
                            const stint_embedding_desc *desc)
{
    const stint_shape shape = STINT_SHAPE(desc->vocabulary, desc->width);
    const stint_param_desc param = {.init = STINT_INIT_NORMAL,
                                    .scale = desc->deviation > 0.0f ? desc->deviation
                                                                    : 0.02f,
                                    .no_decay = true};
    if (tokens < 0)
        return -1;
    return stint_lookup(g, tokens, stint_param(g, "weight", &shape, &param));
}

stint_value stint_lookup(stint_graph *g, stint_value tokens, stint_value table)
{
    return sti_op_add2(g, &sti_op_embedding, NULL, tokens, table);
}
