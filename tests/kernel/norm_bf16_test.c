/* Batch normalisation on bfloat16: against plain loops in double, and the same bits on
 * every instruction set and thread count; element-wise loops likewise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "bf16_model.h"
#include "kernel/elementwise/elementwise_bf16.h"
#include "kernel/norm/norm_bf16.h"

typedef struct norm_data {
    int64_t rows, c, count;
    sti_bf16 *x, *dy, *residual, *y, *dx, *dresidual;
    float *scale, *shift, *mean, *inv, *unbiased, *dscale, *dshift;
    uint8_t *bits;
    double *want_mean, *want_variance;
    bool relu, with_residual;
} norm_data;

static double wide(const sti_bf16 *x, int64_t at)
{
    return (double)sti_bf16_to_f32(x[at]);
}

static norm_data make(int64_t rows, int64_t c, double offset, unsigned form)
{
    norm_data d = {.rows = rows, .c = c, .count = rows * c};
    model_rng r = {(uint64_t)(rows * 131 + c)};
    sti_bf16 **arrays[] = {&d.x, &d.dy, &d.residual, &d.y, &d.dx, &d.dresidual};
    float **rows_of[] = {&d.scale,    &d.shift,  &d.mean,  &d.inv,
                         &d.unbiased, &d.dscale, &d.dshift};
    d.relu = form & 1;
    d.with_residual = (form & 2) != 0;
    for (int i = 0; i < 6; i++) {
        *arrays[i] = malloc((size_t)d.count * 2);
        model_bf16_fill(&r, *arrays[i], d.count);
    }
    for (int64_t i = 0; i < d.count; i++)
        d.x[i] = sti_bf16_from_f32(sti_bf16_to_f32(d.x[i]) + (float)offset);
    for (int i = 0; i < 7; i++) {
        *rows_of[i] = malloc((size_t)c * 4);
        model_fill(&r, *rows_of[i], c);
    }
    d.bits = malloc((size_t)(d.count + 7) / 8);
    d.want_mean = calloc((size_t)c, sizeof(double));
    d.want_variance = calloc((size_t)c, sizeof(double));
    for (int64_t i = 0; i < d.count; i++)
        d.want_mean[i % c] += wide(d.x, i) / (double)rows;
    for (int64_t i = 0; i < d.count; i++) {
        const double e = wide(d.x, i) - d.want_mean[i % c];
        d.want_variance[i % c] += e * e / (double)rows;
    }
    return d;
}

static void destroy(norm_data *d)
{
    void *all[] = {d->x,      d->dy,        d->residual,  d->y,
                   d->dx,     d->scale,     d->shift,     d->mean,
                   d->inv,    d->dresidual, d->bits,      d->unbiased,
                   d->dscale, d->dshift,    d->want_mean, d->want_variance};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void run(norm_data *d, int threads)
{
    const sti_team team = {threads};
    void *scratch =
        aligned_alloc(64, (sti_norm_bf16_scratch_bytes(d->rows, d->c) + 63) / 64 * 64);
    sti_norm_bf16_statistics(&team, d->rows, d->c, 1e-5F, d->x, d->mean, d->inv,
                             d->unbiased, scratch);
    const sti_norm_bf16_forward_args f = {
        .rows = d->rows,
        .c = d->c,
        .relu = d->relu,
        .x = d->x,
        .mean = d->mean,
        .inv = d->inv,
        .scale = d->scale,
        .shift = d->shift,
        .residual = d->with_residual ? d->residual : NULL,
        .y = d->y,
        .bits = d->bits,
    };
    sti_norm_bf16_forward(&team, &f);
    const sti_norm_bf16_backward_args b = {
        .rows = d->rows,
        .c = d->c,
        .dy = d->dy,
        .x = d->x,
        .scale = d->scale,
        .mean = d->mean,
        .inv = d->inv,
        .bits = d->relu ? d->bits : NULL,
        .dx = d->dx,
        .dscale = d->dscale,
        .dshift = d->dshift,
        .dresidual = d->with_residual ? d->dresidual : NULL,
    };
    sti_norm_bf16_backward(&team, &b, scratch);
    free(scratch);
}

static void near(const char *what, int64_t at, double got, double want, double scale,
                 double bound)
{
    if (!(fabs(got - want) <= bound * (fabs(want) + scale)))
        fail_msg("%s[%lld] is %.9g, wanted %.9g", what, (long long)at, got, want);
}

static bool bit(const norm_data *d, int64_t i)
{
    return d->bits[i / 8] >> i % 8 & 1;
}

static void check_forward(const norm_data *d)
{
    for (int64_t j = 0; j < d->c; j++) {
        const double deviation = sqrt(d->want_variance[j]);
        near("mean", j, (double)d->mean[j], d->want_mean[j], deviation, 2e-6);
        near("inv", j, (double)d->inv[j], 1 / sqrt(d->want_variance[j] + 1e-5), 0,
             4e-6);
    }
    for (int64_t i = 0; i < d->count; i++) {
        const int64_t j = i % d->c;
        double y = (wide(d->x, i) - d->want_mean[j]) /
                       sqrt(d->want_variance[j] + 1e-5) * (double)d->scale[j] +
                   (double)d->shift[j];
        y += d->with_residual ? wide(d->residual, i) : 0;
        near("y", i, wide(d->y, i), d->relu && y < 0 ? 0 : y, 1e-2, 1.0 / 256);
        if (d->relu)
            assert_int_equal(bit(d, i), wide(d->y, i) > 0);
    }
}

static void check_backward(const norm_data *d)
{
    for (int64_t j = 0; j < d->c; j++) {
        const double inv = 1 / sqrt(d->want_variance[j] + 1e-5);
        double sum = 0, cross = 0, size = 0;
        for (int64_t i = j; i < d->count; i += d->c) {
            const double z = d->relu && !bit(d, i) ? 0 : wide(d->dy, i);
            sum += z;
            cross += z * (wide(d->x, i) - d->want_mean[j]) * inv;
            size += fabs(z);
        }
        near("dshift", j, (double)d->dshift[j], sum, size, 1e-5);
        near("dscale", j, (double)d->dscale[j], cross, size, 1e-5);
        for (int64_t i = j; i < d->count; i += d->c) {
            const double z = d->relu && !bit(d, i) ? 0 : wide(d->dy, i);
            const double normal = (wide(d->x, i) - d->want_mean[j]) * inv;
            const double want =
                (double)d->scale[j] * inv *
                (z - sum / (double)d->rows - normal * cross / (double)d->rows);
            near("dx", i, wide(d->dx, i), want, 1e-3 * (1 + inv), 1.0 / 256);
            if (d->with_residual)
                assert_true(wide(d->dresidual, i) == z);
        }
    }
}

static void try_norm(int64_t rows, int64_t c, double offset, unsigned form)
{
    norm_data first = make(rows, c, offset, form);
    model_bf16_force(0);
    run(&first, 1);
    check_forward(&first);
    check_backward(&first);
    for (int way = 0; way < MODEL_BF16_WAYS; way++)
        for (int threads = 1; threads <= 3 && model_bf16_force(way); threads++) {
            norm_data d = make(rows, c, offset, form);
            run(&d, threads);
            assert_memory_equal(d.y, first.y, (size_t)d.count * 2);
            assert_memory_equal(d.dx, first.dx, (size_t)d.count * 2);
            assert_memory_equal(d.dresidual, first.dresidual, (size_t)d.count * 2);
            assert_memory_equal(d.mean, first.mean, (size_t)c * 4);
            assert_memory_equal(d.inv, first.inv, (size_t)c * 4);
            assert_memory_equal(d.unbiased, first.unbiased, (size_t)c * 4);
            assert_memory_equal(d.dscale, first.dscale, (size_t)c * 4);
            assert_memory_equal(d.dshift, first.dshift, (size_t)c * 4);
            if (d.relu)
                assert_memory_equal(d.bits, first.bits, (size_t)(d.count + 7) / 8);
            destroy(&d);
        }
    destroy(&first);
}

static void test_norm(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1500, 16}, {700, 32}, {130, 64}, {77, 48},
                                        {66, 320},  {53, 37},  {2000, 3}, {2, 16},
                                        {130, 300}, {80, 48}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (unsigned form = 0; form < 4; form++)
            try_norm(shapes[i][0], shapes[i][1], form == 2 ? 3 : 0, form);
}

/* NaN of both signs, infinities, zeros and denormals: what a ReLU lets pass, and what a
 * gradient keeps of them. */
