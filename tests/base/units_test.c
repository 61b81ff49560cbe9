#include "base/units.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fail.h"
#include "base/rng.h"
#include "base/text.h"

static void test_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
    } good[] = {
        {"0", 0},
        {"1", 1},
        {"150M", (size_t)150 << 20},
        {"150MiB", (size_t)150 << 20},
        {"150 MiB", (size_t)150 << 20},
        {"150m", (size_t)150 << 20},
        {"150MB", 150000000},
        {"1.5G", (size_t)3 << 29},
        {"64K", 65536},
        {"64k", 65536},
        {"2KB", 2000},
        {"0.5K", 512},
        {".5K", 512},
        {"3B", 3},
        {"2T", (size_t)2 << 40},
        {"18446744073709551615", SIZE_MAX},
        {"9007199254740993", 9007199254740993u},
    };
    static const char *const bad[] = {"",
                                      "M",
                                      "-1",
                                      "1.5.5M",
                                      "150X",
                                      "150 M B",
                                      "1e3",
                                      "0x10",
                                      "nan",
                                      "inf",
                                      "auto",
                                      "150Mbit",
                                      "150M ",
                                      " 150M",
                                      "+5",
                                      "18446744073709551616",
                                      "16384P",
                                      "99999999999T",
                                      "17179869184.5G",
                                      "1,5G",
                                      "."};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        size_t bytes = 77;
        assert_int_equal(sti_parse_bytes(good[i].text, &bytes), STINT_OK);
        assert_true(bytes == good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t bytes = 77;
        assert_int_equal(sti_parse_bytes(bad[i], &bytes), STINT_E_USAGE);
        assert_int_equal(bytes, 77);
        assert_non_null(strstr(stint_last_error(), "150M"));
    }
}

static void test_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double seconds;
    } good[] = {{"25ms", 0.025}, {"1.5s", 1.5},   {"2min", 120},  {"1h", 3600},
                {"3", 3},        {"0.5 h", 1800}, {"10us", 1e-5}, {"7ns", 7e-9},
                {"1d", 86400},   {"9e-05s", 9e-5}};
    static const char *const bad[] = {"",     "s",    "1m",     "-1s",
                                      "1h30", "soon", "1e400s", "infinity"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double seconds = 0;
        assert_int_equal(sti_parse_time(good[i].text, &seconds), STINT_OK);
        assert_true(seconds == good[i].seconds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double seconds;
        assert_int_equal(sti_parse_time(bad[i], &seconds), STINT_E_USAGE);
    }
}

static void test_latencies(void **state)
{
    static const char *const bad[] = {"", "x", "-1ms", "-0.5x", "fast", "0.5 y"};
    double seconds, share;
    (void)state;
    assert_int_equal(sti_parse_latency("5ms", &seconds, &share), STINT_OK);
    assert_true(seconds == 5e-3 && share == 0);
    assert_int_equal(sti_parse_latency("0.25x", &seconds, &share), STINT_OK);
    assert_true(seconds == 0 && share == 0.25);
    assert_int_equal(sti_parse_latency("0x", &seconds, &share), STINT_OK);
    assert_true(seconds == 0 && share == 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(sti_parse_latency(bad[i], &seconds, &share), STINT_E_USAGE);
}

static void test_rates(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double bits_per_s;
    } good[] = {
        {"100Mbit", 1e8}, {"1Gbit/s", 1e9}, {"12.5MB/s", 1e8}, {"9600 bit", 9600}};
    static const char *const bad[] = {"",    "100",  "0Mbit", "-1Mbit",
                                      "1MB", "fast", "1e9"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double rate = 0;
        assert_int_equal(sti_parse_rate(good[i].text, &rate), STINT_OK);
        assert_true(rate == good[i].bits_per_s);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double rate;
        assert_int_equal(sti_parse_rate(bad[i], &rate), STINT_E_USAGE);
    }
    assert_string_equal(sti_rate_text(94.2e6), "94.2 Mbit/s");
    assert_string_equal(sti_rate_text(999.9e6), "1 Gbit/s");
    assert_string_equal(sti_rate_text(12), "12 bit/s");
}

