/* How an error in an operand disturbs a gradient, against the definition of
 * error_gain.h: loops over every weight and every pixel that it meets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "gemm_model.h"
#include "kernel/fold/error_gain.h"

/* 1/3 mean over the weights of sum dy^2 [x != 0] f^2. */
static double gain_by_loops(const sti_conv_shape *s, const float *x, const float *dy,
                            const float *f)
{
    const int64_t cig = s->ci / s->groups, cog = s->co / s->groups;
    double sum = 0;
    for (int64_t k = 0; k < s->co; k++)
        for (int64_t c = 0; c < cig; c++)
            for (int64_t tap = 0; tap < s->kh * s->kw; tap++)
                for (int64_t p = 0; p < s->n * s->oh * s->ow; p++) {
                    const int64_t image = p / s->ow / s->oh, in = k / cog * cig + c;
                    const int64_t h =
                        p / s->ow % s->oh * s->stride - s->pad + tap / s->kw;
                    const int64_t w = p % s->ow * s->stride - s->pad + tap % s->kw;
                    const double d = (double)dy[p * s->co + k];
                    const double factor = f ? (double)f[in] : 1.0;
                    if (h >= 0 && w >= 0 && h < s->h && w < s->w &&
                        x[((image * s->h + h) * s->w + w) * s->ci + in] != 0.0F)
                        sum += d * d * factor * factor;
                }
    return sum / (3.0 * (double)(s->co * cig * s->kh * s->kw));
}

static sti_conv_shape random_shape(model_rng *r)
{
    sti_conv_shape s = {.n = model_between(r, 1, 4),
                        .kh = model_between(r, 1, 4),
                        .kw = model_between(r, 1, 4),
                        .stride = model_between(r, 1, 3),
                        .pad = model_between(r, 0, 2),
                        .groups = model_between(r, 1, 3)};
    s.h = model_between(r, s.kh, 9);
    s.w = model_between(r, s.kw, 9);
    s.ci = s.groups * model_between(r, 1, 5);
    s.co = s.groups * model_between(r, 1, 5);
    s.oh = sti_conv_out_length(s.h, s.kh, s.stride, s.pad);
    s.ow = sti_conv_out_length(s.w, s.kw, s.stride, s.pad);
    return s;
}

static void close_to(double got, double want)
{
    if (fabs(got - want) > 1e-12 * fabs(want))
        fail_msg("gain is %.17g, want %.17g", got, want);
}

/* Rounds x, and gives the same numbers in bfloat16. */
static sti_bf16 *halves(float *x, int64_t n)
{
    sti_bf16 *half = guarded_alloc((size_t)n * sizeof *half);
    for (int64_t i = 0; i < n; i++) {
        half[i] = sti_bf16_from_f32(x[i]);
        x[i] = sti_bf16_to_f32(half[i]);
    }
    return half;
}

static void of_convolutions(void **state)
{
    model_rng rng = {411};
    (void)state;
    for (int i = 0; i < 60; i++) {
        const sti_conv_shape s = random_shape(&rng);
        const int64_t x_count = s.n * s.h * s.w * s.ci;
        const int64_t dy_count = s.n * s.oh * s.ow * s.co;
        float *x = model_floats(x_count), *f = model_floats(s.ci);
        float *dy = model_floats(dy_count);
        model_fill(&rng, x, x_count);
        model_fill(&rng, f, s.ci);
        model_fill(&rng, dy, dy_count);
        for (int64_t j = 0; j < x_count; j++)
            x[j] = model_random(&rng) % 3 ? x[j] : 0.0F;
        sti_bf16 *x16 = halves(x, x_count), *dy16 = halves(dy, dy_count);
        double first = 0;
        for (int threads = 1; threads <= 4; threads++) {
            const sti_gain_values xs = threads & 1 ? (sti_gain_values){.f32 = x}
                                                   : (sti_gain_values){.bf16 = x16};
            const sti_gain_values dys = threads & 2 ? (sti_gain_values){.f32 = dy}
                                                    : (sti_gain_values){.bf16 = dy16};
            const float *factors = i % 2 ? f : NULL;
            double *scratch =
                guarded_nan_doubles(sti_error_gain_scratch_bytes(&s, threads));
            const double got = sti_error_gain_conv(&(sti_team){threads}, &s, xs, dys,
                                                   factors, scratch);
            guarded_free_doubles(scratch);
            close_to(got, gain_by_loops(&s, x, dy, factors));
            first = threads == 1 ? got : first;
            assert_true(got == first);
        }
        guarded_free(x16);
        guarded_free(dy16);
        model_free(x);
        model_free(f);
        model_free(dy);
    }
}

/* Sizes within and beyond a piece of 16384 elements. */
static void of_normalisations(void **state)
{
    static const int64_t sizes[][2] = {{1, 1}, {7, 5}, {300, 70}, {2048, 16}};
    model_rng rng = {412};
    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (int masked = 0; masked < 2; masked++) {
            const int64_t rows = sizes[i][0], c = sizes[i][1], n = rows * c;
            float *dy = model_floats(n);
            uint8_t *bits = guarded_alloc((size_t)(n + 7) / 8);
            double sum = 0;
            model_fill(&rng, dy, n);
            sti_bf16 *dy16 = halves(dy, n);
            for (int64_t j = 0; j < (n + 7) / 8; j++)
                bits[j] = (uint8_t)model_random(&rng);
            for (int64_t j = 0; j < n; j++)
                sum += !masked || (bits[j / 8] >> j % 8 & 1)
                           ? (double)dy[j] * (double)dy[j]
                           : 0;
            double *scratch =
                guarded_nan_doubles(sti_error_gain_norm_scratch_bytes(rows, c));
            for (int half = 0; half < 2; half++)
                close_to(sti_error_gain_norm(&(sti_team){2}, rows, c,
                                             half ? (sti_gain_values){.bf16 = dy16}
                                                  : (sti_gain_values){.f32 = dy},
                                             masked ? bits : NULL, scratch),
                         sum / (3.0 * (double)c));
            guarded_free_doubles(scratch);
            guarded_free(dy16);
            guarded_free(bits);
            model_free(dy);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_convolutions),
        cmocka_unit_test(of_normalisations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
