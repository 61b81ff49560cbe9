/* Attention and rotary positions over packed rows [batch, length, width]. */
#include <inttypes.h>
#include <math.h>

#include "kernel/attention/attention.h"
#include "kernel/attention/rotary.h"
#include "op/op_attention.h"
#include "op/op_priv.h"

/* attention: qkv -> y, stats.  attention_grad: dy, qkv, y, stats -> dqkv. */
typedef struct attention_attr {
    int64_t heads, kv_heads, window;
    int32_t causal, unused;
} attention_attr;

/* qkv is input i; size is the width of one head. */
static sti_attention args_of(const stint_graph *graph, const sti_node *node, int i)
{
    const attention_attr *attr = node->attr;
    const stint_shape *x = sti_op_in_shape(graph, node, i);
    return (sti_attention){.batch = x->dim[0],
                           .length = x->dim[1],
                           .heads = attr->heads,
                           .kv_heads = attr->kv_heads,
                           .size = x->dim[2] / (attr->heads + 2 * attr->kv_heads),
                           .causal = attr->causal != 0,
                           .window = attr->window};
}

static stint_status check_packed(const stint_graph *graph, const sti_node *node, int i)
{
    const attention_attr *attr = node->attr;
    stint_status st = sti_op_check_f32(graph, node, i);
    if (st != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, i);
    if (attr->heads < 1 || attr->kv_heads < 1 || attr->heads % attr->kv_heads != 0)
        return sti_fail(
            STINT_E_INPUT,
            "attention: %" PRId64 " heads and %" PRId64
            " of keys and values; the first must be a multiple of the second",
            attr->heads, attr->kv_heads);
    if (attr->window < 0 || (attr->window > 0 && !attr->causal))
        return sti_fail(STINT_E_INPUT,
                        "attention: a window of %" PRId64
                        " keys; wanted 0 or more, and 0 where all positions are seen",
                        attr->window);
    const int64_t parts = attr->heads + 2 * attr->kv_heads;
    if (x->rank != 3 || x->dim[2] < parts || x->dim[2] % parts != 0)
        return sti_fail(STINT_E_INPUT,
                        "attention: packed rows are %s, wanted [batch, length, %" PRId64
                        " times the size of a head]",
                        sti_shape_text(x), parts);
    return STINT_OK;
}

static void result_shapes(const sti_attention *a, stint_shape *y, stint_shape *stats)
{
    *y = STINT_SHAPE(a->batch, a->length, a->heads * a->size);
    *stats = STINT_SHAPE(a->batch, a->heads, a->length, 2);
}

static stint_status infer_attention(const stint_graph *graph, const sti_node *node,
                                    stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = check_packed(graph, node, 0)) != STINT_OK)
        return st;
    const sti_attention a = args_of(graph, node, 0);
    result_shapes(&a, &out[0], &out[1]);
    return STINT_OK;
}

static stint_status infer_attention_grad(const stint_graph *graph, const sti_node *node,
                                         stint_shape *out)
{
    stint_shape y, stats;
    stint_status st = sti_op_check_count(node, 4);
    if (st != STINT_OK || (st = check_packed(graph, node, 1)) != STINT_OK)
        return st;
    const sti_attention a = args_of(graph, node, 1);
    result_shapes(&a, &y, &stats);
    if ((st = sti_op_check_shape(graph, node, 0, &y)) != STINT_OK ||
        (st = sti_op_check_shape(graph, node, 2, &y)) != STINT_OK ||
        (st = sti_op_check_shape(graph, node, 3, &stats)) != STINT_OK)
        return st;
    out[0] = *sti_op_in_shape(graph, node, 1);
    return STINT_OK;
}

static size_t attention_scratch(const stint_graph *graph, const sti_node *node,
                                int threads)
{
    const sti_attention a = args_of(graph, node, 0);
    return sti_attention_scratch_bytes(&a, threads);
}

static size_t attention_grad_scratch(const stint_graph *graph, const sti_node *node,
                                     int threads)
{
    const sti_attention a = args_of(graph, node, 1);
    return sti_attention_grad_scratch_bytes(&a, threads);
}

static void run_attention(const sti_call *call)
{
    const sti_attention a = args_of(call->graph, call->node, 0);
    sti_attention_f32(call->team, &a, call->in[0], call->out[0], call->out[1],
                      call->scratch);
}

static void run_attention_grad(const sti_call *call)
{
    const sti_attention a = args_of(call->graph, call->node, 1);
    sti_attention_grad_f32(call->team, &a, call->in[0], call->in[1], call->in[2],
                           call->in[3], call->out[0], call->scratch);
}

