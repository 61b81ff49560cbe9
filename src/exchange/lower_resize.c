/* Resizing: along each axis in turn, every element of the result is a weighted sum of a
 * few of x, whose places and weights are known. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "exchange/lower_priv.h"

enum { TAPS = 4 };

/* The sum along one axis: taps [count] each. */
typedef struct resize_axis {
    int64_t in, out;
    double scale, begin, end; /* of roi */
    int taps;
    int64_t *index[TAPS];
    float *weight[TAPS];
    bool outside; /* some elements are the extrapolated value */
} resize_axis;

typedef struct resize_rule {
    const char *mode, *coordinates, *nearest;
    double cubic;
    bool exclude_outside;
    float extrapolation;
} resize_rule;

/* ---- coordinates ---- */

static double source_of(const resize_rule *r, const resize_axis *a, int64_t at)
{
    const double x = (double)at, out = (double)a->out, in = (double)a->in;
    /* The length that the scale says, before it is cut to a whole number. */
    const double exact = in * a->scale;
    if (strcmp(r->coordinates, "align_corners") == 0)
        return exact <= 1.0 ? 0.0 : x * (in - 1.0) / (exact - 1.0);
    if (strcmp(r->coordinates, "asymmetric") == 0)
        return x / a->scale;
    if (strcmp(r->coordinates, "pytorch_half_pixel") == 0)
        return exact > 1.0 ? (x + 0.5) / a->scale - 0.5 : 0.0;
    if (strcmp(r->coordinates, "half_pixel_symmetric") == 0)
        return in / 2.0 * (1.0 - out / exact) + (x + 0.5) / a->scale - 0.5;
    if (strcmp(r->coordinates, "tf_half_pixel_for_nn") == 0)
        return (x + 0.5) / a->scale;
    if (strcmp(r->coordinates, "tf_crop_and_resize") == 0)
        return out > 1.0 ? a->begin * (in - 1.0) +
                               x * (a->end - a->begin) * (in - 1.0) / (out - 1.0)
                         : 0.5 * (a->begin + a->end) * (in - 1.0);
    return (x + 0.5) / a->scale - 0.5; /* half_pixel */
}

static int64_t clamped(double at, int64_t length)
{
    return !(at >= 0.0) ? 0 : at > (double)(length - 1) ? length - 1 : (int64_t)at;
}

static int64_t nearest(const resize_rule *r, double x, int64_t length)
{
    double y = floor(x);
    if (strcmp(r->nearest, "ceil") == 0)
        y = ceil(x);
    else if (strcmp(r->nearest, "round_prefer_ceil") == 0)
        y = floor(x + 0.5);
    else if (strcmp(r->nearest, "floor") != 0)
        y = ceil(x - 0.5);
    return clamped(y, length);
}

/* Keys' cubic of parameter a (Keys 1981). */
static double cubic_weight(double a, double d)
{
    d = fabs(d);
    if (d <= 1.0)
        return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
    return d < 2.0 ? ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a : 0.0;
}

static void place_taps(const resize_rule *r, resize_axis *a, int64_t i, double x)
{
    const double whole = floor(x), part = x - whole;
    double weight[TAPS], sum = 0.0;
    if (r->mode[0] == 'n') {
        a->index[0][i] = nearest(r, x, a->in);
        a->weight[0][i] = 1.0f;
        return;
    }
    const int first = r->mode[0] == 'c' ? -1 : 0;
    for (int t = 0; t < a->taps; t++) {
        const double at = whole + t + first;
        weight[t] = r->mode[0] == 'c' ? cubic_weight(r->cubic, part - t - first)
                    : t == 0          ? 1.0 - part
                                      : part;
        if (r->exclude_outside && (at < 0.0 || at > (double)(a->in - 1)))
            weight[t] = 0.0;
        a->index[t][i] = clamped(at, a->in);
        sum += weight[t];
    }
    for (int t = 0; t < a->taps; t++)
        a->weight[t][i] = (float)(r->exclude_outside ? weight[t] / sum : weight[t]);
}

static stint_status plan_axis(sti_lowering *l, const resize_rule *r, resize_axis *a)
{
    a->taps = r->mode[0] == 'n' ? 1 : r->mode[0] == 'c' ? 4 : 2;
    a->outside = false;
    for (int t = 0; t < a->taps; t++) {
        a->index[t] = sti_arena_alloc(l->arena, (size_t)a->out * sizeof(int64_t));
        a->weight[t] = sti_arena_alloc(l->arena, (size_t)a->out * sizeof(float));
        if (!a->index[t] || !a->weight[t])
            return STINT_E_MEMORY;
    }
    for (int64_t i = 0; i < a->out; i++) {
        const double x = source_of(r, a, i);
        place_taps(r, a, i, x);
        if (strcmp(r->coordinates, "tf_crop_and_resize") == 0 &&
            (x < 0.0 || x > (double)(a->in - 1)))
            a->outside = true;
    }
    return STINT_OK;
}

/* ---- sums ---- */

