#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/fail.h"
#include "base/team.h"

static bool all_zero(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

static void test_blocks(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,       1,      63, 64, 65, 4096, (1 << 20) - 1,
                                   1 << 20, 3 << 20};
    size_t before = sti_alloc_now_bytes();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *block = sti_alloc(sizes[i], "test");
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        assert_true(all_zero(block, sizes[i]));
        assert_int_equal(sti_alloc_now_bytes(), before + sizes[i]);
        memset(block, 0xAB, sizes[i]);
        sti_free(block);
        assert_int_equal(sti_alloc_now_bytes(), before);
    }
    sti_free(NULL);
    assert_true(sti_alloc_peak_bytes() >= before + (3 << 20));
}

/* Every pair of sizes on both sides of the border between malloc and mmap. */
static void test_resizing(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        1, 100, 5000, 1 << 20, (1 << 20) + 1, 3 << 20, (3 << 20) + 77, 2000, 1500000};
    const size_t count = sizeof sizes / sizeof *sizes;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            unsigned char *block = sti_realloc(NULL, sizes[i], "test");
            memset(block, 0xCD, sizes[i]);
            block = sti_realloc(block, sizes[k], "test");
            assert_non_null(block);
            size_t kept = sizes[i] < sizes[k] ? sizes[i] : sizes[k];
            assert_int_equal(block[0], 0xCD);
            assert_int_equal(block[kept - 1], 0xCD);
            if (sizes[k] > kept)
                assert_true(all_zero(block + kept, sizes[k] - kept));
            sti_free(block);
        }
}

/* What a shrink cuts off must not come back with the next growth. */
static void test_shrink_then_grow(void **state)
{
    (void)state;
    unsigned char *block = sti_alloc(3 << 20, "test");
    memset(block, 0xEE, 3 << 20);
    block = sti_realloc(block, (2 << 20) + 10, "test");
    block = sti_realloc(block, 4 << 20, "test");
    assert_int_equal(block[(2 << 20) + 9], 0xEE);
    assert_true(all_zero(block + (2 << 20) + 10, (2 << 20) - 10));
    sti_free(block);
}

static void test_overflow(void **state)
{
    (void)state;
    size_t bytes = 7;
    assert_false(sti_mul_bytes(-1, 4, &bytes));
    assert_false(sti_mul_bytes(INT64_MAX, 4, &bytes));
    assert_true(sti_mul_bytes(INT64_MAX, 1, &bytes));
    assert_true(sti_mul_bytes(0, SIZE_MAX, &bytes));
    assert_int_equal(bytes, 0);
    assert_true(sti_mul_bytes(5, 0, &bytes));
    assert_false(sti_add_bytes(SIZE_MAX, 1, &bytes));
    assert_true(sti_add_bytes(SIZE_MAX - 1, 1, &bytes));
    assert_null(sti_alloc_array(INT64_MAX, 16, "huge"));
    assert_non_null(strstr(stint_last_error(), "huge"));
    assert_null(sti_alloc_array(-3, 16, "negative"));
    assert_null(sti_alloc(SIZE_MAX, "everything"));
    assert_null(sti_alloc(SIZE_MAX - 100, "nearly everything"));
    assert_null(sti_alloc(SIZE_MAX / 4, "a lot"));
    assert_non_null(strstr(stint_last_error(), "a lot"));
    unsigned char *large = sti_alloc(2 << 20, "test");
    assert_null(sti_realloc(large, SIZE_MAX - 5, "test"));
    assert_null(sti_realloc(large, SIZE_MAX / 4, "test"));
    assert_true(all_zero(large, 2 << 20)); /* still there */
    sti_free(large);
}

static void test_fail_nth(void **state)
{
    (void)state;
    sti_alloc_fail_nth(3);
    void *a = sti_alloc(8, "a"), *b = sti_alloc(8, "b");
    assert_non_null(a);
    assert_non_null(b);
    assert_null(sti_alloc(8, "the third"));
    assert_non_null(strstr(stint_last_error(), "the third"));
    void *c = sti_alloc(8, "c");
    assert_non_null(c);
    sti_alloc_fail_nth(1);
    assert_null(sti_realloc(a, 4096, "a"));
    sti_alloc_fail_nth(1);
    sti_alloc_fail_nth(0);
    void *d = sti_alloc(8, "d");
    assert_non_null(d);
    sti_free(a);
    sti_free(b);
    sti_free(c);
    sti_free(d);
}

