/* Convolution on bfloat16 and its gradients are bit-equal to the chain model on every
 * instruction set and thread count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "bf16_model.h"
#include "kernel/conv/conv_bf16.h"

typedef struct conv_data {
    sti_conv_shape s;
    sti_bf16 *x, *y, *dx; /* y doubles as dy */
    sti_bf16 *dy;
    float *w, *dw, *bias;
    uint8_t *mask;
    float *want_y, *want_dx, *want_dw;
    int64_t x_count, w_count, y_count;
    bool relu;
} conv_data;

/* One output element of some direction. */
typedef struct element {
    const conv_data *d;
    int64_t image, y, x, channel; /* of y or dx; of dw: tap i, tap j, c, f */
    int64_t taps_y, taps_x, last_i,
        last_j; /* backward data: taps in descending order */
} element;

static float read_pixel(const sti_bf16 *t, int64_t h, int64_t w, int64_t c,
                        int64_t image, int64_t y, int64_t x, int64_t channel)
{
    if (y < 0 || y >= h || x < 0 || x >= w || channel >= c)
        return 0.0F;
    return sti_bf16_to_f32(t[((image * h + y) * w + x) * c + channel]);
}

static float weight_at(const conv_data *d, int64_t i, int64_t j, int64_t c, int64_t f)
{
    const sti_conv_shape *s = &d->s;
    if (c >= s->ci || f >= s->co)
        return 0.0F;
    return sti_bf16_to_f32(
        sti_bf16_from_f32(d->w[((i * s->kw + j) * s->ci + c) * s->co + f]));
}

static int64_t even(int64_t c)
{
    return (c + 1) / 2 * 2;
}

static float forward_a(const void *arg, int64_t k)
{
    const element *e = arg;
    const sti_conv_shape *s = &e->d->s;
    const int64_t tap = k / even(s->ci);
    return read_pixel(e->d->x, s->h, s->w, s->ci, e->image,
                      e->y * s->stride - s->pad + tap / s->kw,
                      e->x * s->stride - s->pad + tap % s->kw, k % even(s->ci));
}

static float forward_b(const void *arg, int64_t k)
{
    const element *e = arg;
    const sti_conv_shape *s = &e->d->s;
    const int64_t tap = k / even(s->ci);
    return weight_at(e->d, tap / s->kw, tap % s->kw, k % even(s->ci), e->channel);
}

static float data_a(const void *arg, int64_t k)
{
    const element *e = arg;
    const sti_conv_shape *s = &e->d->s;
    const int64_t tap = k / even(s->co);
    const int64_t i = e->last_i - tap / e->taps_x * s->stride;
    const int64_t j = e->last_j - tap % e->taps_x * s->stride;
    return read_pixel(e->d->dy, s->oh, s->ow, s->co, e->image,
                      (e->y + s->pad - i) / s->stride, (e->x + s->pad - j) / s->stride,
                      k % even(s->co));
}

static float data_b(const void *arg, int64_t k)
{
    const element *e = arg;
    const sti_conv_shape *s = &e->d->s;
    const int64_t tap = k / even(s->co);
    return weight_at(e->d, e->last_i - tap / e->taps_x * s->stride,
                     e->last_j - tap % e->taps_x * s->stride, e->channel,
                     k % even(s->co));
}

/* k of a group of the weight gradient, which begins at an image and a row: the row of
 * the widened images, and the column. */
typedef struct place {
    int64_t image, y, x;
    bool there; /* an output pixel, not padding */
} place;

typedef struct weight_element {
    element e;
    int64_t image, images, row, rows; /* the group */
    int64_t length;                   /* L */
} weight_element;

static place place_of(const weight_element *w, int64_t k)
{
    const sti_conv_shape *s = &w->e.d->s;
    const int64_t height = w->rows + (s->kh - 1) / s->stride;
    const int64_t row = k / w->length;
    place p = {w->image + row / height, w->row + row % height, k % w->length, true};
    p.there = row % height < w->rows && p.x < s->ow;
    return p;
}

