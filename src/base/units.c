/* Numbers and units, read and printed the same way under every locale. */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base_priv.h"
#include "base/fail.h"

/* ---- reading ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Where the digits of "12", "1.5", ".5" or "2." end; NULL if there are none. */
static const char *skip_decimal(const char *at)
{
    int digits = 0;
    for (; is_digit(*at); at++)
        digits++;
    if (*at == '.')
        for (at++; is_digit(*at); at++)
            digits++;
    return digits > 0 ? at : NULL;
}

/* A number that is not negative, and the unit after it without the blanks between. */
static bool split_unit(const char *text, double *value_out, const char **unit_out)
{
    const char *end = skip_decimal(text);
    if (!end)
        return false;
    *value_out = sti_c_strtod(text, NULL);
    while (*end == ' ')
        end++;
    *unit_out = end;
    return isfinite(*value_out);
}

typedef struct unit {
    const char *name;
    double factor;
} unit;

/* The factor of a unit in a table that ends with a NULL name, or 0. Upper and lower
 * case are one. */
static double unit_factor(const unit *table, const char *name)
{
    for (; table->name; table++)
        if (strcasecmp(table->name, name) == 0)
            return table->factor;
    return 0;
}

static const unit byte_units[] = {
    {"", 1},         {"B", 1},        {"K", 0x1p10},   {"KiB", 0x1p10}, {"KB", 1e3},
    {"M", 0x1p20},   {"MiB", 0x1p20}, {"MB", 1e6},     {"G", 0x1p30},   {"GiB", 0x1p30},
    {"GB", 1e9},     {"T", 0x1p40},   {"TiB", 0x1p40}, {"TB", 1e12},    {"P", 0x1p50},
    {"PiB", 0x1p50}, {"PB", 1e15},    {NULL, 0},
};

