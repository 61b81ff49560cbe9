/* NonMaxSuppression. How many boxes it gives depends on the data, and shapes are static
 * here: there are as many rows as there could be boxes, and those that are left hold
 * -1. An operator that would take such a row for a box (-1 is the last one) is refused;
 * what keeps rows as rows passes them on. */
#include <inttypes.h>
#include <string.h>

#include "exchange/lower_priv.h"
#include "op/op_suppress.h"

#define ROWS_MOST ((int64_t)1 << 24)

static stint_status read_thresholds(sti_lowering *l, const sti_exchange_node *n,
                                    sti_suppress_attr *attr)
{
    double most, overlap, score;
    stint_status st = sti_lower_number(l, n, 2, 0.0, &most);
    if (st != STINT_OK || (st = sti_lower_number(l, n, 3, 0.0, &overlap)) != STINT_OK ||
        (st = sti_lower_number(l, n, 4, 0.0, &score)) != STINT_OK)
        return st;
    if (!(most >= 1.0))
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "of at most %.0f boxes a class, which leaves none; 1 "
                                "and more are taken",
                                most);
    if (!(overlap >= 0.0 && overlap <= 1.0))
        return sti_lower_refuse(l, STINT_E_INPUT, "an overlap of %g, wanted 0 to 1",
                                overlap);
    *attr = (sti_suppress_attr){.most = sti_known_whole(most),
                                .overlap = (float)overlap,
                                .score = (float)score,
                                .any_score = !sti_lower_has(n, 4)};
    return STINT_OK;
}

stint_status sti_lower_non_max_suppression(sti_lowering *l, const sti_exchange_node *n)
{
    sti_lane_value boxes, scores;
    sti_suppress_attr attr;
    stint_status st = sti_lower_lane(l, n, 0, &boxes);
    if (st != STINT_OK || (st = sti_lower_lane(l, n, 1, &scores)) != STINT_OK ||
        (st = read_thresholds(l, n, &attr)) != STINT_OK)
        return st;
    attr.centre = sti_exchange_attr_int(n, "center_point_box", 0) != 0;
    const stint_shape s = stint_value_shape(l->graph, scores.value);
    if (scores.rank == 3) {
        const int64_t each = sti_lane_dim(l, &scores, 2);
        const int64_t most = attr.most < each ? attr.most : each;
        if (stint_shape_count(&s) / each > ROWS_MOST / most)
            return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                    "of up to %" PRId64 " boxes of each class: more "
                                    "than 2^24 rows",
                                    most);
    }
    const stint_value y = sti_op_suppress_boxes(l->graph, sti_lane_straight(l, &boxes),
                                                sti_lane_straight(l, &scores), &attr);
    if (y < 0)
        return sti_graph_status(l->graph);
    const sti_lane_value out = sti_lane_plain(l, y, STI_EXCHANGE_I64);
    st = sti_lower_result(l, n, 0, &out, y);
    if (st == STINT_OK && n->out[0][0])
        l->slot[sti_slot_of(l, n->out[0])].padded = true;
    return st;
}

/* ---- rows that are left, passed on ---- */

static bool is_columns_alone(sti_lowering *l, const sti_exchange_node *n, int operand,
                             int rank)
{
    const int64_t *axes;
    int64_t count;
    bool columns =
        sti_lower_list(l, n, operand, "axes", &axes, &count) == STINT_OK && count > 0;
    for (int64_t i = 0; columns && i < count; i++)
        columns = sti_known_axis(axes[i], rank) > 0;
    return columns;
}

/* Does each row of the result stand for that row of operand 0? */
static bool keeps_rows(sti_lowering *l, const sti_exchange_node *n, int rank)
{
    if (strcmp(n->op, "Identity") == 0 || strcmp(n->op, "Cast") == 0)
        return true;
    if (strcmp(n->op, "Gather") == 0)
        return sti_known_axis(sti_exchange_attr_int(n, "axis", 0), rank) > 0;
    if (strcmp(n->op, "Slice") == 0)
        return is_columns_alone(l, n, 3, rank);
    return strcmp(n->op, "Squeeze") == 0 && is_columns_alone(l, n, 1, rank);
}

stint_status sti_lower_check_padded(sti_lowering *l, const sti_exchange_node *n,
                                    bool *padded_out)
{
    *padded_out = false;
    for (int i = 0; i < n->n_in; i++) {
        const sti_slot *slot = sti_lower_in(l, n, i);
        if (!slot->padded)
            continue;
        if (i > 0 || !keeps_rows(l, n, slot->lane.rank))
            return sti_lower_refuse(
                l, STINT_E_UNSUPPORTED,
                "it reads '%.60s', the boxes of a NonMaxSuppression: how many there "
                "are "
                "depends on the data, and shapes are static; let the network end there",
                sti_shown(n->in[i]));
        *padded_out = true;
    }
    return STINT_OK;
}

bool sti_exchange_is_padded(const sti_exchange_graph *g, const char *name)
{
    static const char *const passing[] = {"Identity", "Cast", "Gather", "Slice",
                                          "Squeeze"};
    for (int64_t i = g->nodes - 1; i >= 0; i--) {
        const sti_exchange_node *n = &g->node[i];
        bool passes = false;
        if (n->n_in < 1 || n->n_out < 1 || strcmp(n->out[0], name) != 0)
            continue;
        if (strcmp(n->op, "NonMaxSuppression") == 0)
            return true;
        for (size_t k = 0; k < sizeof passing / sizeof *passing; k++)
            passes = passes || strcmp(n->op, passing[k]) == 0;
        if (!passes)
            return false;
        name = n->in[0];
    }
    return false;
}