static void test_numbers(void **state)
{
    (void)state;
    int64_t whole = 0;
    assert_int_equal(sti_parse_int("-12", &whole), STINT_OK);
    assert_int_equal(whole, -12);
    assert_int_equal(sti_parse_int("9223372036854775807", &whole), STINT_OK);
    assert_true(whole == INT64_MAX);
    assert_int_equal(sti_parse_int("-9223372036854775808", &whole), STINT_OK);
    assert_true(whole == INT64_MIN);
    static const char *const not_whole[] = {
        "", "-", "1.0", "1e3", "12x", " 1", "1 ", "--1", "0x1", "9223372036854775808"};
    for (size_t i = 0; i < sizeof not_whole / sizeof *not_whole; i++)
        assert_int_equal(sti_parse_int(not_whole[i], &whole), STINT_E_USAGE);

    double number = 0;
    assert_int_equal(sti_parse_float("-5e-4", &number), STINT_OK);
    assert_true(number == -5e-4);
    assert_int_equal(sti_parse_float(".1", &number), STINT_OK);
    assert_true(number == 0.1);
    static const char *const not_number[] = {"",      "nan",   "inf",   "-inf",
                                             "1e999", "0x1p3", "1,5",   "1e",
                                             "1e+",   "e5",    "1.2.3", "1f"};
    for (size_t i = 0; i < sizeof not_number / sizeof *not_number; i++)
        assert_int_equal(sti_parse_float(not_number[i], &number), STINT_E_USAGE);
}

static void test_truth(void **state)
{
    (void)state;
    int truth = -1;
    assert_int_equal(sti_parse_bool("Yes", &truth), STINT_OK);
    assert_int_equal(truth, 1);
    assert_int_equal(sti_parse_bool("off", &truth), STINT_OK);
    assert_int_equal(truth, 0);
    assert_int_equal(sti_parse_bool("maybe", &truth), STINT_E_USAGE);
    assert_int_equal(sti_parse_bool("", &truth), STINT_E_USAGE);
    assert_int_equal(sti_parse_bool("2", &truth), STINT_E_USAGE);
}

static void test_printers(void **state)
{
    (void)state;
    assert_string_equal(sti_enough_text(0), "0M");
    assert_string_equal(sti_enough_text(1), "1M");
    assert_string_equal(sti_enough_text((size_t)3 << 20), "3M");
    assert_string_equal(sti_enough_text(((size_t)3 << 20) + 1), "4M");
    assert_string_equal(sti_bytes_text(0), "0 B");
    assert_string_equal(sti_bytes_text(1023), "1023 B");
    assert_string_equal(sti_bytes_text(1024), "1.0 KiB");
    assert_string_equal(sti_bytes_text((1 << 20) - 1), "1.0 MiB");
    assert_string_equal(sti_bytes_text(160641843), "153.2 MiB");
    assert_string_equal(sti_bytes_text(SIZE_MAX), "16.0 EiB");
    assert_string_equal(sti_time_text(0.025), "25 ms");
    assert_string_equal(sti_time_text(3.4), "3.4 s");
    assert_string_equal(sti_time_text(65), "1 min 05 s");
    assert_string_equal(sti_time_text(3720), "1 h 02 min");
    assert_string_equal(sti_time_text(59.97), "1 min 00 s");
    assert_string_equal(sti_time_text(3599.9), "1 h 00 min");
    assert_string_equal(sti_time_text(0.9999), "1.0 s");
    assert_string_equal(sti_time_text(2e-6), "2 us");
    assert_string_equal(sti_time_text(3e-10), "0.3 ns");
    assert_string_equal(sti_time_text(0), "0 s");
    assert_string_equal(sti_time_text((double)INFINITY), "unknown time");
    assert_string_equal(sti_count_text(272474), "272,474");
    assert_string_equal(sti_count_text(-1234567), "-1,234,567");
    assert_string_equal(sti_count_text(-999), "-999");
    assert_string_equal(sti_count_text(0), "0");
    assert_string_equal(sti_count_text(INT64_MIN), "-9,223,372,036,854,775,808");
}