static float weight_a(const void *arg, int64_t k)
{
    const weight_element *w = arg;
    const element *e = &w->e;
    const sti_conv_shape *s = &e->d->s;
    const place p = place_of(w, k);
    return p.there ? read_pixel(e->d->x, s->h, s->w, s->ci, p.image,
                                p.y * s->stride - s->pad + e->image,
                                p.x * s->stride - s->pad + e->y, e->x)
                   : 1.0F;
}

static float weight_b(const void *arg, int64_t k)
{
    const weight_element *w = arg;
    const sti_conv_shape *s = &w->e.d->s;
    const place p = place_of(w, k);
    return p.there ? read_pixel(w->e.d->dy, s->oh, s->ow, s->co, p.image, p.y, p.x,
                                w->e.channel)
                   : 0.0F;
}

/* Groups first .. end, one after the other. */
static float weight_chunk(weight_element *w, const sti_conv_bf16_groups *g,
                          int64_t first, int64_t end)
{
    const sti_conv_shape *s = &w->e.d->s;
    const int64_t cuts = g->images > 1 ? 1 : (s->oh + g->rows - 1) / g->rows;
    float sum = 0.0F;
    for (int64_t i = first; i < end; i++) {
        w->image = i / cuts * g->images;
        w->images = s->n - w->image < g->images ? s->n - w->image : g->images;
        w->row = i % cuts * g->rows;
        w->rows = s->oh - w->row < g->rows ? s->oh - w->row : g->rows;
        const int64_t height = w->rows + (s->kh - 1) / s->stride;
        const int64_t rows = (w->images - 1) * height + w->rows;
        sum = model_bf16_sum(weight_a, weight_b, w, 0, (rows - 1) * w->length + s->ow,
                             sum);
    }
    return sum;
}

static float weight_tree(weight_element *w, const sti_conv_bf16_groups *g, int64_t low,
                         int64_t high, int64_t groups)
{
    if (high - low <= 1) {
        const int64_t end = (low + 1) * g->groups;
        return weight_chunk(w, g, low * g->groups, end < groups ? end : groups);
    }
    int64_t half = 1;
    while (2 * half < high - low)
        half *= 2;
    return weight_tree(w, g, low, low + half, groups) +
           weight_tree(w, g, low + half, high, groups);
}

/* Rows of taps, each padded to whole blocks. */
static float sum_of(model_bf16_operand *a, model_bf16_operand *b, const element *e,
                    int64_t line, int64_t lines)
{
    float sum = 0.0F;
    for (int64_t i = 0; i < lines; i++)
        sum = model_bf16_sum(a, b, e, i * line, (i + 1) * line, sum);
    return sum;
}

/* Whether the model computes this element. */
static bool sampled(const float *want, const float *out)
{
    return (out - want) % MODEL_STEP == 0;
}

static void model_forward(conv_data *d)
{
    const sti_conv_shape *s = &d->s;
    float *out = d->want_y;
    element e = {.d = d};
    for (e.image = 0; e.image < s->n; e.image++)
        for (e.y = 0; e.y < s->oh; e.y++)
            for (e.x = 0; e.x < s->ow; e.x++)
                for (e.channel = 0; e.channel < s->co; e.channel++, out++) {
                    if (!sampled(d->want_y, out))
                        continue;
                    float y =
                        sum_of(forward_a, forward_b, &e, s->kw * even(s->ci), s->kh);
                    y = d->bias ? y + d->bias[e.channel] : y;
                    *out = d->relu && y <= 0.0F ? 0.0F : y;
                }
}

/* Taps of one axis that meet pixel p: how many, and the last. */
static int64_t taps_of(int64_t p, int64_t window, const sti_conv_shape *s,
                       int64_t *last)
{
    int64_t count = 0;
    for (int64_t t = 0; t < window; t++)
        if ((p + s->pad - t) % s->stride == 0) {
            count++;
            *last = t;
        }
    return count;
}

