/* What each operator does to the axis of the batch. A rule says on which axis of its
 * results the batch lies, changes lists that name its length, and refuses what would
 * bring samples together. */
#include <string.h>

#include "exchange/rebatch_priv.h"

#define TOGETHER "brings the samples of a batch together"
#define PART     "takes a part of the batch"
#define SHARED   "has an operand for each sample; import the network with a batch of 1"
#define OPERANDS "has samples in an operand where weights are wanted"

static const sti_batch_value *result(const sti_batch_flow *f)
{
    return sti_batch_find(f->r, f->node->out[0]);
}

static int axis_attr(const sti_batch_flow *f, int64_t otherwise, int rank)
{
    const int64_t axis = sti_exchange_attr_int(f->node, "axis", otherwise);
    return (int)(axis < 0 ? axis + rank : axis);
}

/* All operands but the first are without samples. */
static bool others_are_shared(const sti_batch_flow *f)
{
    for (int i = 1; i < f->node->n_in; i++)
        if (sti_batch_axis(f, i) >= 0)
            return false;
    return true;
}

/* ---- element by element, broadcast ---- */

static stint_status rule_alike(sti_batch_flow *f)
{
    const sti_batch_value *y = result(f);
    int axis = -1;
    int64_t length = 0;
    if (!y)
        return sti_batch_refuse(f, "has no first result");
    for (int i = 0; i < f->node->n_in; i++) {
        const sti_batch_value *x = sti_batch_operand(f, i);
        const int own = sti_batch_axis(f, i), at = x ? own + y->rank - x->rank : -1;
        if (!x || own < 0)
            continue;
        if (axis >= 0 && (axis != at || length != x->dim[own]))
            return sti_batch_refuse(f, "has samples along two axes");
        axis = at;
        length = x->dim[own];
    }
    for (int i = 0; i < f->node->n_in; i++) {
        const sti_batch_value *x = sti_batch_operand(f, i);
        const int at = x ? axis - (y->rank - x->rank) : -1;
        if (at >= 0 && sti_batch_axis(f, i) < 0 && x->dim[at] != 1)
            return sti_batch_refuse(f, SHARED);
    }
    sti_batch_set_all(f, axis);
    return STINT_OK;
}

/* ---- images: [batch, channels, pixels] ---- */

static stint_status rule_images(sti_batch_flow *f)
{
    if (!others_are_shared(f))
        return sti_batch_refuse(f, OPERANDS);
    if (sti_batch_axis(f, 0) != 0)
        return sti_batch_refuse(f, TOGETHER);
    sti_batch_set_all(f, 0);
    return STINT_OK;
}

/* The batch stays in front, where something is joined behind it. */
static stint_status rule_flatten(sti_batch_flow *f)
{
    return axis_attr(f, 1, sti_batch_operand(f, 0)->rank) > 0
               ? rule_images(f)
               : sti_batch_refuse(f, TOGETHER);
}

/* Sizes name the batch's length. */
static stint_status rule_resize(sti_batch_flow *f)
{
    const sti_batch_value *y = result(f);
    int64_t count, dim[STI_EXCHANGE_RANK];
    const stint_status st = rule_images(f);
    if (st != STINT_OK || !y || sti_exchange_attr_find(f->node, "axes") ||
        !sti_batch_list(f, 3, "", &count) || count != y->rank)
        return st;
    memcpy(dim, y->dim, sizeof dim);
    dim[0] = sti_batch_length(f, dim[0]);
    return sti_batch_put_list(f, 3, dim, count);
}

/* Pictures and the points that they are read at. */
static stint_status rule_grid(sti_batch_flow *f)
{
    if (sti_batch_axis(f, 0) != 0 || sti_batch_axis(f, 1) != 0 || f->own_outer != 1)
        return sti_batch_refuse(f, SHARED);
    sti_batch_set_all(f, 0);
    return STINT_OK;
}

/* ---- along an axis that is not the batch's ---- */

static stint_status along(sti_batch_flow *f, int axis, bool and_behind)
{
    const int own = sti_batch_axis(f, 0);
    if (!others_are_shared(f))
        return sti_batch_refuse(f, OPERANDS);
    if (own == axis || (and_behind && own > axis))
        return sti_batch_refuse(f, TOGETHER);
    sti_batch_set_all(f, own);
    return STINT_OK;
}

