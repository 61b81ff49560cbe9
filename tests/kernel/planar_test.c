/* Planar convolutions against a scalar chain of fmaf over all weights, zeros included,
 * bit for bit: shapes, strides, paddings, numbers of images, instruction sets, threads.
 */
#include "kernel/planar/planar.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/memory.h"

static uint32_t random_state = 7;

static float uniform(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(random_state >> 8) * 0x1p-23f - 1.0f;
}

static float *values(int64_t count, double keep)
{
    float *x = sti_alloc_array(count, sizeof *x, "test");
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = fabs((double)uniform()) < keep ? uniform() : 0;
    return x;
}

typedef struct example {
    bool shapes; /* of four taps or fewer, any of the 126 */
    sti_planar_shape s;
    bool scale, shift, residual, relu;
    bool nan; /* one of the sums */
    double keep;
} example;

static void keep_shapes(const sti_planar_shape *s, float *w)
{
    for (int64_t k = 0; k < s->channels * s->filters; k++) {
        int left = (int)((double)(uniform() + 1) * 2.5); /* 0 to 4 */
        for (int64_t t = 0; t < 9; t++) {
            float *at = &w[t * s->channels * s->filters + k];
            const bool keep = left > 0 && (9 - t <= left || uniform() > 0);
            *at = keep ? uniform() : 0;
            left -= keep;
        }
    }
}

/* One output, from channels-last x. */
static float expected(const example *e, const float *x, const float *w,
                      const float *scale, const float *shift, const float *residual,
                      int64_t image, int64_t y0, int64_t x0, int64_t f)
{
    const sti_planar_shape *s = &e->s;
    float acc = 0;
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t i = 0; i < s->kh; i++)
            for (int64_t j = 0; j < s->kw; j++) {
                const int64_t r = y0 * s->stride + i - s->pad;
                const int64_t q = x0 * s->stride + j - s->pad;
                const bool inside = r >= 0 && r < s->h && q >= 0 && q < s->w;
                const float at =
                    inside ? x[((image * s->h + r) * s->w + q) * s->channels + c] : 0;
                acc = fmaf(w[((i * s->kw + j) * s->channels + c) * s->filters + f], at,
                           acc);
            }
    if (e->scale)
        acc = fmaf(acc, scale[f], shift[f]);
    else if (e->shift)
        acc += shift[f];
    if (e->residual)
        acc += residual[((image * s->oh + y0) * s->ow + x0) * s->filters + f];
    return e->relu && acc < 0 ? 0 : acc;
}

/* The first of the largest of a window by rows, a NaN before any number; in place. */
static void pool_rows(const sti_planar_shape *s, float *y)
{
    const int64_t oh = s->oh / 2, ow = s->ow / 2;
    float *to = y;
    for (int64_t image = 0; image < s->n; image++)
        for (int64_t i = 0; i < oh * ow * s->filters; i++) {
            const int64_t pixel = i / s->filters, f = i % s->filters;
            const float *at =
                y +
                ((image * s->oh + pixel / ow * 2) * s->ow + pixel % ow * 2) *
                    s->filters +
                f;
            float best = at[0];
            for (int k = 1; k < 4; k++) {
                const float v = at[(k / 2 * s->ow + k % 2) * s->filters];
                best = v > best || (isnan(v) && !isnan(best)) ? v : best;
            }
            *to++ = best;
        }
}