static void model_data(conv_data *d)
{
    const sti_conv_shape *s = &d->s;
    float *out = d->want_dx;
    element e = {.d = d};
    for (e.image = 0; e.image < s->n; e.image++)
        for (e.y = 0; e.y < s->h; e.y++)
            for (e.x = 0; e.x < s->w; e.x++)
                for (e.channel = 0; e.channel < s->ci; e.channel++, out++) {
                    if (!sampled(d->want_dx, out))
                        continue;
                    e.taps_y = taps_of(e.y, s->kh, s, &e.last_i);
                    e.taps_x = taps_of(e.x, s->kw, s, &e.last_j);
                    *out = e.taps_x && e.taps_y
                               ? sum_of(data_a, data_b, &e, e.taps_x * even(s->co),
                                        e.taps_y)
                               : 0.0F;
                }
}

static void model_weight(conv_data *d)
{
    const sti_conv_shape *s = &d->s;
    const sti_conv_bf16_groups g = sti_conv_bf16_weight_groups(s);
    const int64_t cuts = g.images > 1 ? 1 : (s->oh + g.rows - 1) / g.rows;
    const int64_t groups = (s->n + g.images - 1) / g.images * cuts;
    const int64_t chunks = (groups + g.groups - 1) / g.groups;
    float *out = d->want_dw;
    weight_element w = {.e = {.d = d}};
    while (s->stride * w.length < (s->ow - 1) * s->stride + s->kw)
        w.length++;
    if (w.length > s->ow && w.length >= (s->ow + 3) / 4 * 4)
        while (w.length % 4 != 0)
            w.length++;
    assert_int_equal(w.length, sti_conv_bf16_weight_length(s));
    for (w.e.image = 0; w.e.image < s->kh; w.e.image++)
        for (w.e.y = 0; w.e.y < s->kw; w.e.y++)
            for (w.e.x = 0; w.e.x < s->ci; w.e.x++)
                for (w.e.channel = 0; w.e.channel < s->co; w.e.channel++, out++)
                    if (sampled(d->want_dw, out))
                        *out = weight_tree(&w, &g, 0, chunks, groups);
}

static void check_bf16(const conv_data *d, const char *what, const sti_bf16 *got,
                       const float *want, int64_t count)
{
    const sti_conv_shape *s = &d->s;
    for (int64_t i = 0; i < count; i += MODEL_STEP)
        if (got[i] != sti_bf16_from_f32(want[i]))
            fail_msg("%s: n %lld h %lld w %lld ci %lld co %lld k %lldx%lld stride %lld "
                     "pad %lld: element %lld is %a, wanted %a",
                     what, (long long)s->n, (long long)s->h, (long long)s->w,
                     (long long)s->ci, (long long)s->co, (long long)s->kh,
                     (long long)s->kw, (long long)s->stride, (long long)s->pad,
                     (long long)i, (double)sti_bf16_to_f32(got[i]), (double)want[i]);
}

static void run_threads(conv_data *d, int threads, const char *what)
{
    const sti_team team = {threads};
    const sti_conv_shape *s = &d->s;
    const sti_epilogue e = {.bias = d->bias, .relu = d->relu, .relu_mask = d->mask};
    sti_conv_plan plan = sti_conv_plan_bf16(s, STI_CONV_FORWARD, threads);
    void *scratch = guarded_alloc(plan.scratch_bytes);
    sti_conv_bf16_forward(&team, &plan, d->x, d->w, &e, d->y, scratch);
    check_bf16(d, what, d->y, d->want_y, d->y_count);
    for (int64_t i = 0; i < d->y_count; i++)
        assert_int_equal(d->mask[i / 8] >> i % 8 & 1, sti_bf16_to_f32(d->y[i]) > 0.0F);
    guarded_free(scratch);
    plan = sti_conv_plan_bf16(s, STI_CONV_BACKWARD_DATA, threads);
    scratch = guarded_alloc(plan.scratch_bytes);
    sti_conv_bf16_data(&team, &plan, d->dy, d->w, d->dx, scratch);
    check_bf16(d, what, d->dx, d->want_dx, d->x_count);
    guarded_free(scratch);
    plan = sti_conv_plan_bf16(s, STI_CONV_BACKWARD_WEIGHT, threads);
    scratch = guarded_alloc(plan.scratch_bytes);
    sti_conv_bf16_weight(&team, &plan, d->x, d->dy, d->dw, scratch);
    for (int64_t i = 0; i < d->w_count; i += MODEL_STEP)
        if (memcmp(&d->dw[i], &d->want_dw[i], 4) != 0)
            fail_msg("%s: dw: n %lld h %lld w %lld ci %lld co %lld k %lldx%lld stride "
                     "%lld pad %lld: element %lld is %a, wanted %a",
                     what, (long long)s->n, (long long)s->h, (long long)s->w,
                     (long long)s->ci, (long long)s->co, (long long)s->kh,
                     (long long)s->kw, (long long)s->stride, (long long)s->pad,
                     (long long)i, (double)d->dw[i], (double)d->want_dw[i]);
    guarded_free(scratch);
}