static void test_strdup(void **state)
{
    (void)state;
    char *copy = sti_strdup("words");
    assert_string_equal(copy, "words");
    sti_free(copy);
    sti_alloc_fail_nth(1);
    assert_null(sti_strdup("words"));
}

/* Untouched pages of a large block cost nothing, freed ones go back to the system. */
static void test_resident(void **state)
{
    (void)state;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const size_t big = (size_t)64 << 20;
    size_t start = sti_process_now_bytes();
    assert_true(start > 0);
    unsigned char *block = sti_alloc(big, "big");
    assert_true(sti_process_now_bytes() < start + big / 4);
    memset(block, 1, big);
    assert_true(sti_process_now_bytes() >= start + big * 3 / 4);
    sti_free(block);
    assert_true(sti_process_now_bytes() < start + big / 4);
    assert_true(sti_process_peak_bytes() >= start + big * 3 / 4);
#endif
    int64_t calls = sti_alloc_count();
    assert_true(sti_process_peak_bytes() > 0);
    assert_int_equal(sti_alloc_count(), calls);
}

static void test_arena(void **state)
{
    (void)state;
    size_t before = sti_alloc_now_bytes();
    sti_arena *arena = sti_arena_create("test arena");
    unsigned char *last = NULL;
    for (size_t bytes = 0; bytes < 3000; bytes += 7) {
        unsigned char *block = sti_arena_alloc(arena, bytes);
        assert_non_null(block);
        assert_ptr_not_equal(block, last);
        assert_int_equal((uintptr_t)block % 16, 0);
        assert_true(all_zero(block, bytes));
        memset(block, 0xFF, bytes);
        last = block;
    }
    unsigned char *huge = sti_arena_alloc(arena, 2 << 20);
    assert_true(all_zero(huge, 2 << 20));
    assert_string_equal(sti_arena_strdup(arena, "a word"), "a word");
    assert_string_equal(sti_arena_printf(arena, "%d of %s", 3, "four"), "3 of four");
    assert_null(sti_arena_alloc(arena, SIZE_MAX));
    assert_null(sti_arena_alloc(arena, SIZE_MAX / 2 + 1));
    sti_arena_destroy(arena);
    sti_arena_destroy(NULL);
    assert_int_equal(sti_alloc_now_bytes(), before);
}

static void test_arena_failures(void **state)
{
    (void)state;
    sti_alloc_fail_nth(1);
    assert_null(sti_arena_create("test"));
    sti_arena *arena = sti_arena_create("test");
    sti_alloc_fail_nth(1);
    assert_null(sti_arena_strdup(arena, "words"));
    sti_alloc_fail_nth(1);
    assert_null(sti_arena_printf(arena, "%d", 1));
    assert_string_equal(sti_arena_strdup(arena, "words"), "words");
    sti_arena_destroy(arena);
}

static void allocate_piece(void *arg, int64_t piece, int worker)
{
    (void)arg;
    (void)worker;
    void *block = sti_alloc((size_t)piece % 3000, "piece");
    sti_free(block);
}

static void test_threads(void **state)
{
    (void)state;
    size_t before = sti_alloc_now_bytes();
    int64_t calls = sti_alloc_count();
    sti_team_run(&(sti_team){.threads = 4}, 4000, allocate_piece, NULL);
    assert_int_equal(sti_alloc_now_bytes(), before);
    assert_int_equal(sti_alloc_count(), calls + 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),           cmocka_unit_test(test_resizing),
        cmocka_unit_test(test_shrink_then_grow), cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_fail_nth),         cmocka_unit_test(test_strdup),
        cmocka_unit_test(test_resident),         cmocka_unit_test(test_arena),
        cmocka_unit_test(test_arena_failures),   cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
