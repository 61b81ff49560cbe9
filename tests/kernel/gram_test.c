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

enum { ROWS = 37, COLUMNS = 300, LD = 40 };

static double dense[ROWS * COLUMNS], term[ROWS], value[ROWS * COLUMNS];
static int64_t start[ROWS + 1];
static int32_t column[ROWS * COLUMNS];

static double uniform(uint64_t i)
{
    uint32_t w[4];
    sti_random4(9, STI_STREAM_TEST, i, 1, w);
    return w[1] % 3 ? 0 : (double)w[0] * 0x1p-31 - 1;
}

/* Sparse rows that kind can be taken of. */
static void fill(sti_gram_kind kind)
{
    int64_t at = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        for (int64_t c = 0; c < COLUMNS; c++) {
            double x = uniform((uint64_t)(i * COLUMNS + c));
            if (kind == STI_GRAM_CHI_SQUARED)
                x = fabs(x);
            if (kind == STI_GRAM_PRECOMPUTED && c == 0)
                x = (double)(1 + 7 * i % (COLUMNS - 1));
            dense[i * COLUMNS + c] = x;
            if (x != 0) {
                column[at] = (int32_t)c;
                value[at++] = x;
            }
        }
        start[i + 1] = at;
    }
}

/* Row i against row j, entry by entry in long double. */
static double model(const sti_gram_function *f, int64_t i, int64_t j)
{
    const double *u = dense + i * COLUMNS, *v = dense + j * COLUMNS;
    long double dot = 0, apart = 0, along = 0, chi = 0;
    for (int c = 0; c < COLUMNS; c++) {
        const long double d = (long double)u[c] - v[c], s = (long double)u[c] + v[c];
        dot += (long double)u[c] * v[c];
        apart += d * d;
        along += fabsl(d);
        chi += s > 0 ? d * d / s : 0;
    }
    const long double inner = f->gamma * dot + f->coef0;
    switch (f->kind) {
    case STI_GRAM_POLYNOMIAL:
        return (double)powl(inner, (long double)f->degree);
    case STI_GRAM_RBF:
        return (double)expl(-f->gamma * apart);
    case STI_GRAM_SIGMOID:
        return (double)tanhl(inner);
    case STI_GRAM_PRECOMPUTED:
        return u[(int)v[0]];
    case STI_GRAM_LAPLACIAN:
        return (double)expl(-f->gamma * along);
    case STI_GRAM_CHI_SQUARED:
        return (double)expl(-f->gamma * chi);
    case STI_GRAM_LINEAR:
    case STI_GRAM_KINDS:
        break;
    }
    return (double)dot;
}

static void make_tile(const sti_gram_function *f, bool sparse, double *tile)
{
    sti_gram_rows rows = {.rows = ROWS, .columns = COLUMNS, .term = term};
    if (sparse)
        rows.sparse = (sti_csr){ROWS, COLUMNS, start, column, value};
    else
        rows.dense = dense;
    void *scratch = calloc(1, sti_gram_scratch_bytes(&rows));
    assert_non_null(scratch);
    sti_gram_terms(f, &rows, term);
    sti_gram_tile(f, &rows, 3, 30, &rows, 1, 35, tile, LD, scratch);
    if (f->kind != STI_GRAM_PRECOMPUTED) /* a diagonal has the bits of its tile */
        for (int64_t i = 3; i < 33; i++) {
            double alone;
            sti_gram_diagonal(f, &rows, i, 1, &alone);
            assert_true(alone == tile[(i - 3) * LD + i - 1]);
        }
    free(scratch);
}

/* What sparse rows are apart: near the model, with the same bits on every instruction
 * set. */
static void compare_sparse(const sti_gram_function *f, const double *tile, bool first)
{
    static double before[30 * LD];
    for (int64_t i = 0; i < 30; i++)
        for (int64_t j = 0; j < 35; j++)
            assert_true(fabs(tile[i * LD + j] - model(f, 3 + i, 1 + j)) < 1e-13);
    if (!first)
        assert_memory_equal(before, tile, sizeof before);
    memcpy(before, tile, sizeof before);
}

static void tiles(void **state)
{
    static double tile[30 * LD], other[30 * LD];
    const sti_isa best = sti_isa_now();
    (void)state;
    for (int kind = 0; kind < STI_GRAM_KINDS; kind++) {
        const sti_gram_function f = {(sti_gram_kind)kind, 0.02, 0.5, 3};
        const bool apart = kind == STI_GRAM_LAPLACIAN || kind == STI_GRAM_CHI_SQUARED;
        fill(f.kind);
        make_tile(&f, false, tile);
        for (int64_t i = 0; i < 30; i++)
            for (int64_t j = 0; j < 35; j++) {
                const double want = model(&f, 3 + i, 1 + j);
                const double got = tile[i * LD + j];
                if (!(fabs(got - want) <= 2e-14 * (1 + fabs(want))))
                    fail_msg("kernel %d, %d, %d: %.17g, wanted %.17g", kind, (int)i,
                             (int)j, got, want);
            }
        for (int isa = 0; isa <= (int)best; isa++)
            for (int sparse = 0; sparse < 2; sparse++) {
                sti_isa_force((sti_isa)isa);
                memset(other, 0, sizeof other);
                make_tile(&f, sparse, other);
                for (int64_t i = 0; i < 30 && !(apart && sparse); i++)
                    assert_memory_equal(tile + i * LD, other + i * LD,
                                        35 * sizeof *tile);
                if (apart && sparse)
                    compare_sparse(&f, other, isa == 0);
            }
        sti_isa_force(best);
    }
}

