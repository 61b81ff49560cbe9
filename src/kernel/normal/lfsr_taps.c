/* Which exponents of a shift register's polynomial are primitive.
 *
 * x^n + x^a + x^b + x^c + 1 is so if and only if x, multiplied by itself modulo it,
 * comes back to 1 after 2^n - 1 factors and not before: it is not 1 after (2^n - 1) / p
 * for any prime factor p. Those of 2^256 - 1 are those of the first eight Fermat
 * numbers; the first seven of them are those of 2^64 - 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "kernel/normal/lfsr_priv.h"

enum { LIMBS = 4 }; /* of 64 bits: a polynomial of degree below 256 */

typedef struct polynomial {
    uint64_t limb[LIMBS];
} polynomial;

static const struct {
    uint64_t high, low;
} prime_factors[] = {
    {0, 3},
    {0, 5},
    {0, 17},
    {0, 257},
    {0, 65537},
    {0, 641},
    {0, 6700417},
    {0, 274177}, /* from here on of 2^256 - 1 alone */
    {0, UINT64_C(67280421310721)},
    {0, UINT64_C(59649589127497217)},
    {0x135, UINT64_C(0x40775b48cc32ba01)}, /* 5704689200685129054721 */
};
enum { FACTORS_64 = 7, FACTORS_256 = 11 };

/* Times x: what passes degree n - 1 comes back as `rest`, the polynomial without x^n.
 */
static void times_x(polynomial *p, int n, const polynomial *rest)
{
    const int top = (n - 1) / 64;
    const uint64_t over = p->limb[top] >> 63; /* n is a multiple of 64 */
    for (int i = top; i > 0; i--)
        p->limb[i] = p->limb[i] << 1 | p->limb[i - 1] >> 63;
    p->limb[0] <<= 1;
    for (int i = 0; i <= top; i++)
        p->limb[i] ^= rest->limb[i] & (0 - over);
}

static polynomial product(const polynomial *p, polynomial q, int n,
                          const polynomial *rest)
{
    polynomial sum = {{0}};
    for (int i = 0; i < n; i++) {
        const uint64_t taken = 0 - (p->limb[i / 64] >> i % 64 & 1);
        for (int k = 0; k < LIMBS; k++)
            sum.limb[k] ^= q.limb[k] & taken;
        times_x(&q, n, rest);
    }
    return sum;
}

/* p to the power of a prime factor. */
static polynomial power(const polynomial *p, int factor, int n, const polynomial *rest)
{
    polynomial result = {{1}};
    for (int bit = 127; bit >= 0; bit--) {
        const uint64_t half =
            bit >= 64 ? prime_factors[factor].high : prime_factors[factor].low;
        result = product(&result, result, n, rest);
        if (half >> bit % 64 & 1)
            result = product(&result, *p, n, rest);
    }
    return result;
}

static bool is_one(const polynomial *p)
{
    const polynomial one = {{1}};
    return memcmp(p, &one, sizeof one) == 0;
}

/* x to the power of all factors but one (left_out -1: of all). */
static polynomial x_to_the(int left_out, int factors, int n, const polynomial *rest)
{
    polynomial p = {{2}};
    for (int i = 0; i < factors; i++)
        if (i != left_out)
            p = power(&p, i, n, rest);
    return p;
}

static bool is_primitive(const sti_lfsr_taps *taps)
{
    const int n = sti_lfsr_bits(taps->generator);
    const int factors = n == 256 ? FACTORS_256 : FACTORS_64;
    const int exponent[4] = {taps->a, taps->b, taps->c, 0};
    polynomial rest = {{0}};
    for (int i = 0; i < 4; i++)
        rest.limb[exponent[i] / 64] |= UINT64_C(1) << exponent[i] % 64;
    polynomial p = x_to_the(-1, factors, n, &rest);
    if (!is_one(&p))
        return false;
    for (int i = 0; i < factors; i++) {
        p = x_to_the(i, factors, n, &rest);
        if (is_one(&p))
            return false;
    }
    return true;
}

/* Four numbers and nothing else. */
static bool read_exponents(const char *text, int exponent[4])
{
    for (int i = 0; i < 4; i++) {
        char *end;
        if (*text < '0' || *text > '9')
            return false;
        const long value = strtol(text, &end, 10);
        if (value > 256 || *end != (i < 3 ? ',' : '\0'))
            return false;
        exponent[i] = (int)value;
        text = end + 1;
    }
    return true;
}

static sti_lfsr_taps usual(sti_normal_generator generator)
{
    if (generator == STI_NORMAL_LFSR256)
        return (sti_lfsr_taps){generator, STI_LFSR256_A, STI_LFSR256_B, STI_LFSR256_C};
    return (sti_lfsr_taps){generator, STI_LFSR64_A, STI_LFSR64_B, STI_LFSR64_C};
}

stint_status sti_lfsr_taps_parse(const char *text, sti_normal_generator generator,
                                 sti_lfsr_taps *taps_out)
{
    const int n = sti_lfsr_bits(generator);
    const sti_lfsr_taps usually = usual(generator);
    int e[4];
    if (!text || !*text) {
        *taps_out = usually;
        return STINT_OK;
    }
    if (!read_exponents(text, e) || e[0] != n || e[1] >= n || e[2] >= e[1] ||
        e[3] >= e[2] || e[3] < 1)
        return sti_fail(STINT_E_USAGE,
                        "taps '%s': wanted four falling exponents from %d on, such as "
                        "%d,%d,%d,%d",
                        text, n, n, usually.a, usually.b, usually.c);
    const sti_lfsr_taps taps = {generator, e[1], e[2], e[3]};
    if (!is_primitive(&taps))
        return sti_fail(STINT_E_USAGE,
                        "taps %s: x^%d + x^%d + x^%d + x^%d + 1 is not primitive, so "
                        "that the register would repeat itself too early; use "
                        "%d,%d,%d,%d or other taps that are",
                        text, n, e[1], e[2], e[3], n, usually.a, usually.b, usually.c);
    *taps_out = taps;
    return STINT_OK;
}
