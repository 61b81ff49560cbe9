/* The bound over more than 10^9 values: every kind of input, bounds from 10^-6 to 1 of
 * the range, dither and mask on and off, shapes of layers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec_inputs.h"
#include "stint/codec.h"

enum { MOST = 1 << 22 };

typedef struct tally {
    int64_t values, outliers, raw;
} tally;

static void check(const float *x, const float *y, int64_t n, double bound)
{
    for (int64_t i = 0; i < n; i++) {
        const double error = fabs((double)x[i] - (double)y[i]);
        if (error <= bound && (x[i] != 0.0f || y[i] == 0.0f))
            continue;
        if (memcmp(&x[i], &y[i], sizeof *x) == 0)
            continue;
        fail_msg("value %lld: %.9g came back as %.9g, bound %.9g", (long long)i,
                 (double)x[i], (double)y[i], bound);
    }
}

static void round_trip(stint_codec_desc *d, const float *x, int64_t n, bool masked,
                       tally *t)
{
    static uint8_t mask[MOST / 8 + 1];
    size_t capacity, workspace_bytes;
    stint_codec_result r;
    assert_int_equal(stint_codec_max_bytes(d, &capacity), STINT_OK);
    assert_int_equal(stint_codec_workspace_bytes(d, &workspace_bytes), STINT_OK);
    void *block = malloc(capacity), *workspace = malloc(workspace_bytes);
    float *y = malloc((size_t)n * 4);
    assert_true(block && workspace && y);
    memset(mask, 0, sizeof mask);
    for (int64_t i = 0; masked && i < n; i++)
        mask[i / 8] |= (uint8_t)((x[i] != 0.0f) << i % 8);
    const uint8_t *given = masked ? mask : NULL;
    assert_int_equal(
        stint_codec_pack(d, x, given, block, capacity, workspace, workspace_bytes, &r),
        STINT_OK);
    assert_int_equal(
        stint_codec_unpack(d, block, r.bytes, given, y, workspace, workspace_bytes),
        STINT_OK);
    check(x, y, n, d->bound);
    t->values += n;
    t->outliers += r.outliers;
    t->raw += r.raw;
    free(block);
    free(workspace);
    free(y);
}

static void test_bound_over_1e9_values(void **state)
{
    (void)state;
    static const stint_codec_desc shapes[] = {{.rank = 4, .dim = {64, 32, 32, 64}},
                                              {.rank = 4, .dim = {128, 8, 8, 512}},
                                              {.rank = 2, .dim = {1024, 4000}},
                                              {.rank = 3, .dim = {1200, 1100, 3}}};
    static const double parts[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1};
    float *x = malloc((size_t)MOST * 4);
    tally t = {0};
    assert_non_null(x);
    for (int kind = 0; kind < INPUT_KINDS; kind++) {
        for (int p = 0; p < 7; p++)
            for (int way = 0; way < 4; way++) {
                stint_codec_desc d = shapes[(p + way) % 4];
                int64_t n = 1;
                for (int i = 0; i < d.rank; i++)
                    n *= d.dim[i];
                if (way % 2 == 0)
                    input_fill((input_kind)kind, n, d.dim[d.rank - 1], x);
                d.bound = input_range(x, n) * parts[p];
                d.dither = way & 1;
                d.seed = (uint64_t)p;
                d.threads = 2;
                round_trip(&d, x, n, way & 2, &t);
            }
        print_message("kind %d: %lld values so far, %lld outliers, %lld raw\n", kind,
                      (long long)t.values, (long long)t.outliers, (long long)t.raw);
    }
    assert_true(t.values > 1000000000);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bound_over_1e9_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