static stint_value along_axis(sti_lowering *l, const resize_axis *a,
                              const sti_lane_value *x, int axis)
{
    stint_value y = -1;
    const int at = sti_lane_axis(x, axis);
    stint_shape shape = {.rank = x->rank, .dtype = STINT_F32};
    for (int i = 0; i < x->rank; i++)
        shape.dim[i] = i == at ? a->out : 1;
    for (int t = 0; t < a->taps; t++) {
        const stint_value index = sti_lower_indices(l, a->out, a->index[t]);
        stint_value tap = stint_take(l->graph, x->value, index, at);
        if (a->taps > 1)
            tap = stint_mul(l->graph, tap, sti_lower_constant(l, &shape, a->weight[t]));
        y = t == 0 ? tap : stint_add(l->graph, y, tap);
    }
    return y;
}

/* Elements that lie outside along this axis get the extrapolated value. */
static stint_value with_outside(sti_lowering *l, const resize_rule *r,
                                const resize_axis *a, const sti_lane_value *y, int axis)
{
    const int at = sti_lane_axis(y, axis);
    stint_shape shape = {.rank = y->rank, .dtype = STINT_F32};
    for (int i = 0; i < y->rank; i++)
        shape.dim[i] = i == at ? a->out : 1;
    float *inside = sti_arena_alloc(l->arena, (size_t)a->out * sizeof *inside);
    if (!inside)
        return -1;
    for (int64_t i = 0; i < a->out; i++) {
        const double x = source_of(r, a, i);
        inside[i] = x >= 0.0 && x <= (double)(a->in - 1) ? 1.0f : 0.0f;
    }
    return stint_select(l->graph, sti_lower_constant(l, &shape, inside), y->value,
                        sti_lower_scalar(l, r->extrapolation));
}

/* ---- the operator ---- */

/* Lists that have one number an axis of x, or one an axis of `axes`. */
typedef struct resize_lists {
    double scale[STINT_MAX_RANK], begin[STINT_MAX_RANK], end[STINT_MAX_RANK];
    int64_t out[STINT_MAX_RANK];
} resize_lists;

static stint_status read_axes(sti_lowering *l, const sti_exchange_node *n, int rank,
                              int *axes, int *count)
{
    const int64_t *list;
    int64_t many;
    const stint_status st = sti_lower_list(l, n, n->n_in, "axes", &list, &many);
    if (st != STINT_OK)
        return st;
    *count = many < 0 ? rank : (int)many;
    for (int i = 0; i < *count; i++) {
        axes[i] = many < 0 ? i : sti_known_axis(list[i], rank);
        if (many > rank || axes[i] < 0)
            return sti_lower_refuse(l, STINT_E_INPUT, "no such axes");
    }
    return STINT_OK;
}

static stint_status read_sizes(sti_lowering *l, const sti_exchange_node *n, int i,
                               const int64_t *dim, const int *axes, int count,
                               resize_lists *s)
{
    const int64_t *sizes;
    int64_t many;
    const char *policy =
        sti_exchange_attr_text(n, "keep_aspect_ratio_policy", "stretch");
    const stint_status st = sti_lower_list(l, n, i, "", &sizes, &many);
    double one = 0.0;
    if (st != STINT_OK || many != count)
        return st != STINT_OK
                   ? st
                   : sti_lower_refuse(l, STINT_E_INPUT, "%" PRId64 " sizes for %d axes",
                                      many, count);
    for (int k = 0; k < count; k++) {
        const double scale = (double)sizes[k] / (double)dim[axes[k]];
        const bool better =
            policy[0] == 'n' && policy[4] == 'l' ? scale < one : scale > one;
        one = k == 0 || better ? scale : one;
        s->scale[axes[k]] = scale;
        s->out[axes[k]] = sizes[k];
    }
    for (int k = 0; policy[0] == 'n' && k < count; k++) {
        s->scale[axes[k]] = one;
        s->out[axes[k]] = sti_known_whole(floor(one * (double)dim[axes[k]] + 0.5));
    }
    return STINT_OK;
}

static stint_status read_scales(sti_lowering *l, const sti_exchange_node *n, int i,
                                const int64_t *dim, const int *axes, int count,
                                resize_lists *s)
{
    const sti_exchange_tensor *t = NULL;
    const sti_exchange_attr *a = sti_exchange_attr_find(n, "scales");
    stint_status st = STINT_OK;
    if (sti_lower_has(n, i))
        st = sti_lower_known(l, n, i, &t);
    if (st != STINT_OK)
        return st;
    const int64_t many = t ? t->count : a ? a->count : -1;
    if (many != count || (!t && a->kind != STI_EXCHANGE_FLOATS))
        return sti_lower_refuse(l, STINT_E_INPUT, "%" PRId64 " scales for %d axes",
                                many, count);
    for (int k = 0; k < count; k++) {
        const double scale = t ? sti_known_number(t, k) : (double)a->floats[k];
        s->scale[axes[k]] = scale;
        s->out[axes[k]] = sti_known_whole(floor(scale * (double)dim[axes[k]]));
    }
    return STINT_OK;
}