static void try_conv(uint64_t seed, sti_conv_shape s, bool bias, bool relu)
{
    model_rng r = {seed};
    s.groups = 1;
    s.oh = sti_conv_out_length(s.h, s.kh, s.stride, s.pad);
    s.ow = sti_conv_out_length(s.w, s.kw, s.stride, s.pad);
    if (s.oh < 1 || s.ow < 1)
        return;
    conv_data d = {.s = s, .relu = relu};
    d.x_count = s.n * s.h * s.w * s.ci;
    d.w_count = s.kh * s.kw * s.ci * s.co;
    d.y_count = s.n * s.oh * s.ow * s.co;
    d.x = guarded_alloc((size_t)d.x_count * 2);
    d.dx = guarded_alloc((size_t)d.x_count * 2);
    d.y = guarded_alloc((size_t)d.y_count * 2);
    d.dy = guarded_alloc((size_t)d.y_count * 2);
    d.w = guarded_alloc((size_t)d.w_count * 4);
    d.dw = guarded_alloc((size_t)d.w_count * 4);
    d.bias = bias ? guarded_alloc((size_t)s.co * 4) : NULL;
    d.mask = guarded_alloc((size_t)(d.y_count + 7) / 8);
    d.want_y = guarded_alloc((size_t)d.y_count * 4);
    d.want_dx = guarded_alloc((size_t)d.x_count * 4);
    d.want_dw = guarded_alloc((size_t)d.w_count * 4);
    model_bf16_fill(&r, d.x, d.x_count);
    model_bf16_fill(&r, d.dy, d.y_count);
    model_fill(&r, d.w, d.w_count);
    if (bias)
        model_fill(&r, d.bias, s.co);
    model_forward(&d);
    model_data(&d);
    model_weight(&d);
    for (int way = 0; way < MODEL_BF16_WAYS; way++)
        for (int threads = 1;
             threads <= (MODEL_SANITIZED && way == 0 ? 1 : 3) && model_bf16_force(way);
             threads += 1 + MODEL_SANITIZED) {
            char what[64];
            snprintf(what, sizeof what, "way %d, %d threads", way, threads);
            run_threads(&d, threads, what);
        }
    guarded_free(d.x);
    guarded_free(d.dx);
    guarded_free(d.y);
    guarded_free(d.dy);
    guarded_free(d.w);
    guarded_free(d.dw);
    guarded_free(d.bias);
    guarded_free(d.mask);
    guarded_free(d.want_y);
    guarded_free(d.want_dx);
    guarded_free(d.want_dw);
}

#define CONV(N, H, W, CI, CO, K, S, P) \
    ((sti_conv_shape){.n = (N),        \
                      .h = (H),        \
                      .w = (W),        \
                      .ci = (CI),      \
                      .co = (CO),      \
                      .kh = (K),       \
                      .kw = (K),       \
                      .stride = (S),   \
                      .pad = (P)})

static void test_usual(void **state)
{
    (void)state;
    try_conv(1, CONV(2, 9, 32, 16, 16, 3, 1, 1), false, true);
    try_conv(2, CONV(1, 6, 16, 32, 32, 3, 1, 1), true, true);
    try_conv(3, CONV(2, 8, 8, 32, 64, 3, 2, 1), true, false);
    try_conv(4, CONV(2, 10, 10, 3, 16, 3, 1, 1), false, true);
    try_conv(5, CONV(2, 8, 8, 16, 32, 1, 2, 0), false, false);
    try_conv(6, CONV(2, 5, 7, 24, 40, 1, 1, 0), true, true);
    try_conv(7, CONV(1, 23, 23, 3, 8, 7, 2, 3), true, true);
    try_conv(8, CONV(3, 7, 7, 5, 49, 3, 1, 1), true, false);
}

