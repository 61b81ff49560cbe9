/* Cases: operators that networks from elsewhere brought (included by op_cases.h). */
#ifndef TESTS_OP_OP_CASES_EXCHANGE_H
#define TESTS_OP_OP_CASES_EXCHANGE_H

#include "op/op_scatter.h"
#include "op/op_suppress.h"

UNARY_CASE(abs, fabs(x))
UNARY_CASE(floor, floor(x))
UNARY_CASE(ceil, ceil(x))
UNARY_CASE(round, rint(x))
UNARY_CASE(erf, erf(x))

/* ---- of two, broadcast */

static int64_t exchange_at(const op_tensor *t, const op_tensor *out, int64_t o)
{
    int64_t at = 0, run = 1;
    for (int i = 0; i < out->shape.rank; i++) {
        const int axis = out->shape.rank - 1 - i, own = t->shape.rank - 1 - i;
        const int64_t here = o % out->shape.dim[axis];
        o /= out->shape.dim[axis];
        if (own < 0)
            continue;
        at += t->shape.dim[own] == 1 ? 0 : here * run;
        run *= t->shape.dim[own];
    }
    return at;
}

#define PAIR_CASE(fn, value)                                                          \
    static stint_value build_##fn(stint_graph *g, const stint_value *x,               \
                                  const op_case *c)                                   \
    {                                                                                 \
        (void)c;                                                                      \
        return stint_##fn(g, x[0], x[1]);                                             \
    }                                                                                 \
    static void reference_##fn(const op_case *c, const op_tensor *in, op_tensor *out) \
    {                                                                                 \
        (void)c;                                                                      \
        for (int64_t o = 0; o < out->count; o++) {                                    \
            const double a = in[0].data[exchange_at(&in[0], out, o)],                 \
                         b = in[1].data[exchange_at(&in[1], out, o)];                 \
            out->data[o] = (value);                                                   \
        }                                                                             \
    }

PAIR_CASE(maximum, a > b ? a : b)
PAIR_CASE(minimum, a < b ? a : b)
PAIR_CASE(power, pow(a, b))
PAIR_CASE(less, a < b ? 1.0 : 0.0)
PAIR_CASE(less_equal, a <= b ? 1.0 : 0.0)

/* ---- choice: x1 where x0 is below 0, else x2 */

static stint_value build_select(stint_graph *g, const stint_value *x, const op_case *c)
{
    (void)c;
    return stint_select(g, stint_less(g, x[0], sti_op_negate(g, x[0])), x[1], x[2]);
}

static void reference_select(const op_case *c, const op_tensor *in, op_tensor *out)
{
    (void)c;
    for (int64_t o = 0; o < out->count; o++) {
        const int k = in[0].data[exchange_at(&in[0], out, o)] < 0 ? 1 : 2;
        out->data[o] = in[k].data[exchange_at(&in[k], out, o)];
    }
}

/* ---- slices by index: i[0] is the axis */

static stint_value build_take(stint_graph *g, const stint_value *x, const op_case *c)
{
    return stint_take(g, x[0], x[1], (int)c->i[0]);
}

static void reference_take(const op_case *c, const op_tensor *in, op_tensor *out)
{
    int64_t inner = 1;
    const int64_t length = in[0].shape.dim[c->i[0]], count = in[1].count;
    for (int i = (int)c->i[0] + 1; i < in[0].shape.rank; i++)
        inner *= in[0].shape.dim[i];
    for (int64_t o = 0; o < out->count; o++) {
        const int64_t row = o / inner, at = (int64_t)in[1].data[row % count];
        out->data[o] = in[0].data[(row / count * length + at) * inner + o % inner];
    }
}

/* ---- rows written by index: i[0] is the kind, sti_scatter_kind */

static stint_value build_scatter(stint_graph *g, const stint_value *x, const op_case *c)
{
    return sti_op_scatter_rows(g, x[0], x[1], x[2], (sti_scatter_kind)c->i[0]);
}

static void reference_scatter(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t inner = in[0].shape.dim[1];
    for (int64_t o = 0; o < out->count; o++) {
        double y = in[0].data[o];
        for (int64_t i = 0; i < in[1].count; i++) {
            const double u = in[2].data[i * inner + o % inner];
            if ((int64_t)in[1].data[i] != o / inner)
                continue;
            y = c->i[0] == 0   ? u
                : c->i[0] == 1 ? y + u
                : c->i[0] == 2 ? y * u
                : c->i[0] == 3 ? (u > y ? u : y)
                               : (u < y ? u : y);
        }
        out->data[o] = y;
    }
}

