/* Kernel tiles against sums in long double, sparse rows against dense ones bit for bit,
 * instruction sets against each other; exp and tanh against the C library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "kernel/gram/gram.h"
#include "kernel/maths/maths_f64.h"

enum { ROWS = 37, COLUMNS = 300 };

static double dense[ROWS * COLUMNS], square[ROWS], value[ROWS * COLUMNS];
static int64_t start[ROWS + 1];
static int32_t column[ROWS * COLUMNS];

static double uniform(uint64_t i)
{
    uint32_t w[4];
    sti_random4(9, STI_STREAM_TEST, i, 1, w);
    return w[1] % 3 ? 0 : (double)w[0] * 0x1p-31 - 1;
}

static void fill(void)
{
    int64_t at = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        for (int64_t c = 0; c < COLUMNS; c++) {
            const double x = uniform((uint64_t)(i * COLUMNS + c));
            dense[i * COLUMNS + c] = x;
            if (x != 0) {
                column[at] = (int32_t)c;
                value[at++] = x;
            }
        }
        start[i + 1] = at;
    }
}

static double model(const sti_gram_function *f, const double *u, const double *v)
{
    long double dot = 0, apart = 0;
    for (int c = 0; c < COLUMNS; c++) {
        dot += (long double)u[c] * v[c];
        apart += ((long double)u[c] - v[c]) * ((long double)u[c] - v[c]);
    }
    const long double inner = f->gamma * dot + f->coef0;
    switch (f->kind) {
    case STI_GRAM_POLYNOMIAL:
        return (double)powl(inner, (long double)f->degree);
    case STI_GRAM_RBF:
        return (double)expl(-f->gamma * apart);
    case STI_GRAM_SIGMOID:
        return (double)tanhl(inner);
    case STI_GRAM_LINEAR:
    case STI_GRAM_KINDS:
        break;
    }
    return (double)dot;
}

static void make_tile(const sti_gram_function *f, bool sparse, double *tile)
{
    sti_gram_rows rows = {.rows = ROWS, .columns = COLUMNS, .square = square};
    if (sparse)
        rows.sparse = (sti_csr){ROWS, COLUMNS, start, column, value};
    else
        rows.dense = dense;
    void *scratch = calloc(1, sti_gram_scratch_bytes(&rows));
    assert_non_null(scratch);
    sti_gram_squares(&rows, square);
    sti_gram_tile(f, &rows, 3, 30, &rows, 1, 36, tile, scratch);
    free(scratch);
}

static void tiles(void **state)
{
    static double tile[30 * STI_GRAM_TILE], other[30 * STI_GRAM_TILE];
    const sti_isa best = sti_isa_now();
    (void)state;
    fill();
    for (int kind = 0; kind < STI_GRAM_KINDS; kind++) {
        const sti_gram_function f = {(sti_gram_kind)kind, 0.02, 0.5, 3};
        make_tile(&f, false, tile);
        for (int64_t i = 0; i < 30; i++)
            for (int64_t j = 0; j < 36; j++) {
                const double want =
                    model(&f, dense + (3 + i) * COLUMNS, dense + (1 + j) * COLUMNS);
                const double got = tile[i * STI_GRAM_TILE + j];
                if (!(fabs(got - want) <= 2e-14 * (1 + fabs(want))))
                    fail_msg("kernel %d, %d, %d: %.17g, wanted %.17g", kind, (int)i,
                             (int)j, got, want);
            }
        for (int isa = 0; isa <= (int)best; isa++)
            for (int sparse = 0; sparse < 2; sparse++) {
                sti_isa_force((sti_isa)isa);
                memset(other, 0, sizeof other);
                make_tile(&f, sparse, other);
                for (int64_t i = 0; i < 30; i++)
                    assert_memory_equal(tile + i * STI_GRAM_TILE,
                                        other + i * STI_GRAM_TILE, 36 * sizeof *tile);
            }
        sti_isa_force(best);
    }
}

static void products_with_vectors(void **state)
{
    static double tile[30 * STI_GRAM_TILE];
    double y[30], first_y[30], down[36], first_down[36] = {0};
    const sti_gram_function f = {STI_GRAM_LINEAR, 1, 0, 1};
    const sti_isa best = sti_isa_now();
    (void)state;
    fill();
    make_tile(&f, false, tile);
    for (int isa = 0; isa <= (int)best; isa++) {
        sti_isa_force((sti_isa)isa);
        memset(down, 0, sizeof down);
        sti_gram_apply(tile, 30, 36, dense, y, dense + 40, down);
        for (int j = 0; j < 36; j++) {
            double want = 0;
            for (int i = 0; i < 30; i++)
                want += tile[i * STI_GRAM_TILE + j] * dense[40 + i];
            assert_true(fabs(down[j] - want) < 1e-11);
        }
        for (int i = 0; i < 30; i++) {
            double want = 0;
            for (int j = 0; j < 36; j++)
                want += tile[i * STI_GRAM_TILE + j] * dense[j];
            assert_true(fabs(y[i] - want) < 1e-11);
        }
        if (isa > 0) {
            assert_memory_equal(y, first_y, sizeof y);
            assert_memory_equal(down, first_down, sizeof down);
        }
        memcpy(first_y, y, sizeof y);
        memcpy(first_down, down, sizeof down);
    }
    sti_isa_force(best);
}

static double ulps(double got, double want)
{
    return fabs(got - want) / (nextafter(fabs(want), (double)INFINITY) - fabs(want));
}

static void elementary_functions(void **state)
{
    (void)state;
    for (int i = -70800; i <= 70800; i++) {
        const double x = i * 0.01 + 1e-5 * (i % 7);
        if (fabs(x) < 708 && ulps(sti_exp_f64(x), (double)expl((long double)x)) > 1.5)
            fail_msg("exp(%.17g)", x);
        const double small = x / 30;
        if (ulps(sti_tanh_f64(small), (double)tanhl((long double)small)) > 3)
            fail_msg("tanh(%.17g)", small);
    }
    assert_true(sti_exp_f64(-1e9) == 0 && isinf(sti_exp_f64(1e9)));
    assert_true(isnan(sti_exp_f64((double)NAN)) && isnan(sti_tanh_f64((double)NAN)));
    assert_true(sti_tanh_f64(-1e9) == -1 && sti_exp_f64(0) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles),
                                       cmocka_unit_test(products_with_vectors),
                                       cmocka_unit_test(elementary_functions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
