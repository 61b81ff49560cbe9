#define _GNU_SOURCE /* posix_openpt and its kin */
#include "base/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"

static char shown[8192];

/* Twenty steps with stderr replaced by fd; what was shown is read from `out`. */
/* What was written, all of it: a terminal hands it on a moment later. */
static void read_shown(int out)
{
    struct pollfd ready = {.fd = out, .events = POLLIN};
    size_t length = 0;
    while (length < sizeof shown - 1 && poll(&ready, 1, 100) > 0) {
        const ssize_t n = read(out, shown + length, sizeof shown - 1 - length);
        if (n <= 0)
            break;
        length += (size_t)n;
    }
    shown[length] = '\0';
}

static void run_steps(int fd, int out, bool quiet, bool clear)
{
    int saved = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    sti_progress p;
    int64_t calls = sti_alloc_count();
    sti_progress_begin(&p, "train", "images", 20, quiet);
    for (int step = 1; step <= 20; step++)
        sti_progress_update(&p, step, "loss 1.25  12 img/s");
    if (clear)
        sti_progress_clear(&p);
    assert_int_equal(sti_alloc_count(), calls);
    dup2(saved, STDERR_FILENO);
    close(saved);
    read_shown(out);
}

static void run_on_pipe(bool quiet)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    run_steps(ends[1], ends[0], quiet, false);
    close(ends[0]);
    close(ends[1]);
}

static void run_on_terminal(int columns, bool clear)
{
    int out = posix_openpt(O_RDWR | O_NOCTTY);
    if (out < 0 || grantpt(out) != 0 || unlockpt(out) != 0)
        skip();
    int fd = open(ptsname(out), O_RDWR | O_NOCTTY);
    assert_true(fd >= 0);
    struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = 24};
    ioctl(fd, TIOCSWINSZ, &size);
    run_steps(fd, out, false, clear);
    close(fd);
    close(out);
}

static int count_char(const char *text, char c)
{
    int count = 0;
    for (; *text; text++)
        count += *text == c;
    return count;
}

static void test_pipe(void **state)
{
    (void)state;
    run_on_pipe(false);
    assert_int_equal(count_char(shown, '\n'), 1); /* the last step only */
    assert_non_null(strstr(shown, "train 100 %"));
    assert_non_null(strstr(shown, "loss 1.25"));
    assert_null(strchr(shown, '\033'));
    assert_null(strchr(shown, '\r'));
}

/* Rates leave out what was there before; bytes are sizes; without a unit there is no
 * rate, nor a time that would follow from it. */
static void show_last(const char *unit, int64_t from, int64_t total)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    sti_progress p;
    sti_progress_begin(&p, "work", unit, total, false);
    p.from = from;
    p.start_ns -= INT64_C(10000000000);
    sti_progress_update(&p, total, "");
    dup2(saved, STDERR_FILENO);
    close(saved);
    read_shown(ends[0]);
    close(ends[0]);
    close(ends[1]);
}

static void test_rates(void **state)
{
    (void)state;
    show_last("images", 0, 1000);
    assert_string_equal(shown, "work 100 %  100 images/s  in 10.0 s\n");
    show_last("images", 900, 1000);
    assert_string_equal(shown, "work 100 %  10 images/s  in 10.0 s\n");
    show_last("images", 1000, 1000);
    assert_string_equal(shown, "work 100 %\n");
    show_last("B", 0, INT64_C(500) << 20);
    assert_string_equal(shown, "work 100 %  50.0 MiB/s  in 10.0 s\n");
    show_last(NULL, 0, 1000);
    assert_string_equal(shown, "work 100 %\n");
}

static void test_quiet(void **state)
{
    (void)state;
    run_on_pipe(true);
    assert_string_equal(shown, "");
}

static void test_terminal(void **state)
{
    (void)state;
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    run_on_terminal(100, false);
    assert_non_null(strstr(shown, "\033[32m===================="));
    assert_non_null(strstr(shown, "100 %"));
    assert_non_null(strstr(shown, "loss 1.25"));
    assert_int_equal(count_char(shown, '\n'), 0);
    setenv("NO_COLOR", "1", 1);
    run_on_terminal(100, true);
    assert_null(strstr(shown, "\033[32m"));
    assert_non_null(strstr(shown, "[====================]"));
    unsetenv("NO_COLOR");
}

/* On a narrow terminal nothing runs over the edge. */
static void test_narrow(void **state)
{
    (void)state;
    setenv("NO_COLOR", "1", 1);
    run_on_terminal(30, false);
    assert_null(strstr(shown, "[="));
    for (char *line = strtok(shown, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        char *end = strstr(line, "\033[K");
        size_t columns = end ? (size_t)(end - line) : strlen(line);
        assert_true(columns < 30);
    }
    unsetenv("NO_COLOR");
}

static void test_dumb(void **state)
{
    (void)state;
    setenv("TERM", "dumb", 1);
    run_on_terminal(100, false);
    assert_null(strchr(shown, '\033'));
    assert_non_null(strstr(shown, "train 100 %"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipe),   cmocka_unit_test(test_rates),
        cmocka_unit_test(test_quiet),  cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_narrow), cmocka_unit_test(test_dumb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
