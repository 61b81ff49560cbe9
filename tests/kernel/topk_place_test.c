/* Short rows whose winners lie in the places that the networks of the straight path
 * bring together: every pair of places, and more winners than one in a column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "stint/topk.h"

enum { MOST = 256 };

static int64_t below(int64_t n)
{
    static uint64_t draws;
    uint32_t word[4];
    sti_random4(1, STI_STREAM_TEST, 9, draws++, word);
    return (int64_t)(word[0] % (uint32_t)n);
}

/* Winner by winner: the best that is not taken yet, the first of equals. */
static void want_winners(const float *x, int64_t n, int64_t k, bool *taken)
{
    memset(taken, 0, (size_t)n);
    for (; k > 0; k--) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (!taken[i] && (best < 0 || x[i] > x[best]))
                best = i;
        taken[best] = true;
    }
}

static void check(const float *x, int64_t n, int64_t k)
{
    static unsigned char workspace[16384];
    const stint_topk_desc d = {.n = n, .k = k};
    int64_t index[MOST], at = 0;
    float values[MOST];
    bool taken[MOST];
    assert_int_equal(
        stint_topk(&d, x, NULL, index, values, workspace, sizeof workspace), STINT_OK);
    want_winners(x, n, k, taken);
    for (int64_t i = 0; i < n; i++)
        if (taken[i]) {
            if (index[at] != i || values[at] != x[i])
                fail_msg("n %d, k %d: winner %d is %d, want %d", (int)n, (int)k,
                         (int)at, (int)index[at], (int)i);
            at++;
        }
    assert_int_equal(at, k);
}

static void every_pair(void **unused)
{
    (void)unused;
    for (int i = 0; i < 64; i++)
        for (int j = 0; j < 64; j++) {
            float x[64];
            for (int e = 0; e < 64; e++)
                x[e] = -1 - (float)e;
            x[j] = 1;
            x[i] = 2;
            for (int64_t k = 1; k <= 5; k++)
                check(x, 64, k);
        }
}

static void few_columns(void **unused)
{
    (void)unused;
    for (int trial = 0; trial < 4000; trial++) {
        float x[MOST];
        const int64_t n = 1 + below(MOST), columns = 1 + below(12);
        const int64_t most = n < 16 ? n : 16, k = 1 + below(most);
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)(i % 64 < columns ? 100 + below(40) : below(60));
        check(x, n, k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair),
        cmocka_unit_test(few_columns),
    };
    return cmocka_run_group_tests_name("kernel/topk_place", tests, NULL, NULL);
}
