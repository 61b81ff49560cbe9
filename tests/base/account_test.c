/* An account of a process: parts add up, the process's own lines hold what the kernel
 * counts, and a refusal says what is needed, what takes it and what would do. */
#include "base/account.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/team.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static const char *const libraries[] = {"ld-", "libc.", "libm.", NULL};

static void test_parts(void **state)
{
    sti_account a = {.count = 0};
    (void)state;
    assert_null(sti_account_largest(&a));
    sti_account_add(&a, "weights", "", 3 * MIB);
    sti_account_add(&a, "cache", "keys and values", 5 * MIB);
    sti_account_add(&a, "nothing", "", 0);
    sti_account_add(&a, "more", "as much as the cache", 5 * MIB);
    assert_int_equal(a.count, 4);
    assert_int_equal(a.total_bytes, 13 * MIB);
    assert_int_equal(sti_account_bytes(&a, "cache"), 5 * MIB);
    assert_int_equal(sti_account_bytes(&a, "nothing"), 0);
    assert_int_equal(sti_account_bytes(&a, "no such part"), 0);
    assert_string_equal(sti_account_largest(&a)->name, "cache"); /* the first of both */
    assert_string_equal(sti_account_largest(&a)->detail, "keys and values");
}

static void test_raise(void **state)
{
    sti_account a = {.count = 0};
    (void)state;
    sti_account_add(&a, "weights", "", 3 * MIB);
    sti_account_raise(&a, "loading", "once", 3 * MIB);
    assert_int_equal(a.count, 1); /* it holds that already */
    sti_account_raise(&a, "loading", "once", 3 * MIB + 7);
    assert_int_equal(a.count, 2);
    assert_int_equal(sti_account_bytes(&a, "loading"), 7);
    assert_int_equal(a.total_bytes, 3 * MIB + 7);
}

/* The same in every call, and no less than what the kernel counts. */
static void test_process(void **state)
{
    const size_t blocks = sti_alloc_now_bytes();
    const sti_account_process process = {.libraries = libraries, .apart_bytes = blocks};
    const size_t once = sti_account_process_bytes(&process);
    (void)state;
    assert_int_equal(sti_account_process_bytes(&process), once);
    assert_true(once >= STI_ACCOUNT_OWN_BYTES);
    assert_true(once + blocks >= sti_process_now_bytes());
}

/* What the host holds beside is counted, rounded up, unless it has a part of its own.
 */
static void test_process_of_a_larger_program(void **state)
{
    const size_t held = 24 * MIB;
    const sti_account_process plain = {.libraries = libraries};
    const size_t before = sti_account_process_bytes(&plain);
    char *memory = malloc(held);
    (void)state;
    assert_non_null(memory);
    memset(memory, 1, held);
    const size_t with = sti_account_process_bytes(&plain);
    assert_true(with >= held && with <= before + held + 2 * STI_ACCOUNT_GRAIN_BYTES);
    assert_int_equal(with % STI_ACCOUNT_GRAIN_BYTES, 0);
    const sti_account_process apart = {.libraries = libraries, .apart_bytes = held};
    assert_int_equal(sti_account_process_bytes(&apart), before);
    const sti_account_process kept = {
        .libraries = libraries, .apart_bytes = held, .keeps_others = true};
    assert_true(sti_account_process_bytes(&kept) >= STI_ACCOUNT_OWN_BYTES);
    assert_int_equal(memory[held - 1], 1);
    free(memory);
}

typedef struct touching {
    char *memory;
    size_t bytes;
} touching;

static void touch(void *arg, int64_t piece, int worker)
{
    const touching *t = arg;
    (void)worker;
    memset(t->memory + (size_t)piece * t->bytes, 1, t->bytes);
}

/* Sanitizers hold memory of their own, which no account knows. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

/* A whole command: an account made beforehand bounds the peak that the kernel counts.
 */
static void test_bounds_a_peak(void **state)
{
    enum { THREADS = 3, PIECES = 6 };
    const size_t each = 3 * MIB;
    sti_account a = {.count = 0};
    const sti_account_process process = {.libraries = libraries,
                                         .apart_bytes = sti_alloc_now_bytes()};
    (void)state;
    sti_account_add(&a, "pieces", "", PIECES * each);
    sti_account_add_process(&a, &process, THREADS);
    assert_int_equal(a.count, 4);
    assert_int_equal(sti_account_bytes(&a, "threads"),
                     (THREADS - 1) * STI_ACCOUNT_THREAD_BYTES);
    assert_string_equal(a.parts[3].name, "reserve");
    assert_int_equal(a.parts[3].bytes,
                     (a.total_bytes - a.parts[3].bytes) / STI_ACCOUNT_RESERVE_SHARE);
    touching t = {sti_alloc(PIECES * each, "test"), each};
    assert_non_null(t.memory);
    sti_team_run(&(sti_team){THREADS}, PIECES, touch, &t);
    assert_true(SANITIZED || sti_process_now_bytes() <= a.total_bytes);
    assert_true(sti_process_now_bytes() >= PIECES * each);
    sti_free(t.memory);
}

static void test_fits(void **state)
{
    sti_account a = {.count = 0};
    (void)state;
    sti_account_add(&a, "weights", "", 3 * MIB);
    assert_int_equal(sti_account_check(&a, 0, NULL), STINT_OK); /* no budget */
    assert_int_equal(sti_account_check(&a, 3 * MIB, NULL), STINT_OK);
    assert_int_equal(sti_account_check(&a, 3 * MIB - 1, NULL), STINT_E_BUDGET);
}

static void test_refusal(void **state)
{
    sti_account a = {.count = 0};
    (void)state;
    sti_account_add(&a, "weights", "", 3 * MIB);
    sti_account_add(&a, "cache", "", 5 * MIB + KIB);
    assert_int_equal(sti_account_check(&a, 2 * MIB, NULL), STINT_E_BUDGET);
    assert_string_equal(stint_last_error(),
                        "memory: needs 8.0 MiB at least, budget 2.0 MiB, short by 6.0 "
                        "MiB; largest part: cache, 5.0 MiB; what fits: --memory 9M");
    const sti_account_advice advice = {.dominates = "the cache is all",
                                       .fits = "--batch 2 or ",
                                       .least_bytes = 7 * MIB};
    assert_int_equal(sti_account_check(&a, 2 * MIB, &advice), STINT_E_BUDGET);
    assert_string_equal(stint_last_error(),
                        "memory: needs 8.0 MiB at least, budget 2.0 MiB, short by 6.0 "
                        "MiB; the cache is all; what fits: --batch 2 or --memory 7M");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_raise),
        cmocka_unit_test(test_process),
        cmocka_unit_test(test_process_of_a_larger_program),
        cmocka_unit_test(test_bounds_a_peak),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