static const unit time_units[] = {
    {"", 1},     {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
    {"min", 60}, {"h", 3600},  {"d", 86400}, {NULL, 0},
};

static const unit rate_units[] = {
    {"bit", 1},      {"kbit", 1e3},    {"Mbit", 1e6},     {"Gbit", 1e9},
    {"Tbit", 1e12},  {"bit/s", 1},     {"kbit/s", 1e3},   {"Mbit/s", 1e6},
    {"Gbit/s", 1e9}, {"Tbit/s", 1e12}, {"kB/s", 8e3},     {"MB/s", 8e6},
    {"GB/s", 8e9},   {"KiB/s", 8192},  {"MiB/s", 0x1p23}, {"GiB/s", 0x1p33},
    {NULL, 0},
};

/* Whole numbers exactly: a double holds no more than 2^53 of them. */
static bool whole_bytes(const char *text, double factor, size_t *bytes_out)
{
    uint64_t value = 0, scale = (uint64_t)factor;
    for (; is_digit(*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (SIZE_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (value > SIZE_MAX / scale)
        return false;
    *bytes_out = (size_t)(value * scale);
    return true;
}

stint_status sti_parse_bytes(const char *text, size_t *bytes_out)
{
    double value, factor = 0;
    const char *name;
    if (split_unit(text, &value, &name))
        factor = unit_factor(byte_units, name);
    if (factor <= 0)
        return sti_fail(STINT_E_USAGE,
                        "'%s' is no size; write for example 150M, 1.5G, "
                        "64K, 150MB or a number of bytes",
                        text);
    if (text[strspn(text, "0123456789")] != '.') {
        if (whole_bytes(text, factor, bytes_out))
            return STINT_OK;
    } else if (value * factor < 0x1p63) {
        *bytes_out = (size_t)(value * factor + 0.5);
        return STINT_OK;
    }
    return sti_fail(STINT_E_USAGE,
                    "'%s' is more memory than can be addressed; write for "
                    "example 150M or 1.5G",
                    text);
}

/* The unit behind an exponent, which sti_float_text writes for small numbers and which
 * is a part of the value already. */
static const char *skip_exponent(const char *name)
{
    const char *digits = name + 1;
    if ((*name != 'e' && *name != 'E') || name[-1] == ' ')
        return name;
    digits += *digits == '-' || *digits == '+';
    return is_digit(*digits) ? digits + strspn(digits, "0123456789") : name;
}

stint_status sti_parse_time(const char *text, double *seconds_out)
{
    double value, factor = 0;
    const char *name;
    if (split_unit(text, &value, &name))
        factor = unit_factor(time_units, skip_exponent(name));
    if (factor <= 0 || !isfinite(value * factor))
        return sti_fail(STINT_E_USAGE,
                        "'%s' is no time; write for example 25ms, 1.5s, "
                        "2min or 1h",
                        text);
    /* Division by a whole number is exact where multiplying by 1e-3 is not. */
    *seconds_out = factor < 1 ? value / nearbyint(1 / factor) : value * factor;
    return STINT_OK;
}

stint_status sti_parse_latency(const char *text, double *seconds_out, double *share_out)
{
    char number[40];
    double *value = seconds_out;
    const size_t length = strlen(text);
    stint_status st = STINT_E_USAGE;
    *seconds_out = *share_out = 0;
    if (length > 1 && length < sizeof number && text[length - 1] == 'x') {
        memcpy(number, text, length - 1);
        number[length - 1] = '\0';
        value = share_out;
        st = sti_parse_float(number, share_out);
    } else if (length > 0) {
        st = strcmp(text, "0") == 0 ? STINT_OK : sti_parse_time(text, seconds_out);
    }
    if (st == STINT_OK && *value >= 0)
        return STINT_OK;
    *value = 0;
    return sti_fail(STINT_E_USAGE,
                    "'%s' is neither a time, as 5ms, nor a share of the model's, as "
                    "0.5x",
                    text);
}

stint_status sti_parse_rate(const char *text, double *bits_per_s_out)
{
    double value, factor = 0;
    const char *name;
    if (split_unit(text, &value, &name))
        factor = unit_factor(rate_units, name);
    if (factor <= 0 || value <= 0 || !isfinite(value * factor))
        return sti_fail(
            STINT_E_USAGE,
            "'%s' is no rate of a link; write for example 100Mbit, 1Gbit or "
            "12.5MB/s",
            text);
    *bits_per_s_out = value * factor;
    return STINT_OK;
}

stint_status sti_parse_int(const char *text, int64_t *value_out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (!*digits || digits[strspn(digits, "0123456789")] != '\0')
        return sti_fail(STINT_E_USAGE, "'%s' is no whole number; write for example 128",
                        text);
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno == ERANGE)
        return sti_fail(STINT_E_USAGE,
                        "'%s' is too large for a whole number; the limit "
                        "is %" PRId64,
                        text, INT64_MAX);
    *value_out = value;
    return STINT_OK;
}

/* Decimal text only: strtod would also take "inf", "nan" and hexadecimal. */
static bool is_decimal(const char *text)
{
    const char *at = skip_decimal(text + (*text == '-' || *text == '+'));
    if (at && (*at == 'e' || *at == 'E')) {
        at++;
        at += *at == '-' || *at == '+';
        if (!is_digit(*at))
            return false;
        while (is_digit(*at))
            at++;
    }
    return at && *at == '\0';
}

stint_status sti_parse_float(const char *text, double *value_out)
{
    if (!is_decimal(text))
        return sti_fail(STINT_E_USAGE,
                        "'%s' is no number; write for example 0.1 or 5e-4", text);
    double value = sti_c_strtod(text, NULL);
    if (!isfinite(value))
        return sti_fail(STINT_E_USAGE,
                        "'%s' is too large for a number; the limit is "
                        "about 1.8e308",
                        text);
    *value_out = value;
    return STINT_OK;
}

stint_status sti_parse_bool(const char *text, int *value_out)
{
    static const char *const words[] = {"false", "true", "no", "yes",
                                        "off",   "on",   "0",  "1"};
    for (int i = 0; i < 8; i++)
        if (strcasecmp(text, words[i]) == 0) {
            *value_out = i % 2;
            return STINT_OK;
        }
    return sti_fail(STINT_E_USAGE,
                    "'%s' is neither true nor false; write true, false, "
                    "yes, no, on, off, 1 or 0",
                    text);
}

/* ---- printing ---- */

#define BUFFER_COUNT 8
#define BUFFER_BYTES 48

static char *next_buffer(void)
{
    static _Thread_local char buffers[BUFFER_COUNT][BUFFER_BYTES];
    static _Thread_local unsigned turn;
    return buffers[turn++ % BUFFER_COUNT];
}

const char *sti_bytes_text(size_t bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    char *text = next_buffer();
    double value = (double)bytes;
    int power = 0;
    /* 1023.95 would be rounded to "1024.0". */
    for (; value >= (power ? 1023.95 : 1024.0); power++)
        value /= 1024;
    sti_c_snprintf(text, BUFFER_BYTES, power ? "%.1f %s" : "%.0f %s", value,
                   names[power]);
    return text;
}

const char *sti_enough_text(size_t bytes)
{
    char *text = next_buffer();
    snprintf(text, BUFFER_BYTES, "%zuM",
             (bytes >> 20) + (bytes % ((size_t)1 << 20) > 0));
    return text;
}

const char *sti_time_text(double seconds)
{
    char *text = next_buffer();
    const char *sign = seconds < 0 ? "-" : "";
    double s = fabs(seconds);
    if (!isfinite(seconds))
        sti_c_snprintf(text, BUFFER_BYTES, "unknown time");
    else if (s >= 86400e3)
        sti_c_snprintf(text, BUFFER_BYTES, "%s%.3g d", sign, s / 86400);
    else if (s >= 3599.5) {
        long long minutes = (long long)(s / 60 + 0.5);
        sti_c_snprintf(text, BUFFER_BYTES, "%s%lld h %02lld min", sign, minutes / 60,
                       minutes % 60);
    } else if (s >= 59.95) {
        int whole = (int)(s + 0.5);
        sti_c_snprintf(text, BUFFER_BYTES, "%s%d min %02d s", sign, whole / 60,
                       whole % 60);
    } else if (s >= 0.9995 || s <= 0) {
        sti_c_snprintf(text, BUFFER_BYTES, s <= 0 ? "%s%.0f s" : "%s%.1f s", sign, s);
    } else {
        static const char *const names[] = {"ms", "us", "ns"};
        int power = 0;
        for (s *= 1e3; s < 0.9995 && power < 2; power++)
            s *= 1e3;
        sti_c_snprintf(text, BUFFER_BYTES, "%s%.3g %s", sign, s, names[power]);
    }
    return text;
}

const char *sti_rate_text(double bits_per_s)
{
    static const char *const names[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s",
                                        "Tbit/s"};
    char *text = next_buffer();
    int power = 0;
    for (; power < 4 && bits_per_s >= 999.5; power++)
        bits_per_s /= 1000;
    sti_c_snprintf(text, BUFFER_BYTES, "%.3g %s", bits_per_s, names[power]);
    return text;
}

const char *sti_count_text(int64_t count)
{
    char *text = next_buffer();
    char digits[24];
    int length = sti_c_snprintf(digits, sizeof digits, "%" PRId64, count);
    int first = digits[0] == '-', out = 0;
    for (int i = 0; i < length; i++) {
        if (i > first && (length - i) % 3 == 0)
            text[out++] = ',';
        text[out++] = digits[i];
    }
    text[out] = '\0';
    return text;
}

const char *sti_float_text(double value)
{
    char *text = next_buffer();
    if (isnan(value))
        return "nan";
    if (isinf(value))
        return value < 0 ? "-inf" : "inf";
    if (fabs(value) < 1e15 && value == nearbyint(value)) {
        sti_c_snprintf(text, BUFFER_BYTES, "%.0f", value);
        return text;
    }
    for (int precision = 1; precision <= 17; precision++) {
        sti_c_snprintf(text, BUFFER_BYTES, "%.*g", precision, value);
        if (sti_c_strtod(text, NULL) == value)
            break;
    }
    return text;
}

const char *sti_s(int64_t count)
{
    return count == 1 ? "" : "s";
}
