/* Common bits of columns: every instruction set against a loop over single bits. */
#include "kernel/reduce/bit_count.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/rng.h"

enum { GROUPS = 5, WORDS = 19 };

static uint64_t random_word(uint64_t i)
{
    uint32_t w[4];
    sti_random4(7, STI_STREAM_TEST, 1, i, w);
    /* Sparse, dense, empty and full words too. */
    const uint64_t x = (uint64_t)w[0] << 32 | w[1], y = (uint64_t)w[2] << 32 | w[0];
    switch (w[3] % 5) {
    case 0:
        return x & y;
    case 1:
        return x | y;
    case 2:
        return w[3] & 64 ? 0 : UINT64_MAX;
    default:
        return x;
    }
}

static uint32_t count_by_bit(const uint64_t *groups, int64_t words, int64_t column,
                             const uint64_t *c)
{
    uint32_t count = 0;
    for (int64_t bit = 0; bit < words * 64; bit++) {
        const uint64_t b = groups[(column / 8 * words + bit / 64) * 8 + column % 8];
        count += (b >> (bit % 64) & 1) == 1 && (c[bit / 64] >> (bit % 64) & 1) == 1;
    }
    return count;
}

static void check(int64_t groups_count, int64_t words)
{
    static uint64_t groups[GROUPS * WORDS * 8];
    uint64_t column[WORDS];
    uint32_t count[GROUPS * 8 + 1];
    for (int64_t i = 0; i < groups_count * words * 8; i++)
        groups[i] = random_word((uint64_t)i);
    for (int64_t w = 0; w < words; w++)
        column[w] = random_word((uint64_t)(100000 + w));
    for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
        if (!sti_isa_force((sti_isa)isa))
            continue;
        count[groups_count * 8] = 4711;
        sti_bit_and_count(groups, groups_count, words, column, count);
        for (int64_t i = 0; i < groups_count * 8; i++)
            assert_int_equal(count[i], count_by_bit(groups, words, i, column));
        assert_int_equal(count[groups_count * 8], 4711);
    }
}

static void every_isa_counts_the_same(void **state)
{
    (void)state;
    for (int64_t groups = 0; groups <= GROUPS; groups++)
        for (int64_t words = 1; words <= WORDS; words += groups == 3 ? 1 : 6)
            check(groups, words);
}

static void a_pair_is_two_plain_columns(void **state)
{
    uint64_t a[3], b[3];
    int64_t count = 0;
    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        a[i] = random_word(i);
        b[i] = random_word(i + 50);
        for (int bit = 0; bit < 64; bit++)
            count += a[i] >> bit & b[i] >> bit & 1;
    }
    assert_int_equal(sti_bit_and_count_pair(a, b, 3), count);
    assert_int_equal(sti_bit_and_count_pair(a, b, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_isa_counts_the_same),
        cmocka_unit_test(a_pair_is_two_plain_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