static stint_status grad_attention(stint_graph *g, const sti_node *node,
                                   const stint_value *dy, const bool *need,
                                   stint_value *dx)
{
    const stint_value in[4] = {dy[0], node->in[0], node->out[0], node->out[1]};
    if (need[0])
        dx[0] = sti_graph_add(g, &sti_op_attention_grad, node->attr, 4, in);
    return STINT_OK;
}

/* ---- the gradient in primitive operators, for the gradient of it ----
 *
 * Here all scores exist, [batch, kv_heads, queries, length]: `queries` are those of the
 * heads that share keys, one head after the other. */

/* Heads of x from a column on, as rows of these. */
static stint_value heads_apart(stint_graph *g, const sti_attention *a, stint_value x,
                               int64_t column, int64_t heads)
{
    static const int axes[] = {0, 2, 3, 1, 4};
    const int64_t shared = heads / a->kv_heads;
    const stint_shape apart =
        STINT_SHAPE(a->batch, a->length, a->kv_heads, shared, a->size);
    const stint_shape rows =
        STINT_SHAPE(a->batch, a->kv_heads, shared * a->length, a->size);
    const stint_value part = stint_slice(g, x, 2, column, column + heads * a->size, 1);
    return stint_reshape(g, stint_transpose(g, stint_reshape(g, part, &apart), axes),
                         &rows);
}

static stint_value heads_joined(stint_graph *g, const sti_attention *a, stint_value x,
                                int64_t heads)
{
    static const int axes[] = {0, 3, 1, 2, 4};
    const stint_shape apart =
        STINT_SHAPE(a->batch, a->kv_heads, heads / a->kv_heads, a->length, a->size);
    const stint_shape rows = STINT_SHAPE(a->batch, a->length, heads * a->size);
    return stint_reshape(g, stint_transpose(g, stint_reshape(g, x, &apart), axes),
                         &rows);
}

/* 0 where a query (row) sees a key (column), minus infinity elsewhere. The places of
 * the largest of equal numbers are 0, 1, 2, ... */
static stint_value unseen(stint_graph *g, const sti_attention *a)
{
    const stint_shape line = STINT_SHAPE(a->length), scalar = STINT_SHAPE(1, 1);
    const stint_shape down = STINT_SHAPE(a->length, 1),
                      right = STINT_SHAPE(1, a->length);
    stint_value index = -1;
    stint_top(g, sti_op_fill(g, &line, 0.0f), a->length, false, &index);
    const stint_value place = stint_to_f32(g, index);
    const stint_value query = stint_reshape(g, place, &down);
    const stint_value key = stint_reshape(g, place, &right);
    const stint_value never = sti_op_fill(g, &scalar, -INFINITY);
    const stint_value none = sti_op_fill(g, &scalar, 0.0f);
    stint_value mask = stint_select(g, stint_less(g, query, key), never, none);
    if (a->window > 0)
        mask = stint_select(
            g, stint_less_equal(g, stint_add_scalar(g, key, (float)a->window), query),
            never, mask);
    return mask;
}

static stint_value probabilities(stint_graph *g, const sti_attention *a, stint_value q,
                                 stint_value k)
{
    const int64_t queries = a->heads / a->kv_heads * a->length;
    const stint_shape rows = STINT_SHAPE(a->batch, a->kv_heads, queries, a->length);
    const stint_shape heads = STINT_SHAPE(a->batch, a->kv_heads, a->heads / a->kv_heads,
                                          a->length, a->length);
    const stint_value score = stint_matmul(g, q, k, false, true);
    if (!a->causal)
        return stint_softmax(g, score);
    const stint_value seen =
        stint_add(g, stint_reshape(g, score, &heads), unseen(g, a));
    return stint_reshape(g, stint_softmax(g, seen), &rows);
}

/* With P = softmax(Q K^T / sqrt(size)) and dP = dY V^T: dV = P^T dY,
 * dS = P (dP - sum dP P), dQ = dS K / sqrt(size), dK = dS^T Q / sqrt(size). What
 * forward gave out is made again from qkv, so that its gradient finds all of it. */
