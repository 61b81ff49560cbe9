/* Convolutions by minimal filtering are bit-equal to a scalar model of the documented
 * sums on every instruction set and number of threads, and close to the definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "gemm_model.h"
#include "kernel/conv/conv.h"

enum { CHUNK_TILES = 4096 };

typedef struct conv_data {
    sti_conv_shape s;
    float *x, *w, *y, *dw, *dx, *bias; /* y doubles as dy */
    float *want_y, *want_dx, *want_dw, *squares;
    uint8_t *mask;
    int64_t x_count, w_count, y_count;
    bool use_bias, relu;
} conv_data;

/* Each takes values `step` apart; results are `step` apart where step > 1, else 1. */
static void take_input(const float *d, int step, float *v)
{
    v[0] = d[0] - d[2 * step];
    v[step] = d[step] + d[2 * step];
    v[2 * step] = d[2 * step] - d[step];
    v[3 * step] = d[step] - d[3 * step];
}

static void take_output(const float *m, int step, float *y)
{
    y[0] = (m[0] + m[step]) + m[2 * step];
    y[step] = (m[step] - m[2 * step]) - m[3 * step];
}

static void take_filter(const float *g, int step, float *u)
{
    const float ends = g[0] + g[2 * step];
    const float g1 = g[step], g2 = g[2 * step];
    u[0] = g[0];
    u[step] = (ends + g1) * 0.5F;
    u[2 * step] = (ends - g1) * 0.5F;
    u[3 * step] = g2;
}

static void take_output_grad(const float *d, int step, float *v)
{
    const float d0 = d[0], d1 = d[step];
    v[0] = d0;
    v[step] = d0 + d1;
    v[2 * step] = d0 - d1;
    v[3 * step] = -d1;
}

static void take_filter_grad(const float *u, int step, float *g)
{
    const float sum = (u[step] + u[2 * step]) * 0.5F;
    const float difference = (u[step] - u[2 * step]) * 0.5F;
    g[0] = u[0] + sum;
    g[step] = difference;
    g[2 * step] = sum + u[3 * step];
}

static void input_tile(const float *d, float *v)
{
    float half[16];
    for (int j = 0; j < 4; j++)
        take_input(d + j, 4, half + j);
    for (int i = 0; i < 4; i++)
        take_input(half + 4 * i, 1, v + 4 * i);
}

/* The values that a tile reads: [size][size] from line y0, pixel x0. */
static void window(const float *image, int64_t h, int64_t w, int64_t c, int64_t y0,
                   int64_t x0, int64_t channel, int size, float *out)
{
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            const int64_t y = y0 + i, x = x0 + j;
            out[i * size + j] = y < 0 || x < 0 || y >= h || x >= w
                                    ? 0.0F
                                    : image[(y * w + x) * c + channel];
        }
}

/* What forward and backward data have in common: a plain convolution of `in` with
 * filters given by a function. */
typedef struct plain {
    const conv_data *d;
    const float *in;
    int64_t n, h, w, c, pad, oh, ow, co;
    bool turned;
} plain;

static void filter_of(const plain *p, int64_t c, int64_t f, float *u)
{
    const sti_conv_shape *s = &p->d->s;
    float g[9];
    for (int t = 0; t < 9; t++)
        g[t] = p->turned ? p->d->w[((8 - t) * s->ci + f) * s->co + c]
                         : p->d->w[(t * s->ci + c) * s->co + f];
    float half[12]; /* 4 x 3 */
    for (int j = 0; j < 3; j++)
        take_filter(g + j, 3, half + j);
    for (int i = 0; i < 4; i++)
        take_filter(half + 3 * i, 1, u + 4 * i);
}

static void want_plain(const plain *p, float *out)
{
    const int64_t tiles_y = (p->oh + 1) / 2, tiles_x = (p->ow + 1) / 2;
    float *u = malloc((size_t)(p->c * p->co * 16) * sizeof *u);
    float *v = malloc((size_t)(p->c * 16) * sizeof *v);
    assert_true(u && v);
    for (int64_t c = 0; c < p->c; c++)
        for (int64_t f = 0; f < p->co; f++)
            filter_of(p, c, f, u + (c * p->co + f) * 16);
    for (int64_t t = 0; t < p->n * tiles_y * tiles_x; t++) {
        const int64_t image = t / tiles_x / tiles_y;
        const int64_t y0 = t / tiles_x % tiles_y * 2, x0 = t % tiles_x * 2;
        for (int64_t c = 0; c < p->c; c++) {
            float d[16];
            window(p->in + image * p->h * p->w * p->c, p->h, p->w, p->c, y0 - p->pad,
                   x0 - p->pad, c, 4, d);
            input_tile(d, v + 16 * c);
        }
        for (int64_t f = 0; f < p->co; f++) {
            float m[16], y[8];
            for (int e = 0; e < 16; e++) {
                m[e] = 0.0F;
                for (int64_t c = 0; c < p->c; c++)
                    m[e] = fmaf(v[16 * c + e], u[(c * p->co + f) * 16 + e], m[e]);
            }
            for (int j = 0; j < 4; j++)
                take_output(m + j, 4, y + j);
            for (int i = 0; i < 2; i++) {
                float pair[2];
                take_output(y + 4 * i, 1, pair);
                for (int k = 0; k < 2; k++)
                    if (y0 + i < p->oh && x0 + k < p->ow)
                        out[((image * p->oh + y0 + i) * p->ow + x0 + k) * p->co + f] =
                            pair[k];
            }
        }
    }
    free(u);
    free(v);
}