/* Up to opset 12 a softmax went over all axes from one on. */
static stint_status rule_softmax(sti_batch_flow *f)
{
    const bool old = f->r->g->opset < 13;
    return along(f, axis_attr(f, old ? 1 : -1, sti_batch_operand(f, 0)->rank), old);
}

static stint_status rule_last(sti_batch_flow *f)
{
    return along(f, axis_attr(f, -1, sti_batch_operand(f, 0)->rank), false);
}

static stint_status rule_from_last(sti_batch_flow *f)
{
    return along(f, axis_attr(f, -1, sti_batch_operand(f, 0)->rank), true);
}

static stint_status rule_split(sti_batch_flow *f)
{
    return along(f, axis_attr(f, 0, sti_batch_operand(f, 0)->rank), false);
}

static stint_status rule_arg(sti_batch_flow *f)
{
    const int axis = axis_attr(f, 0, sti_batch_operand(f, 0)->rank),
              own = sti_batch_axis(f, 0);
    const stint_status st = along(f, axis, false);
    if (st == STINT_OK && !sti_exchange_attr_int(f->node, "keepdims", 1))
        sti_batch_set_all(f, own - (axis < own));
    return st;
}

static stint_status rule_reduce(sti_batch_flow *f)
{
    const sti_batch_value *x = sti_batch_operand(f, 0);
    const int own = sti_batch_axis(f, 0);
    int64_t count;
    int before = 0;
    const int64_t *axes = sti_batch_list(f, 1, "axes", &count);
    if (count <= 0) {
        if (!sti_exchange_attr_int(f->node, "noop_with_empty_axes", 0))
            return sti_batch_refuse(f, TOGETHER);
        count = 0;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + x->rank : axes[i];
        if (axis == own)
            return sti_batch_refuse(f, TOGETHER);
        before += axis < own;
    }
    sti_batch_set_all(f, sti_exchange_attr_int(f->node, "keepdims", 1) ? own
                                                                       : own - before);
    return STINT_OK;
}

/* ---- shapes ---- */

/* An axis that a Reshape leaves for the batch, and what lies outside of it there. */
typedef struct batch_place {
    int axis;
    int64_t outer;
} batch_place;

/* The batch lies anew for each of as many elements as before. Axes that begin with it
 * come first, then those that it is within, the innermost first. */
static int find_places(const sti_batch_flow *f, const sti_batch_value *x, int own,
                       const sti_batch_value *y, batch_place *place)
{
    int64_t lead = f->own_outer, have = 1;
    int count = 0, within = 0;
    batch_place inside[STI_EXCHANGE_RANK];
    for (int i = 0; i < own; i++)
        lead *= x->dim[i];
    for (int i = 0; i < y->rank && have <= lead; i++) {
        const int64_t outer = lead / have;
        if (lead % have == 0 && y->dim[i] % outer == 0 &&
            y->dim[i] / outer % f->r->batch == 0) {
            if (outer == 1)
                place[count++] = (batch_place){i, 1};
            else
                inside[within++] = (batch_place){i, outer};
        }
        have *= y->dim[i];
    }
    while (within > 0)
        place[count++] = inside[--within];
    return count;
}

/* The new list has every length, that of the batch and, behind a classifier, that of
 * the classes as they are to be. */
static stint_status rule_reshape(sti_batch_flow *f)
{
    const sti_batch_value *x = sti_batch_operand(f, 0), *y = result(f);
    batch_place place[STI_EXCHANGE_RANK];
    const int ways = y ? find_places(f, x, sti_batch_axis(f, 0), y, place) : 0;
    int64_t dim[STI_EXCHANGE_RANK];
    bool same = true;
    if (f->r->ways[f->at] != ways) /* as it is from the first walk on */
        f->r->ways[f->at] = (int8_t)ways;
    if (f->r->way[f->at] >= ways)
        return sti_batch_refuse(f, "joins the batch with other axes");
    const int axis = place[f->r->way[f->at]].axis;
    f->own_outer = place[f->r->way[f->at]].outer;
    memcpy(dim, y->dim, sizeof dim);
    dim[axis] = sti_batch_length(f, dim[axis]);
    for (int i = 0; i < y->rank; i++) {
        if (i != axis && f->r->behind[f->at] && dim[i] == f->r->classes)
            dim[i] = f->classes;
        same = same && dim[i] == y->dim[i];
    }
    sti_batch_set_all(f, axis);
    return same || f->node->n_in < 2 ? STINT_OK
                                     : sti_batch_put_list(f, 1, dim, y->rank);
}

