/* GridSample: pictures read at points that the data say. Composed of the arithmetic of
 * the points, rows taken by index and their weighted sum. */
#include <string.h>

#include "exchange/lower_priv.h"

typedef struct sampler {
    sti_lowering *l;
    stint_graph *g;
    int64_t n, h, w, c, points; /* of all pictures together */
    stint_value table;          /* pixels [n h w, c] */
    stint_value base;           /* first pixel of each point's picture, [points] */
    bool corners;               /* -1 and 1 are centres of pixels, not edges */
    const char *padding;
} sampler;

static stint_value within(const sampler *s, stint_value x, float low, float high)
{
    x = stint_maximum(s->g, x, sti_lower_scalar(s->l, low));
    return stint_minimum(s->g, x, sti_lower_scalar(s->l, high));
}

/* Mirrored at the ends of low .. high, as often as it takes. */
static stint_value reflected(const sampler *s, stint_value x, float low, float high)
{
    stint_graph *g = s->g;
    const float range = high - low;
    if (range <= 0)
        return stint_scale(g, x, 0.0f);
    x = stint_add_scalar(g, x, -low);
    const stint_value turns = stint_floor(g, stint_scale(g, x, 0.5f / range));
    x = stint_sub(g, x, stint_scale(g, turns, 2.0f * range));
    const stint_value back = stint_add_scalar(g, sti_op_negate(g, x), 2.0f * range);
    return stint_add_scalar(g, stint_minimum(g, x, back), low);
}

/* Coordinates from -1 to 1 as pixels, moved inside where the padding says so. */
static stint_value pixels_of(const sampler *s, stint_value x, int64_t length)
{
    const float side = (float)length, most = side - 1.0f;
    x = stint_add_scalar(s->g, x, 1.0f);
    x = stint_scale(s->g, x, s->corners ? 0.5f * most : 0.5f * side);
    x = s->corners ? x : stint_add_scalar(s->g, x, -0.5f);
    if (strcmp(s->padding, "reflection") == 0)
        x = s->corners ? reflected(s, x, 0.0f, most)
                       : reflected(s, x, -0.5f, side - 0.5f);
    return strcmp(s->padding, "zeros") == 0 ? x : within(s, x, 0.0f, most);
}

/* 1 where a pixel lies inside, else 0. */
static stint_value inside(const sampler *s, stint_value x, int64_t length)
{
    stint_graph *g = s->g;
    const stint_value from = stint_less_equal(g, sti_lower_scalar(s->l, 0.0f), x);
    return stint_mul(
        g, from, stint_less_equal(g, x, sti_lower_scalar(s->l, (float)length - 1.0f)));
}

/* Pixels at whole coordinates, [points, c], each times its weight. */
static stint_value corner(const sampler *s, stint_value x, stint_value y,
                          stint_value weight)
{
    stint_graph *g = s->g;
    const stint_shape column = STINT_SHAPE(s->points, 1);
    weight = stint_mul(g, weight, stint_mul(g, inside(s, x, s->w), inside(s, y, s->h)));
    x = within(s, x, 0.0f, (float)s->w - 1.0f);
    y = within(s, y, 0.0f, (float)s->h - 1.0f);
    stint_value at = stint_add(g, stint_scale(g, y, (float)s->w), x);
    at = stint_to_i32(g, stint_add(g, at, s->base));
    return stint_mul(g, stint_take(g, s->table, at, 0),
                     stint_reshape(g, weight, &column));
}

static stint_value linear(const sampler *s, stint_value x, stint_value y)
{
    stint_graph *g = s->g;
    const stint_value left = stint_floor(g, x), top = stint_floor(g, y);
    const stint_value right = stint_add_scalar(g, left, 1.0f),
                      bottom = stint_add_scalar(g, top, 1.0f);
    const stint_value wr = stint_sub(g, x, left), wb = stint_sub(g, y, top);
    const stint_value wl = stint_sub(g, right, x), wt = stint_sub(g, bottom, y);
    const stint_value upper = stint_add(g, corner(s, left, top, stint_mul(g, wl, wt)),
                                        corner(s, right, top, stint_mul(g, wr, wt)));
    return stint_add(g, upper,
                     stint_add(g, corner(s, left, bottom, stint_mul(g, wl, wb)),
                               corner(s, right, bottom, stint_mul(g, wr, wb))));
}

