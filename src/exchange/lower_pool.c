/* Poolings. Square windows are Stint's own; any other is taken axis by axis, since the
 * largest of a window is the largest of its rows' largest, and sums likewise. */
#include <math.h>
#include <string.h>

#include "exchange/sliding_window.h"

/* A window is taken pixel by pixel. */
enum { WINDOW_MOST = 1 << 14 };

typedef stint_value join_builder(stint_graph *g, stint_value a, stint_value b);

typedef struct pool_parts {
    sti_lane_value x; /* channels last */
    sti_window w;
    bool include_pad;
} pool_parts;

static stint_status read_pool(sti_lowering *l, const sti_exchange_node *n,
                              pool_parts *p)
{
    int8_t last[STINT_MAX_RANK];
    int64_t dim[STINT_MAX_RANK];
    stint_status st = sti_lower_lane(l, n, 0, &p->x);
    if (st != STINT_OK)
        return st;
    sti_lane_dims(l, &p->x, dim);
    sti_order_last(p->x.rank, last);
    p->x.value = sti_lane_ordered(l, &p->x, last);
    memcpy(p->x.order, last, sizeof last);
    p->include_pad = sti_exchange_attr_int(n, "count_include_pad", 0) != 0;
    st = sti_window_read(l, n, dim, p->x.rank, NULL,
                         sti_exchange_attr_int(n, "ceil_mode", 0) != 0, &p->w);
    for (int i = 0; st == STINT_OK && i < p->w.axes; i++)
        if (p->w.size[i] > WINDOW_MOST)
            return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                    "a window of more than %d pixels along an axis",
                                    WINDOW_MOST);
    return st;
}

/* One window for both axes, no holes, and no more padding than the result needs. */
static bool is_square(const sti_window *w, bool padded)
{
    bool square = w->axes == 2 && w->size[0] == w->size[1] && w->size[0] <= 16 &&
                  w->stride[0] == w->stride[1] && w->step[0] == 1 && w->step[1] == 1;
    for (int i = 0; square && padded && i < 2; i++)
        square =
            w->before[i] == w->before[0] && w->after[i] == w->before[0] &&
            w->before[i] < w->size[0] &&
            w->out[i] == (w->in[i] + 2 * w->before[i] - w->size[i]) / w->stride[i] + 1;
    return square;
}

/* All the padding that the windows reach, as elements of `value`. */
static stint_value padded(sti_lowering *l, const pool_parts *p, float value)
{
    stint_value x = p->x.value;
    for (int i = 0; i < p->w.axes; i++) {
        const sti_window *w = &p->w;
        const int64_t reach =
            (w->out[i] - 1) * w->stride[i] + (w->size[i] - 1) * w->step[i] + 1;
        const int64_t after = reach - w->in[i] - w->before[i];
        x = sti_lower_padded(l, x, 1 + i, w->before[i], after > 0 ? after : 0, value);
    }
    return x;
}

/* Elements of each window along one axis joined, of x that is padded. */
static stint_value along(sti_lowering *l, stint_value x, const sti_window *w, int i,
                         join_builder *join)
{
    stint_value y = -1;
    for (int64_t k = 0; k < w->size[i]; k++) {
        const int64_t begin = k * w->step[i];
        const stint_value tap =
            stint_slice(l->graph, x, 1 + i, begin,
                        begin + (w->out[i] - 1) * w->stride[i] + 1, w->stride[i]);
        y = k == 0 ? tap : join(l->graph, y, tap);
    }
    return y;
}

static stint_value by_axes(sti_lowering *l, const pool_parts *p, float value,
                           join_builder *join)
{
    stint_value y = padded(l, p, value);
    for (int i = 0; i < p->w.axes && y >= 0; i++)
        y = along(l, y, &p->w, i, join);
    return y;
}

stint_status sti_lower_max_pool(sti_lowering *l, const sti_exchange_node *n)
{
    pool_parts p;
    stint_value y;
    const stint_status st = read_pool(l, n, &p);
    if (st != STINT_OK)
        return st;
    if (n->n_out > 1 && n->out[1][0])
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "its second result, the indices");
    const stint_pool_desc desc = {p.w.size[0], p.w.stride[0], p.w.before[0]};
    if (is_square(&p.w, true))
        y = stint_max_pool(l->graph, p.x.value, &desc);
    else if (is_square(&p.w, false))
        y = stint_max_pool(l->graph, padded(l, &p, -INFINITY),
                           &(stint_pool_desc){desc.size, desc.stride, 0});
    else
        y = by_axes(l, &p, -INFINITY, stint_maximum);
    return sti_lower_result(l, n, 0, &p.x, y);
}

/* How many elements each window averages: those inside, and with include_pad those of
 * the padding that was asked for. */
static int64_t counted(const pool_parts *p, int i, int64_t at)
{
    const sti_window *w = &p->w;
    const int64_t first = at * w->stride[i] - w->before[i], step = w->step[i],
                  end = w->in[i] + (p->include_pad ? w->after[i] : 0);
    /* Elements of the window before the first that counts, and before the end. */
    const int64_t skipped =
        p->include_pad || first >= 0 ? 0 : (-first + step - 1) / step;
    int64_t reached = end > first ? (end - first + step - 1) / step : 0;
    reached = reached < w->size[i] ? reached : w->size[i];
    return reached > skipped ? reached - skipped : 1;
}

/* One over the counts, times `factor`, as [1, out..., 1]; the same everywhere: *one. */
static stint_value weights_of(sti_lowering *l, const pool_parts *p, float factor,
                              float *one)
{
    stint_shape shape = {.rank = p->x.rank, .dtype = STINT_F32};
    for (int i = 0; i < p->x.rank; i++)
        shape.dim[i] = i > 0 && i <= p->w.axes ? p->w.out[i - 1] : 1;
    const int64_t count = stint_shape_count(&shape);
    float *room = sti_arena_alloc(l->arena, (size_t)count * sizeof *room);
    bool same = true;
    if (!room)
        return -1;
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = k, many = 1;
        for (int i = p->w.axes - 1; i >= 0; i--) {
            many *= counted(p, i, rest % p->w.out[i]);
            rest /= p->w.out[i];
        }
        room[k] = factor / (float)many;
        same = same && room[k] == room[0];
    }
    *one = same ? room[0] : 0.0f;
    return same ? -1 : sti_lower_constant(l, &shape, room);
}

stint_status sti_lower_average_pool(sti_lowering *l, const sti_exchange_node *n)
{
    pool_parts p;
    stint_value y;
    float one = 0.0f;
    const stint_status st = read_pool(l, n, &p);
    if (st != STINT_OK)
        return st;
    const bool square = is_square(&p.w, false);
    const stint_pool_desc desc = {p.w.size[0], p.w.stride[0], 0};
    const float area = (float)(p.w.size[0] * p.w.size[0]);
    y = square ? stint_avg_pool(l->graph, padded(l, &p, 0.0f), &desc)
               : by_axes(l, &p, 0.0f, stint_add);
    const stint_value weight = weights_of(l, &p, square ? area : 1.0f, &one);
    if (one != 0.0f)
        y = one == 1.0f ? y : stint_scale(l->graph, y, one);
    else
        y = weight < 0 ? -1 : stint_mul(l->graph, y, weight);
    return y < 0 && sti_graph_status(l->graph) == STINT_OK
               ? STINT_E_MEMORY
               : sti_lower_result(l, n, 0, &p.x, y);
}
