/* Conjugate gradients against Gaussian elimination; columns that do not see each other;
 * matrices that are not positive definite; failed allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "solve/krylov.h"

enum { N = 40, COLUMNS = 3 };

static double a[N][N], b[COLUMNS * N], x[COLUMNS * N];

static stint_status multiply(void *arg, int64_t count, const double *const *in,
                             double *const *out)
{
    (void)arg;
    for (int64_t c = 0; c < count; c++)
        for (int i = 0; i < N; i++) {
            out[c][i] = 0;
            for (int j = 0; j < N; j++)
                out[c][i] += a[i][j] * in[c][j];
        }
    return STINT_OK;
}

static void fill(double ridge)
{
    static double m[N][N];
    uint32_t w[4];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            sti_random4(3, STI_STREAM_TEST, (uint64_t)(i * N + j), 0, w);
            m[i][j] = (double)w[0] * 0x1p-31 - 1;
            if (i < COLUMNS)
                b[i * N + j] = (double)w[1] * 0x1p-31 - 1;
        }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = i == j ? ridge : 0;
            for (int k = 0; k < N; k++)
                a[i][j] += m[i][k] * m[j][k];
        }
}

static void eliminate(const double *side, double *solution)
{
    static double m[N][N + 1];
    for (int i = 0; i < N; i++) {
        memcpy(m[i], a[i], sizeof a[i]);
        m[i][N] = side[i];
    }
    for (int i = 0; i < N; i++)
        for (int k = i + 1; k < N; k++) {
            const double f = m[k][i] / m[i][i];
            for (int j = i; j <= N; j++)
                m[k][j] -= f * m[i][j];
        }
    for (int i = N; i-- > 0;) {
        solution[i] = m[i][N];
        for (int j = i + 1; j < N; j++)
            solution[i] -= m[i][j] * solution[j];
        solution[i] /= m[i][i];
    }
}

static stint_status solve(int64_t columns, int64_t iterations, double tolerance,
                          const double *sides, double *out, sti_krylov_result *result)
{
    const sti_team team = {2};
    const sti_krylov_desc desc = {.n = N,
                                  .columns = columns,
                                  .tolerance = tolerance,
                                  .iterations = iterations,
                                  .product = multiply};
    return sti_krylov_solve(&team, &desc, sides, out, result);
}

static void solutions(void **state)
{
    double want[N], alone[N];
    sti_krylov_result result;
    (void)state;
    fill(1);
    memset(b + N, 0, N * sizeof *b); /* a column of zeros has the solution 0 */
    assert_int_equal(solve(COLUMNS, 500, 1e-12, b, x, &result), STINT_OK);
    assert_true(result.residual <= 1e-12 && result.iterations > 5);
    for (int c = 0; c < COLUMNS; c++) {
        eliminate(b + c * N, want);
        for (int i = 0; i < N; i++)
            assert_true(fabs(x[c * N + i] - want[i]) < 1e-9);
    }
    assert_int_equal(solve(1, 500, 1e-12, b + 2 * N, alone, &result), STINT_OK);
    assert_memory_equal(alone, x + 2 * N, sizeof alone);
}

/* From near the solution it is near, from nowhere of use as from 0, whatever the scale;
 * what is solved already is looked at and left. */
static void warm_starts(void **state)
{
    const sti_team team = {2};
    const sti_krylov_desc desc = {.n = N,
                                  .columns = COLUMNS,
                                  .tolerance = 1e-8,
                                  .iterations = 500,
                                  .product = multiply,
                                  .warm = true};
    sti_krylov_result cold, result;
    double kept[COLUMNS * N], want[N];
    (void)state;
    fill(1);
    memset(b + N, 0, N * sizeof *b);
    assert_int_equal(solve(COLUMNS, 500, 1e-4, b, x, &result), STINT_OK);
    memcpy(kept, x, sizeof kept);
    assert_int_equal(solve(COLUMNS, 500, 1e-8, b, x, &cold), STINT_OK);
    for (int times = 1; times <= 1000000; times *= 1000) {
        for (int i = 0; i < COLUMNS * N; i++)
            x[i] = times * kept[i];
        assert_int_equal(sti_krylov_solve(&team, &desc, b, x, &result), STINT_OK);
        assert_true(result.iterations > 0 && result.iterations < cold.iterations);
        assert_true(result.residual <= 1e-8);
        eliminate(b + 2 * N, want);
        for (int i = 0; i < N; i++)
            assert_true(fabs(x[2 * N + i] - want[i]) < 1e-6 && x[N + i] == 0);
    }
    assert_int_equal(sti_krylov_solve(&team, &desc, b, x, &result), STINT_OK);
    assert_int_equal(result.iterations, 0);
    assert_true(result.residual > 0 && result.residual <= 1e-8);
    memset(x, 0, sizeof kept);
    assert_int_equal(sti_krylov_solve(&team, &desc, b, x, &result), STINT_OK);
    assert_int_equal(result.iterations, cold.iterations);
}

static void what_is_not_solved(void **state)
{
    sti_krylov_result result;
    (void)state;
    fill(0.001);
    assert_int_equal(solve(COLUMNS, 3, 1e-10, b, x, &result), STINT_E_FAILED);
    assert_int_equal(result.iterations, 3);
    assert_non_null(strstr(stint_last_error(), "after 3 iterations"));
    assert_int_equal(solve(COLUMNS, 100000, 1e-18, b, x, &result), STINT_E_FAILED);
    assert_non_null(strstr(stint_last_error(), "rounding"));
    fill(-1000);
    assert_int_equal(solve(COLUMNS, 500, 1e-10, b, x, &result), STINT_E_FAILED);
    assert_non_null(strstr(stint_last_error(), "not positive definite"));
}

static void failed_allocations(void **state)
{
    sti_krylov_result result;
    stint_status st = STINT_E_MEMORY;
    (void)state;
    fill(1);
    int64_t nth = 1;
    for (; st == STINT_E_MEMORY; nth++) {
        sti_alloc_fail_nth(nth);
        st = solve(COLUMNS, 500, 1e-8, b, x, &result);
    }
    sti_alloc_fail_nth(0);
    assert_int_equal(st, STINT_OK);
    assert_true(nth > 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solutions), cmocka_unit_test(warm_starts),
        cmocka_unit_test(what_is_not_solved), cmocka_unit_test(failed_allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
