/* Pooling against loops by the definition (exact: a maximum is exact, and averages are
 * sums in the same order), and bit-equal over instruction sets and threads. */
#include "kernel/pool/pool.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"

static float *noise(int64_t n, uint64_t id)
{
    float *p = sti_alloc_array(n, sizeof *p, "test");
    assert_non_null(p);
    for (int64_t i = 0; i < n; i++) {
        uint32_t w[4];
        sti_random4(5, STI_STREAM_TEST, id, (uint64_t)i, w);
        p[i] = (float)(int32_t)sti_below(w[0], 9) - 4.0f; /* with many equal values */
        if (w[1] % 3 == 0)
            p[i] += sti_uniform(w[2]);
    }
    return p;
}

static int64_t count_in(const sti_pool_shape *s)
{
    return s->n * s->h * s->w * s->c;
}

static int64_t count_out(const sti_pool_shape *s)
{
    return s->n * s->oh * s->ow * s->c;
}

/* Element of x under position (i, j) of a window, or -1 outside. */
static int64_t under(const sti_pool_shape *s, int64_t n, int64_t oy, int64_t ox,
                     int64_t c, int64_t i, int64_t j)
{
    int64_t y = oy * s->stride - s->pad + i, x = ox * s->stride - s->pad + j;
    if (y < 0 || x < 0 || y >= s->h || x >= s->w)
        return -1;
    return ((n * s->h + y) * s->w + x) * s->c + c;
}

typedef struct results {
    float *max, *unpool, *gather, *average, *average_unpool;
    uint8_t *index;
} results;

static void check_max(const sti_pool_shape *s, const float *x, const results *r,
                      int64_t n, int64_t oy, int64_t ox, int64_t c, float *unpool,
                      const float *dy)
{
    int64_t best = -1, position = 0;
    for (int64_t i = 0; i < s->size; i++)
        for (int64_t j = 0; j < s->size; j++) {
            int64_t at = under(s, n, oy, ox, c, i, j);
            if (at >= 0 && (best < 0 || x[at] > x[best])) {
                best = at;
                position = i * s->size + j;
            }
        }
    const int64_t out = ((n * s->oh + oy) * s->ow + ox) * s->c + c;
    const int bits = sti_pool_index_bits(s->size);
    const int64_t bit = (ox * s->c + c) * bits;
    const uint8_t byte = r->index[(n * s->oh + oy) * sti_pool_row_bytes(s) + bit / 8];
    assert_int_equal(byte >> bit % 8 & ((1 << bits) - 1), position);
    assert_true(r->max[out] == x[best]);
    assert_true(r->gather[out] == x[best]);
    unpool[best] += dy[out];
}

static void check_average(const sti_pool_shape *s, const float *x, const results *r,
                          int64_t n, int64_t oy, int64_t ox, int64_t c, float *unpool,
                          const float *dy)
{
    const float factor = 1.0f / (float)(s->size * s->size);
    const int64_t out = ((n * s->oh + oy) * s->ow + ox) * s->c + c;
    float sum = 0.0f;
    for (int64_t i = 0; i < s->size; i++)
        for (int64_t j = 0; j < s->size; j++) {
            int64_t at = under(s, n, oy, ox, c, i, j);
            if (at >= 0) {
                sum += x[at];
                unpool[at] += dy[out] * factor;
            }
        }
    assert_true(r->average[out] == sum * factor);
}

static results run(const sti_pool_shape *s, const float *x, const float *dy,
                   int threads)
{
    const sti_team team = {.threads = threads};
    results r = {noise(count_out(s), 3), noise(count_in(s), 3), noise(count_out(s), 3),
                 noise(count_out(s), 3), noise(count_in(s), 3), NULL};
    const size_t bytes = (size_t)(s->n * s->oh * sti_pool_row_bytes(s));
    r.index = sti_alloc(bytes, "test");
    memset(r.index, 0xA5, bytes);
    sti_max_pool_f32(&team, s, x, r.max, r.index);
    sti_max_unpool_f32(&team, s, dy, r.index, r.unpool);
    sti_pool_gather_f32(&team, s, x, r.index, r.gather);
    sti_avg_pool_f32(&team, s, x, r.average);
    sti_avg_unpool_f32(&team, s, dy, r.average_unpool);
    return r;
}

static void free_results(results *r)
{
    sti_free(r->max);
    sti_free(r->unpool);
    sti_free(r->gather);
    sti_free(r->average);
    sti_free(r->average_unpool);
    sti_free(r->index);
}

static void compare(const sti_pool_shape *s, const results *a, const results *b)
{
    const size_t in = (size_t)count_in(s) * 4, out = (size_t)count_out(s) * 4;
    assert_memory_equal(a->max, b->max, out);
    assert_memory_equal(a->unpool, b->unpool, in);
    assert_memory_equal(a->gather, b->gather, out);
    assert_memory_equal(a->average, b->average, out);
    assert_memory_equal(a->average_unpool, b->average_unpool, in);
    assert_memory_equal(a->index, b->index, s->n * s->oh * sti_pool_row_bytes(s));
}

