/* The order of sums that conv.h promises, written as plainly as can be: the chain of
 * every output element, forward and of both gradients, and tensors with what they must
 * become. */
#ifndef STI_TESTS_CONV_MODEL_H
#define STI_TESTS_CONV_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gemm_model.h"
#include "kernel/conv/conv.h"

typedef struct conv_data {
    sti_conv_shape s;
    float *x, *w, *y, *dw; /* y doubles as dy */
    float *bias, *want_y, *want_dx, *want_dw, *squares, *want_squares;
    float *dx;
    uint8_t *mask;
    int64_t x_count, w_count, y_count;
    bool use_bias, relu, use_mask;
} conv_data;

/* One output element of some direction. */
typedef struct element {
    const conv_data *d;
    int64_t image, y, x, channel; /* of y or dx; of dw: tap i, tap j, c, f */
    int64_t taps_x, first_y, first_x;
    bool narrow;
} element;

static inline float read_pixel(const float *t, int64_t h, int64_t w, int64_t c,
                               int64_t image, int64_t y, int64_t x, int64_t channel)
{
    return y < 0 || y >= h || x < 0 || x >= w
               ? 0.0F
               : t[((image * h + y) * w + x) * c + channel];
}

static inline float weight_at(const conv_data *d, int64_t i, int64_t j, int64_t c,
                              int64_t f)
{
    const sti_conv_shape *s = &d->s;
    return d->w[((i * s->kw + j) * (s->ci / s->groups) + c) * s->co + f];
}

/* The narrow order as an index in the usual one. */
static inline int64_t usual_k(bool narrow, int64_t channels, int64_t k)
{
    return narrow ? (k / 3 / channels * 3 + k % 3) * channels + k / 3 % channels : k;
}

static inline float forward_a(const void *arg, int64_t k)
{
    const element *e = arg;
    const sti_conv_shape *s = &e->d->s;
    const int64_t cig = s->ci / s->groups, group = e->channel / (s->co / s->groups);
    k = usual_k(e->narrow, cig, k);
    const int64_t tap = k / cig;
    return read_pixel(e->d->x, s->h, s->w, s->ci, e->image,
                      e->y * s->stride - s->pad + tap / s->kw,
                      e->x * s->stride - s->pad + tap % s->kw, group * cig + k % cig);
}

static inline float forward_b(const void *arg, int64_t k)
{
    const element *e = arg;
    const sti_conv_shape *s = &e->d->s;
    const int64_t cig = s->ci / s->groups;
    k = usual_k(e->narrow, cig, k);
    const int64_t tap = k / cig;
    return weight_at(e->d, tap / s->kw, tap % s->kw, k % cig, e->channel);
}

static inline float data_a(const void *arg, int64_t k)
{
    const element *e = arg;
    const sti_conv_shape *s = &e->d->s;
    const int64_t cog = s->co / s->groups, group = e->channel / (s->ci / s->groups);
    k = usual_k(e->narrow, cog, k);
    const int64_t tap = k / cog;
    const int64_t i = e->first_y + tap / e->taps_x * s->stride;
    const int64_t j = e->first_x + tap % e->taps_x * s->stride;
    return read_pixel(e->d->y, s->oh, s->ow, s->co, e->image,
                      (e->y + s->pad - i) / s->stride -
                          (e->y + s->pad < i ? 1 : 0), /* exact, or negative */
                      (e->x + s->pad - j) / s->stride - (e->x + s->pad < j ? 1 : 0),
                      group * cog + k % cog);
}

static inline float data_b(const void *arg, int64_t k)
{
    const element *e = arg;
    const sti_conv_shape *s = &e->d->s;
    const int64_t cig = s->ci / s->groups, cog = s->co / s->groups;
    k = usual_k(e->narrow, cog, k);
    const int64_t tap = k / cog;
    return weight_at(e->d, e->first_y + tap / e->taps_x * s->stride,
                     e->first_x + tap % e->taps_x * s->stride, e->channel % cig,
                     e->channel / cig * cog + k % cog);
}

