/* Triangular solves on a CUDA device have the bits of the host's serial loop. Skips
 * (77) without a device. */
#include "kernel/sparse/cuda/trsv_cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/team.h"

enum { N = 160000, SIDE = 400, ROW = 24, RUNS = 5 };

typedef enum shape { POISSON2D, CHAIN, RMAT, RANDOM, SHAPES } shape;
static const char *const names[SHAPES] = {"poisson2d:400", "chain", "rmat", "random"};

static int64_t start[N + 1];
static int32_t column[N * ROW], count[N];
static double value[N * ROW], b[N], wanted[N], got[N];
static float value32[N * ROW], b32[N], wanted32[N], got32[N];
static uint64_t drawn;

static uint32_t draw(uint32_t below)
{
    uint32_t w[4];
    sti_random4(7, STI_STREAM_TEST, drawn++, 0, w);
    return sti_below(w[0], below);
}

static double real(void)
{
    return (double)draw(1000000) / 1000000 - 0.5;
}

static int compare(const void *x, const void *y)
{
    const int32_t a = *(const int32_t *)x, c = *(const int32_t *)y;
    return (a > c) - (a < c);
}

/* A vertex that recursive quarters favour: low numbers have most edges. */
static int32_t skewed(int32_t below)
{
    int32_t at = 0;
    for (int32_t bit = 1 << 17; bit > 0; bit /= 2)
        at |= draw(100) < 72 ? 0 : bit;
    return at % below;
}

/* Columns of row i to the left of the diagonal; how many. */
static int32_t fill_row(shape s, int32_t i, int32_t *to)
{
    int32_t n = 0;
    if (s == POISSON2D) {
        if (i >= SIDE)
            to[n++] = i - SIDE;
        if (i % SIDE > 0)
            to[n++] = i - 1;
        return n;
    }
    if (s == CHAIN && i > 0)
        to[n++] = i - 1;
    if (s == CHAIN || i == 0)
        return n;
    for (int32_t k = (int32_t)draw(s == RMAT ? ROW - 1 : 12); k > 0; k--)
        to[n++] = s == RMAT ? skewed(i) : (int32_t)draw((uint32_t)i);
    qsort(to, (size_t)n, sizeof *to, compare);
    int32_t kept = 0;
    for (int32_t k = 0; k < n; k++)
        if (kept == 0 || to[kept - 1] != to[k])
            to[kept++] = to[k];
    return kept;
}

static int64_t add(int64_t e, int32_t j, double x)
{
    column[e] = j;
    value[e] = x;
    return e + 1;
}

/* Lower; or upper, turned round its antidiagonal. */
static sti_sparse_natural make(shape s, bool upper, bool unit)
{
    int64_t e = 0;
    for (int32_t p = 0; p < N; p++) {
        int32_t row[ROW];
        const int32_t i = upper ? N - 1 - p : p;
        const int32_t n = fill_row(s, i, row);
        start[p] = e;
        count[p] = n;
        if (upper)
            e = add(e, p, 1.5 + real());
        for (int32_t k = 0; k < n; k++)
            e = add(e, upper ? N - 1 - row[n - 1 - k] : row[k],
                    s == CHAIN ? real() : real() / 4);
        if (!upper)
            e = add(e, p, 1.5 + real());
        b[p] = p % 1000 == 7 ? 1e-310 : real();
        b32[p] = (float)b[p];
    }
    start[N] = e;
    for (int64_t k = 0; k < e; k++)
        value32[k] = (float)value[k];
    return (sti_sparse_natural){.n = N,
                                .start = start,
                                .column = column,
                                .count = count,
                                .value = value,
                                .upper = upper,
                                .unit = unit};
}

typedef struct host {
    const sti_sparse_natural *t;
    bool single;
    double seconds;
} host;

static void host_piece(void *arg, int64_t piece, int worker)
{
    host *h = arg;
    (void)piece;
    (void)worker;
    const int64_t begun = sti_clock_ns();
    if (h->single)
        sti_sparse_f32()->natural(h->t, b32, wanted32);
    else
        sti_sparse_f64()->natural(h->t, b, wanted);
    h->seconds = sti_seconds_since(begun);
}

static void solve_both(sti_sparse_natural t, bool single, const char *name)
{
    sti_trsv_cuda *plan;
    host h = {&t, single, 0};
    double best = 1e9, seconds;
    t.value = single ? (const void *)value32 : value;
    sti_team_run(&sti_team_serial, 1, host_piece, &h);
    const char *error = sti_trsv_cuda_create(&t, single, &plan);
    for (int run = 0; !error && run < RUNS; run++) {
        memset(got, 0xff, sizeof got);
        memset(got32, 0xff, sizeof got32);
        error = sti_trsv_cuda_solve(plan, single ? (const void *)b32 : b,
                                    single ? (void *)got32 : got, &seconds);
        best = seconds < best ? seconds : best;
        if (!error && single)
            assert_memory_equal(got32, wanted32, sizeof got32);
        else if (!error)
            assert_memory_equal(got, wanted, sizeof got);
    }
    if (error)
        fail_msg("CUDA: %s", error);
    printf(
        "%-14s %-6s %-5s device %8.3f ms, host (natural order, one thread) %8.3f ms\n",
        name, single ? "float" : "double", t.upper ? "upper" : "lower", 1e3 * best,
        1e3 * h.seconds);
    sti_trsv_cuda_destroy(plan);
}

static void same_bits_as_the_host(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int upper = 0; upper < 2; upper++) {
            const sti_sparse_natural t = make((shape)s, upper, s == CHAIN && upper);
            solve_both(t, false, names[s]);
            solve_both(t, true, names[s]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_as_the_host)};
    if (sti_trsv_cuda_devices() == 0) {
        puts("no CUDA device: skipped");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