/* Sum of one element over the rows of tiles of chunks [low, high). */
static float tile_sums(const conv_data *d, int64_t c, int64_t f, int e, int64_t low,
                       int64_t high)
{
    const sti_conv_shape *s = &d->s;
    const int64_t tiles_y = (s->oh + 1) / 2, tiles_x = (s->ow + 1) / 2;
    const int64_t rows = CHUNK_TILES / tiles_x > 0 ? CHUNK_TILES / tiles_x : 1;
    if (high - low > 1) {
        int64_t half = 1;
        while (half * 2 < high - low)
            half *= 2;
        return tile_sums(d, c, f, e, low, low + half) +
               tile_sums(d, c, f, e, low + half, high);
    }
    float sum = 0.0F;
    for (int64_t r = low * rows; r < (low + 1) * rows && r < s->n * tiles_y; r++)
        for (int64_t t = 0; t < tiles_x; t++) {
            const int64_t image = r / tiles_y, y0 = r % tiles_y * 2;
            float x[16], v[16], y[4], g[8], u[16];
            window(d->x + image * s->h * s->w * s->ci, s->h, s->w, s->ci, y0 - s->pad,
                   2 * t - s->pad, c, 4, x);
            input_tile(x, v);
            window(d->y + image * s->oh * s->ow * s->co, s->oh, s->ow, s->co, y0, 2 * t,
                   f, 2, y);
            for (int j = 0; j < 2; j++)
                take_output_grad(y + j, 2, g + j);
            for (int i = 0; i < 4; i++)
                take_output_grad(g + 2 * i, 1, u + 4 * i);
            sum = fmaf(v[e], u[e], sum);
        }
    return sum;
}

static float want_weight(const conv_data *d, int64_t tap, int64_t c, int64_t f)
{
    const sti_conv_shape *s = &d->s;
    const int64_t tiles_y = (s->oh + 1) / 2, tiles_x = (s->ow + 1) / 2;
    const int64_t rows = CHUNK_TILES / tiles_x > 0 ? CHUNK_TILES / tiles_x : 1;
    const int64_t chunks = (s->n * tiles_y + rows - 1) / rows;
    float u[16], half[12], g[3];
    for (int e = 0; e < 16; e++)
        u[e] = tile_sums(d, c, f, e, 0, chunks);
    for (int j = 0; j < 4; j++)
        take_filter_grad(u + j, 4, half + j);
    take_filter_grad(half + tap / 3 * 4, 1, g);
    return g[tap % 3];
}

static void data_make(conv_data *d, model_rng *rng)
{
    sti_conv_shape *s = &d->s;
    s->kh = s->kw = 3;
    s->stride = s->groups = 1;
    s->winograd = true;
    s->oh = sti_conv_out_length(s->h, 3, 1, s->pad);
    s->ow = sti_conv_out_length(s->w, 3, 1, s->pad);
    assert_true(sti_conv_winograd_fits(s));
    d->x_count = s->n * s->h * s->w * s->ci;
    d->w_count = 9 * s->ci * s->co;
    d->y_count = s->n * s->oh * s->ow * s->co;
    float **const all[] = {&d->x,    &d->w,      &d->y,       &d->dw,      &d->dx,
                           &d->bias, &d->want_y, &d->want_dx, &d->want_dw, &d->squares};
    const int64_t counts[] = {d->x_count, d->w_count, d->y_count, d->w_count,
                              d->x_count, s->co,      d->y_count, d->x_count,
                              d->w_count, s->co};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i] = model_floats(counts[i]);
        assert_non_null(*all[i]);
    }
    d->mask = guarded_alloc((size_t)(d->y_count + 7) / 8);
    assert_non_null(d->mask);
    model_fill(rng, d->x, d->x_count);
    model_fill(rng, d->w, d->w_count);
    model_fill(rng, d->y, d->y_count);
    model_fill(rng, d->bias, s->co);
}

static void data_free(conv_data *d)
{
    float *const all[] = {d->x,    d->w,      d->y,       d->dw,      d->dx,
                          d->bias, d->want_y, d->want_dx, d->want_dw, d->squares};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        model_free(all[i]);
    guarded_free(d->mask);
}