/* e: y = tap i, x = tap j, image = c within the group, channel = f */
static inline float grad_a(const void *arg, int64_t k)
{
    const element *e = arg;
    const sti_conv_shape *s = &e->d->s;
    const int64_t cig = s->ci / s->groups, group = e->channel / (s->co / s->groups);
    const int64_t row = k / s->ow;
    return read_pixel(e->d->x, s->h, s->w, s->ci, row / s->oh,
                      row % s->oh * s->stride - s->pad + e->y,
                      k % s->ow * s->stride - s->pad + e->x, group * cig + e->image);
}

/* The operands that many outputs have in common are looked up once: x of a pixel, of an
 * image or of a tap, and w of a channel. A key of -1 has none yet. */
typedef struct operands {
    float *at;
    int64_t key;
} operands;

static inline const float *operands_of(operands *o, int64_t key, model_operand *operand,
                                       const element *e, int64_t k)
{
    if (!o->at) {
        o->at = calloc((size_t)k + 1, sizeof(float));
        assert_non_null(o->at);
        o->key = -1;
    }
    for (int64_t i = 0; i < k && o->key != key; i++)
        o->at[i] = operand(e, i);
    o->key = key;
    return o->at;
}

static inline operands *operands_create(int64_t count)
{
    operands *all = calloc((size_t)count, sizeof *all);
    assert_non_null(all);
    return all;
}

static inline void operands_free(operands *all, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        free(all[i].at);
    free(all);
}

static inline float sum_of(const float *a, const float *b, int64_t b_step, int64_t k)
{
    const model_strided e = {a, b, 1, b_step};
    return model_sum(model_strided_a, model_strided_b, &e, k, 0.0F);
}

static inline void want_forward(conv_data *d)
{
    const sti_conv_shape *s = &d->s;
    const int64_t cog = s->co / s->groups, k = s->kh * s->kw * (s->ci / s->groups);
    operands *a = operands_create(1), *b = operands_create(s->co);
    for (int64_t i = 0; i < d->y_count; i += MODEL_STEP) {
        const element e = {.d = d,
                           .image = i / s->co / s->ow / s->oh,
                           .y = i / s->co / s->ow % s->oh,
                           .x = i / s->co % s->ow,
                           .channel = i % s->co,
                           .narrow = sti_conv_forward_is_narrow(s)};
        const float sum = sum_of(operands_of(a, i / cog, forward_a, &e, k),
                                 operands_of(b + e.channel, 0, forward_b, &e, k), 1, k);
        d->want_y[i] =
            model_epilogue(sum, d->use_bias ? d->bias + e.channel : NULL, d->relu);
    }
    operands_free(a, 1);
    operands_free(b, s->co);
}

static inline void want_data(conv_data *d)
{
    const sti_conv_shape *s = &d->s;
    const int64_t cig = s->ci / s->groups, b_count = s->stride * s->stride * s->ci;
    operands *a = operands_create(1), *b = operands_create(b_count);
    for (int64_t i = 0; i < d->x_count; i += MODEL_STEP) {
        element e = {.d = d,
                     .image = i / s->ci / s->w / s->h,
                     .y = i / s->ci / s->w % s->h,
                     .x = i / s->ci % s->w,
                     .channel = i % s->ci,
                     .narrow = sti_conv_data_is_narrow(s)};
        int64_t taps_y = 0;
        e.first_y = (e.y + s->pad) % s->stride;
        e.first_x = (e.x + s->pad) % s->stride;
        for (int64_t t = e.first_y; t < s->kh; t += s->stride)
            taps_y++;
        for (int64_t t = e.first_x; t < s->kw; t += s->stride)
            e.taps_x++;
        const int64_t most = s->kh * s->kw * (s->co / s->groups);
        const int64_t k = taps_y * e.taps_x * (s->co / s->groups);
        const int64_t at = (e.first_y * s->stride + e.first_x) * s->ci + e.channel;
        if (!a->at)
            operands_of(a, -1, data_a, &e, most); /* room for any pixel */
        d->want_dx[i] = sum_of(operands_of(a, i / cig, data_a, &e, k),
                               operands_of(b + at, 0, data_b, &e, k), 1, k);
    }
    operands_free(a, 1);
    operands_free(b, b_count);
}