/* ---- whole numbers, and the largest elements: i[0] of them, i[1]: the smallest */

static stint_value build_cut(stint_graph *g, const stint_value *x, const op_case *c)
{
    (void)c;
    return stint_to_f32(g, stint_to_i32(g, stint_scale(g, x[0], 10.0f)));
}

static void reference_cut(const op_case *c, const op_tensor *in, op_tensor *out)
{
    (void)c;
    for (int64_t o = 0; o < out->count; o++)
        out->data[o] = trunc((double)(10.0f * (float)in[0].data[o]));
}

/* The values and, behind them, their places. */
static stint_value build_top(stint_graph *g, const stint_value *x, const op_case *c)
{
    stint_value both[2], index;
    both[0] = stint_top(g, x[0], c->i[0], c->i[1] != 0, &index);
    both[1] = stint_to_f32(g, index);
    return stint_concat(g, both, 2, 1);
}

static void reference_top(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t n = in[0].shape.dim[1], k = c->i[0];
    for (int64_t row = 0; row < in[0].shape.dim[0]; row++) {
        const double *x = in[0].data + row * n;
        for (int64_t i = 0; i < n; i++) {
            int64_t ahead = 0; /* elements that come before element i */
            for (int64_t j = 0; j < n; j++)
                ahead += c->i[1] ? x[j] < x[i] || (x[j] == x[i] && j < i)
                                 : x[j] > x[i] || (x[j] == x[i] && j < i);
            if (ahead < k) {
                out->data[row * 2 * k + ahead] = x[i];
                out->data[row * 2 * k + k + ahead] = (double)i;
            }
        }
    }
}

/* ---- boxes without those that overlap: i[0] of each class, f[0] in common, above f[1]
 */

static stint_value build_suppress(stint_graph *g, const stint_value *x,
                                  const op_case *c)
{
    const sti_suppress_attr attr = {
        .most = c->i[0], .overlap = (float)c->f[0], .score = (float)c->f[1]};
    return stint_to_f32(g, sti_op_suppress_boxes(g, x[0], x[1], &attr));
}

static double boxes_in_common(const double *a, const double *b)
{
    double common = 1, area_a = 1, area_b = 1;
    for (int i = 0; i < 2; i++) {
        area_a *= fabs(a[i] - a[i + 2]);
        area_b *= fabs(b[i] - b[i + 2]);
        common *= fmax(0, fmin(fmax(a[i], a[i + 2]), fmax(b[i], b[i + 2])) -
                              fmax(fmin(a[i], a[i + 2]), fmin(b[i], b[i + 2])));
    }
    return common / (area_a + area_b - common);
}

static void reference_suppress(const op_case *c, const op_tensor *in, op_tensor *out)
{
    const int64_t count = in[0].shape.dim[1], classes = in[1].shape.dim[1];
    double *row = out->data;
    for (int64_t o = 0; o < out->count; o++)
        out->data[o] = -1;
    for (int64_t pair = 0; pair < in[1].count / count; pair++) {
        const double *score = in[1].data + pair * count,
                     *box = in[0].data + pair / classes * count * 4;
        const double *first = row;
        for (int64_t k = 0; k < c->i[0]; k++) {
            int64_t best = -1;
            for (int64_t i = 0; i < count; i++) {
                bool free = score[i] > c->f[1] && (best < 0 || score[i] > score[best]);
                for (const double *r = first; free && r < row; r += 3)
                    free = (int64_t)r[2] != i &&
                           boxes_in_common(box + 4 * i, box + 4 * (int64_t)r[2]) <=
                               c->f[0];
                best = free ? i : best;
            }
            if (best < 0)
                break;
            *row++ = (double)(pair / classes);
            *row++ = (double)(pair % classes);
            *row++ = (double)best;
        }
    }
}

/* ---- the list */

#define PAIR(fn, label, sa, sb, draws, grads, text)                                    \
    {                                                                                  \
        .name = #fn " " label, .n_in = 2, .shape = {sa, sb}, .draw = draws,            \
        .grad = grads, .build = build_##fn, .reference = reference_##fn, .torch = text \
    }
#define NORMALS              \
    {                        \
        OP_NORMAL, OP_NORMAL \
    }
#define BASES                  \
    {                          \
        OP_POSITIVE, OP_NORMAL \
    }
#define ONE(fn, drawn, grads, text)                                               \
    {                                                                             \
        .name = #fn, .n_in = 1, .shape = {"N,L"}, .draw = {drawn}, .grad = grads, \
        .build = build_##fn, .reference = reference_##fn, .torch = text           \
    }