static void want_all(conv_data *d)
{
    const sti_conv_shape *s = &d->s;
    want_plain(
        &(plain){d, d->x, s->n, s->h, s->w, s->ci, s->pad, s->oh, s->ow, s->co, false},
        d->want_y);
    want_plain(&(plain){d, d->y, s->n, s->oh, s->ow, s->co, 2 - s->pad, s->h, s->w,
                        s->ci, true},
               d->want_dx);
    for (int64_t i = 0; i < d->y_count; i++) {
        float y = d->want_y[i];
        y = d->use_bias ? y + d->bias[i % s->co] : y;
        d->want_y[i] = d->relu && !(y > 0.0F) ? 0.0F : y;
    }
}

static void expect(const conv_data *d, const char *what, int threads, const float *got,
                   const float *want, int64_t count)
{
    const sti_conv_shape *s = &d->s;
    const int64_t at = model_differ(got, want, count);
    if (at >= 0)
        fail_msg("%s, %s, %d threads: n %d h %d w %d ci %d co %d pad %d: element %d is "
                 "%a, want %a",
                 what, sti_isa_name(sti_isa_now()), threads, (int)s->n, (int)s->h,
                 (int)s->w, (int)s->ci, (int)s->co, (int)s->pad, (int)at,
                 (double)got[at], (double)want[at]);
}

static void run_gradients(conv_data *d, int threads)
{
    const sti_team team = {threads};
    const sti_conv_shape *s = &d->s;
    sti_conv_plan plan = sti_conv_plan_f32(s, STI_CONV_BACKWARD_DATA, threads);
    char *scratch = guarded_alloc(plan.scratch_bytes);
    memset(d->dx, 0xFF, (size_t)d->x_count * sizeof *d->dx);
    sti_conv_backward_data_f32(&team, &plan, d->y, d->w, d->dx, scratch);
    guarded_free(scratch);
    expect(d, "data", threads, d->dx, d->want_dx, d->x_count);
    plan = sti_conv_plan_f32(s, STI_CONV_BACKWARD_WEIGHT, threads);
    scratch = guarded_alloc(plan.scratch_bytes);
    memset(d->dw, 0xFF, (size_t)d->w_count * sizeof *d->dw);
    sti_conv_backward_weight_f32(&team, &plan, d->x, d->y, d->dw,
                                 d->use_bias ? d->squares : NULL, scratch);
    guarded_free(scratch);
    expect(d, "weight", threads, d->dw, d->want_dw, d->w_count);
}

/* Overwrites y. */
static void run_forward(conv_data *d, int threads)
{
    const sti_team team = {threads};
    const sti_conv_shape *s = &d->s;
    const sti_epilogue e = {.bias = d->use_bias ? d->bias : NULL,
                            .relu = d->relu,
                            .relu_mask = d->relu ? d->mask : NULL};
    sti_conv_plan plan = sti_conv_plan_f32(s, STI_CONV_FORWARD, threads);
    void *scratch = guarded_alloc(plan.scratch_bytes);
    memset(d->y, 0xFF, (size_t)d->y_count * sizeof *d->y);
    sti_conv_forward_f32(&team, &plan, d->x, d->w, &e, d->y, scratch);
    guarded_free(scratch);
    expect(d, "forward", threads, d->y, d->want_y, d->y_count);
    for (int64_t i = 0; d->relu && i < d->y_count; i++)
        assert_int_equal(d->mask[i / 8] >> i % 8 & 1, d->want_y[i] > 0.0F);
}

/* whole_weight: every element of dW by the model, else some, and the rest by agreement
 * of the instruction sets. */
static void check_shape(sti_conv_shape shape, model_rng *rng, bool whole_weight)
{
    conv_data d = {
        .s = shape, .use_bias = model_random(rng) % 2, .relu = model_random(rng) % 2};
    data_make(&d, rng);
    want_all(&d);
    const sti_conv_shape *s = &d.s;
    sti_isa_force(STI_ISA_REF);
    sti_conv_plan plan = sti_conv_plan_f32(s, STI_CONV_BACKWARD_WEIGHT, 1);
    void *scratch = guarded_alloc(plan.scratch_bytes);
    sti_conv_backward_weight_f32(&sti_team_serial, &plan, d.x, d.y, d.want_dw, NULL,
                                 scratch);
    guarded_free(scratch);
    for (int64_t i = 0; i < d.w_count;
         i += whole_weight ? 1 : model_between(rng, 1, d.w_count / 20)) {
        const float want =
            want_weight(&d, i / s->co / s->ci, i / s->co % s->ci, i % s->co);
        if (memcmp(&want, d.want_dw + i, sizeof want) != 0)
            fail_msg("dw[%d] is %a, want %a", (int)i, (double)d.want_dw[i],
                     (double)want);
    }
    for (int forward = 0; forward < 2; forward++)
        for (int isa = 0; isa < STI_ISA_COUNT; isa++)
            for (int threads = 1; threads <= 3 && sti_isa_force((sti_isa)isa);
                 threads++) {
                if (forward)
                    run_forward(&d, threads);
                else
                    run_gradients(&d, threads);
            }
    data_free(&d);
}

