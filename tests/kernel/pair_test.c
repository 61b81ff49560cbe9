/* Steps of sequential minimal optimisation against plain loops, over ties and sets in
 * which nothing may move, on every instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "kernel/pair/pair.h"

enum { COUNT = 72, ROWS = 5, WIDE = 101 };

static float row[ROWS][WIDE];
static double v[COUNT], up[COUNT], low[COUNT], diagonal[COUNT];

static double uniform(uint64_t i)
{
    uint32_t w[4];
    sti_random4(5, STI_STREAM_TEST, i, 3, w);
    return (double)w[0] * 0x1p-31 - 1;
}

/* Few values, so that many are equal; every third may not rise, every fourth not fall.
 */
static void fill(uint64_t seed)
{
    for (uint64_t k = 0; k < COUNT; k++) {
        v[k] = floor(4 * uniform(seed + k)) / 4;
        up[k] = k % 3 == seed % 3 ? -(double)INFINITY : 0;
        low[k] = k % 4 == seed % 4 ? (double)INFINITY : 0;
        diagonal[k] = 1 + floor(2 * uniform(seed + 500 + k)) / 2;
    }
    for (uint64_t r = 0; r < ROWS; r++)
        for (uint64_t k = 0; k < WIDE; k++)
            row[r][k] = (float)(floor(8 * uniform(seed + 1000 * r + k)) / 8);
}

static int64_t plain_second(double v_first, double d_first)
{
    int64_t found = -1;
    double best = 0;
    for (int64_t k = 0; k < COUNT; k++) {
        const double gap = v_first - v[k];
        double bend = d_first + diagonal[k] - 2 * (double)row[0][k];
        bend = bend > 0 ? bend : 1e-12;
        if (low[k] == 0 && gap > 0 && gap * gap / bend >= best) {
            best = gap * gap / bend;
            found = k;
        }
    }
    return found;
}

static void second_is_the_best(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        double gain;
        fill(seed);
        const double first = 1 - (double)seed / 20;
        const int64_t got =
            sti_pair_second(COUNT, first, 1, row[0], diagonal, v, low, &gain);
        assert_int_equal(got, plain_second(first, 1));
        assert_true(got < 0 ? gain <= 0 : gain > 0);
    }
}

static void move_tells_where_it_stands(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        double want[COUNT], most = -(double)INFINITY, least = (double)INFINITY;
        int64_t first = -1;
        fill(seed);
        for (int64_t k = 0; k < COUNT; k++) {
            want[k] = fma(-0.5, (double)row[1][k] - (double)row[2][k], v[k]);
            if (up[k] == 0 && want[k] >= most) {
                most = want[k];
                first = k;
            }
            if (low[k] == 0 && want[k] < least)
                least = want[k];
        }
        const sti_pair_state got =
            sti_pair_move(COUNT, 0.5, row[1], row[2], v, up, low);
        assert_memory_equal(v, want, sizeof v);
        assert_true(got.most == most && got.least == least);
        assert_int_equal(got.first, first);
    }
}

static void nothing_may_move(void **state)
{
    (void)state;
    fill(1);
    for (int k = 0; k < COUNT; k++) {
        up[k] = -(double)INFINITY;
        low[k] = (double)INFINITY;
    }
    const sti_pair_state got = sti_pair_move(COUNT, 0, row[1], row[2], v, up, low);
    assert_int_equal(got.first, -1);
    assert_true(got.most == -(double)INFINITY && got.least == (double)INFINITY);
    assert_int_equal(sti_pair_second(COUNT, 9, 1, row[0], diagonal, v, low, NULL), -1);
}

static void sums_in_order(void **state)
{
    const float *rows[ROWS];
    double factor[ROWS], out[WIDE], want[WIDE];
    (void)state;
    fill(3);
    for (int r = 0; r < ROWS; r++) {
        rows[r] = row[r];
        factor[r] = uniform((uint64_t)r) / 3;
    }
    for (int64_t count = 0; count <= WIDE; count++) {
        for (int j = 0; j < WIDE; j++)
            want[j] = out[j] = uniform((uint64_t)j);
        for (int64_t j = 0; j < count; j++)
            for (int r = 0; r < ROWS; r++)
                want[j] = fma(factor[r], (double)row[r][j], want[j]);
        sti_pair_add(ROWS, rows, factor, count, out);
        assert_memory_equal(out, want, sizeof out);
    }
}

/* All of it on every instruction set that this CPU has. */
int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(second_is_the_best),
                                       cmocka_unit_test(move_tells_where_it_stands),
                                       cmocka_unit_test(nothing_may_move),
                                       cmocka_unit_test(sums_in_order)};
    const sti_isa best = sti_isa_now();
    int failed = 0;
    for (int isa = 0; isa <= (int)best; isa++) {
        sti_isa_force((sti_isa)isa);
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