static void test_special(void **state)
{
    (void)state;
    enum { ROWS = 64, MOST = ROWS * 48 };
    static const sti_bf16 special[16] = {0x7fc0, 0xffc0, 0x7fff, 0xffff, 0x7f80, 0xff80,
                                         0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x8080,
                                         0x3f80, 0xbf80, 0x7f7f, 0xff7f};
    static sti_bf16 x[MOST], y[2][MOST], dresidual[2][MOST];
    static uint8_t bits[2][MOST / 8];
    static float zeros[48], ones[48], scratch[1024] __attribute__((aligned(64)));
    model_rng r = {5};
    assert_true(sti_norm_bf16_scratch_bytes(ROWS, 48) <= sizeof scratch);
    for (int i = 0; i < MOST; i++)
        x[i] = special[model_random(&r) % 16];
    for (int i = 0; i < 48; i++)
        ones[i] = 1.0F;
    for (int64_t c = 16; c <= 48; c += 16)
        for (int way = 0; way < MODEL_BF16_WAYS; way++) {
            const int at = way > 0;
            if (!model_bf16_force(way))
                continue;
            const sti_norm_bf16_forward_args forward = {.rows = ROWS,
                                                        .c = c,
                                                        .relu = true,
                                                        .x = x,
                                                        .mean = zeros,
                                                        .inv = ones,
                                                        .scale = ones,
                                                        .shift = zeros,
                                                        .y = y[at],
                                                        .bits = bits[at]};
            sti_norm_bf16_forward(&sti_team_serial, &forward);
            const sti_norm_bf16_backward_args backward = {.rows = ROWS,
                                                          .c = c,
                                                          .dy = x,
                                                          .x = x,
                                                          .bits = bits[at],
                                                          .dresidual = dresidual[at]};
            sti_norm_bf16_backward(&sti_team_serial, &backward, scratch);
            assert_memory_equal(y[at], y[0], (size_t)(ROWS * c) * 2);
            assert_memory_equal(bits[at], bits[0], (size_t)(ROWS * c) / 8);
            assert_memory_equal(dresidual[at], dresidual[0], (size_t)(ROWS * c) * 2);
        }
}