static void test_random(void **state)
{
    (void)state;
    model_rng r = {11};
    for (int i = 0; i < MODEL_ROUNDS(60); i++) {
        sti_conv_shape s = {.n = model_between(&r, 1, 3),
                            .h = model_between(&r, 1, 11),
                            .w = model_between(&r, 1, 11),
                            .ci = i % 3 ? model_between(&r, 1, 17)
                                        : model_between(&r, 16, 70),
                            .co = model_between(&r, 1, 35),
                            .kh = model_between(&r, 1, 4),
                            .kw = model_between(&r, 1, 4),
                            .stride = model_between(&r, 1, 3),
                            .pad = model_between(&r, 0, 3)};
        try_conv(50 + (uint64_t)i, s, i % 2, i % 3 == 0);
    }
}

static void check_empty(sti_conv_shape s, int threads)
{
    const sti_team team = {threads};
    s.oh = sti_conv_out_length(s.h, s.kh, s.stride, s.pad);
    s.ow = sti_conv_out_length(s.w, s.kw, s.stride, s.pad);
    const size_t x_bytes = (size_t)(s.n * s.h * s.w * s.ci) * sizeof(sti_bf16);
    const size_t w_bytes = (size_t)(s.kh * s.kw * s.ci * s.co) * sizeof(float);
    sti_bf16 *x = guarded_nan_alloc(x_bytes), *dx = guarded_nan_alloc(x_bytes),
             *y = guarded_nan_alloc(0);
    float *w = guarded_nan_alloc(w_bytes), *dw = guarded_nan_alloc(w_bytes);
    const sti_conv_plan forward = sti_conv_plan_bf16(&s, STI_CONV_FORWARD, threads);
    assert_int_equal(forward.scratch_bytes, 0);
    const sti_conv_plan data = sti_conv_plan_bf16(&s, STI_CONV_BACKWARD_DATA, threads);
    assert_int_equal(data.scratch_bytes, 0);
    const sti_conv_plan weight =
        sti_conv_plan_bf16(&s, STI_CONV_BACKWARD_WEIGHT, threads);
    assert_int_equal(weight.scratch_bytes, 0);
    sti_conv_bf16_forward(&team, &forward, x, w, NULL, y, NULL);
    sti_conv_bf16_data(&team, &data, y, w, dx, NULL);
    sti_conv_bf16_weight(&team, &weight, x, y, dw, NULL);
    guarded_free_zeros(dx, x_bytes);
    guarded_free_zeros(dw, w_bytes);
    guarded_free(x);
    guarded_free(w);
    guarded_free(y);
}