static void products_with_vectors(void **state)
{
    static double tile[30 * LD];
    double y[30], first_y[30], down[35], first_down[35] = {0}, spare[30], under[35];
    const sti_gram_function f = {STI_GRAM_LINEAR, 1, 0, 1};
    const sti_isa best = sti_isa_now();
    (void)state;
    fill(STI_GRAM_LINEAR);
    make_tile(&f, false, tile);
    for (int isa = 0; isa <= (int)best; isa++) {
        sti_isa_force((sti_isa)isa);
        memset(down, 0, sizeof down);
        memset(under, 0, sizeof under);
        sti_gram_apply(tile, LD, 30, 35, 2, (const double *[]){dense + 7, dense},
                       (double *[]){spare, y}, (const double *[]){dense, dense + 40},
                       (double *[]){under, down});
        for (int j = 0; j < 35; j++) {
            double want = 0;
            for (int i = 0; i < 30; i++)
                want += tile[i * LD + j] * dense[40 + i];
            assert_true(fabs(down[j] - want) < 1e-11);
        }
        for (int i = 0; i < 30; i++) {
            double want = 0;
            for (int j = 0; j < 35; j++)
                want += tile[i * LD + j] * dense[j];
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

/* Updates of vectors of every length to 37: one fused multiply-add an element, wherever
 * it lies. */
static void updates_of_vectors(void **state)
{
    const double *x = dense, *begin = dense + 50;
    const sti_isa best = sti_isa_now();
    double y[38];
    (void)state;
    fill(STI_GRAM_LINEAR);
    for (int isa = 0; isa <= (int)best; isa++) {
        sti_isa_force((sti_isa)isa);
        for (int form = 0; form < 3; form++)
            for (int n = 0; n < 38; n++) {
                memcpy(y, begin, sizeof y);
                if (form == 0)
                    sti_gram_axpy(n, 0.7, x, y);
                else if (form == 1)
                    sti_gram_axpby(n, 0.7, x, -1.3, y);
                else
                    sti_gram_xpay(n, x, -1.3, y);
                for (int i = 0; i < 38; i++) {
                    const double scaled = form == 1 ? -1.3 * begin[i] : begin[i];
                    const double want = i >= n      ? begin[i]
                                        : form == 2 ? fma(-1.3, begin[i], x[i])
                                                    : fma(0.7, x[i], scaled);
                    assert_true(y[i] == want);
                }
            }
    }
    sti_isa_force(best);
}

/* Tiles in float: near those in double, the same bits on every instruction set, and
 * products that are those of their values in double. */
static void tiles_in_float(void **state)
{
    static double tile[30 * LD], widened[30 * LD];
    static float single[30 * LD], first[30 * LD];
    double y[30], wide_y[30], down[35] = {0}, wide_down[35] = {0};
    const sti_isa best = sti_isa_now();
    (void)state;
    for (int kind = 0; kind < STI_GRAM_KINDS; kind++) {
        const sti_gram_function f = {(sti_gram_kind)kind, 0.02, 0.5, 3};
        fill(f.kind);
        for (int way = 0; way < 2 * ((int)best + 1); way++) {
            const bool sparse = way % 2 == 1;
            sti_gram_rows rows = {.rows = ROWS, .columns = COLUMNS, .term = term};
            rows.sparse = (sti_csr){ROWS, COLUMNS, start, column, value};
            rows.dense = sparse ? NULL : dense;
            sti_isa_force((sti_isa)(way / 2));
            make_tile(&f, sparse, tile);
            void *scratch = calloc(1, sti_gram_scratch_bytes(&rows));
            assert_non_null(scratch);
            sti_gram_tile_f32(&f, &rows, 3, 30, &rows, 1, 35, single, LD, scratch);
            free(scratch);
            for (int64_t i = 0; i < 30 * LD; i++) {
                widened[i] = (double)single[i];
                if (!(fabs(widened[i] - tile[i]) <= 3e-5 * (1 + fabs(tile[i]))))
                    fail_msg("kernel %d: %.9g, wanted %.9g", kind, widened[i], tile[i]);
            }
            sti_gram_apply_f32(single, LD, 30, 35, 1, (const double *[]){dense},
                               (double *[]){y}, (const double *[]){dense + 40},
                               (double *[]){down});
            sti_gram_apply(widened, LD, 30, 35, 1, (const double *[]){dense},
                           (double *[]){wide_y}, (const double *[]){dense + 40},
                           (double *[]){wide_down});
            assert_memory_equal(y, wide_y, sizeof y);
            assert_memory_equal(down, wide_down, sizeof down);
            if (way > 0 && !sparse)
                assert_memory_equal(single, first, sizeof first);
            if (!sparse)
                memcpy(first, single, sizeof first);
        }
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles), cmocka_unit_test(products_with_vectors),
        cmocka_unit_test(updates_of_vectors), cmocka_unit_test(tiles_in_float),
        cmocka_unit_test(elementary_functions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
