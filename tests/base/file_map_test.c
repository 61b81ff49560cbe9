#define _GNU_SOURCE /* mincore */
#include "base/file_map.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"

enum { PAGES = 9 };

static size_t page;

/* A file of PAGES pages but for its last 5 bytes, page p holding p + 1. */
static int make_file(void)
{
    char path[] = "/tmp/stint_file_map_XXXXXX", *bytes = malloc(page);
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && bytes);
    unlink(path);
    for (int p = 0; p < PAGES; p++) {
        memset(bytes, p + 1, page);
        const size_t n = p == PAGES - 1 ? page - 5 : page;
        assert_int_equal(write(fd, bytes, n), n);
    }
    free(bytes);
    return fd;
}

static void test_bytes_of_the_file(void **state)
{
    (void)state;
    sti_file_map *map = NULL;
    const int fd = make_file();
    const size_t n_bytes = PAGES * page - 5;
    assert_int_equal(sti_file_map_create(fd, "a file", n_bytes, &map), STINT_OK);
    close(fd);
    for (int p = 0; p < PAGES; p++) {
        const char *at = sti_file_map_at(map, (int64_t)(p * page));
        assert_int_equal(at[0], p + 1);
    }
    assert_null(sti_file_map_at(map, (int64_t)n_bytes));
    assert_null(sti_file_map_at(map, -1));
    /* Whoever rests comes back as it was. */
    assert_true(sti_file_map_rest(map, sti_file_map_at(map, 3), 4 * page));
    assert_false(sti_file_map_rest(map, &fd, sizeof fd));
    assert_int_equal(*(const char *)sti_file_map_at(map, (int64_t)(2 * page)), 3);
    sti_file_map_destroy(map);
    sti_file_map_destroy(NULL);
    assert_int_equal(sti_alloc_now_bytes(), 0);
}

/* How many of the pages are resident, as the system counts. */
static int resident(const sti_file_map *map, int64_t first, int pages)
{
    unsigned char in[PAGES] = {0};
    int count = 0;
    if (mincore((void *)(uintptr_t)sti_file_map_at(map, first * (int64_t)page),
                (size_t)pages * page, in))
        return -1;
    for (int p = 0; p < pages; p++)
        count += in[p] & 1;
    return count;
}

static void test_what_is_kept(void **state)
{
    (void)state;
    sti_file_map *map = NULL;
    const int fd = make_file(), other = 0;
    assert_int_equal(sti_file_map_create(fd, "a file", PAGES * page - 5, &map),
                     STINT_OK);
    close(fd);
    /* Pages 2 and 3, which the bytes lie in parts of, and the end of the last. */
    sti_file_map_keep(map, sti_file_map_at(map, (int64_t)(3 * page) - 1), 2);
    sti_file_map_keep(map, sti_file_map_at(map, (int64_t)(PAGES * page) - 6), 1);
    sti_file_map_keep(map, &other, sizeof other); /* no part of it */
    sti_file_map_keep(map, NULL, 8);
    assert_int_equal(sti_file_map_settle(map), 3 * page);
    sti_file_map_fill(map);
    assert_int_equal(*(const char *)sti_file_map_at(map, (int64_t)(2 * page)), 3);
    assert_int_equal(*(const char *)sti_file_map_at(map, (int64_t)(3 * page)), 4);
    assert_int_equal(*(const char *)sti_file_map_at(map, (int64_t)(8 * page)), 9);
    /* What was given up takes nothing, though its neighbours were touched. */
    assert_int_equal(resident(map, 0, 2), 0);
    assert_int_equal(resident(map, 4, 4), 0);
    sti_file_map_destroy(map);
}

static void test_failures(void **state)
{
    (void)state;
    sti_file_map *map = NULL;
    assert_int_equal(sti_file_map_create(-1, "no file", 10, &map), STINT_E_IO);
    assert_non_null(strstr(stint_last_error(), "no file"));
    const int fd = make_file();
    for (int nth = 1; nth <= 2; nth++) {
        sti_alloc_fail_nth(nth);
        assert_int_equal(sti_file_map_create(fd, "a file", 10, &map), STINT_E_MEMORY);
    }
    close(fd);
    assert_null(map);
    assert_int_equal(sti_alloc_now_bytes(), 0);
}

int main(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_of_the_file),
        cmocka_unit_test(test_what_is_kept),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
