#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The known answers that Random123 publishes for ten rounds. */
static void test_philox_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], wanted[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        sti_philox(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].wanted, sizeof out);
    }
}

/* Seed, stream and position each change the words; the same four give the same. */
static void test_streams(void **state)
{
    (void)state;
    uint32_t base[4], again[4], other[4];
    sti_random4(7, STI_STREAM_INIT, 1, 2, base);
    sti_random4(7, STI_STREAM_INIT, 1, 2, again);
    assert_memory_equal(base, again, sizeof base);
    sti_random4(8, STI_STREAM_INIT, 1, 2, other);
    assert_memory_not_equal(base, other, sizeof base);
    sti_random4(7 + (UINT64_C(1) << 32), STI_STREAM_INIT, 1, 2, other);
    assert_memory_not_equal(base, other, sizeof base);
    sti_random4(7, STI_STREAM_DROPOUT, 1, 2, other);
    assert_memory_not_equal(base, other, sizeof base);
    sti_random4(7, STI_STREAM_INIT, 1 + (UINT64_C(1) << 32), 2, other);
    assert_memory_not_equal(base, other, sizeof base);
    sti_random4(7, STI_STREAM_INIT, 1, 2 + (UINT64_C(1) << 32), other);
    assert_memory_not_equal(base, other, sizeof base);
    /* The key of seed 0, stream 1 as the header describes it. */
    uint32_t wanted[4];
    sti_philox((uint32_t[4]){3, 0, 4, 0}, (uint32_t[2]){0, 0x9E3779B9}, wanted);
    sti_random4(0, STI_STREAM_INIT, 3, 4, other);
    assert_memory_equal(other, wanted, sizeof wanted);
}

static void test_uniform(void **state)
{
    (void)state;
    assert_true(sti_uniform(0) == 0.0f);
    assert_true(sti_uniform(UINT32_MAX) < 1.0f);
    assert_true(sti_uniform(0x80000000u) == 0.5f);
    assert_int_equal(sti_below(UINT32_MAX, 10), 9);
    assert_int_equal(sti_below(0, 10), 0);
    double sum = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        uint32_t w[4];
        sti_random4(1, STI_STREAM_TEST, i, 0, w);
        for (int k = 0; k < 4; k++)
            sum += (double)sti_uniform(w[k]);
    }
    assert_true(sum / 16000 > 0.49 && sum / 16000 < 0.51);
}

static void test_shuffle(void **state)
{
    (void)state;
    static int32_t order[5000], other[5000];
    static char seen[5000];
    for (int32_t n = 0; n < 5000; n = n * 3 + 1) {
        sti_shuffle(3, STI_STREAM_SHUFFLE, 1, n, order);
        memset(seen, 0, sizeof seen);
        for (int32_t i = 0; i < n; i++) {
            assert_in_range(order[i], 0, n - 1);
            assert_false(seen[order[i]]);
            seen[order[i]] = 1;
        }
    }
    sti_shuffle(3, STI_STREAM_SHUFFLE, 1, 5000, order);
    sti_shuffle(3, STI_STREAM_SHUFFLE, 2, 5000, other);
    assert_memory_not_equal(order, other, sizeof order);
    sti_shuffle(3, STI_STREAM_SHUFFLE, 1, 5000, other);
    assert_memory_equal(order, other, sizeof order);
}

/* Over many epochs of three items each of the six orders comes up about as often. */
static void test_shuffle_is_fair(void **state)
{
    (void)state;
    int counts[27] = {0};
    for (uint64_t epoch = 0; epoch < 6000; epoch++) {
        int32_t o[3];
        sti_shuffle(5, STI_STREAM_SHUFFLE, epoch, 3, o);
        counts[o[0] * 9 + o[1] * 3 + o[2]]++;
    }
    int orders = 0;
    for (int i = 0; i < 27; i++) {
        orders += counts[i] > 0;
        assert_true(counts[i] == 0 || (counts[i] > 850 && counts[i] < 1150));
    }
    assert_int_equal(orders, 6);
}

/* Every size is a permutation, of its own for each seed and epoch; and long ones are
 * mixed: a hundred places in a row go to places far apart. */
static void test_permute(void **state)
{
    uint8_t seen[700];
    (void)state;
    for (int64_t n = 1; n <= 700; n += 1 + n / 9) {
        memset(seen, 0, sizeof seen);
        for (int64_t i = 0; i < n; i++) {
            const int64_t to = sti_permute(9, STI_STREAM_ORDER, 3, n, i);
            assert_true(to >= 0 && to < n && !seen[to]);
            seen[to] = 1;
        }
    }
    int same_epoch = 0, same_seed = 0;
    double apart = 0;
    for (int64_t i = 0; i < 600; i++) {
        const int64_t to = sti_permute(9, STI_STREAM_ORDER, 3, 600, i);
        same_epoch += to == sti_permute(9, STI_STREAM_ORDER, 4, 600, i);
        same_seed += to == sti_permute(10, STI_STREAM_ORDER, 3, 600, i);
    }
    assert_true(same_epoch < 12 && same_seed < 12);
    const int64_t n = 39291954;
    for (int64_t i = 0; i < 4000; i++) {
        const int64_t a = sti_permute(1, STI_STREAM_ORDER, 0, n, i);
        const int64_t b = sti_permute(1, STI_STREAM_ORDER, 0, n, i + 1);
        assert_true(a >= 0 && a < n);
        apart += (double)(a < b ? b - a : a - b) / (double)n;
    }
    assert_true(apart / 4000 > 0.31 && apart / 4000 < 0.36); /* a third at random */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox_known_answers),
        cmocka_unit_test(test_permute),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_shuffle),
        cmocka_unit_test(test_shuffle_is_fair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
