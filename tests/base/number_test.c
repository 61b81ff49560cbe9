/* Numbers from text against strtod of the C library, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/rng.h"

static void same_as_strtod(const char *text)
{
    const char *after;
    char *want_after;
    double value = 1;
    const double want = strtod(text, &want_after);
    if (!sti_number_read(text, text + strlen(text), &after, &value))
        fail_msg("'%s' is refused", text);
    if (memcmp(&value, &want, sizeof value) != 0 || after != want_after)
        fail_msg("'%s': %a, wanted %a", text, value, want);
}

static void hard_cases(void **state)
{
    static const char *const texts[] = {"0",
                                        "-0",
                                        "+1",
                                        ".5",
                                        "2.",
                                        "1e22",
                                        "1e23",
                                        "-1e-22",
                                        "4.9e-324",
                                        "2e-324",
                                        "1e-400",
                                        "9007199254740993",
                                        "0.1",
                                        "123456789012345678901234567890",
                                        "1.7976931348623157e308",
                                        "2.2250738585072011e-308",
                                        "1e",
                                        "1e+",
                                        "3ex",
                                        "7.5e-3rest",
                                        "00012.50"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        same_as_strtod(texts[i]);
}

static void refused(void **state)
{
    static const char *const texts[] = {"", "-", ".", "e5", "nan", "inf", "x", "1e999"};
    const char *after;
    double value;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (sti_number_read(texts[i], texts[i] + strlen(texts[i]), &after, &value))
            fail_msg("'%s' is taken", texts[i]);
}

/* The text ends where it is said to end, not at a NUL. */
static void a_piece_of_text(void **state)
{
    const char *text = "12345", *after;
    double value;
    (void)state;
    assert_true(sti_number_read(text, text + 2, &after, &value));
    assert_true(value == 12 && after == text + 2);
}

static void digits_and_their_bound(void **state)
{
    static const struct {
        const char *text;
        int64_t most, want; /* -1: refused */
    } cases[] = {{"0", 0, 0},
                 {"1", 0, -1},
                 {"7", 9, 7},
                 {"0099", 99, 99},
                 {"100", 99, -1},
                 {"9223372036854775807", INT64_MAX, INT64_MAX},
                 {"9223372036854775808", INT64_MAX, -1},
                 {"99999999999999999999", INT64_MAX, -1},
                 {"5", 3, -1},
                 {"", 9, -1},
                 {"-1", 9, -1},
                 {"+1", 9, -1},
                 {" 1", 9, -1},
                 {"1 ", 9, -1},
                 {"1.", 9, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text;
        int64_t value = -1;
        const bool taken =
            sti_digits_read(text, text + strlen(text), cases[i].most, &value);
        if (taken != (cases[i].want >= 0) || value != cases[i].want)
            fail_msg("'%s' below %lld: %lld", text, (long long)cases[i].most,
                     (long long)value);
    }
}

static void random_doubles_there_and_back(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        uint32_t w[4];
        char text[64], own[STI_NUMBER_BYTES];
        double x;
        sti_random4(5, STI_STREAM_TEST, i, 0, w);
        uint64_t bits = (uint64_t)w[0] << 32 | w[1];
        memcpy(&x, &bits, sizeof x);
        if (!(x - x == 0))
            continue;
        if (w[3] % 2)
            x = (double)((int64_t)bits >> 20) / 1e6;
        (void)snprintf(text, sizeof text, "%.*g", 1 + (int)(w[2] % 20), x);
        if (isfinite(strtod(text, NULL))) /* rounding up leads beyond the largest */
            same_as_strtod(text);
        same_as_strtod(sti_number_text(x, own));
        if (strtod(own, NULL) != x)
            fail_msg("%a is written as %s", x, own);
    }
}

/* More digits than a double has, with a point among or before them: random ones, and
 * the middles between two doubles, on either side and in between. */
static void many_digits(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        uint32_t w[4];
        char text[96];
        sti_random4(6, STI_STREAM_TEST, i, 0, w);
        const uint64_t digits = (uint64_t)w[0] << 32 | w[1];
        (void)snprintf(text, sizeof text, "%llue-%u", (unsigned long long)digits,
                       w[2] % 32);
        same_as_strtod(text);
        (void)snprintf(text, sizeof text, "0.%0*d%llu", (int)(w[3] % 9), 0,
                       (unsigned long long)(digits >> w[2] % 14));
        same_as_strtod(text);
        const uint64_t middle = ((uint64_t)1 << 53 | w[0]) * 2 + 1;
        for (int beside = -1; beside <= 1; beside++) { /* 5^k 2^k: quotient is exact */
            (void)snprintf(
                text, sizeof text, "%llu%s",
                (unsigned long long)(middle * 5 + (uint64_t)(beside + 1) - 1),
                w[1] % 2 ? "e-1" : "e-2");
            same_as_strtod(text);
            (void)snprintf(text, sizeof text, "%llu.%d",
                           (unsigned long long)(middle / 10), (int)(middle % 10));
            same_as_strtod(text);
            (void)snprintf(text, sizeof text, "%llu%d.0",
                           (unsigned long long)(middle / 10), (int)(middle % 10));
            same_as_strtod(text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hard_cases),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(a_piece_of_text),
                                       cmocka_unit_test(digits_and_their_bound),
                                       cmocka_unit_test(random_doubles_there_and_back),
                                       cmocka_unit_test(many_digits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