static inline void want_weight(conv_data *d)
{
    const sti_conv_shape *s = &d->s;
    const int64_t cig = s->ci / s->groups, cog = s->co / s->groups;
    const int64_t k = s->n * s->oh * s->ow;
    operands *a = operands_create(1);
    for (int64_t i = 0; i < d->w_count; i += MODEL_STEP) {
        const element e = {.d = d,
                           .y = i / s->co / cig / s->kw,
                           .x = i / s->co / cig % s->kw,
                           .image = i / s->co % cig,
                           .channel = i % s->co};
        d->want_dw[i] =
            sum_of(operands_of(a, i / cog, grad_a, &e, k), d->y + e.channel, s->co, k);
    }
    operands_free(a, 1);
}

static inline float grad_b(const void *arg, int64_t k)
{
    const element *e = arg;
    return e->d->y[k * e->d->s.co + e->channel];
}

/* Squares of one channel of dy in every fourth pixel of one chunk. */
typedef struct square_chain {
    const float *dy;
    int64_t step;
} square_chain;

static inline float square_at(const void *arg, int64_t k)
{
    const square_chain *c = arg;
    return c->dy[k * c->step];
}

static inline float square_tree(const conv_data *d, int64_t channel, int64_t chain,
                                int64_t low, int64_t high)
{
    const int64_t co = d->s.co, pixels = d->y_count / co, first = low * 4096 + chain;
    if (high - low == 1) {
        const int64_t end = pixels < high * 4096 ? pixels : high * 4096;
        const square_chain c = {d->y + first * co + channel, 4 * co};
        return model_sum(square_at, square_at, &c,
                         first < end ? (end - first + 3) / 4 : 0, 0.0F);
    }
    int64_t half = 1;
    while (half * 2 < high - low)
        half *= 2;
    return square_tree(d, channel, chain, low, low + half) +
           square_tree(d, channel, chain, low + half, high);
}

static inline void want_squares(conv_data *d)
{
    const int64_t chunks = (d->y_count / d->s.co + 4095) / 4096;
    for (int64_t c = 0; c < d->s.co; c++) {
        float chain[4];
        for (int64_t i = 0; i < 4; i++)
            chain[i] = square_tree(d, c, i, 0, chunks);
        d->want_squares[c] = (chain[0] + chain[1]) + (chain[2] + chain[3]);
    }
}

static inline void data_alloc(conv_data *d, model_rng *rng)
{
    sti_conv_shape *s = &d->s;
    s->oh = sti_conv_out_length(s->h, s->kh, s->stride, s->pad);
    s->ow = sti_conv_out_length(s->w, s->kw, s->stride, s->pad);
    d->x_count = s->n * s->h * s->w * s->ci;
    d->w_count = s->kh * s->kw * (s->ci / s->groups) * s->co;
    d->y_count = s->n * s->oh * s->ow * s->co;
    d->x = model_floats(d->x_count);
    d->dx = model_floats(d->x_count);
    d->want_dx = model_floats(d->x_count);
    d->w = model_floats(d->w_count);
    d->dw = model_floats(d->w_count);
    d->want_dw = model_floats(d->w_count);
    d->y = model_floats(d->y_count);
    d->want_y = model_floats(d->y_count);
    d->bias = model_floats(s->co);
    d->squares = model_floats(s->co);
    d->want_squares = model_floats(s->co);
    d->mask = guarded_alloc((size_t)(d->y_count + 7) / 8);
    assert_non_null(d->mask);
    model_fill(rng, d->x, d->x_count);
    model_fill(rng, d->w, d->w_count);
    model_fill(rng, d->y, d->y_count);
    model_fill(rng, d->bias, s->co);
}

static inline void data_make(conv_data *d, model_rng *rng)
{
    data_alloc(d, rng);
    want_data(d);
    want_weight(d);
    want_squares(d);
    want_forward(d);
}

static inline void data_free(conv_data *d)
{
    float *const all[] = {d->x,    d->dx,      d->want_dx,     d->w,
                          d->dw,   d->want_dw, d->y,           d->want_y,
                          d->bias, d->squares, d->want_squares};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        model_free(all[i]);
    guarded_free(d->mask);
}

#endif
