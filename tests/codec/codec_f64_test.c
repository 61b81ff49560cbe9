/* Doubles: every value within the bound in exact arithmetic (long double), or the same
 * bits; and blocks that are damaged. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "stint/codec.h"

static uint64_t state = 1;

static uint32_t word(void)
{
    uint32_t out[4];
    sti_random4(1, STI_STREAM_TEST, 78, state++, out);
    return out[0];
}

enum kind { NORMAL, SPARSE, LARGE, FINE, BITS, SPECIAL, KINDS };

static double value_of(enum kind kind)
{
    static const double special[] = {0,      -0.0,   1e-310,  -5e-324, 1e308,
                                     -1e308, 3.4e38, 3.5e38,  1e-45,   1,
                                     0.1,    -0.3,   1 / 3.0, 16777217};
    const double u = (double)word() / 4294967296.0 - 0.5;
    uint64_t bits = (uint64_t)word() << 32 | word();
    double x = u;
    switch (kind) {
    case SPARSE:
        return word() % 3 ? 0 : u;
    case LARGE:
        return 1e9 + 1e3 * u;
    case FINE:
        return 1 + 1e-12 * u;
    case BITS:
        memcpy(&x, &bits, sizeof x);
        return x;
    case SPECIAL:
        if (word() % 8 == 0)
            return word() % 2 ? (double)INFINITY : -(double)NAN;
        return special[word() % 14];
    case NORMAL:
    case KINDS:
        break;
    }
    return x;
}

static void check_values(const double *x, const double *y, int64_t count, double bound,
                         double max_error)
{
    for (int64_t i = 0; i < count; i++) {
        const long double away = fabsl((long double)x[i] - (long double)y[i]);
        if (memcmp(&x[i], &y[i], sizeof *x) != 0 && !(away <= (long double)bound))
            fail_msg("value %d: %a comes back as %a, bound %a", (int)i, x[i], y[i],
                     bound);
        if (x[i] == 0)
            assert_true(y[i] == 0);
        if (!isnan(x[i]) && !isinf(x[i]))
            assert_true((double)away <= max_error);
    }
}

typedef struct packed {
    stint_codec_desc desc;
    double x[5000], y[5000];
    unsigned char *block;
    void *workspace;
    size_t capacity, workspace_bytes;
    stint_codec_result result;
} packed;

static stint_status pack(packed *p, enum kind kind, int64_t rows, int64_t cols,
                         double bound, bool dither)
{
    p->desc = (stint_codec_desc){.rank = 2,
                                 .dim = {rows, cols},
                                 .bound = bound,
                                 .dither = dither,
                                 .seed = word(),
                                 .threads = 1 + (int)(word() % 2)};
    for (int64_t i = 0; i < rows * cols; i++)
        p->x[i] = value_of(kind);
    assert_int_equal(stint_codec_f64_max_bytes(&p->desc, &p->capacity), STINT_OK);
    assert_int_equal(stint_codec_f64_workspace_bytes(&p->desc, &p->workspace_bytes),
                     STINT_OK);
    p->block = malloc(p->capacity);
    p->workspace = malloc(p->workspace_bytes);
    return stint_codec_f64_pack(&p->desc, p->x, p->block, p->capacity, p->workspace,
                                p->workspace_bytes, &p->result);
}

static void unpack_fini(packed *p)
{
    free(p->block);
    free(p->workspace);
}

static void bounds_are_kept(void **unused)
{
    (void)unused;
    static packed p;
    static const double bounds[] = {1e-2, 1e-5,  1e-9,   3e-14, 1,
                                    1e6,  1e-40, 1e-300, 1e30};
    for (int round = 0; round < 200; round++) {
        const enum kind kind = (enum kind)(round % KINDS);
        const double bound = bounds[word() % 9];
        const int64_t rows = word() % 70, cols = 1 + word() % 60;
        assert_int_equal(pack(&p, kind, rows, cols, bound, round % 2), STINT_OK);
        stint_codec_info info;
        assert_true(p.result.bytes <= p.capacity);
        assert_true(stint_codec_is_f64(p.block, p.result.bytes));
        assert_int_equal(stint_codec_f64_info_read(p.block, p.result.bytes, &info),
                         STINT_OK);
        assert_int_equal(info.count, rows * cols);
        assert_true(info.bound == bound && info.max_error == p.result.max_error);
        assert_int_equal(stint_codec_f64_unpack(&p.desc, p.block, p.result.bytes, p.y,
                                                p.workspace, p.workspace_bytes),
                         STINT_OK);
        check_values(p.x, p.y, rows * cols, bound, p.result.max_error);
        unpack_fini(&p);
    }
}

/* What float32 holds is packed as well as there; what it does not is kept. */
static void sizes_are_small(void **unused)
{
    (void)unused;
    static packed p;
    assert_int_equal(pack(&p, NORMAL, 80, 60, 0.01, false), STINT_OK);
    assert_true(p.result.bytes <
                4800 * 8 / 8); /* 100 steps: below 7 bits and a model */
    assert_int_equal(p.result.outliers, 0);
    unpack_fini(&p);
    assert_int_equal(pack(&p, FINE, 80, 60, 1e-14, false), STINT_OK);
    assert_true(p.result.bytes < 4800 * 9 + 1000 && p.result.outliers > 4000);
    unpack_fini(&p);
}

static void damage_is_refused(void **unused)
{
    (void)unused;
    static packed p;
    assert_int_equal(pack(&p, SPECIAL, 10, 30, 1e-3, true), STINT_OK);
    assert_true(p.result.outliers > 20);
    for (size_t i = 0; i < p.result.bytes; i++) {
        p.block[i] ^= 4;
        const stint_status st = stint_codec_f64_unpack(
            &p.desc, p.block, p.result.bytes, p.y, p.workspace, p.workspace_bytes);
        assert_true(st == STINT_E_INPUT || st == STINT_E_UNSUPPORTED);
        p.block[i] ^= 4;
    }
    for (size_t bytes = 0; bytes < p.result.bytes; bytes += 7)
        assert_int_equal(stint_codec_f64_unpack(&p.desc, p.block, bytes, p.y,
                                                p.workspace, p.workspace_bytes),
                         STINT_E_INPUT);
    stint_codec_desc other = p.desc;
    other.dim[1]++;
    assert_int_equal(stint_codec_f64_unpack(&other, p.block, p.result.bytes, p.y,
                                            p.workspace, p.workspace_bytes),
                     STINT_E_INPUT);
    assert_int_equal(stint_codec_f64_pack(&p.desc, p.x, p.block, p.capacity - 1,
                                          p.workspace, p.workspace_bytes, &p.result),
                     STINT_E_INPUT);
    unpack_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_kept),
        cmocka_unit_test(sizes_are_small),
        cmocka_unit_test(damage_is_refused),
    };
    return cmocka_run_group_tests_name("codec/codec_f64", tests, NULL, NULL);
}
