/* Reductions against a scalar model of the fixed tree, bit for bit, on every
 * instruction set and for several numbers of threads; against sums in double; NaN in
 * maxima. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernel/reduce/reduce.h"

static float *random_floats(int64_t n, uint64_t seed)
{
    float *x = malloc((size_t)n * sizeof *x + 64);
    uint32_t w[4];
    for (int64_t i = 0; i < n; i++) {
        sti_random4(seed, STI_STREAM_TEST, (uint64_t)i, 0, w);
        x[i] = (sti_uniform(w[0]) - 0.5f) * (float)(1 << w[1] % 8);
    }
    return x;
}

static float tree(float *p, int64_t count)
{
    for (int64_t s = 1; s < count; s *= 2)
        for (int64_t i = 0; i + s < count; i += 2 * s)
            p[i] += p[i + s];
    return p[0];
}

/* The words of reduce.h, element by element. */
static float model_sum(const float *x, int64_t n)
{
    int64_t chunks = (n + 4095) / 4096;
    float *partial = malloc((size_t)chunks * sizeof *partial);
    for (int64_t c = 0; c < chunks; c++) {
        float acc[4][16] = {{0}};
        for (int64_t i = 0; i < 4096 && c * 4096 + i < n; i++) {
            acc[i / 16 % 4][i % 16] += x[c * 4096 + i];
        }
        for (int l = 0; l < 16; l++)
            acc[0][l] = (acc[0][l] + acc[1][l]) + (acc[2][l] + acc[3][l]);
        for (int half = 8; half > 0; half /= 2)
            for (int l = 0; l < half; l++)
                acc[0][l] += acc[0][l + half];
        partial[c] = acc[0][0];
    }
    float sum = tree(partial, chunks);
    free(partial);
    return sum;
}

static float model_column(const float *x, int64_t rows, int64_t stride)
{
    int64_t chunks = (rows + 255) / 256;
    float *partial = malloc((size_t)chunks * sizeof *partial);
    for (int64_t c = 0; c < chunks; c++) {
        float acc[4] = {0};
        for (int64_t i = 0; i < 256 && c * 256 + i < rows; i++)
            acc[i % 4] += x[(c * 256 + i) * stride];
        partial[c] = (acc[0] + acc[1]) + (acc[2] + acc[3]);
    }
    float sum = tree(partial, chunks);
    free(partial);
    return sum;
}

typedef void body(const sti_team *team);

static void everywhere(body *test)
{
    sti_isa best = sti_isa_now();
    for (int isa = 0; isa <= (int)best; isa++)
        for (int threads = 1; threads <= 3; threads++) {
            sti_isa_force((sti_isa)isa);
            test(&(sti_team){.threads = threads});
        }
    sti_isa_force(best);
}

static void rows_body(const sti_team *team)
{
    static const int64_t lengths[] = {1, 3, 63, 64, 65, 4095, 4096, 4097, 30000};
    for (int k = 0; k < 9; k++) {
        int64_t n = lengths[k], outer = 3;
        float *x = random_floats(outer * n, 1), got[3];
        size_t bytes = sti_reduce_scratch_bytes(outer, n, 1);
        void *scratch = sti_alloc(bytes, "test");
        sti_reduce_f32(team, STI_REDUCE_SUM, outer, n, 1, x, got, scratch);
        for (int64_t o = 0; o < outer; o++)
            assert_true(got[o] == model_sum(x + o * n, n));
        sti_reduce_f32(team, STI_REDUCE_MEAN, outer, n, 1, x, got, scratch);
        assert_true(got[2] == model_sum(x + 2 * n, n) / (float)n);
        free(x);
        sti_free(scratch);
    }
}

