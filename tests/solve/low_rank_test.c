/* The low-rank preconditioner: at full rank the inverse that Gaussian elimination
 * gives, at a lower one far fewer iterations; the same bits for any threads; failed
 * allocations; what columns refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "solve/krylov.h"
#include "solve/low_rank.h"

enum { N = 300 };

static double k[N][N], ridge[N], diagonal[N], side[N], x[N];
static int64_t chosen[STI_LOW_RANK_BLOCK], chosen_count;
static bool refuses;

static double uniform(uint64_t i)
{
    uint32_t w[4];
    sti_random4(5, STI_STREAM_TEST, i, 0, w);
    return (double)w[0] * 0x1p-31 - 1;
}

/* A smooth kernel of points on a line. */
static void fill(void)
{
    double at[N];
    for (int i = 0; i < N; i++) {
        at[i] = 3 * uniform((uint64_t)i);
        ridge[i] = 1e-4 * (1 + 0.5 * uniform((uint64_t)(N + i)));
        side[i] = uniform((uint64_t)(2 * N + i));
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            k[i][j] = exp(-(at[i] - at[j]) * (at[i] - at[j])) + (i == j ? 1e-5 : 0);
    for (int i = 0; i < N; i++)
        diagonal[i] = k[i][i];
}

static stint_status take_pivots(void *arg, int64_t count, const int64_t *pivot)
{
    (void)arg;
    memcpy(chosen, pivot, sizeof *pivot * (size_t)count);
    chosen_count = count;
    return refuses ? sti_fail(STINT_E_FAILED, "refused") : STINT_OK;
}

static void give_columns(void *arg, int64_t begin, int64_t rows, double *out,
                         int64_t ld, int worker)
{
    (void)arg, (void)worker;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < chosen_count; j++)
            out[i * ld + j] = k[begin + i][chosen[j]];
}

static stint_status multiply(void *arg, int64_t count, const double *const *in,
                             double *const *out)
{
    (void)arg;
    for (int64_t c = 0; c < count; c++)
        for (int i = 0; i < N; i++) {
            out[c][i] = ridge[i] * in[c][i];
            for (int j = 0; j < N; j++)
                out[c][i] += k[i][j] * in[c][j];
        }
    return STINT_OK;
}

static stint_status make(int64_t rank, int threads, sti_low_rank **out)
{
    static sti_low_rank_desc desc;
    const sti_team team = {threads};
    desc = (sti_low_rank_desc){.n = N,
                               .rank = rank,
                               .diagonal = diagonal,
                               .ridge = ridge,
                               .pivots = take_pivots,
                               .columns = give_columns};
    stint_status st = sti_low_rank_create(N, rank, 1, threads, out);
    if (st == STINT_OK && (st = sti_low_rank_make(*out, &team, &desc)) != STINT_OK) {
        sti_low_rank_destroy(*out);
        *out = NULL;
    }
    return st;
}

static int64_t iterations(sti_low_rank *f)
{
    const sti_team team = {2};
    sti_krylov_result result;
    const sti_krylov_desc desc = {.n = N,
                                  .columns = 1,
                                  .tolerance = 1e-9,
                                  .iterations = 5000,
                                  .product = multiply,
                                  .precondition = f ? sti_low_rank_apply : NULL,
                                  .precondition_arg = f};
    assert_int_equal(sti_krylov_solve(&team, &desc, side, x, &result), STINT_OK);
    assert_true(result.residual <= 1e-9);
    return result.iterations;
}

static void fewer_iterations(void **state)
{
    sti_low_rank *f = NULL;
    double before[N];
    (void)state;
    fill();
    const int64_t plain = iterations(NULL);
    memcpy(before, x, sizeof x);
    assert_int_equal(make(64, 2, &f), STINT_OK);
    assert_true(sti_low_rank_rank(f) <= 64 && sti_low_rank_rank(f) > 8);
    assert_true(5 * iterations(f) <= plain);
    for (int i = 0; i < N; i++)
        assert_true(fabs(x[i] - before[i]) < 1e-4 * (1 + fabs(before[i])));
    sti_low_rank_destroy(f);
    assert_int_equal(make(N, 2, &f), STINT_OK);
    assert_true(iterations(f) <= 3);
    sti_low_rank_destroy(f);
}

/* What is drawn and made does not depend on threads. */
static void same_bits(void **state)
{
    double y[2][N];
    (void)state;
    fill();
    for (int threads = 1; threads <= 3; threads += 2) {
        sti_low_rank *f;
        assert_int_equal(make(64, threads, &f), STINT_OK);
        const double *in = side;
        double *out = y[threads / 2];
        assert_int_equal(sti_low_rank_apply(f, 1, &in, &out), STINT_OK);
        sti_low_rank_destroy(f);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
}

static void failures(void **state)
{
    sti_low_rank *f = NULL;
    stint_status st = STINT_E_MEMORY;
    int64_t nth = 1;
    (void)state;
    fill();
    for (; st == STINT_E_MEMORY; nth++) {
        sti_alloc_fail_nth(nth);
        st = make(32, 1, &f);
    }
    sti_alloc_fail_nth(0);
    assert_int_equal(st, STINT_OK);
    assert_true(nth > 8);
    sti_low_rank_destroy(f);
    refuses = true;
    assert_int_equal(make(32, 1, &f), STINT_E_FAILED);
    refuses = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fewer_iterations),
                                       cmocka_unit_test(same_bits),
                                       cmocka_unit_test(failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