#define SHAPE(N, H, W, CI, CO, PAD) \
    ((sti_conv_shape){              \
        .n = (N), .h = (H), .w = (W), .ci = (CI), .co = (CO), .pad = (PAD)})

static void random_shapes(void **state)
{
    model_rng rng = {4242};
    (void)state;
    for (int i = 0; i < MODEL_ROUNDS(24); i++) {
        const int64_t pad = model_between(&rng, 0, 2);
        sti_conv_shape s =
            SHAPE(model_between(&rng, 1, 3), model_between(&rng, 7, 13),
                  model_between(&rng, 7, 13), 16 * model_between(&rng, 1, 3),
                  16 * model_between(&rng, 1, 3), pad);
        if (pad == 0) { /* outputs are smaller */
            s.h += 2;
            s.w += 2;
        }
        if (i % 4 == 0)
            s.ci = s.co = 16; /* filters kept in registers, where there are enough */
        check_shape(s, &rng, false);
    }
}

/* Several chunks of tiles, slices of channels, blocks of rows; far filters. */
static void chosen_shapes(void **state)
{
    model_rng rng = {17};
    (void)state;
    check_shape(SHAPE(1, 8, 8, 16, 32, 1), &rng, true);
    check_shape(SHAPE(2, 9, 130, 16, 48, 1), &rng, false);
    check_shape(SHAPE(2, 9, 66, 16, 16, 1), &rng, false);
    if (MODEL_ROUNDS(8) == 1)
        return;
    check_shape(SHAPE(41, 20, 20, 16, 32, 1), &rng, false); /* 2 chunks of tiles */
    check_shape(SHAPE(1, 8, 7, 208, 336, 1), &rng, false);
}

/* The error against the definition in double, in units of eps * sum |x w|, which bounds
 * one rounding of the largest partial sum; measured 1.4. */
static void close_to_double(void **state)
{
    model_rng rng = {3};
    conv_data d = {.s = SHAPE(1, 12, 12, 64, 64, 1)};
    double worst = 0;
    (void)state;
    data_make(&d, &rng);
    const sti_conv_shape *s = &d.s;
    sti_conv_plan plan = sti_conv_plan_f32(s, STI_CONV_FORWARD, 1);
    void *scratch = guarded_alloc(plan.scratch_bytes);
    sti_conv_forward_f32(&sti_team_serial, &plan, d.x, d.w, NULL, d.y, scratch);
    guarded_free(scratch);
    for (int64_t i = 0; i < d.y_count; i++) {
        const int64_t y = i / s->co / s->ow, x = i / s->co % s->ow;
        double want = 0, magnitude = 0;
        for (int64_t tap = 0; tap < 9; tap++)
            for (int64_t c = 0; c < s->ci; c++) {
                const int64_t r = y + tap / 3 - 1, q = x + tap % 3 - 1;
                if (r < 0 || q < 0 || r >= s->h || q >= s->w)
                    continue;
                const double term = (double)d.x[(r * s->w + q) * s->ci + c] *
                                    (double)d.w[(tap * s->ci + c) * s->co + i % s->co];
                want += term;
                magnitude += fabs(term);
            }
        const double error = fabs((double)d.y[i] - want) / (0x1p-24 * magnitude);
        worst = error > worst ? error : worst;
    }
    print_message("largest error: %.1f eps sum |x w|\n", worst);
    assert_true(worst > 0 && worst < 8);
    data_free(&d);
}

static void which_shapes_fit(void **state)
{
    sti_conv_shape s = SHAPE(1, 8, 8, 16, 32, 1);
    (void)state;
    s.kh = s.kw = 3;
    s.stride = s.groups = 1;
    s.oh = s.ow = 8;
    assert_true(sti_conv_winograd_fits(&s));
    s.oh = 6;
    assert_false(sti_conv_winograd_fits(&s)); /* 12 tiles */
    s.oh = 8;
    s.stride = 2;
    assert_false(sti_conv_winograd_fits(&s));
    s.stride = 1;
    s.co = 16;
    assert_true(sti_conv_winograd_fits(&s));
    s.co = 8;
    assert_false(sti_conv_winograd_fits(&s));
    s.co = 40;
    assert_false(sti_conv_winograd_fits(&s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(chosen_shapes),
        cmocka_unit_test(close_to_double),
        cmocka_unit_test(which_shapes_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