static stint_status read_operands(sampler *s, const sti_exchange_node *n,
                                  sti_lane_value *grid, int64_t *dg)
{
    sti_lane_value x;
    int64_t dx[STINT_MAX_RANK];
    int8_t last[STINT_MAX_RANK];
    stint_status st = sti_lower_lane(s->l, n, 0, &x);
    if (st != STINT_OK || (st = sti_lower_lane(s->l, n, 1, grid)) != STINT_OK)
        return st;
    if (x.rank != 4 || grid->rank != 4)
        return sti_lower_refuse(s->l, STINT_E_UNSUPPORTED,
                                "pictures of %d axes and points of %d; four each are "
                                "taken: two axes of pixels",
                                x.rank, grid->rank);
    sti_lane_dims(s->l, &x, dx);
    sti_lane_dims(s->l, grid, dg);
    if (dg[3] != 2 || dg[0] != dx[0])
        return sti_lower_refuse(s->l, STINT_E_INPUT,
                                "wants points [n, height, width, 2]");
    s->n = dx[0], s->c = dx[1], s->h = dx[2], s->w = dx[3];
    s->points = dg[0] * dg[1] * dg[2];
    if (s->n * s->h * s->w > 1 << 24)
        return sti_lower_refuse(s->l, STINT_E_UNSUPPORTED,
                                "over more than 2^24 pixels");
    sti_order_last(4, last);
    const stint_shape rows = STINT_SHAPE(s->n * s->h * s->w, s->c);
    s->table = stint_reshape(s->g, sti_lane_ordered(s->l, &x, last), &rows);
    return STINT_OK;
}

static stint_status add_base(sampler *s)
{
    const stint_shape flat = STINT_SHAPE(s->points);
    float *base = sti_arena_alloc(s->l->arena, (size_t)s->points * sizeof *base);
    if (!base)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < s->points; i++)
        base[i] = (float)(i / (s->points / s->n) * s->h * s->w);
    s->base = sti_lower_constant(s->l, &flat, base);
    return STINT_OK;
}

stint_status sti_lower_grid_sample(sti_lowering *l, const sti_exchange_node *n)
{
    static const char *const modes[] = {"linear", "bilinear", "nearest", NULL};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
    sampler s = {.l = l, .g = l->graph};
    sti_lane_value grid;
    int64_t dg[STINT_MAX_RANK];
    const char *mode;
    stint_status st = sti_lower_choice(l, n, "mode", modes, &mode);
    if (st != STINT_OK ||
        (st = sti_lower_choice(l, n, "padding_mode", paddings, &s.padding)) !=
            STINT_OK ||
        (st = read_operands(&s, n, &grid, dg)) != STINT_OK ||
        (st = add_base(&s)) != STINT_OK)
        return st;
    s.corners = sti_exchange_attr_int(n, "align_corners", 0) != 0;
    const stint_shape pairs = STINT_SHAPE(s.points, 2), flat = STINT_SHAPE(s.points);
    const stint_value all = stint_reshape(s.g, sti_lane_straight(l, &grid), &pairs);
    stint_value at[2];
    for (int i = 0; i < 2; i++) {
        at[i] = stint_reshape(s.g, stint_slice(s.g, all, 1, i, i + 1, 1), &flat);
        at[i] = pixels_of(&s, at[i], i == 0 ? s.w : s.h);
    }
    stint_value y;
    if (strcmp(mode, "nearest") == 0)
        y = corner(&s, stint_round(s.g, at[0]), stint_round(s.g, at[1]),
                   sti_op_fill(s.g, &flat, 1.0f));
    else
        y = linear(&s, at[0], at[1]);
    const stint_shape to = STINT_SHAPE(dg[0], dg[1], dg[2], s.c);
    sti_lane_value out =
        sti_lane_plain(l, stint_reshape(s.g, y, &to), STI_EXCHANGE_F32);
    sti_order_last(4, out.order);
    return sti_lower_result(l, n, 0, &out, out.value);
}