static stint_status expand_attention_grad(stint_graph *g, const sti_node *node,
                                          stint_value *out)
{
    const sti_attention a = args_of(g, node, 1);
    const float scale = 1.0f / sqrtf((float)a.size);
    const int64_t keys = a.heads * a.size, values = keys + a.kv_heads * a.size;
    const stint_value x = node->in[1];
    const stint_value q = stint_scale(g, heads_apart(g, &a, x, 0, a.heads), scale);
    const stint_value k = heads_apart(g, &a, x, keys, a.kv_heads);
    const stint_value v = heads_apart(g, &a, x, values, a.kv_heads);
    const stint_value dy = heads_apart(g, &a, node->in[0], 0, a.heads);
    const stint_value p = probabilities(g, &a, q, k);
    const stint_value dp = stint_matmul(g, dy, v, false, true);
    const stint_value sum = stint_sum(g, stint_mul(g, dp, p), 1u << 3, true);
    const stint_value ds = stint_mul(g, p, stint_sub(g, dp, sum));
    const stint_value dq = stint_scale(g, stint_matmul(g, ds, k, false, false), scale);
    const stint_value part[3] = {
        heads_joined(g, &a, dq, a.heads),
        heads_joined(g, &a, stint_matmul(g, ds, q, true, false), a.kv_heads),
        heads_joined(g, &a, stint_matmul(g, p, dy, true, false), a.kv_heads)};
    out[0] = stint_concat(g, part, 3, 2);
    return STINT_OK;
}

/* Backward makes the scores again and has four more products: five for two. */
static sti_cost cost_attention(const stint_graph *graph, const sti_node *node)
{
    const bool backward = node->op == &sti_op_attention_grad;
    const sti_attention a = args_of(graph, node, backward);
    sti_cost cost = sti_op_cost_bytes(graph, node, 0.0);
    cost.flop = sti_attention_flop(&a) * (backward ? 2.5 : 1.0);
    return cost;
}

static void print_attention(const sti_node *node, sti_text *out)
{
    const attention_attr *attr = node->attr;
    sti_text_printf(out, "heads %" PRId64 "/%" PRId64 "%s", attr->heads, attr->kv_heads,
                    attr->causal ? " causal" : "");
    if (attr->window)
        sti_text_printf(out, " window %" PRId64, attr->window);
}

const sti_op sti_op_attention = {
    .name = "attention",
    .n_out = 2,
    .attr_bytes = sizeof(attention_attr),
    .infer = infer_attention,
    .grad = grad_attention,
    .cost = cost_attention,
    .scratch_bytes = attention_scratch,
    .run = {[STI_CPU] = run_attention},
    .print = print_attention,
};

const sti_op sti_op_attention_grad = {
    .name = "attention_grad",
    .n_out = 1,
    .attr_bytes = sizeof(attention_attr),
    .infer = infer_attention_grad,
    .expand = expand_attention_grad,
    .cost = cost_attention,
    .scratch_bytes = attention_grad_scratch,
    .run = {[STI_CPU] = run_attention_grad},
    .print = print_attention,
};

stint_value stint_attention(stint_graph *g, stint_value qkv,
                            const stint_attention_desc *desc)
{
    const attention_attr attr = {.heads = desc->heads,
                                 .kv_heads =
                                     desc->kv_heads ? desc->kv_heads : desc->heads,
                                 .window = desc->window,
                                 .causal = !desc->all};
    return sti_op_add1(g, &sti_op_attention, &attr, qkv);
}

/* ---- rotary ---- */

sti_rotary_stretch sti_rotary_stretch_of(const stint_rotary_scaling *s)
{
    return (sti_rotary_stretch){.kind = (sti_rotary_kind)s->kind,
                                .factor = s->factor,
                                .low = s->low,
                                .high = s->high,
                                .attention = s->attention,
                                .original = s->original};
}

typedef struct rotary_attr {
    int64_t heads, size;
    float base;
    int32_t inverse;
    stint_rotary_scaling scaling;
} rotary_attr;

static sti_rotary rotary_of(const stint_graph *graph, const sti_node *node)
{
    const rotary_attr *attr = node->attr;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    return (sti_rotary){.batch = x->dim[0],
                        .length = x->dim[1],
                        .width = x->dim[2],
                        .heads = attr->heads,
                        .size = attr->size,
                        .base = (double)attr->base,
                        .inverse = attr->inverse,
                        .stretch = sti_rotary_stretch_of(&attr->scaling)};
}

/* Bounds within which no angle leaves what an integer of turns can hold. */
#define FACTOR_LEAST   1e-3f
#define NUMBER_MOST    1e6f
#define POSITIONS_MOST 2147483648.0f

