/* Incomplete factors against dense elimination within the pattern, 1e-12 relative. */
#include "solve/factor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

enum { N = 40 };

static int64_t start[N + 1];
static int32_t column[N * N];
static double value[N * N], dense[N][N];
static int there[N][N];
static uint64_t drawn;

static double draw(void)
{
    uint32_t w[4];
    sti_random4(11, STI_STREAM_TEST, drawn++, 0, w);
    return (double)sti_below(w[0], 1000000) / 1000000;
}

/* Diagonally dominant; symmetric or not. */
static sti_csr make(int n, bool symmetric)
{
    int64_t e = 0;
    memset(dense, 0, sizeof dense);
    memset(there, 0, sizeof there);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            const bool lower = draw() < 0.2;
            const bool upper = symmetric ? lower : draw() < 0.2;
            if (lower)
                dense[i][j] = draw() - 0.5;
            if (upper)
                dense[j][i] = symmetric ? dense[i][j] : draw() - 0.5;
            there[i][j] = lower;
            there[j][i] = upper;
        }
    for (int i = 0; i < n; i++) {
        there[i][i] = 1;
        dense[i][i] = 1;
        for (int j = 0; j < n; j++)
            dense[i][i] += j == i ? 0 : fabs(dense[i][j]) + fabs(dense[j][i]);
    }
    for (int i = 0; i < n; i++) {
        start[i] = e;
        for (int j = 0; j < n; j++)
            if (there[i][j]) {
                column[e] = j;
                value[e++] = dense[i][j];
            }
    }
    start[n] = e;
    return (sti_csr){n, n, start, column, value};
}

/* By columns of the pattern (the KIJ form), which shares no loop with ours. */
static void dense_ilu0(int n)
{
    for (int k = 0; k < n; k++)
        for (int i = k + 1; i < n; i++) {
            if (!there[i][k])
                continue;
            dense[i][k] /= dense[k][k];
            for (int j = k + 1; j < n; j++)
                if (there[i][j])
                    dense[i][j] -= dense[i][k] * dense[k][j];
        }
}

static void dense_ic0(int n)
{
    for (int k = 0; k < n; k++) {
        dense[k][k] = sqrt(dense[k][k]);
        for (int i = k + 1; i < n; i++)
            dense[i][k] = there[i][k] ? dense[i][k] / dense[k][k] : 0;
        for (int i = k + 1; i < n; i++)
            for (int j = k + 1; j <= i; j++)
                if (there[i][j])
                    dense[i][j] -= dense[i][k] * dense[j][k];
    }
}

static void compare(const sti_csr *f, const char *what)
{
    for (int64_t i = 0; i < f->rows; i++)
        for (int64_t e = f->start[i]; e < f->start[i + 1]; e++) {
            const double wanted = dense[i][f->column[e]];
            if (!(fabs(f->value[e] - wanted) <= 1e-12 * (fabs(wanted) + 1e-3)))
                fail_msg("%s: row %d, column %d: %.17g, %.17g was wanted", what, (int)i,
                         f->column[e], f->value[e], wanted);
        }
}

static void factors_are_those_of_dense_elimination(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        const bool symmetric = round % 2 == 0;
        const sti_csr a = make(1 + (int)(draw() * (N - 1)), symmetric);
        sti_csr f;
        sti_trsv *tasks;
        double shift = 0;
        assert_int_equal(sti_csr_copy(&a, symmetric, &f), STINT_OK);
        const sti_trsv_desc d = {.a = &f,
                                 .part = !symmetric,
                                 .unit = !symmetric,
                                 .threads = 1 + round % 3,
                                 .strategy =
                                     round % 4 < 2 ? STI_TRSV_NATURAL : STI_TRSV_POOL,
                                 .tasks = 2};
        assert_int_equal(sti_trsv_analyse(&d, &tasks), STINT_OK);
        if (symmetric) {
            assert_int_equal(sti_ic0_factor(&a, &f, tasks, "test", &shift), STINT_OK);
            assert_true(shift == 0);
            dense_ic0((int)a.rows);
        } else {
            assert_int_equal(sti_ilu0_factor(&f, tasks, "test"), STINT_OK);
            dense_ilu0((int)a.rows);
        }
        compare(&f, symmetric ? "IC(0)" : "ILU(0)");
        sti_trsv_destroy(tasks);
        sti_csr_drop(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_are_those_of_dense_elimination),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