/* Windows that fit nowhere, or no images: no y, and gradients of zeros. */
static void test_empty(void **state)
{
    static const sti_conv_shape shapes[] = {
        /* n, h, w, ci, co, kh, kw, stride, pad, groups */
        {7, 5, 3, 13, 16, 5, 5, 7, 0, 1, 0, 0, false}, /* ow alone is 0 */
        {1, 16, 1, 32, 48, 3, 3, 1, 0, 1, 0, 0, false},
        {2, 2, 19, 16, 96, 3, 3, 1, 0, 1, 0, 0, false}, /* oh alone */
        {3, 2, 2, 5, 3, 3, 3, 1, 0, 1, 0, 0, false},    /* both */
        {0, 9, 9, 16, 32, 3, 3, 1, 1, 1, 0, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int threads = 1; threads <= 2; threads++)
            check_empty(shapes[i], threads);
}

/* Sums of several chunks: many channels, many pixels. */
static void test_chunks(void **state)
{
    (void)state;
    try_conv(21, CONV(1, 3, 3, 700, 3, 3, 1, 1), true, true);
    try_conv(22, CONV(1, 3, 3, 2, 900, 3, 1, 1), false, false);
    try_conv(23, CONV(1, 1, 2, 4099, 2, 1, 1, 0), false, false);
    try_conv(24, CONV(3, 64, 63, 2, 3, 1, 1, 0), false, false);
    try_conv(25, CONV(12, 61, 64, 1, 2, 2, 1, 0), false, false);
}

enum { SPECIAL_OUT = 8 * 8 * 20 };

/* Forward, data and weight gradient with this x and dy, one way after the other. */
static void all_passes(const sti_conv_shape *s, bool relu, const sti_bf16 *x,
                       const sti_bf16 *dy, const float *w, sti_bf16 *y, sti_bf16 *dx,
                       float *dw)
{
    const sti_epilogue e = {.relu = relu};
    const sti_team *team = &sti_team_serial;
    sti_conv_plan plan = sti_conv_plan_bf16(s, STI_CONV_FORWARD, 1);
    void *scratch = guarded_alloc(plan.scratch_bytes);
    sti_conv_bf16_forward(team, &plan, x, w, &e, y, scratch);
    guarded_free(scratch);
    plan = sti_conv_plan_bf16(s, STI_CONV_BACKWARD_DATA, 1);
    scratch = guarded_alloc(plan.scratch_bytes);
    sti_conv_bf16_data(team, &plan, dy, w, dx, scratch);
    guarded_free(scratch);
    plan = sti_conv_plan_bf16(s, STI_CONV_BACKWARD_WEIGHT, 1);
    scratch = guarded_alloc(plan.scratch_bytes);
    sti_conv_bf16_weight(team, &plan, x, dy, dw, scratch);
    guarded_free(scratch);
}

static void same_or_nan(float got, float want, int way, const char *what, int64_t i)
{
    if (isnan(got) != isnan(want) || (!isnan(want) && !(got == want)))
        fail_msg("way %d: %s: element %lld is %a, wanted %a", way, what, (long long)i,
                 (double)got, (double)want);
}

/* Infinities and NaN meet the same zeros everywhere, those of padding included: nothing
 * may be left out then. */
static void test_special(void **state)
{
    (void)state;
    sti_conv_shape s = CONV(1, 8, 8, 20, 20, 3, 1, 1);
    s.groups = 1;
    s.oh = s.ow = 8;
    const float special[] = {INFINITY, -INFINITY, NAN};
    model_rng r = {31};
    static sti_bf16 x[SPECIAL_OUT], dy[SPECIAL_OUT], y[2][SPECIAL_OUT],
        dx[2][SPECIAL_OUT];
    static float w[9 * 20 * 20], dw[2][9 * 20 * 20];
    for (int round = 0; round < 6; round++) {
        model_bf16_fill(&r, x, SPECIAL_OUT);
        model_bf16_fill(&r, dy, SPECIAL_OUT);
        model_fill(&r, w, 9 * 20 * 20);
        x[model_random(&r) % SPECIAL_OUT] = sti_bf16_from_f32(special[round % 3]);
        if (round > 2)
            dy[model_random(&r) % SPECIAL_OUT] = sti_bf16_from_f32(special[round % 3]);
        for (int way = 0; way < MODEL_BF16_WAYS; way++) {
            const int at = way > 0;
            if (!model_bf16_force(way))
                continue;
            all_passes(&s, round % 2 == 0, x, dy, w, y[at], dx[at], dw[at]);
            for (int64_t i = 0; i < SPECIAL_OUT; i++) {
                same_or_nan(sti_bf16_to_f32(y[at][i]), sti_bf16_to_f32(y[0][i]), way,
                            "y", i);
                same_or_nan(sti_bf16_to_f32(dx[at][i]), sti_bf16_to_f32(dx[0][i]), way,
                            "dx", i);
            }
            for (int64_t i = 0; i < 9 * 20 * 20; i++)
                same_or_nan(dw[at][i], dw[0][i], way, "dw", i);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual),   cmocka_unit_test(test_random),
        cmocka_unit_test(test_chunks),  cmocka_unit_test(test_empty),
        cmocka_unit_test(test_special),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