static void check_shape(const sti_pool_shape *s)
{
    const sti_isa saved = sti_isa_now();
    float *x = noise(count_in(s), 1), *dy = noise(count_out(s), 2);
    float *unpool = sti_alloc_array(count_in(s), sizeof *unpool, "test");
    float *average = sti_alloc_array(count_in(s), sizeof *average, "test");
    sti_isa_force(STI_ISA_REF);
    results want = run(s, x, dy, 1);
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t oy = 0; oy < s->oh; oy++)
            for (int64_t ox = 0; ox < s->ow; ox++)
                for (int64_t c = 0; c < s->c; c++) {
                    check_max(s, x, &want, n, oy, ox, c, unpool, dy);
                    check_average(s, x, &want, n, oy, ox, c, average, dy);
                }
    assert_memory_equal(unpool, want.unpool, count_in(s) * 4);
    assert_memory_equal(average, want.average_unpool, count_in(s) * 4);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        for (int threads = 1; threads <= 3 && sti_isa_force((sti_isa)isa); threads++) {
            results got = run(s, x, dy, threads);
            compare(s, &want, &got);
            free_results(&got);
        }
    sti_isa_force(saved);
    free_results(&want);
    sti_free(x);
    sti_free(dy);
    sti_free(unpool);
    sti_free(average);
}

static void by_definition(void **state)
{
    (void)state;
    static const int64_t channels[] = {1, 3, 7, 10, 16, 17, 64, 100};
    static const int64_t windows[][3] = {{2, 2, 0}, {2, 1, 1}, {3, 2, 1}, {3, 3, 0},
                                         {4, 3, 2}, {5, 2, 2}, {1, 2, 0}, {7, 7, 0}};
    for (size_t c = 0; c < sizeof channels / sizeof *channels; c++)
        for (size_t k = 0; k < sizeof windows / sizeof *windows; k++) {
            sti_pool_shape s = {.n = 2,
                                .h = 9,
                                .w = 11,
                                .c = channels[c],
                                .size = windows[k][0],
                                .stride = windows[k][1],
                                .pad = windows[k][2]};
            s.oh = (s.h + 2 * s.pad - s.size) / s.stride + 1;
            s.ow = (s.w + 2 * s.pad - s.size) / s.stride + 1;
            check_shape(&s);
        }
}

static void nan_beats_every_number(void **state)
{
    (void)state;
    const sti_pool_shape s = {
        .n = 1, .h = 2, .w = 2, .c = 1, .size = 2, .stride = 2, .oh = 1, .ow = 1};
    const float x[4] = {1.0f, NAN, 3.0f, NAN};
    for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
        float y;
        uint8_t index;
        if (!sti_isa_force((sti_isa)isa))
            continue;
        sti_max_pool_f32(&sti_team_serial, &s, x, &y, &index);
        assert_true(isnan(y));
        assert_int_equal(index, 1);
    }
}

static void whole_images(void **state)
{
    (void)state;
    static const int64_t channels[] = {1, 10, 16, 64, 100, 130};
    static const int64_t areas[] = {1, 3, 16, 49, 1000};
    const sti_isa saved = sti_isa_now();
    for (size_t k = 0; k < 6; k++)
        for (size_t a = 0; a < 5; a++) {
            const int64_t n = 3, c = channels[k], area = areas[a];
            float *x = noise(n * area * c, 7), *y = noise(n * c, 8), *first = NULL;
            float *dx = noise(n * area * c, 9);
            for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
                const sti_team team = {.threads = isa + 1};
                if (!sti_isa_force((sti_isa)isa))
                    continue;
                sti_global_pool_f32(&team, n, area, c, x, y);
                if (!first) {
                    first = noise(n * c, 8);
                    memcpy(first, y, (size_t)(n * c) * 4);
                }
                assert_memory_equal(first, y, n * c * 4);
                sti_global_unpool_f32(&team, n, area, c, y, dx);
            }
            for (int64_t i = 0; i < n * c; i++) {
                double sum = 0.0;
                for (int64_t r = 0; r < area; r++)
                    sum += (double)x[(i / c * area + r) * c + i % c];
                assert_true(fabs((double)y[i] - sum / (double)area) < 1e-5);
                const float last = dx[(i / c * area + area - 1) * c + i % c];
                assert_true(last == y[i] * (1.0f / (float)area));
            }
            sti_free(x);
            sti_free(y);
            sti_free(dx);
            sti_free(first);
        }
    sti_isa_force(saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_definition),
        cmocka_unit_test(nan_beats_every_number),
        cmocka_unit_test(whole_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
