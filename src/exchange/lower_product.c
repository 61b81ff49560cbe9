/* Matrix products. */
#include <string.h>

#include "exchange/lower_priv.h"

/* A matrix, or several, as an operand: transposed where memory holds it so. */
static stint_value matrix(sti_lowering *l, const sti_lane_value *v, bool *transposed)
{
    int8_t order[STINT_MAX_RANK];
    bool swapped = v->rank >= 2;
    for (int i = 0; i < v->rank; i++)
        order[i] = (int8_t)i;
    if (v->rank >= 2) {
        order[v->rank - 1] = (int8_t)(v->rank - 2);
        order[v->rank - 2] = (int8_t)(v->rank - 1);
    }
    for (int i = 0; i < v->rank; i++)
        swapped = swapped && v->order[i] == order[i];
    *transposed = swapped;
    return swapped ? v->value : sti_lane_straight(l, v);
}

stint_status sti_lower_gemm(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value a, b, c;
    bool ta, tb;
    stint_status st = sti_lower_lane(l, n, 0, &a);
    if (st != STINT_OK || (st = sti_lower_lane(l, n, 1, &b)) != STINT_OK)
        return st;
    if (a.rank != 2 || b.rank != 2)
        return sti_lower_refuse(l, STINT_E_INPUT, "wants two matrices");
    const stint_value va = matrix(l, &a, &ta), vb = matrix(l, &b, &tb);
    stint_value y = stint_matmul(l->graph, va, vb,
                                 ta != (sti_exchange_attr_int(n, "transA", 0) != 0),
                                 tb != (sti_exchange_attr_int(n, "transB", 0) != 0));
    const float alpha = sti_exchange_attr_float(n, "alpha", 1.0f),
                beta = sti_exchange_attr_float(n, "beta", 1.0f);
    if (alpha != 1.0f)
        y = stint_scale(l->graph, y, alpha);
    sti_lane_value out = sti_lane_plain(l, y, a.type);
    if (y < 0 || !sti_lower_has(n, 2) || beta == 0.0f)
        return sti_lower_result(l, n, 0, &out, y);
    if ((st = sti_lower_lane(l, n, 2, &c)) != STINT_OK)
        return st;
    if (beta != 1.0f)
        c.value = stint_scale(l->graph, c.value, beta);
    if (c.rank == 1 && sti_lane_dim(l, &c, 0) == sti_lane_dim(l, &out, 1))
        return sti_lower_result(l, n, 0, &out, stint_bias(l->graph, y, c.value));
    if ((st = sti_lower_pair(l, &out, &c)) != STINT_OK)
        return st;
    return sti_lower_result(l, n, 0, &out, stint_add(l->graph, out.value, c.value));
}

/* A vector becomes a matrix of one row or column. */
static sti_lane_value as_matrix(sti_lowering *l, const sti_lane_value *v, bool left)
{
    int64_t dim[2] = {1, 1};
    if (v->rank != 1)
        return *v;
    dim[left] = sti_lane_dim(l, v, 0);
    return sti_lane_reshaped(l, v, 2, dim);
}

/* One matrix on the right serves all rows on the left. */
static sti_lane_value many_by_one(sti_lowering *l, const sti_lane_value *a,
                                  const sti_lane_value *b)
{
    int64_t dim[STINT_MAX_RANK], rows[2] = {1, 1};
    bool tb;
    sti_lane_dims(l, a, dim);
    for (int i = 0; i < a->rank - 1; i++)
        rows[0] *= dim[i];
    rows[1] = dim[a->rank - 1];
    const sti_lane_value flat = sti_lane_reshaped(l, a, 2, rows);
    const stint_value vb = matrix(l, b, &tb);
    const sti_lane_value y =
        sti_lane_plain(l, stint_matmul(l->graph, flat.value, vb, false, tb), a->type);
    dim[a->rank - 1] = sti_lane_dim(l, b, 1);
    return sti_lane_reshaped(l, &y, a->rank, dim);
}

/* The leading axes repeated to those of the result. */
static sti_lane_value repeated(sti_lowering *l, const sti_lane_value *v, int rank,
                               const int64_t *lead)
{
    sti_lane_value w = sti_lane_widened(l, v, rank);
    stint_shape to = stint_value_shape(l->graph, w.value);
    bool same = true;
    for (int i = 0; i < rank; i++) {
        if (w.order[i] >= rank - 2)
            continue;
        same = same && to.dim[i] == lead[w.order[i]];
        to.dim[i] = lead[w.order[i]];
    }
    if (!same)
        w.value = stint_broadcast(l->graph, w.value, &to);
    return w;
}

static stint_status many_by_many(sti_lowering *l, const sti_lane_value *a,
                                 const sti_lane_value *b, sti_lane_value *out)
{
    int64_t da[STINT_MAX_RANK], db[STINT_MAX_RANK], lead[STI_EXCHANGE_RANK];
    int rank;
    bool ta, tb;
    sti_lane_dims(l, a, da);
    sti_lane_dims(l, b, db);
    if (!sti_known_broadcast(a->rank - 2, da, b->rank - 2, db, &rank, lead))
        return sti_lower_refuse(l, STINT_E_INPUT,
                                "leading axes that do not go together");
    rank += 2;
    const sti_lane_value wa = repeated(l, a, rank, lead),
                         wb = repeated(l, b, rank, lead);
    const stint_value va = matrix(l, &wa, &ta), vb = matrix(l, &wb, &tb);
    *out = sti_lane_plain(l, stint_matmul(l->graph, va, vb, ta, tb), a->type);
    return STINT_OK;
}

stint_status sti_lower_matmul(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value x, w, y;
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_lane(l, n, 1, &w)) != STINT_OK)
        return st;
    if (x.rank < 1 || w.rank < 1)
        return sti_lower_refuse(l, STINT_E_INPUT, "an operand without axes");
    const sti_lane_value a = as_matrix(l, &x, true), b = as_matrix(l, &w, false);
    if (a.value < 0 || b.value < 0)
        return sti_graph_status(l->graph);
    if (sti_lane_dim(l, &a, a.rank - 1) != sti_lane_dim(l, &b, b.rank - 2))
        return sti_lower_refuse(
            l, STINT_E_INPUT,
            "the last axis of the first and the last but one of the "
            "second differ");
    if (b.rank == 2)
        y = many_by_one(l, &a, &b);
    else if ((st = many_by_many(l, &a, &b, &y)) != STINT_OK)
        return st;
    if (y.value < 0)
        return sti_graph_status(l->graph);
    unsigned gone = x.rank == 1 ? 1u << (y.rank - 2) : 0;
    gone |= w.rank == 1 ? 1u << (y.rank - 1) : 0;
    if (gone)
        y = sti_lane_without(l, &y, gone);
    return sti_lower_result(l, n, 0, &y, y.value);
}
