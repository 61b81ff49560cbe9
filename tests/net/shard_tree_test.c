/* The tree written down: every number of lanes must join shards as the definition says.
 * A block's sum is kept as text, "((0+1)+2)". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "net/shard_tree.h"

enum { SHARDS = 33, TEXT = 512 };

typedef struct table {
    char text[2 * SHARDS][TEXT];
} table;

static void add(void *user, int into, int from)
{
    table *t = user;
    char sum[2 * TEXT + 8];
    snprintf(sum, sizeof sum, "(%s+%s)", t->text[into], t->text[from]);
    assert_true(strlen(sum) < TEXT);
    strcpy(t->text[into], sum);
    strcpy(t->text[from], "used");
}

static void define(int lo, int hi, char *out)
{
    if (hi == lo + 1) {
        sprintf(out, "%d", lo);
        return;
    }
    int half = 1;
    while (2 * half < hi - lo)
        half *= 2;
    char a[TEXT], b[TEXT];
    define(lo, lo + half, a);
    define(lo + half, hi, b);
    snprintf(out, TEXT, "(%.250s+%.250s)", a, b);
}

static void run(table *t, int shards, int lanes, int *slots_out)
{
    sti_shard_stack all = {.depth = 0};
    int base = 0;
    for (int lane = 0; lane < lanes; lane++) {
        sti_shard_stack stack = {.depth = 0};
        const sti_shard_range whole = {0, shards};
        sti_shard_range own = sti_shard_part(whole, lanes, lane);
        int slots = sti_shard_lane_slots(whole, lanes, lane);
        for (int64_t s = own.first; s < own.first + own.count; s++) {
            assert_true(stack.depth < slots);
            int slot = base + stack.depth;
            sprintf(t->text[slot], "%d", (int)s);
            sti_shard_push(&stack, s, 1, slot, add, t);
        }
        for (int i = 0; i < stack.depth; i++)
            sti_shard_push(&all, stack.first[i], stack.size[i], stack.slot[i], add, t);
        base += slots;
    }
    *slots_out = base;
    assert_int_equal(sti_shard_finish(&all, add, t), 0);
}

static void test_tree(void **state)
{
    (void)state;
    static table t;
    for (int shards = 1; shards <= SHARDS; shards++) {
        char want[TEXT];
        define(0, shards, want);
        for (int lanes = 1; lanes <= shards; lanes++) {
            int slots;
            run(&t, shards, lanes, &slots);
            assert_string_equal(t.text[0], want);
            assert_int_equal(slots,
                             sti_shard_slots((sti_shard_range){0, shards}, lanes));
            assert_true(slots <= shards);
        }
    }
}

static void test_slots_are_few(void **state)
{
    (void)state;
    assert_int_equal(sti_shard_slots((sti_shard_range){0, 1}, 1), 1);
    assert_int_equal(sti_shard_slots((sti_shard_range){0, 2}, 1), 2);
    assert_int_equal(sti_shard_slots((sti_shard_range){0, 8}, 1), 4);
    assert_int_equal(sti_shard_slots((sti_shard_range){0, 4096}, 1), 13);
    assert_int_equal(sti_shard_slots((sti_shard_range){0, 8}, 8), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_slots_are_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
