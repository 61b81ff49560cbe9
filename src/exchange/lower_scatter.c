/* Operators that write elements to places by index. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exchange/lower_priv.h"
#include "op/op_scatter.h"

/* Positions are f32 until they are used, and exact up to there. */
#define PLACES_MOST ((int64_t)1 << 24)

static stint_status read_kind(sti_lowering *l, const sti_exchange_node *n,
                              sti_scatter_kind *kind)
{
    static const char *const words[] = {"none", "add", "mul", "max", "min", NULL};
    const char *word;
    const stint_status st = sti_lower_choice(l, n, "reduction", words, &word);
    for (int i = 0; st == STINT_OK && words[i]; i++)
        if (words[i] == word)
            *kind = (sti_scatter_kind)i;
    return st;
}

/* Updates have the shape [rank] of what their indices name, not as many elements
 * alone. */
static stint_status check_updates(const sti_lowering *l, const sti_lane_value *updates,
                                  int rank, const int64_t *dim)
{
    int64_t given[STINT_MAX_RANK];
    char wanted[160] = "";
    bool fits = updates->rank == rank;
    sti_lane_dims(l, updates, given);
    for (int i = 0; fits && i < rank; i++)
        fits = given[i] == dim[i];
    if (fits)
        return STINT_OK;
    for (int i = 0; i < rank; i++) {
        const size_t used = strlen(wanted);
        snprintf(wanted + used, sizeof wanted - used, "%s%" PRId64, i ? ", " : "",
                 dim[i]);
    }
    const stint_shape is = stint_shape_make(STINT_F32, updates->rank, given);
    return sti_lower_refuse(l, STINT_E_INPUT,
                            "updates of %s, where the indices want [%s]",
                            sti_shape_text(&is), wanted);
}

/* x as rows of `inner` with updates at the places; in x's shape again. */
static stint_status scatter(sti_lowering *l, const sti_exchange_node *n,
                            const sti_lane_value *x, stint_value at, int64_t inner,
                            sti_lane_value updates)
{
    stint_graph *g = l->graph;
    sti_scatter_kind kind = STI_SCATTER_SET;
    const stint_shape to = stint_value_shape(g, at);
    int64_t dim[STINT_MAX_RANK], count = 1;
    const stint_status st = read_kind(l, n, &kind);
    sti_lane_dims(l, x, dim);
    for (int i = 0; i < x->rank; i++)
        count *= dim[i];
    if (st != STINT_OK)
        return st;
    if (count / inner > PLACES_MOST)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "over more than 2^24 places");
    sti_lane_value data = kind == STI_SCATTER_SET ? *x : sti_lane_f32(l, x);
    updates = kind == STI_SCATTER_SET ? sti_lane_typed(l, &updates, x->type)
                                      : sti_lane_f32(l, &updates);
    stint_shape rows = STINT_SHAPE(count / inner, inner),
                new_rows = STINT_SHAPE(to.dim[0], inner);
    const stint_value y = sti_op_scatter_rows(
        g, stint_reshape(g, sti_lane_straight(l, &data), &rows), stint_to_i32(g, at),
        stint_reshape(g, sti_lane_straight(l, &updates), &new_rows), kind);
    const sti_lane_value flat = sti_lane_plain(l, y, x->type);
    sti_lane_value out = sti_lane_reshaped(l, &flat, x->rank, dim);
    out = sti_lane_typed(l, &out, x->type);
    return sti_lower_result(l, n, 0, &out, out.value);
}

static stint_status operands(sti_lowering *l, const sti_exchange_node *n,
                             sti_lane_value *v)
{
    stint_status st = STINT_OK;
    for (int i = 0; i < 3 && st == STINT_OK; i++)
        st = sti_lower_lane(l, n, i, &v[i]);
    return st;
}

stint_status sti_lower_scatter_elements(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value v[3];
    int64_t dim[STINT_MAX_RANK];
    stint_value at = -1;
    stint_status st = operands(l, n, v);
    if (st == STINT_OK)
        st = sti_lower_element_places(l, n, &v[0], v[1], &at);
    if (st == STINT_OK) {
        sti_lane_dims(l, &v[1], dim);
        st = check_updates(l, &v[2], v[1].rank, dim);
    }
    return st == STINT_OK ? scatter(l, n, &v[0], at, 1, v[2]) : st;
}

stint_status sti_lower_scatter_nd(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value v[3];
    int64_t inner, depth, dx[STINT_MAX_RANK], dim[2 * STINT_MAX_RANK];
    stint_value at = -1;
    stint_status st = operands(l, n, v);
    if (st == STINT_OK)
        st = sti_lower_row_places(l, &v[0], v[1], &inner, &depth, &at);
    if (st == STINT_OK) { /* of the indices but for their last axis, and of a row */
        sti_lane_dims(l, &v[0], dx);
        sti_lane_dims(l, &v[1], dim);
        for (int i = (int)depth; i < v[0].rank; i++)
            dim[v[1].rank - 1 + i - depth] = dx[i];
        st = check_updates(l, &v[2], v[1].rank - 1 + v[0].rank - (int)depth, dim);
    }
    return st == STINT_OK ? scatter(l, n, &v[0], at, inner, v[2]) : st;
}