static stint_status rule_transpose(sti_batch_flow *f)
{
    const sti_exchange_attr *a = sti_exchange_attr_find(f->node, "perm");
    const int rank = sti_batch_operand(f, 0)->rank, own = sti_batch_axis(f, 0);
    for (int i = 0; i < rank; i++)
        if ((a ? a->ints[i] : rank - 1 - i) == own)
            sti_batch_set_all(f, i);
    return STINT_OK;
}

static stint_status rule_squeeze(sti_batch_flow *f)
{
    const sti_batch_value *x = sti_batch_operand(f, 0);
    const int own = sti_batch_axis(f, 0);
    int64_t count;
    int before = 0;
    const int64_t *axes = sti_batch_list(f, 1, "axes", &count);
    if (count < 0 && (x->dim[own] == 1 || sti_batch_length(f, x->dim[own]) == 1))
        return sti_batch_refuse(f, "drops every axis of length 1, a batch of 1, too");
    for (int i = 0; count < 0 && i < own; i++)
        before += x->dim[i] == 1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + x->rank : axes[i];
        if (axis == own)
            return sti_batch_refuse(f, "drops the axis of a batch of 1");
        before += axis < own;
    }
    sti_batch_set_all(f, own - before);
    return STINT_OK;
}

static stint_status rule_unsqueeze(sti_batch_flow *f)
{
    const sti_batch_value *y = result(f);
    int64_t count;
    const int64_t *axes = sti_batch_list(f, 1, "axes", &count);
    unsigned fresh = 0;
    int old = 0;
    for (int64_t i = 0; y && i < count; i++)
        fresh |= 1u << ((axes[i] < 0 ? axes[i] + y->rank : axes[i]) & 31);
    for (int i = 0; y && i < y->rank; i++)
        if (!(fresh >> i & 1) && old++ == sti_batch_axis(f, 0))
            sti_batch_set_all(f, i);
    return STINT_OK;
}

static stint_status rule_expand(sti_batch_flow *f)
{
    const sti_batch_value *x = sti_batch_operand(f, 0), *y = result(f);
    const int axis = y ? sti_batch_axis(f, 0) + y->rank - x->rank : -1;
    int64_t dim[STI_EXCHANGE_RANK];
    if (!others_are_shared(f) || !y || y->dim[axis] != x->dim[sti_batch_axis(f, 0)])
        return sti_batch_refuse(f, SHARED);
    memcpy(dim, y->dim, sizeof dim);
    dim[axis] = sti_batch_length(f, dim[axis]);
    sti_batch_set_all(f, axis);
    return dim[axis] == y->dim[axis] ? STINT_OK
                                     : sti_batch_put_list(f, 1, dim, y->rank);
}

static stint_status rule_tile(sti_batch_flow *f)
{
    int64_t count;
    const int64_t *repeats = sti_batch_list(f, 1, "", &count);
    const int own = sti_batch_axis(f, 0);
    if (own >= count || repeats[own] != 1)
        return sti_batch_refuse(f, "repeats the batch");
    sti_batch_set_all(f, own);
    return STINT_OK;
}

/* What all samples share, as a token of classes, is repeated for each. */
static stint_status rule_concat(sti_batch_flow *f)
{
    const sti_batch_value *y = result(f);
    int own = -1;
    stint_status st = STINT_OK;
    for (int i = 0; i < f->node->n_in; i++) {
        const int axis = sti_batch_axis(f, i);
        if (axis >= 0 && own >= 0 && axis != own)
            return sti_batch_refuse(f, "has samples along two axes");
        own = axis >= 0 ? axis : own;
    }
    if (!y || axis_attr(f, 1, y->rank) == own)
        return sti_batch_refuse(f, TOGETHER);
    for (int i = 0; i < f->node->n_in && st == STINT_OK; i++) {
        const sti_batch_value *x = sti_batch_operand(f, i);
        if (sti_batch_axis(f, i) >= 0)
            continue;
        if (!x || x->rank != y->rank || x->dim[own] != 1)
            return sti_batch_refuse(f, SHARED);
        if (f->batch != f->r->batch)
            st = sti_batch_put_each(f, i, own);
    }
    sti_batch_set_all(f, own);
    return st;
}