static void columns_body(const sti_team *team)
{
    static const int64_t sizes[][3] = {{1, 1, 2},    {2, 5, 3},    {1, 255, 16},
                                       {1, 256, 17}, {2, 257, 40}, {1, 3000, 10},
                                       {3, 600, 5},  {1, 9, 2500}, {1, 1100, 1030}};
    for (int k = 0; k < 9; k++) {
        int64_t outer = sizes[k][0], rows = sizes[k][1], inner = sizes[k][2];
        float *x = random_floats(outer * rows * inner, 3);
        float *y = malloc((size_t)(outer * inner) * sizeof *y);
        void *scratch = sti_alloc(sti_reduce_scratch_bytes(outer, rows, inner), "test");
        sti_reduce_f32(team, STI_REDUCE_SUM, outer, rows, inner, x, y, scratch);
        for (int64_t o = 0; o < outer; o++)
            for (int64_t j = 0; j < inner; j++)
                assert_true(y[o * inner + j] ==
                            model_column(x + o * rows * inner + j, rows, inner));
        sti_free(scratch);
        free(x);
        free(y);
    }
}

static void rows_follow_the_tree(void **state)
{
    (void)state;
    everywhere(rows_body);
}

static void columns_follow_the_tree(void **state)
{
    (void)state;
    everywhere(columns_body);
}

/* All sets of axes of one shape, sums against double, maxima exactly. */
static void axes_in_any_combination(void **state)
{
    const int64_t dim[5] = {3, 4, 1, 5, 300};
    int64_t n = 3 * 4 * 5 * 300;
    float *x = random_floats(n, 9);
    (void)state;
    for (unsigned axes = 0; axes < 32; axes++) {
        double sum[18000];
        float most[18000], got[18000];
        int64_t kept = 1;
        for (int k = 0; k < 5; k++)
            kept *= axes >> k & 1 ? 1 : dim[k];
        for (int64_t i = 0; i < kept; i++) {
            sum[i] = 0;
            most[i] = -INFINITY;
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t index[5], rest = i, at = 0;
            for (int k = 4; k >= 0; k--) {
                index[k] = rest % dim[k];
                rest /= dim[k];
            }
            for (int k = 0; k < 5; k++)
                if (!(axes >> k & 1))
                    at = at * dim[k] + index[k];
            sum[at] += (double)x[i];
            most[at] = x[i] > most[at] ? x[i] : most[at];
        }
        size_t bytes = sti_reduce_axes_scratch_bytes(5, dim, axes);
        void *scratch = sti_alloc(bytes, "test");
        sti_reduce_axes_f32(&sti_team_serial, STI_REDUCE_MEAN, 5, dim, axes, x, got,
                            scratch);
        for (int64_t i = 0; i < kept; i++)
            assert_true(fabs((double)got[i] - sum[i] / (double)(n / kept)) < 1e-4);
        sti_reduce_axes_f32(&sti_team_serial, STI_REDUCE_MAX, 5, dim, axes, x, got,
                            scratch);
        assert_memory_equal(got, most, (size_t)kept * sizeof *got);
        sti_free(scratch);
    }
    free(x);
}

static void maxima_of(const sti_team *team)
{
    for (int64_t n = 1; n < 150; n += 7)
        for (int64_t bad = 0; bad < n; bad += 5) {
            float *x = random_floats(2 * n, (uint64_t)n), y[2];
            x[bad] = NAN;
            sti_reduce_f32(team, STI_REDUCE_MAX, 2, n, 1, x, y, NULL);
            assert_true(isnan(y[0]) && !isnan(y[1]));
            for (int64_t i = 0; i < 2 * n; i++)
                x[i] = -INFINITY;
            x[2 * bad] = NAN;
            sti_reduce_f32(team, STI_REDUCE_MAX, 1, n, 2, x, y, NULL);
            assert_true(isnan(y[0]) && y[1] == -INFINITY);
            free(x);
        }
}

static void nan_wins_in_maxima(void **state)
{
    (void)state;
    everywhere(maxima_of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_follow_the_tree),
        cmocka_unit_test(columns_follow_the_tree),
        cmocka_unit_test(axes_in_any_combination),
        cmocka_unit_test(nan_wins_in_maxima),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
