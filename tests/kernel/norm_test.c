/* Batch normalisation: against float64, and bit-equal over instruction sets, threads
 * and optional arguments. */
#include "kernel/norm/norm.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"

typedef struct problem {
    int64_t rows, c, count;
    float *x, *dy, *residual, *scale, *shift;
} problem;

typedef struct result {
    float *mean, *inv, *unbiased, *y, *dx, *dscale, *dshift, *dresidual;
    uint8_t *bits;
    int64_t bits_bytes;
} result;

static float *floats(int64_t n)
{
    float *p = sti_alloc_array(n, sizeof *p, "test");
    assert_non_null(p);
    return p;
}

static float *noise(int64_t n, uint64_t id, float deviation, float offset)
{
    float *p = floats(n);
    for (int64_t i = 0; i < n; i++) {
        uint32_t w[4];
        sti_random4(77, STI_STREAM_TEST, id, (uint64_t)i, w);
        float u = sti_uniform(w[0]) + sti_uniform(w[1]) + sti_uniform(w[2]) +
                  sti_uniform(w[3]) - 2.0f;
        p[i] = offset + deviation * u;
    }
    return p;
}

static problem make_problem(int64_t rows, int64_t c, float deviation, float offset)
{
    problem p = {.rows = rows, .c = c, .count = rows * c};
    p.x = noise(p.count, 1, deviation, offset);
    p.dy = noise(p.count, 2, 1.0f, 0.1f);
    p.residual = noise(p.count, 3, 1.0f, 0.0f);
    p.scale = noise(c, 4, 0.5f, 1.0f);
    p.shift = noise(c, 5, 0.5f, 0.0f);
    return p;
}

static void free_problem(problem *p)
{
    sti_free(p->x);
    sti_free(p->dy);
    sti_free(p->residual);
    sti_free(p->scale);
    sti_free(p->shift);
}

static result make_result(const problem *p)
{
    result r = {floats(p->c),
                floats(p->c),
                floats(p->c),
                floats(p->count),
                floats(p->count),
                floats(p->c),
                floats(p->c),
                floats(p->count),
                NULL,
                0};
    r.bits_bytes = (p->count + 7) / 8;
    r.bits = sti_alloc((size_t)r.bits_bytes, "test");
    memset(r.bits, 0xFF, (size_t)r.bits_bytes); /* spare bits must be cleared */
    return r;
}

static void free_result(result *r)
{
    sti_free(r->mean);
    sti_free(r->inv);
    sti_free(r->unbiased);
    sti_free(r->y);
    sti_free(r->dx);
    sti_free(r->dscale);
    sti_free(r->dshift);
    sti_free(r->dresidual);
    sti_free(r->bits);
}

/* All of it, with residual and ReLU when `fused`. */
static result run(const problem *p, bool fused, int threads)
{
    const sti_team team = {.threads = threads};
    result r = make_result(p);
    void *scratch = sti_alloc(sti_norm_scratch_bytes(p->rows, p->c), "test");
    sti_norm_statistics_f32(&team, p->rows, p->c, 1e-5f, p->x, r.mean, r.inv,
                            r.unbiased, scratch);
    sti_norm_forward forward = {.rows = p->rows,
                                .c = p->c,
                                .relu = fused,
                                .x = p->x,
                                .mean = r.mean,
                                .inv = r.inv,
                                .scale = p->scale,
                                .shift = p->shift,
                                .residual = fused ? p->residual : NULL,
                                .y = r.y,
                                .bits = fused ? r.bits : NULL};
    sti_norm_forward_f32(&team, &forward);
    sti_norm_backward backward = {.rows = p->rows,
                                  .c = p->c,
                                  .dy = p->dy,
                                  .x = p->x,
                                  .scale = p->scale,
                                  .mean = r.mean,
                                  .inv = r.inv,
                                  .bits = fused ? r.bits : NULL,
                                  .dx = r.dx,
                                  .dscale = r.dscale,
                                  .dshift = r.dshift,
                                  .dresidual = fused ? r.dresidual : NULL};
    sti_norm_backward_f32(&team, &backward, scratch);
    sti_free(scratch);
    return r;
}

static void assert_same(const char *what, const void *a, const void *b, int64_t bytes)
{
    if (memcmp(a, b, (size_t)bytes) != 0)
        fail_msg("%s differs", what);
}

static void assert_same_result(const problem *p, const result *a, const result *b)
{
    const int64_t row = p->c * 4, all = p->count * 4;
    assert_same("mean", a->mean, b->mean, row);
    assert_same("inv", a->inv, b->inv, row);
    assert_same("unbiased", a->unbiased, b->unbiased, row);
    assert_same("y", a->y, b->y, all);
    assert_same("bits", a->bits, b->bits, a->bits_bytes);
    assert_same("dx", a->dx, b->dx, all);
    assert_same("dscale", a->dscale, b->dscale, row);
    assert_same("dshift", a->dshift, b->dshift, row);
    assert_same("dresidual", a->dresidual, b->dresidual, all);
}