/* ---- parts ---- */

static stint_status rule_slice(sti_batch_flow *f)
{
    const sti_batch_value *x = sti_batch_operand(f, 0);
    const int own = sti_batch_axis(f, 0);
    int64_t count, ends, given, steps;
    const int64_t *begin = sti_batch_list(f, 1, "starts", &count),
                  *end = sti_batch_list(f, 2, "ends", &ends),
                  *axes = sti_batch_list(f, 3, "axes", &given),
                  *step = sti_batch_list(f, 4, "steps", &steps);
    if (count < 0 || ends != count || (axes && given != count) ||
        (step && steps != count))
        return sti_batch_refuse(f, PART);
    for (int64_t i = 0; i < count; i++) {
        const int64_t axis = !axes ? i : axes[i] < 0 ? axes[i] + x->rank : axes[i];
        if (axis == own &&
            (begin[i] != 0 || end[i] < INT32_MAX || (step && step[i] != 1)))
            return sti_batch_refuse(f, PART);
    }
    sti_batch_set_all(f, own);
    return STINT_OK;
}

static stint_status rule_pad(sti_batch_flow *f)
{
    const int own = sti_batch_axis(f, 0), rank = sti_batch_operand(f, 0)->rank;
    int64_t count, given;
    const int64_t *pads = sti_batch_list(f, 1, "pads", &count),
                  *axes = sti_batch_list(f, 3, "", &given);
    if (!pads)
        pads = sti_batch_list(f, 1, "paddings", &count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = i % (count / 2 ? count / 2 : 1);
        const int64_t axis = axes ? (axes[k] < 0 ? axes[k] + rank : axes[k]) : k;
        if (axis == own && pads[i] != 0)
            return sti_batch_refuse(f, "pads the batch");
    }
    if (count < 0 || (axes && 2 * given != count))
        return sti_batch_refuse(f, "pads the batch");
    sti_batch_set_all(f, own);
    return STINT_OK;
}

static stint_status rule_gather(sti_batch_flow *f)
{
    const sti_batch_value *x = sti_batch_operand(f, 0), *at = sti_batch_operand(f, 1);
    const int own = sti_batch_axis(f, 0), of_index = sti_batch_axis(f, 1);
    const int axis = x ? axis_attr(f, 0, x->rank) : -1;
    if (!x || !at || (own >= 0 && of_index >= 0) || own == axis)
        return sti_batch_refuse(f, TOGETHER);
    sti_batch_set_all(f, of_index >= 0 ? axis + of_index
                         : own < axis  ? own
                                       : own + at->rank - 1);
    return STINT_OK;
}

/* ---- products ---- */

static stint_status rule_gemm(sti_batch_flow *f)
{
    if (!others_are_shared(f) || sti_batch_axis(f, 0) != 0 ||
        sti_exchange_attr_int(f->node, "transA", 0))
        return sti_batch_refuse(f, OPERANDS);
    sti_batch_set_all(f, 0);
    return STINT_OK;
}

static stint_status rule_matmul(sti_batch_flow *f)
{
    const sti_batch_value *a = sti_batch_operand(f, 0), *b = sti_batch_operand(f, 1),
                          *y = result(f);
    const int of_a = sti_batch_axis(f, 0), of_b = sti_batch_axis(f, 1);
    if (!a || !b || !y || a->rank < 2 || b->rank < 2 || of_a == a->rank - 1 ||
        of_b == b->rank - 2)
        return sti_batch_refuse(f, TOGETHER);
    const int from_a = of_a + y->rank - a->rank, from_b = of_b + y->rank - b->rank;
    if (of_a >= 0 && of_b >= 0 && (from_a != from_b || from_a >= y->rank - 2))
        return sti_batch_refuse(f, "has samples along two axes");
    const int axis = of_a >= 0 ? from_a : from_b;
    const sti_batch_value *shared = of_a < 0 ? a : of_b < 0 ? b : NULL;
    const int at = shared ? axis - (y->rank - shared->rank) : -1;
    if (shared && at >= 0 && axis < y->rank - 2 && shared->dim[at] != 1)
        return sti_batch_refuse(f, SHARED);
    sti_batch_set_all(f, axis);
    return STINT_OK;
}