/* Channels-last to channels-last through the planar layout. */
static float *run_planar(const example *e, int threads, const float *x, const float *w,
                         const sti_planar_epilogue *epilogue, const float *residual)
{
    const sti_planar_shape *s = &e->s;
    const sti_team team = {threads};
    sti_planar_zeros zeros;
    assert_true(sti_planar_look(s, w, &zeros));
    const sti_planar_plan p = sti_planar_plan_of(s, &zeros, threads);
    assert_true(p.outer || !s->pool);
    const int64_t oh = s->oh >> s->pool, ow = s->ow >> s->pool;
    const int64_t from = p.groups * p.lanes * s->channels * s->h * s->w;
    const int64_t to = p.groups * p.lanes * s->filters * s->oh * s->ow;
    float *px = sti_alloc_array(from, sizeof *px, "test");
    float *py = sti_alloc_array(to, sizeof *py, "test");
    float *pr = sti_alloc_array(to, sizeof *pr, "test");
    float *y = sti_alloc_array(s->n * s->filters * s->oh * s->ow, sizeof *y, "test");
    void *packed = sti_alloc(p.weights_bytes, "test");
    void *scratch = sti_alloc(p.scratch_bytes, "test");
    sti_planar_epilogue with = *epilogue;
    assert_true(px && py && pr && y && packed && scratch);
    memset(scratch, 0xff, p.scratch_bytes); /* NaN */
    memset(py, 0xff, (size_t)to * sizeof *py);
    sti_planar_from_f32(&team, s->n, s->h * s->w, s->channels, p.lanes, x, px);
    sti_planar_from_f32(&team, s->n, s->oh * s->ow, s->filters, p.lanes, residual, pr);
    with.residual = e->residual ? pr : NULL;
    assert_true(sti_planar_pack(&p, w, packed));
    sti_planar_conv_f32(&team, &p, px, packed, &with, py, scratch);
    sti_planar_to_f32(&team, s->n, oh * ow, s->filters, p.lanes, py, y);
    sti_free(px);
    sti_free(py);
    sti_free(pr);
    sti_free(packed);
    sti_free(scratch);
    return y;
}

static void compare(const example *e)
{
    const sti_planar_shape *s = &e->s;
    const int64_t outputs = s->n * s->oh * s->ow * s->filters;
    const int64_t results = s->n * (s->oh >> s->pool) * (s->ow >> s->pool) * s->filters;
    float *x = values(s->n * s->h * s->w * s->channels, 1);
    float *w = values(s->kh * s->kw * s->channels * s->filters, e->keep);
    if (e->shapes)
        keep_shapes(s, w);
    float *scale = values(s->filters, 1), *shift = values(s->filters, 1);
    float *residual = values(outputs, 1);
    const sti_planar_epilogue epilogue = {.scale = e->scale ? scale : NULL,
                                          .shift = e->shift ? shift : NULL,
                                          .relu = e->relu};
    float *want = sti_alloc_array(outputs, sizeof *want, "test");
    for (int64_t i = 0; i < outputs; i++) {
        const int64_t f = i % s->filters, p = i / s->filters;
        want[i] = expected(e, x, w, scale, shift, residual, p / (s->oh * s->ow),
                           p / s->ow % s->oh, p % s->ow, f);
    }
    if (e->nan)
        want[outputs / 2] = NAN, residual[outputs / 2] = NAN;
    if (s->pool)
        pool_rows(s, want);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        for (int threads = 1; threads <= 3; threads += 2) {
            if (!sti_isa_force((sti_isa)isa))
                continue;
            float *got = run_planar(e, threads, x, w, &epilogue, residual);
            for (int64_t i = 0; i < results; i++)
                if (got[i] != want[i] && !(isnan(got[i]) && e->nan && isnan(want[i])))
                    fail_msg(
                        "%d x %d stride %d, n %d, %s, %d threads: output %d is %a, "
                        "wanted %a",
                        (int)s->kh, (int)s->kw, (int)s->stride, (int)s->n,
                        sti_isa_name((sti_isa)isa), threads, (int)i, (double)got[i],
                        (double)want[i]);
            sti_free(got);
        }
    sti_free(x);
    sti_free(w);
    sti_free(scale);
    sti_free(shift);
    sti_free(residual);
    sti_free(want);
}

static const int64_t image_counts[] = {1, 3, 16, 29};