bool sti_rotary_scaling_is_sound(const stint_rotary_scaling *s)
{
    if (s->kind == STINT_ROTARY_PLAIN)
        return true;
    if ((unsigned)s->kind > STINT_ROTARY_YARN || !(s->factor >= FACTOR_LEAST) ||
        !(s->factor <= NUMBER_MOST))
        return false;
    if (s->kind == STINT_ROTARY_LINEAR)
        return true;
    return s->low > 0 && s->high > s->low && s->high <= NUMBER_MOST &&
           s->original >= 1 && s->original <= POSITIONS_MOST &&
           (s->kind != STINT_ROTARY_YARN ||
            (s->attention > 0 && s->attention <= NUMBER_MOST));
}

static stint_status infer_rotary(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    const rotary_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    *out = *sti_op_in_shape(graph, node, 0);
    if (attr->heads < 0 || attr->size < 2 || attr->size % 2 != 0 ||
        !(attr->base > 1.0f))
        return sti_fail(STINT_E_INPUT,
                        "rotary: heads of %" PRId64
                        " columns, base %g; wanted an even number and more than 1",
                        attr->size, (double)attr->base);
    if (!sti_rotary_scaling_is_sound(&attr->scaling))
        return sti_fail(
            STINT_E_INPUT,
            "rotary: waves stretched in the way %d by %g, between %g and %g "
            "turns in %g positions: wanted one of stint_rotary_kind, and "
            "numbers above 0, the second turns above the first",
            (int)attr->scaling.kind, (double)attr->scaling.factor,
            (double)attr->scaling.low, (double)attr->scaling.high,
            (double)attr->scaling.original);
    if (out->rank != 3 || out->dim[2] < attr->heads * attr->size)
        return sti_fail(STINT_E_INPUT,
                        "rotary: x is %s, wanted [batch, length, at least %" PRId64 "]",
                        sti_shape_text(out), attr->heads * attr->size);
    return STINT_OK;
}

static size_t rotary_scratch(const stint_graph *graph, const sti_node *node,
                             int threads)
{
    const sti_rotary args = rotary_of(graph, node);
    (void)threads;
    return sti_rotary_scratch_bytes(&args);
}

static void run_rotary(const sti_call *call)
{
    const sti_rotary args = rotary_of(call->graph, call->node);
    sti_rotary_f32(call->team, &args, call->in[0], call->out[0], call->scratch);
}

/* A rotation: its gradient is the rotation back. */
static stint_status grad_rotary(stint_graph *g, const sti_node *node,
                                const stint_value *dy, const bool *need,
                                stint_value *dx)
{
    rotary_attr attr = *(const rotary_attr *)node->attr;
    attr.inverse = !attr.inverse;
    if (need[0])
        dx[0] = sti_op_add1(g, &sti_op_rotary, &attr, dy[0]);
    return STINT_OK;
}

static sti_cost cost_rotary(const stint_graph *graph, const sti_node *node)
{
    return sti_op_cost_bytes(graph, node, 3.0);
}

static void print_rotary(const sti_node *node, sti_text *out)
{
    const rotary_attr *attr = node->attr;
    sti_text_printf(out, "heads %" PRId64 " of %" PRId64 " base %g%s", attr->heads,
                    attr->size, (double)attr->base, attr->inverse ? " back" : "");
    if (attr->scaling.kind != STINT_ROTARY_PLAIN)
        sti_text_printf(out, " stretched by %g", (double)attr->scaling.factor);
}

const sti_op sti_op_rotary = {
    .name = "rotary",
    .n_out = 1,
    .attr_bytes = sizeof(rotary_attr),
    .flags = STI_OP_INPLACE_0,
    .infer = infer_rotary,
    .grad = grad_rotary,
    .cost = cost_rotary,
    .scratch_bytes = rotary_scratch,
    .run = {[STI_CPU] = run_rotary},
    .print = print_rotary,
};

stint_value stint_rotary(stint_graph *g, stint_value x, const stint_rotary_desc *desc)
{
    const rotary_attr attr = {.heads = desc->heads,
                              .size = desc->size,
                              .base = desc->base > 0.0f ? desc->base : 10000.0f,
                              .scaling = desc->scaling};
    return sti_op_add1(g, &sti_op_rotary, &attr, x);
}

sti_attention_heads sti_op_attention_heads(const sti_node *node)
{
    const attention_attr *attr = node->attr;
    return (sti_attention_heads){attr->heads, attr->kv_heads, attr->causal != 0};
}

sti_rotary_heads sti_op_rotary_heads(const sti_node *node)
{
    const rotary_attr *attr = node->attr;
    return (sti_rotary_heads){attr->heads, attr->size, (double)attr->base};
}
