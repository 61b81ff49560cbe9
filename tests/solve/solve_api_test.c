/* The public calls of stint/solve.h, as a program of a user's has them: answers against
 * a dense elimination, convergence and its failure, bad matrices, no allocation in a
 * solve. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "stint/solve.h"

enum { SIDE = 12, N = SIDE * SIDE, COLUMNS = 3 };

static int64_t start[N + 1];
static int32_t column[5 * N];
static double value[5 * N], b[N * COLUMNS], x[N * COLUMNS];
static double dense[N][N + COLUMNS];

/* Second differences with a wind of so much: not symmetric unless it is 0. */
static stint_matrix make(double wind)
{
    static const int step[5] = {-SIDE, -1, 0, 1, SIDE};
    int64_t e = 0;
    memset(dense, 0, sizeof dense);
    for (int i = 0; i < N; i++) {
        start[i] = e;
        for (int k = 0; k < 5; k++) {
            const int j = i + step[k];
            if (j < 0 || j >= N || (step[k] == -1 && i % SIDE == 0) ||
                (step[k] == 1 && j % SIDE == 0))
                continue;
            column[e] = j;
            value[e] = step[k] == 0 ? 4 + 0.01 * i : step[k] < 0 ? -1 - wind : -1;
            dense[i][j] = value[e++];
        }
        for (int c = 0; c < COLUMNS; c++)
            b[i * COLUMNS + c] = dense[i][N + c] = cos(i * (c + 1.5));
    }
    start[N] = e;
    return (stint_matrix){N, start, column, value};
}

/* Gauss with no pivots, which these matrices need not: answers in the last columns. */
static void eliminate(void)
{
    for (int k = 0; k < N; k++)
        for (int i = 0; i < N; i++) {
            const double factor = i == k ? 0 : dense[i][k] / dense[k][k];
            for (int j = k; factor != 0 && j < N + COLUMNS; j++)
                dense[i][j] -= factor * dense[k][j];
        }
}

static void check(double tolerance)
{
    for (int i = 0; i < N; i++)
        for (int c = 0; c < COLUMNS; c++)
            assert_true(fabs(x[i * COLUMNS + c] - dense[i][N + c] / dense[i][i]) <=
                        tolerance);
}

static void systems_have_the_answers_of_elimination(void **state)
{
    (void)state;
    for (int wind = 0; wind < 2; wind++) {
        const stint_matrix a = make(wind * 0.3);
        eliminate();
        for (int m = STINT_SOLVE_CG; m <= STINT_SOLVE_BICGSTAB; m++)
            for (int p = STINT_PRECOND_AUTO; p <= STINT_PRECOND_ILU0; p++) {
                const bool cg = m == STINT_SOLVE_CG;
                if ((wind && (cg || p == STINT_PRECOND_IC0)) ||
                    (cg && p == STINT_PRECOND_ILU0))
                    continue;
                const stint_solve_desc d = {.a = a,
                                            .method = (stint_solve_method)m,
                                            .precond = (stint_solve_precond)p,
                                            .tolerance = 1e-12,
                                            .rcm = p % 2 == 0,
                                            .threads = 2,
                                            .columns = COLUMNS};
                stint_solve_result r;
                assert_int_equal(stint_solve(&d, b, x, &r), STINT_OK);
                assert_true(r.residual <= 1e-12 && r.iterations > 0 &&
                            r.iterations < 120 && r.backward_error < 1e-11);
                check(1e-10);
            }
    }
}

static void a_plan_solves_without_allocating(void **state)
{
    const stint_matrix a = make(0);
    stint_trsv *plan = NULL;
    stint_trsv_info info;
    (void)state;
    const stint_trsv_desc d = {
        .a = a, .part = true, .transpose = true, .columns = COLUMNS, .threads = 2};
    assert_int_equal(stint_trsv_analyse(&d, &plan), STINT_OK);
    stint_trsv_get_info(plan, &info);
    assert_true(strlen(info.strategy) > 3 && info.bytes > 0 && info.predicted_s > 0);
    const int64_t before = sti_alloc_count();
    assert_int_equal(stint_trsv_solve(plan, COLUMNS, b, x), STINT_OK);
    assert_int_equal(sti_alloc_count(), before);
    for (int i = 0; i < N; i++)
        for (int c = 0; c < COLUMNS; c++) {
            double sum = b[i * COLUMNS + c];
            for (int j = i; j < N; j++)
                sum -= dense[j][i] * x[j * COLUMNS + c];
            assert_true(fabs(sum) < 1e-14 * 10);
        }
    assert_int_equal(stint_trsv_solve(plan, COLUMNS + 1, b, x), STINT_E_USAGE);
    stint_trsv_destroy(plan);
    stint_trsv_destroy(NULL);
}

static void what_does_not_converge_says_so(void **state)
{
    stint_solve_result r = {0};
    (void)state;
    stint_solve_desc d = {
        .a = make(0.3), .iterations = 3, .precond = STINT_PRECOND_NONE};
    assert_int_equal(stint_solve(&d, b, x, &r), STINT_E_FAILED);
    assert_true(r.residual > 1e-8 && r.residual < 1 && r.iterations == 3);
    d.method = STINT_SOLVE_CG;
    assert_int_equal(stint_solve(&d, b, x, &r), STINT_E_INPUT);
    d.method = STINT_SOLVE_TRSV;
    assert_int_equal(stint_solve(&d, b, x, NULL), STINT_E_INPUT);
    d.tolerance = -1;
    assert_int_equal(stint_solve(&d, b, x, NULL), STINT_E_USAGE);
}

static void bad_matrices_are_refused(void **state)
{
    stint_trsv *plan;
    stint_trsv_desc d = {.a = make(0), .part = true};
    (void)state;
    column[start[5]] = N;
    assert_int_equal(stint_trsv_analyse(&d, &plan), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "row 6 "));
    d.a = make(0);
    value[start[4] + 1] = NAN;
    assert_int_equal(stint_trsv_analyse(&d, &plan), STINT_E_INPUT);
    d.a = make(0);
    start[3] = start[4] + 1;
    assert_int_equal(stint_trsv_analyse(&d, &plan), STINT_E_INPUT);
    d.a.n = -1;
    assert_int_equal(stint_trsv_analyse(&d, &plan), STINT_E_INPUT);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int m = STINT_SOLVE_CG; m <= STINT_SOLVE_BICGSTAB; m++)
        for (int64_t n = 1, good = 0; good < 20; n++) {
            const stint_solve_desc d = {.a = make(0),
                                        .method = (stint_solve_method)m,
                                        .rcm = true,
                                        .threads = 1,
                                        .columns = 2};
            sti_alloc_fail_nth(n);
            const stint_status st = stint_solve(&d, b, x, NULL);
            sti_alloc_fail_nth(0);
            good = st == STINT_OK ? good + 1 : 0; /* a prediction may do without */
            assert_true(st == STINT_OK || st == STINT_E_MEMORY);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(systems_have_the_answers_of_elimination),
        cmocka_unit_test(a_plan_solves_without_allocating),
        cmocka_unit_test(what_does_not_converge_says_so),
        cmocka_unit_test(bad_matrices_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