static void assert_near(const char *what, const problem *p, double got, double want,
                        double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("[%lld, %lld] %s: %.9g, wanted %.9g +- %.2g", (long long)p->rows,
                 (long long)p->c, what, got, want, tolerance);
}

/* Column j by the definition, in float64, from the mean and inv that were found. */
static void check_column(const problem *p, const result *r, bool fused, int64_t j)
{
    const double n = (double)p->rows;
    double mean = 0.0, square = 0.0, largest = 0.0;
    for (int64_t i = 0; i < p->rows; i++)
        mean += (double)p->x[i * p->c + j];
    mean /= n;
    for (int64_t i = 0; i < p->rows; i++) {
        double d = (double)p->x[i * p->c + j] - mean;
        square += d * d;
        largest = fmax(largest, fabs((double)p->x[i * p->c + j]));
    }
    const double inv = 1.0 / sqrt(square / n + 1e-5);
    assert_near("mean", p, (double)r->mean[j], mean, 1e-7 * fabs(mean) + 2e-7 / inv);
    assert_near("inv", p, (double)r->inv[j], inv, 3e-7 * inv);
    if (p->rows > 1)
        assert_near("unbiased", p, (double)r->unbiased[j], square / (n - 1.0),
                    5e-7 * square / (n - 1.0) + 1e-12 * largest);

    /* The rounding of the mean to float32 shows in y, scaled by inv. */
    const double shift_error = 1.2e-7 * (largest * inv + 4.0);
    const double m = (double)r->mean[j], gain = (double)p->scale[j] * (double)r->inv[j];
    double s = 0.0, q = 0.0, sum_abs = 0.0;
    for (int64_t i = 0; i < p->rows; i++) {
        const int64_t at = i * p->c + j;
        double y = ((double)p->x[at] - m) * gain + (double)p->shift[j];
        double z = (double)p->dy[at];
        if (fused) {
            y += (double)p->residual[at];
            bool pass = r->bits[at / 8] >> at % 8 & 1;
            assert_true(pass == (r->y[at] > 0.0f));
            y = y > 0.0 ? y : 0.0;
            z = pass ? z : 0.0;
            assert_true((double)r->dresidual[at] == z);
        }
        assert_near("y", p, (double)r->y[at], y, 4.0 * shift_error);
        s += z;
        q += z * ((double)p->x[at] - m);
        sum_abs += fabs(z * ((double)p->x[at] - m)) * (double)r->inv[j] + fabs(z);
    }
    const double inv_f = (double)r->inv[j];
    assert_near("dshift", p, (double)r->dshift[j], s, 1e-6 * sum_abs + 1e-7);
    assert_near("dscale", p, (double)r->dscale[j], inv_f * q, 1e-6 * sum_abs + 1e-7);
    for (int64_t i = 0; i < p->rows; i++) {
        const int64_t at = i * p->c + j;
        double z = fused ? (double)r->dresidual[at] : (double)p->dy[at];
        double dx = gain * (z - s / n - ((double)p->x[at] - m) * inv_f * inv_f * q / n);
        assert_near("dx", p, (double)r->dx[at], dx,
                    fabs(gain) * 4e-6 * (1.0 + largest * inv_f * 0.1));
    }
}

static const int64_t widths[] = {1,  2,  3,  7,  8,  10,  16,  17,
                                 24, 32, 48, 64, 65, 100, 129, 256};
static const int64_t heights[] = {1, 2, 5, 16, 37, 200, 1111};

static void against_float64(void **state)
{
    (void)state;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (size_t h = 0; h < sizeof heights / sizeof *heights; h++)
            for (int fused = 0; fused < 2; fused++) {
                problem p = make_problem(heights[h], widths[w], 2.0f, 0.5f);
                result r = run(&p, fused, 1);
                for (int64_t j = 0; j < p.c; j++)
                    check_column(&p, &r, fused, j);
                free_result(&r);
                free_problem(&p);
            }
}

static void large_mean(void **state)
{
    (void)state;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w += 3) {
        problem p = make_problem(3001, widths[w], 0.01f, 100.0f);
        result r = run(&p, false, 2);
        for (int64_t j = 0; j < p.c; j++)
            check_column(&p, &r, false, j);
        free_result(&r);
        free_problem(&p);
    }
}