static const op_case op_cases_exchange[] = {
    ONE(abs, OP_AWAY, 1, "torch.abs(x0)"),
    ONE(erf, OP_NORMAL, 1, "torch.erf(x0)"),
    ONE(floor, OP_NORMAL, 0, "torch.floor(x0)"),
    ONE(ceil, OP_NORMAL, 0, "torch.ceil(x0)"),
    ONE(round, OP_NORMAL, 0, "torch.round(x0)"),
    PAIR(maximum, "same", "N,H,C", "N,H,C", NORMALS, 3, "torch.maximum(x0, x1)"),
    PAIR(maximum, "row", "N,C", "C", NORMALS, 3, "torch.maximum(x0, x1)"),
    PAIR(minimum, "both ways", "N,1,C", "H,1", NORMALS, 3, "torch.minimum(x0, x1)"),
    PAIR(power, "same", "N,C", "N,C", BASES, 3, "torch.pow(x0, x1)"),
    PAIR(power, "scalar", "N,C", "", BASES, 3, "torch.pow(x0, x1)"),
    PAIR(less, "row", "N,L", "L", NORMALS, 0, "(x0 < x1).float()"),
    PAIR(less_equal, "scalar", "N,L", "", NORMALS, 0, "(x0 <= x1).float()"),
    {.name = "select",
     .n_in = 3,
     .shape = {"N,H,C", "C", "N,1,C"},
     .draw = {OP_AWAY, OP_NORMAL, OP_NORMAL},
     .grad = 6,
     .build = build_select,
     .reference = reference_select,
     .torch = "torch.where(x0 < 0, x1, x2)"},
    {.name = "take columns",
     .n_in = 2,
     .shape = {"N,H,C", "L"},
     .draw = {OP_NORMAL, OP_LABELS},
     .grad = 1,
     .build = build_take,
     .reference = reference_take,
     .i = {2},
     .torch = "x0[:, :, x1.long()]"},
    {.name = "take by a matrix",
     .n_in = 2,
     .shape = {"C,N,C", "H,W"},
     .draw = {OP_NORMAL, OP_LABELS},
     .grad = 1,
     .build = build_take,
     .reference = reference_take,
     .i = {0},
     .torch = "x0[x1.long()]"},
#define SCATTER(label, kind, grads, count, text)                                  \
    {                                                                             \
        .name = "scatter " label, .n_in = 3, .shape = {"C,C", count, count ",C"}, \
        .draw = {OP_NORMAL, OP_LABELS, OP_NORMAL}, .grad = grads,                 \
        .build = build_scatter, .reference = reference_scatter, .i = {kind},      \
        .torch = text                                                             \
    }
    SCATTER("set", STI_SCATTER_SET, 5, "1", "x0.index_copy(0, x1.long(), x2)"),
    SCATTER("add", STI_SCATTER_ADD, 5, "L", "x0.index_add(0, x1.long(), x2)"),
    SCATTER("multiply", STI_SCATTER_MULTIPLY, 0, "L",
            "x0.index_reduce(0, x1.long(), x2, 'prod')"),
    SCATTER("max", STI_SCATTER_MAX, 0, "L",
            "x0.index_reduce(0, x1.long(), x2, 'amax')"),
    SCATTER("min", STI_SCATTER_MIN, 0, "L",
            "x0.index_reduce(0, x1.long(), x2, 'amin')"),
#undef SCATTER
    {.name = "suppress",
     .n_in = 2,
     .shape = {"N,40,4", "N,C,40"},
     .draw = {OP_NORMAL, OP_DISTINCT},
     .build = build_suppress,
     .reference = reference_suppress,
     .i = {9},
     .f = {0.3, -0.1}},
    {.name = "to_i32 and back",
     .n_in = 1,
     .shape = {"N,L"},
     .draw = {OP_NORMAL},
     .build = build_cut,
     .reference = reference_cut,
     .torch = "torch.trunc(x0 * 10)"},
    {.name = "top",
     .n_in = 1,
     .shape = {"N,40"},
     .draw = {OP_DISTINCT},
     .build = build_top,
     .reference = reference_top,
     .i = {7, 0},
     .torch = "torch.cat([t.float() for t in torch.topk(x0, 7)], 1)"},
    {.name = "top smallest",
     .n_in = 1,
     .shape = {"H,9"},
     .draw = {OP_DISTINCT},
     .build = build_top,
     .reference = reference_top,
     .i = {9, 1},
     .torch = "torch.cat([t.float() for t in torch.topk(x0, 9, largest=False)], 1)"},
};

#endif