/* ---- recurrent layers ---- */

static bool is_zero(const sti_batch_flow *f, int i)
{
    const sti_batch_value *v = sti_batch_operand(f, i);
    const sti_exchange_tensor *t = v->tensor >= 0 ? &f->r->g->tensor[v->tensor] : NULL;
    for (int64_t k = 0; t && t->floats && k < t->count; k++)
        if (t->floats[k] != 0)
            return false;
    return t && t->floats;
}

/* x [steps, batch, inputs]; states to begin with are [directions, batch, units], and
 * left out where they are 0. */
static stint_status rule_recurrent(sti_batch_flow *f)
{
    stint_status st = STINT_OK;
    if (sti_batch_axis(f, 0) != 1)
        return sti_batch_refuse(f, TOGETHER);
    for (int i = 1; i < f->node->n_in && st == STINT_OK; i++) {
        const sti_batch_value *v = sti_batch_operand(f, i);
        const bool state = i == 5 || i == 6;
        if (!v || (!state && sti_batch_axis(f, i) < 0) ||
            (state && sti_batch_axis(f, i) == 1))
            continue;
        if (!state || v->rank != 3)
            return sti_batch_refuse(f, OPERANDS);
        if (is_zero(f, i))
            f->copy.in[i] = "";
        else if (v->dim[1] != 1)
            return sti_batch_refuse(f, SHARED);
        else if (f->batch != 1)
            st = sti_batch_put_each(f, i, 1);
    }
    sti_batch_set_all(f, 1);
    sti_batch_set(f, 0, 2);
    return st;
}

/* ---- the table ---- */

static const struct {
    sti_batch_rule *rule;
    const char *ops; /* with blanks between */
} rules[] = {
    {rule_alike,
     "Abs Add And Cast CastLike Ceil Celu Clip Cos Div Dropout Elu Equal Erf Exp Floor "
     "Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity IsNaN LeakyRelu Less "
     "LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu "
     "Round Selu Shrink Sigmoid Sign Sin Softplus Softsign Sqrt Sub Sum Swish Tan Tanh "
     "ThresholdedRelu Where Xor"},
    {rule_images,
     "AveragePool BatchNormalization Conv ConvTranspose DepthToSpace GlobalAveragePool "
     "GlobalMaxPool GroupNormalization InstanceNormalization LRN MaxPool SpaceToDepth "
     "Upsample"},
    {rule_flatten, "Flatten"},
    {rule_resize, "Resize"},
    {rule_grid, "GridSample"},
    {rule_softmax, "Softmax LogSoftmax"},
    {rule_last, "LpNormalization TopK"},
    {rule_from_last, "LayerNormalization RMSNormalization"},
    {rule_split, "Split"},
    {rule_arg, "ArgMax ArgMin"},
    {rule_reduce,
     "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
     "ReduceProd ReduceSum ReduceSumSquare"},
    {rule_reshape, "Reshape"},
    {rule_transpose, "Transpose"},
    {rule_squeeze, "Squeeze"},
    {rule_unsqueeze, "Unsqueeze"},
    {rule_expand, "Expand"},
    {rule_tile, "Tile"},
    {rule_concat, "Concat"},
    {rule_slice, "Slice"},
    {rule_pad, "Pad"},
    {rule_gather, "Gather"},
    {rule_gemm, "Gemm"},
    {rule_matmul, "MatMul"},
    {rule_recurrent, "LSTM GRU RNN"},
};

static bool names(const char *ops, const char *op)
{
    const size_t length = strlen(op);
    for (const char *at = ops; (at = strstr(at, op)) != NULL; at += length)
        if ((at == ops || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

sti_batch_rule *sti_batch_rule_of(const char *op)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules && *op; i++)
        if (names(rules[i].ops, op))
            return rules[i].rule;
    return NULL;
}