static void constant_input(void **state)
{
    (void)state;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        problem p = make_problem(301, widths[w], 0.0f, 3.7f);
        result r = run(&p, false, 1);
        for (int64_t j = 0; j < p.c; j++) {
            assert_true(r.mean[j] == p.x[0]);
            assert_true(r.unbiased[j] == 0.0f);
            assert_true(r.y[j] == p.shift[j]);
        }
        free_result(&r);
        free_problem(&p);
    }
}

static void same_bits_everywhere(void **state)
{
    (void)state;
    const sti_isa saved = sti_isa_now();
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (size_t h = 0; h < sizeof heights / sizeof *heights; h++)
            for (int fused = 0; fused < 2; fused++) {
                problem p = make_problem(heights[h] * 3, widths[w], 1.0f, 1.0f);
                assert_true(sti_isa_force(STI_ISA_REF));
                result want = run(&p, fused, 1);
                for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
                    if (!sti_isa_force((sti_isa)isa))
                        continue;
                    for (int threads = 1; threads <= 3; threads++) {
                        result got = run(&p, fused, threads);
                        assert_same_result(&p, &want, &got);
                        free_result(&got);
                    }
                }
                free_result(&want);
                free_problem(&p);
            }
    sti_isa_force(saved);
}

/* Results of more than 4 MiB are written past the caches. */
static void large_results(void **state)
{
    (void)state;
    const sti_isa saved = sti_isa_now();
    static const int64_t shape[3][2] = {{20001, 64}, {4099, 272}, {70001, 16}};
    for (int s = 0; s < 3; s++) {
        problem p = make_problem(shape[s][0], shape[s][1], 1.0f, 1.0f);
        assert_true(sti_isa_force(STI_ISA_REF));
        result want = run(&p, true, 1);
        for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
            if (!sti_isa_force((sti_isa)isa))
                continue;
            result got = run(&p, true, 1 + isa);
            assert_same_result(&p, &want, &got);
            free_result(&got);
        }
        free_result(&want);
        free_problem(&p);
    }
    sti_isa_force(saved);
}

/* y over x, dx over dy, outputs left out: the same bits in what is asked for. */
static void in_place_and_partial(void **state)
{
    (void)state;
    const sti_team team = {.threads = 2};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        problem p = make_problem(333, widths[w], 1.0f, 1.0f);
        result want = run(&p, true, 1);
        void *scratch = sti_alloc(sti_norm_scratch_bytes(p.rows, p.c), "test");
        const sti_norm_backward all = {.rows = p.rows,
                                       .c = p.c,
                                       .dy = p.dy,
                                       .x = p.x,
                                       .scale = p.scale,
                                       .mean = want.mean,
                                       .inv = want.inv,
                                       .bits = want.bits};
        float *dscale = floats(p.c), *dresidual = floats(p.count);
        sti_norm_backward part = all;
        part.dscale = dscale;
        sti_norm_backward_f32(&team, &part, scratch);
        assert_same("dscale alone", dscale, want.dscale, p.c * 4);
        part = all;
        part.dresidual = dresidual;
        sti_norm_backward_f32(&team, &part, scratch);
        assert_same("dresidual alone", dresidual, want.dresidual, p.count * 4);
        part = all;
        part.dx = p.dy;
        part.dresidual = dresidual;
        memset(dresidual, 0, (size_t)p.count * 4);
        sti_norm_backward_f32(&team, &part, scratch);
        assert_same("dx over dy", p.dy, want.dx, p.count * 4);
        assert_same("dresidual beside", dresidual, want.dresidual, p.count * 4);
        const sti_norm_forward forward = {.rows = p.rows,
                                          .c = p.c,
                                          .relu = true,
                                          .x = p.x,
                                          .mean = want.mean,
                                          .inv = want.inv,
                                          .scale = p.scale,
                                          .shift = p.shift,
                                          .residual = p.residual,
                                          .y = p.x};
        sti_norm_forward_f32(&team, &forward);
        assert_same("y over x", p.x, want.y, p.count * 4);
        sti_free(dscale);
        sti_free(dresidual);
        sti_free(scratch);
        free_result(&want);
        free_problem(&p);
    }
}

static void inverse_matches_statistics(void **state)
{
    (void)state;
    const float variance[3] = {0.0f, 1.0f, 1e-3f};
    float inv[3];
    sti_norm_inverse_f32(3, 1e-5f, variance, inv);
    for (int i = 0; i < 3; i++) {
        double want = 1.0 / sqrt((double)variance[i] + (double)1e-5f);
        assert_true(inv[i] == (float)want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_float64),
        cmocka_unit_test(large_mean),
        cmocka_unit_test(constant_input),
        cmocka_unit_test(same_bits_everywhere),
        cmocka_unit_test(large_results),
        cmocka_unit_test(in_place_and_partial),
        cmocka_unit_test(inverse_matches_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