static void test_equals_a_scalar_chain(void **state)
{
    static const sti_planar_shape shapes[] = {
        /* n, h, w, channels, filters, kh, kw, stride, pad, oh, ow, pool */
        {0, 7, 19, 5, 6, 3, 3, 1, 1, 0, 0, 0},  {0, 8, 8, 20, 40, 3, 3, 1, 1, 0, 0, 0},
        {0, 2, 2, 30, 33, 3, 3, 1, 1, 0, 0, 0}, {0, 9, 17, 4, 3, 3, 3, 2, 1, 0, 0, 0},
        {0, 12, 12, 3, 4, 5, 5, 1, 0, 0, 0, 0}, {0, 6, 5, 9, 7, 1, 1, 2, 0, 0, 0, 0},
        {0, 3, 40, 1, 1, 2, 4, 3, 2, 0, 0, 0},  {0, 1, 1, 50, 10, 1, 1, 1, 0, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int k = 0; k < 4; k++) {
            example e = {.s = shapes[i], .keep = k == 3 ? 1.0 : 0.3};
            e.s.n = image_counts[k];
            e.s.oh = (e.s.h + 2 * e.s.pad - e.s.kh) / e.s.stride + 1;
            e.s.ow = (e.s.w + 2 * e.s.pad - e.s.kw) / e.s.stride + 1;
            e.scale = k & 1;
            e.shift = k > 0;
            e.residual = k & 2;
            e.relu = (i + (size_t)k) % 2;
            compare(&e);
        }
}

static void test_shapes_of_four_taps(void **state)
{
    const int64_t sides[] = {13, 8, 4, 2};
    (void)state;
    for (int k = 0; k < 4; k++) {
        example e = {.shapes = true,
                     .s = {.n = k == 3 ? 32 : 16 - k,
                           .h = sides[k],
                           .w = sides[k],
                           .channels = 24,
                           .filters = 36,
                           .kh = 3,
                           .kw = 3,
                           .stride = 1,
                           .pad = 1,
                           .oh = sides[k],
                           .ow = sides[k]},
                     .scale = true,
                     .shift = true,
                     .relu = k & 1,
                     .keep = 1};
        compare(&e);
    }
}

/* Whole kernels and parts of them, on maps of every way; with windows on the results.
 */
static void test_pooling(void **state)
{
    const int64_t sides[] = {19, 16, 33, 8, 5, 4, 2};
    (void)state;
    for (int k = 0; k < 14; k++) {
        const int64_t side = sides[k % 7], kernel = k % 3 == 1 ? 5 : 3;
        example e = {.s = {.n = k < 7 ? 1 + k % 2 : 16,
                           .h = side,
                           .w = side + k % 2,
                           .channels = 5,
                           .filters = k % 5 ? 7 : 130,
                           .kh = kernel,
                           .kw = kernel,
                           .stride = 1,
                           .pad = kernel / 2,
                           .oh = side,
                           .ow = side + k % 2,
                           .pool = 1},
                     .shift = k & 1,
                     .residual = k % 3 > 0,
                     .nan = k % 3 == 2,
                     .keep = k % 2 ? 1 : 0.6};
        compare(&e);
    }
}

static void test_no_weight_at_all(void **state)
{
    example e = {.s = {.n = 2,
                       .h = 4,
                       .w = 4,
                       .channels = 3,
                       .filters = 2,
                       .kh = 3,
                       .kw = 3,
                       .stride = 1,
                       .pad = 1,
                       .oh = 4,
                       .ow = 4},
                 .shift = true,
                 .keep = -1};
    (void)state;
    compare(&e);
}

/* Neither layout depends on the number of threads, nor do the pieces. */
static void test_plan_is_of_the_shape_alone(void **state)
{
    const sti_planar_shape s = {.n = 32,
                                .h = 16,
                                .w = 16,
                                .channels = 64,
                                .filters = 96,
                                .kh = 3,
                                .kw = 3,
                                .stride = 1,
                                .pad = 1,
                                .oh = 16,
                                .ow = 16};
    const sti_planar_zeros zeros = {.kept = 9000, .chunks = 3000};
    const sti_planar_plan a = sti_planar_plan_of(&s, &zeros, 1);
    sti_planar_plan b = sti_planar_plan_of(&s, &zeros, 8);
    (void)state;
    assert_int_equal(b.scratch_bytes, 8 * a.scratch_bytes);
    b.scratch_bytes = a.scratch_bytes;
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(sti_planar_lanes(1), 1);
    assert_int_equal(sti_planar_lanes(64), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_a_scalar_chain),
        cmocka_unit_test(test_shapes_of_four_taps), cmocka_unit_test(test_pooling),
        cmocka_unit_test(test_no_weight_at_all),
        cmocka_unit_test(test_plan_is_of_the_shape_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