static void check_round_trip(double value)
{
    double back = 0;
    const char *text = sti_float_text(value);
    assert_int_equal(sti_parse_float(text, &back), STINT_OK);
    assert_true(memcmp(&back, &value, sizeof back) == 0);
}

static void test_float_text(void **state)
{
    (void)state;
    assert_string_equal(sti_float_text(0.1), "0.1");
    assert_string_equal(sti_float_text(5e-4), "0.0005");
    assert_string_equal(sti_float_text(1e-7), "1e-07");
    assert_string_equal(sti_float_text(1000000), "1000000");
    assert_string_equal(sti_float_text(-0.0), "-0");
    assert_string_equal(sti_float_text(1.0 / 3), "0.3333333333333333");
    assert_string_equal(sti_float_text((double)INFINITY), "inf");
    assert_string_equal(sti_float_text((double)-INFINITY), "-inf");
    assert_string_equal(sti_float_text((double)NAN), "nan");
    check_round_trip(0x1p-1074);
    check_round_trip(1.7976931348623157e308);
    check_round_trip(-0.0);
    for (uint64_t i = 0; i < 3000; i++) {
        uint32_t words[4];
        double value;
        sti_random4(11, STI_STREAM_TEST, i, 0, words);
        memcpy(&value, words, sizeof value);
        if (isfinite(value))
            check_round_trip(value);
    }
}

/* The pointers of eight calls in a row stay good. */
static void test_rotation(void **state)
{
    (void)state;
    const char *texts[8];
    for (int i = 0; i < 8; i++)
        texts[i] = sti_count_text(i);
    for (int i = 0; i < 8; i++)
        assert_int_equal(atoi(texts[i]), i);
}

/* A locale with a decimal comma: the system's, else one made for this test. */
static const char *set_comma_locale(char folder[64])
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"};
    char command[200];
    folder[0] = '\0';
    for (int i = 0; i < 3; i++)
        if (setlocale(LC_ALL, names[i]))
            return names[i];
    strcpy(folder, "/tmp/stint_locale_test_XXXXXX");
    if (!mkdtemp(folder))
        return NULL;
    setenv("LOCPATH", folder, 1);
    snprintf(command, sizeof command,
             "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    return system(command) == 0 ? setlocale(LC_ALL, "de_DE.UTF-8") : NULL;
}

static void remove_folder(const char *folder)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (folder[0] && system(command) != 0)
        print_message("%s is left behind\n", folder);
}

/* A host program may have switched to a locale with a decimal comma. */
static void test_comma_locale(void **state)
{
    (void)state;
    char folder[64], comma[16];
    if (!set_comma_locale(folder)) {
        remove_folder(folder);
        skip();
    }
    snprintf(comma, sizeof comma, "%.1f", 0.5);
    assert_string_equal(comma, "0,5");
    double number = 0, seconds = 0;
    size_t bytes = 0;
    assert_int_equal(sti_parse_float("0.5", &number), STINT_OK);
    assert_true(number == 0.5);
    assert_int_equal(sti_parse_time("1.5s", &seconds), STINT_OK);
    assert_true(seconds == 1.5);
    assert_int_equal(sti_parse_bytes("1.5K", &bytes), STINT_OK);
    assert_int_equal(bytes, 1536);
    assert_string_equal(sti_float_text(0.25), "0.25");
    assert_string_equal(sti_bytes_text(1536), "1.5 KiB");
    sti_text text = {0};
    sti_text_printf(&text, "%.2f", 0.25);
    assert_string_equal(text.data, "0.25");
    sti_text_fini(&text);
    sti_fail(STINT_E_FAILED, "%g", 0.5);
    assert_string_equal(stint_last_error(), "0.5");
    setlocale(LC_ALL, "C");
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),     cmocka_unit_test(test_times),
        cmocka_unit_test(test_latencies), cmocka_unit_test(test_rates),
        cmocka_unit_test(test_numbers),   cmocka_unit_test(test_truth),
        cmocka_unit_test(test_printers),  cmocka_unit_test(test_float_text),
        cmocka_unit_test(test_rotation),  cmocka_unit_test(test_comma_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
