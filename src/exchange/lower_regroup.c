/* Reshapes of values whose axes lie in another order than ONNX's.
 *
 * The lengths before and behind fall into groups of equal product: an axis that stays,
 * one that is split, several that are joined. Elements need not move where the axes of
 * each group lie beside each other in their own order, and the groups may lie in any:
 * channels that are split last in memory stay there. Otherwise they are brought beside
 * each other, to where the group's innermost axis lies. */
#include <string.h>

#include "exchange/lower_priv.h"

/* Axes in0 .. in1 of the old shape are axes out0 .. out1 of the new one. */
typedef struct axis_group {
    int in0, in1, out0, out1;
    int place; /* of its innermost axis in memory, but for those of length 1 */
} axis_group;

/* Groups of two shapes of as many elements; their number. */
static int find_groups(int rank, const int64_t *from, int to_rank, const int64_t *to,
                       axis_group *group)
{
    int count = 0, i = 0, j = 0;
    while (i < rank && j < to_rank) {
        axis_group *g = &group[count++];
        int64_t a = from[i], b = to[j];
        *g = (axis_group){.in0 = i++, .out0 = j++, .place = -1};
        while (a != b)
            if (a < b)
                a *= from[i++];
            else
                b *= to[j++];
        g->in1 = i;
        g->out1 = j;
    }
    if (count > 0) { /* what is left has the length 1 */
        group[count - 1].in1 = rank;
        group[count - 1].out1 = to_rank;
    }
    return count;
}

static void find_places(sti_lowering *l, const sti_lane_value *v, axis_group *group,
                        int count)
{
    for (int k = 0; k < count; k++)
        for (int i = group[k].in0; i < group[k].in1; i++) {
            const int place = sti_lane_axis(v, i);
            if (sti_lane_dim(l, v, i) > 1 && place > group[k].place)
                group[k].place = place;
        }
}

static void sort_groups(axis_group *group, int count)
{
    for (int k = 1; k < count; k++)
        for (int m = k; m > 0 && group[m - 1].place > group[m].place; m--) {
            const axis_group held = group[m];
            group[m] = group[m - 1];
            group[m - 1] = held;
        }
}

sti_lane_value sti_lane_regrouped(sti_lowering *l, const sti_lane_value *v, int rank,
                                  const int64_t *dim)
{
    int64_t from[STINT_MAX_RANK];
    axis_group group[STINT_MAX_RANK];
    int8_t order[STINT_MAX_RANK] = {0};
    sti_lane_value y = *v;
    stint_shape to = stint_shape_make(STINT_F32, rank, dim);
    int used = 0, count = 0;
    sti_lane_dims(l, v, from);
    if (v->value >= 0)
        count = find_groups(v->rank, from, rank, dim, group);
    if (count == 0) /* a scalar before or behind */
        return sti_lane_reshaped(l, v, rank, dim);
    find_places(l, v, group, count);
    sort_groups(group, count);
    for (int k = 0; k < count; k++)
        for (int i = group[k].in0; i < group[k].in1; i++)
            order[used++] = (int8_t)i;
    const stint_value moved = sti_lane_ordered(l, v, order);
    y.rank = rank;
    used = 0;
    for (int k = 0; k < count; k++)
        for (int j = group[k].out0; j < group[k].out1; j++) {
            y.order[used] = (int8_t)j;
            to.dim[used++] = dim[j];
        }
    y.value = stint_reshape(l->graph, moved, &to);
    return y;
}
