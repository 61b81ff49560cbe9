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

static bool kept(float x, float y, double bound)
{
    return (fabs((double)x - (double)y) <= bound) & ((x != 0.0f) | (y == 0.0f));
}

static void check(const float *x, const float *y, int64_t n, double bound)
{
    enum { BLOCK = 1024 };
    for (int64_t from = 0; from < n; from += BLOCK) {
        const int64_t to = n - from < BLOCK ? n : from + BLOCK;
        int not_kept = 0;
        for (int64_t i = from; i < to; i++)
            not_kept += !kept(x[i], y[i], bound);
        for (int64_t i = from; not_kept > 0 && i < to; i++)
            if (!kept(x[i], y[i], bound) && memcmp(&x[i], &y[i], sizeof *x) != 0)
                fail_msg("value %lld: %.9g came back as %.9g, bound %.9g", (long long)i,
                         (double)x[i], (double)y[i], bound);
    }
}

/* Values of one kind in one shape. */
typedef struct input {
    stint_codec_desc desc;
    int64_t count;
    double range;
    float *x, *back;
    uint8_t *mask; /* of what is not 0 */
} input;

static void input_make(input *in, input_kind kind, const stint_codec_desc *shape)
{
    in->desc = *shape;
    in->count = 1;
    for (int i = 0; i < shape->rank; i++)
        in->count *= shape->dim[i];
    assert_true(in->count <= MOST);
    input_fill(kind, in->count, shape->dim[shape->rank - 1], in->x);
    in->range = input_range(in->x, in->count);
    memset(in->mask, 0, MOST / 8 + 1);
    for (int64_t i = 0; i < in->count; i++)
        in->mask[i / 8] |= (uint8_t)((in->x[i] != 0.0f) << i % 8);
}

static void round_trip(const input *in, const stint_codec_desc *d, bool masked,
                       tally *t)
{
    size_t capacity, workspace_bytes;
    stint_codec_result r;
    assert_int_equal(stint_codec_max_bytes(d, &capacity), STINT_OK);
    assert_int_equal(stint_codec_workspace_bytes(d, &workspace_bytes), STINT_OK);
    void *block = malloc(capacity), *workspace = malloc(workspace_bytes);
    assert_true(block && workspace);
    const uint8_t *given = masked ? in->mask : NULL;
    assert_int_equal(stint_codec_pack(d, in->x, given, block, capacity, workspace,
                                      workspace_bytes, &r),
                     STINT_OK);
    memset(in->back, 0x5a, (size_t)in->count * sizeof *in->back);
    assert_int_equal(stint_codec_unpack(d, block, r.bytes, given, in->back, workspace,
                                        workspace_bytes),
                     STINT_OK);
    check(in->x, in->back, in->count, d->bound);
    t->values += in->count;
    t->outliers += r.outliers;
    t->raw += r.raw;
    free(block);
    free(workspace);
}

static void test_bound_over_1e9_values(void **state)
{
    (void)state;
    static const stint_codec_desc shapes[] = {{.rank = 4, .dim = {64, 32, 32, 64}},
                                              {.rank = 4, .dim = {128, 8, 8, 512}},
                                              {.rank = 2, .dim = {1024, 4000}},
                                              {.rank = 3, .dim = {1200, 1100, 3}}};
    static const double parts[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1};
    input in = {.x = malloc(MOST * sizeof(float)),
                .back = malloc(MOST * sizeof(float)),
                .mask = malloc(MOST / 8 + 1)};
    tally t = {0};
    assert_true(in.x && in.back && in.mask);
    for (int kind = 0; kind < INPUT_KINDS; kind++) {
        for (int shape = 0; shape < 4; shape++) {
            input_make(&in, (input_kind)kind, &shapes[shape]);
            for (int p = 0; p < 7; p++) {
                const int way = (shape + 7 - p) % 4; /* each with each shape by turns */
                stint_codec_desc d = in.desc;
                d.bound = in.range * parts[p];
                d.dither = way & 1;
                d.seed = (uint64_t)p;
                d.threads = 2;
                round_trip(&in, &d, way & 2, &t);
            }
        }
        print_message("kind %d: %lld values so far, %lld outliers, %lld raw\n", kind,
                      (long long)t.values, (long long)t.outliers, (long long)t.raw);
    }
    assert_true(t.values > 1000000000);
    free(in.x);
    free(in.back);
    free(in.mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bound_over_1e9_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