static stint_status read_roi(sti_lowering *l, const sti_exchange_node *n,
                             const int *axes, int count, resize_lists *s)
{
    const sti_exchange_tensor *t;
    if (!sti_lower_has(n, 1))
        return STINT_OK;
    const stint_status st = sti_lower_known(l, n, 1, &t);
    for (int k = 0; st == STINT_OK && k < count && t->count == 2 * count; k++) {
        s->begin[axes[k]] = sti_known_number(t, k);
        s->end[axes[k]] = sti_known_number(t, count + k);
    }
    return st;
}

static bool empty_operand(sti_lowering *l, const sti_exchange_node *n, int i)
{
    const sti_slot *slot = sti_lower_in(l, n, i);
    return !sti_lower_has(n, i) ||
           (slot->kind == STI_SLOT_KNOWN && slot->known->count == 0);
}

static stint_status resize(sti_lowering *l, const sti_exchange_node *n,
                           const resize_rule *r, int scales, int sizes)
{
    sti_lane_value x;
    int64_t dim[STINT_MAX_RANK];
    int axes[STINT_MAX_RANK], count;
    resize_lists s = {.end = {1, 1, 1, 1, 1, 1}};
    stint_status st = sti_lower_lane(l, n, 0, &x);
    if (st != STINT_OK || (st = read_axes(l, n, x.rank, axes, &count)) != STINT_OK)
        return st;
    sti_lane_dims(l, &x, dim);
    for (int i = 0; i < x.rank; i++) {
        s.scale[i] = 1.0;
        s.out[i] = dim[i];
    }
    st = sizes > 0 && !empty_operand(l, n, sizes)
             ? read_sizes(l, n, sizes, dim, axes, count, &s)
             : read_scales(l, n, scales, dim, axes, count, &s);
    if (st == STINT_OK && scales == 2)
        st = read_roi(l, n, axes, count, &s);
    const bool crops = strcmp(r->coordinates, "tf_crop_and_resize") == 0;
    for (int i = 0; i < x.rank && st == STINT_OK; i++) {
        resize_axis a = {.in = dim[i],
                         .out = s.out[i],
                         .scale = s.scale[i],
                         .begin = s.begin[i],
                         .end = s.end[i]};
        if (a.out < 1 || a.out > STI_KNOWN_MAX || !(a.scale > 0.0))
            return sti_lower_refuse(l, STINT_E_INPUT, "a length of %" PRId64, a.out);
        if (a.in == a.out && a.scale == 1.0 && !crops)
            continue;
        if ((st = plan_axis(l, r, &a)) != STINT_OK)
            return st;
        x.value = along_axis(l, &a, &x, i);
        if (a.outside)
            x.value = with_outside(l, r, &a, &x, i);
        st = x.value < 0 ? sti_graph_status(l->graph) : STINT_OK;
    }
    return st == STINT_OK ? sti_lower_result(l, n, 0, &x, x.value) : st;
}

/* Words that the operator has, the first of each for none. */
static stint_status read_rule(sti_lowering *l, const sti_exchange_node *n, bool old,
                              resize_rule *r)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const places[] = {"half_pixel",           "asymmetric",
                                         "align_corners",        "pytorch_half_pixel",
                                         "half_pixel_symmetric", "tf_half_pixel_for_nn",
                                         "tf_crop_and_resize",   NULL};
    static const char *const roundings[] = {"round_prefer_floor", "floor",
                                            "round_prefer_ceil", "ceil", NULL};
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller",
                                           NULL};
    const char *policy;
    stint_status st = sti_lower_choice(l, n, "mode", modes, &r->mode);
    if (st == STINT_OK)
        st = sti_lower_choice(l, n, "coordinate_transformation_mode", places,
                              &r->coordinates);
    if (st == STINT_OK)
        st = sti_lower_choice(l, n, "nearest_mode", roundings, &r->nearest);
    if (st == STINT_OK)
        st = sti_lower_choice(l, n, "keep_aspect_ratio_policy", policies, &policy);
    if (old) { /* there were no words for these */
        r->coordinates = "asymmetric";
        r->nearest = "floor";
    }
    return st;
}

stint_status sti_lower_resize(sti_lowering *l, const sti_exchange_node *n)
{
    const bool old = l->opset < 11;
    resize_rule r = {
        .cubic = (double)sti_exchange_attr_float(n, "cubic_coeff_a", -0.75f),
        .exclude_outside = sti_exchange_attr_int(n, "exclude_outside", 0) != 0,
        .extrapolation = sti_exchange_attr_float(n, "extrapolation_value", 0.0f)};
    const stint_status st = read_rule(l, n, old, &r);
    if (st != STINT_OK)
        return st;
    if (sti_exchange_attr_int(n, "antialias", 0))
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "with antialias");
    return resize(l, n, &r, old ? 1 : 2, old ? 0 : 3);
}

stint_status sti_lower_upsample(sti_lowering *l, const sti_exchange_node *n)
{
    resize_rule r = {0};
    const stint_status st = read_rule(l, n, true, &r);
    return st == STINT_OK ? resize(l, n, &r, 1, 0) : st;
}
