/* Products in double against a loop over k with fma, bit for bit, for every instruction
 * set, odd sizes, transposed operands, and C added to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernel/gemm/gemm_f64.h"

enum { M = 21, N = 275, K = 300 };

static double a[M * K], b[K * N], c[M * N], want[M * N], first[M * N];

static void fill(double *x, int64_t count, uint64_t which)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t w[4];
        sti_random4(which, STI_STREAM_TEST, (uint64_t)i, 0, w);
        x[i] = (double)w[0] * 0x1p-31 - 1;
    }
}

static void check(int64_t m, int64_t n, int64_t k, sti_view_f64 u, sti_view_f64 v,
                  bool accumulate, void *scratch)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = accumulate ? first[i * N + j] : 0;
            for (int64_t s = 0; s < k; s++)
                sum = fma(u.at[i * u.row + s * u.column],
                          v.at[s * v.row + j * v.column], sum);
            want[i * N + j] = sum;
        }
    for (int isa = 0; isa <= (int)sti_isa_now(); isa++) {
        const sti_isa best = sti_isa_now();
        sti_isa_force((sti_isa)isa);
        memcpy(c, first, sizeof c);
        sti_gemm_f64(m, n, k, u, v, accumulate, c, N, scratch);
        sti_isa_force(best);
        for (int64_t i = 0; i < M; i++)
            for (int64_t j = 0; j < N; j++)
                assert_true(c[i * N + j] == (i < m && j < n ? want : first)[i * N + j]);
    }
}

static void products(void **state)
{
    static const int64_t sizes[][3] = {
        {M, N, K}, {1, 1, 1}, {8, 16, 256}, {9, 17, 257}, {3, 5, 0}};
    void *scratch = sti_alloc(STI_GEMM_F64_SCRATCH_BYTES, "scratch");
    (void)state;
    assert_non_null(scratch);
    fill(a, M * K, 1);
    fill(b, K * N, 2);
    fill(first, M * N, 3);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
        check(m, n, k, (sti_view_f64){a, K, 1}, (sti_view_f64){b, N, 1}, false,
              scratch);
        check(m, n, k, (sti_view_f64){a, 1, M}, (sti_view_f64){b, 1, K}, true, scratch);
    }
    sti_free(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
