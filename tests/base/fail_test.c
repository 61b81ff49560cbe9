#include "base/fail.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stint/version.h"

static void test_record(void **state)
{
    (void)state;
    assert_int_equal(sti_fail(STINT_E_BUDGET, "need %d, have %d", 3, 2),
                     STINT_E_BUDGET);
    assert_string_equal(stint_last_error(), "need 3, have 2");
    assert_int_equal(sti_fail_context(STINT_E_INPUT, "file %s", "a"), STINT_E_INPUT);
    assert_string_equal(stint_last_error(), "file a: need 3, have 2");
    sti_fail(STINT_E_INPUT, "again: %s", stint_last_error());
    assert_string_equal(stint_last_error(), "again: file a: need 3, have 2");
}

static void test_too_long(void **state)
{
    (void)state;
    static char words[20000];
    memset(words, 'x', sizeof words - 1);
    sti_fail(STINT_E_BUG, "%s", words);
    size_t length = strlen(stint_last_error());
    assert_true(length > 1000 && length < sizeof words);
    sti_fail_context(STINT_E_BUG, "front");
    assert_memory_equal(stint_last_error(), "front: xxx", 10);
    sti_fail_context(STINT_E_BUG, "%s", words);
    assert_int_equal(strlen(stint_last_error()), length);
}

static void test_errno(void **state)
{
    (void)state;
    errno = ENOENT;
    assert_int_equal(sti_fail_errno("a.txt: cannot be opened"), STINT_E_IO);
    assert_string_equal(stint_last_error(),
                        "a.txt: cannot be opened: No such file or directory");
    errno = ENOSPC;
    sti_fail_errno("a.txt");
    assert_non_null(strstr(stint_last_error(), "disk is full"));
    errno = EDQUOT;
    sti_fail_errno("a.txt");
    assert_non_null(strstr(stint_last_error(), "quota"));
}

static void *other_thread(void *arg)
{
    int *clean = arg;
    *clean = stint_last_error()[0] == '\0';
    sti_fail(STINT_E_IO, "other");
    return NULL;
}

static void test_thread_local(void **state)
{
    (void)state;
    pthread_t thread;
    int clean = 0;
    sti_fail(STINT_E_IO, "mine");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &clean), 0);
    pthread_join(thread, NULL);
    assert_true(clean); /* a record is its thread's own */
    assert_string_equal(stint_last_error(), "mine");
}

static void keep_line(void *user, stint_log_level level, const char *text)
{
    char *line = user;
    line[0] = (char)('0' + (int)level);
    strncpy(line + 1, text, 60);
}

static void test_log(void **state)
{
    (void)state;
    char line[64] = "";
    sti_log(STINT_LOG_ERROR, "dropped");
    stint_set_log(keep_line, line);
    sti_log(STINT_LOG_WARNING, "%d %s", 7, "lines");
    assert_string_equal(line, "17 lines");
    stint_set_log(NULL, NULL);
    sti_log(STINT_LOG_ERROR, "dropped");
    assert_string_equal(line, "17 lines");
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(stint_version(), STINT_VERSION);
    assert_string_equal(stint_status_name(STINT_OK), "ok");
    assert_string_equal(stint_status_name(STINT_E_INPUT), "bad input");
    assert_string_equal(stint_status_name((stint_status)77), "unknown status");
    for (int status = 0; status <= STINT_E_BUG; status++)
        assert_string_not_equal(stint_status_name((stint_status)status),
                                "unknown status");
    assert_int_equal(STINT_E_INTERRUPTED, 130);
    assert_int_equal(STINT_E_TERMINATED, 143);
}

/* Levels that are not shown are not made. */
static void levels_below_are_not_sent(void **state)
{
    char line[64] = "";
    (void)state;
    assert_false(sti_log_shows(STINT_LOG_ERROR)); /* to nobody */
    stint_set_log(keep_line, line);
    assert_true(sti_log_shows(STINT_LOG_DEBUG));
    stint_set_log_level(STINT_LOG_WARNING);
    assert_false(sti_log_shows(STINT_LOG_INFO));
    sti_log(STINT_LOG_INFO, "a");
    assert_string_equal(line, "");
    assert_true(sti_log_shows(STINT_LOG_WARNING));
    sti_log(STINT_LOG_WARNING, "b");
    assert_string_equal(line, "1b");
    stint_set_log_level(STINT_LOG_DEBUG);
    stint_set_log(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_thread_local),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_names),
        cmocka_unit_test(levels_below_are_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
