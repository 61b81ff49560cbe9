/* A convolution with batch normalisation by running statistics behind it: pieces of its
 * result are normalised, added to and cut off at zero while they are in a cache, so
 * that a pass over memory goes. Every element is what the two operators make of it. */
#include "kernel/norm/norm.h"
#include "op/op_conv_priv.h"

enum { X, WEIGHT, BIAS, SCALE, SHIFT, RESIDUAL, RUN_MEAN, RUN_VARIANCE, INPUTS };

bool sti_op_conv_takes_norm(const stint_graph *graph, const sti_node *node,
                            sti_conv_norm_attr *attr_out)
{
    if (node->op != &sti_op_conv2d)
        return false;
    const sti_conv2d_attr *a = node->attr;
    sti_conv_shape s = sti_op_conv_shape(graph, node);
    s.winograd = a->winograd != 0;
    const sti_conv_plan plan = sti_conv_plan_f32(&s, STI_CONV_FORWARD, 1);
    *attr_out =
        (sti_conv_norm_attr){.conv = sti_op_conv_kept_attr(&s, s.winograd, false)};
    attr_out->conv.has_bias = a->has_bias;
    return !a->relu && sti_conv_has_pieces(&plan);
}

bool sti_op_conv_norm_kept(const sti_node *node, sti_conv_kept_attr *attr_out)
{
    if (node->op != &sti_op_conv2d_norm)
        return false;
    const sti_conv_norm_attr *a = node->attr;
    *attr_out = a->conv;
    return !a->kept && sti_op_conv_kept_floats(attr_out) > 0;
}

static sti_conv_plan plan_of(const sti_node *node, int threads)
{
    const sti_conv_norm_attr *a = node->attr;
    const sti_conv_shape shape = sti_op_conv_kept_shape(&a->conv);
    return (a->kept ? sti_conv_plan_kept_f32
                    : sti_conv_plan_f32)(&shape, STI_CONV_FORWARD, threads);
}

static stint_status check_weight(const stint_graph *graph, const sti_node *node)
{
    const sti_conv_norm_attr *a = node->attr;
    const sti_conv_kept_attr *c = &a->conv;
    const stint_shape w = STINT_SHAPE(c->kh, c->kw, c->ci / c->groups, c->co);
    const stint_shape kept = STINT_SHAPE(sti_op_conv_kept_floats(c));
    return sti_op_check_shape(graph, node, WEIGHT, a->kept ? &kept : &w);
}

static stint_status infer(const stint_graph *graph, const sti_node *node,
                          stint_shape *out)
{
    const sti_conv_norm_attr *a = node->attr;
    const sti_conv_shape s = sti_op_conv_kept_shape(&a->conv);
    const stint_shape x = STINT_SHAPE(s.n, s.h, s.w, s.ci);
    const stint_shape row = STINT_SHAPE(s.co);
    stint_status st = sti_op_check_count(node, INPUTS);
    if (st != STINT_OK || (st = sti_op_check_shape(graph, node, X, &x)) != STINT_OK ||
        (st = check_weight(graph, node)) != STINT_OK)
        return st;
    out[0] = STINT_SHAPE(s.n, s.oh, s.ow, s.co);
    for (int i = BIAS; i < INPUTS && st == STINT_OK; i++)
        if (i == RESIDUAL && a->has_residual)
            st = sti_op_check_shape(graph, node, i, &out[0]);
        else if (i != RESIDUAL && (i != BIAS || a->conv.has_bias))
            st = sti_op_check_shape(graph, node, i, &row);
    return st;
}

static sti_cost cost(const stint_graph *graph, const sti_node *node)
{
    const sti_conv_norm_attr *a = node->attr;
    const sti_conv_shape shape = sti_op_conv_kept_shape(&a->conv);
    sti_cost cost = sti_op_conv_cost(graph, node, &shape);
    cost.flop += 4.0 * (double)stint_shape_count(sti_op_out_shape(graph, node, 0));
    return cost;
}

/* Scratch holds the inverse deviations, then what the convolution takes. */
static size_t inverse_bytes(const sti_conv_norm_attr *a)
{
    return STI_ALIGN_UP((size_t)a->conv.co * sizeof(float), 64);
}

static size_t scratch_bytes(const stint_graph *graph, const sti_node *node, int threads)
{
    (void)graph;
    return inverse_bytes(node->attr) + plan_of(node, threads).scratch_bytes;
}

/* Rows of the convolution's result, where they lie. */
static void normalise(const void *user, int64_t first, int64_t rows)
{
    const sti_norm_forward *whole = user;
    const int64_t at = first * whole->c;
    sti_norm_forward piece = *whole;
    piece.rows = rows;
    piece.y = whole->y + at;
    piece.x = piece.y;
    piece.residual = whole->residual ? whole->residual + at : NULL;
    sti_norm_forward_f32(&sti_team_serial, &piece);
}

static void run(const sti_call *call)
{
    const sti_conv_norm_attr *a = call->node->attr;
    const sti_conv_plan plan = plan_of(call->node, call->team->threads);
    const sti_epilogue epilogue = {.bias = a->conv.has_bias ? call->in[BIAS] : NULL};
    float *inverse = call->scratch;
    const sti_norm_forward norm = {.c = a->conv.co,
                                   .relu = a->relu != 0,
                                   .mean = call->in[RUN_MEAN],
                                   .inv = inverse,
                                   .scale = call->in[SCALE],
                                   .shift = call->in[SHIFT],
                                   .residual =
                                       a->has_residual ? call->in[RESIDUAL] : NULL,
                                   .y = call->out[0]};
    const sti_conv_behind behind = {normalise, &norm};
    sti_norm_inverse_f32(a->conv.co, a->epsilon, call->in[RUN_VARIANCE], inverse);
    sti_conv_forward_and_f32(call->team, &plan, call->in[X], call->in[WEIGHT],
                             &epilogue, &behind, call->out[0],
                             (char *)call->scratch + inverse_bytes(a));
}

static void print(const sti_node *node, sti_text *out)
{
    const sti_conv_norm_attr *a = node->attr;
    sti_text_printf(out, "%s%s%s epsilon %.9g%s%s",
                    a->conv.winograd ? "winograd" : "direct", a->kept ? " kept" : "",
                    a->conv.has_bias ? " bias" : "", (double)a->epsilon,
                    a->has_residual ? " residual" : "", a->relu ? " relu" : "");
}

const sti_op sti_op_conv2d_norm = {
    .name = "conv2d_norm",
    .n_out = 1,
    .attr_bytes = sizeof(sti_conv_norm_attr),
    .infer = infer,
    .cost = cost,
    .scratch_bytes = scratch_bytes,
    .run = {[STI_CPU] = run},
    .print = print,
};