/* Every loop over flat arrays, at lengths around the vectors'. */
static void test_flat(void **state)
{
    (void)state;
    enum { MOST = 70001 };
    static const int64_t lengths[] = {1, 7, 8, 15, 16, 17, 40, 33000, MOST};
    sti_bf16 *a = malloc(MOST * 2), *b = malloc(MOST * 2), *y = malloc(MOST * 2);
    uint8_t *bits = malloc(MOST / 8 + 1);
    model_rng r = {3};
    model_bf16_fill(&r, a, MOST);
    model_bf16_fill(&r, b, MOST);
    for (int way = 0; way < MODEL_BF16_WAYS; way++)
        for (int l = 0; l < 9 && model_bf16_force(way); l++) {
            const sti_team team = {1 + l % 3};
            const int64_t n = lengths[l];
            sti_bf16_add(&team, n, a, b, y);
            for (int64_t i = 0; i < n; i++)
                assert_int_equal(y[i],
                                 sti_bf16_from_f32((float)(wide(a, i) + wide(b, i))));
            sti_bf16_relu(&team, n, a, y, bits);
            for (int64_t i = 0; i < n; i++) {
                assert_int_equal(y[i], wide(a, i) > 0 ? a[i] : 0);
                assert_int_equal(bits[i / 8] >> i % 8 & 1, wide(a, i) > 0);
            }
            assert_int_equal(bits[(n - 1) / 8] >> ((n - 1) % 8 + 1), 0);
            sti_bf16_relu_grad(&team, n, b, bits, y);
            for (int64_t i = 0; i < n; i++)
                assert_int_equal(y[i], wide(a, i) > 0 ? b[i] : 0);
        }
    free(a);
    free(b);
    free(y);
    free(bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_flat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
