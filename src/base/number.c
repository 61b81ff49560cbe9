#include "base/number.h"

#include <math.h>
#include <string.h>

#include "base/base_priv.h"

#define LONGEST 1000
enum { FIVES = 27 }; /* 5^27 is below 2^63 */

static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A number's parts: its digits as one integer, as far as that is exact. */
typedef struct parts {
    uint64_t digits;
    int64_t exponent; /* of ten */
    bool negative, exact;
} parts;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits up to anything else; how many there were. */
static int64_t take_digits(const char **at, const char *end, parts *p)
{
    const char *from = *at;
    for (; *at < end && is_digit(**at); (*at)++) {
        p->exact = p->exact && p->digits <= (UINT64_MAX - 9) / 10;
        if (p->exact)
            p->digits = p->digits * 10 + (uint64_t)(**at - '0');
    }
    return *at - from;
}

/* "e-12" at `at`; else nothing is taken, as strtod does. */
static const char *take_exponent(const char *at, const char *end, parts *p)
{
    const char *from = at;
    if (at == end || (*at != 'e' && *at != 'E'))
        return from;
    at++;
    const bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    if (at == end || !is_digit(*at))
        return from;
    int64_t value = 0;
    for (; at < end && is_digit(*at); at++)
        value = value < 100000 ? value * 10 + (*at - '0') : value;
    p->exponent += negative ? -value : value;
    return at;
}

/* digits / 10^shift, 1 <= shift <= FIVES, 2^53 <= digits: rounded to nearest, ties to
 * even, from an integer quotient of 65 bits or more and what it leaves. */
static double divided(uint64_t digits, int shift)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t five = 1;
    for (int i = 0; i < shift; i++)
        five *= 5;
    const int up = 64 + __builtin_clzll(digits);
    const wide number = (wide)digits << up, quotient = number / five;
    const int bits = 128 - __builtin_clzll((uint64_t)(quotient >> 64));
    const int down = bits - 53;
    const wide half = (wide)1 << (down - 1), rest = quotient & (2 * half - 1);
    uint64_t mantissa = (uint64_t)(quotient >> down);
    if (rest > half ||
        (rest == half && (number != quotient * five || mantissa % 2 == 1)))
        mantissa++;
    return ldexp((double)mantissa, down - up - shift);
}

/* The text of a number between the two, read by the C library. */
static double slowly(const char *from, const char *to)
{
    char copy[LONGEST + 1];
    memcpy(copy, from, (size_t)(to - from));
    copy[to - from] = '\0';
    return sti_c_strtod(copy, NULL);
}

bool sti_number_read(const char *at, const char *end, const char **after_out,
                     double *value_out)
{
    const char *from = at;
    parts p = {.exact = true};
    p.negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    int64_t digits = take_digits(&at, end, &p);
    if (at < end && *at == '.') {
        at++;
        const int64_t behind = take_digits(&at, end, &p);
        digits += behind;
        p.exponent = -behind;
    }
    if (digits == 0)
        return false;
    at = take_exponent(at, end, &p);
    if (at - from > LONGEST)
        return false;
    /* Both factors are exact, so one operation rounds once (Clinger 1990). */
    double value;
    const bool few = p.digits <= UINT64_C(1) << 53;
    if (p.exact && few && p.exponent >= -22 && p.exponent <= 22)
        value = p.exponent < 0 ? (double)p.digits / tens[-p.exponent]
                               : (double)p.digits * tens[p.exponent];
    else if (p.exact && !few && p.exponent < 0 && p.exponent >= -FIVES)
        value = divided(p.digits, (int)-p.exponent);
    else
        value = fabs(slowly(from, at));
    *value_out = p.negative ? -value : value;
    *after_out = at;
    return isfinite(value);
}

bool sti_digits_read(const char *at, const char *end, int64_t most, int64_t *value_out)
{
    const char *from = at;
    int64_t value = 0;
    for (; at < end && is_digit(*at); at++) {
        const int digit = *at - '0';
        if (value > (most - digit) / 10)
            return false;
        value = 10 * value + digit;
    }
    if (at == from || at < end || value > most)
        return false;
    *value_out = value;
    return true;
}

const char *sti_number_text(double value, char text_out[STI_NUMBER_BYTES])
{
    for (int digits = 15; digits <= 17; digits++) {
        const char *after;
        double back;
        const int length =
            sti_c_snprintf(text_out, STI_NUMBER_BYTES, "%.*g", digits, value);
        if (digits == 17) /* which always do */
            break;
        if (sti_number_read(text_out, text_out + length, &after, &back) &&
            back == value)
            break;
    }
    return text_out;
}
