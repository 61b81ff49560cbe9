#include "kernel/maths/smooth.h"

#include <stdint.h>
#include <string.h>

#define PI       0x1.921fb54442d18p+1
#define LN2      0x1.62e42fefa39efp-1
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW  0x1.a39ef35793c76p-33

double sti_smooth_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    bits = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1023) << 52;
    double m; /* x = m 2^exponent, m in [1, 2), then in [0.75, 1.5) */
    memcpy(&m, &bits, sizeof m);
    if (m >= 1.5) {
        m *= 0.5;
        exponent++;
    }
    /* log m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...), |s| <= 0.2 */
    double s = (m - 1) / (m + 1), s2 = s * s, sum = 0;
    for (int k = 25; k >= 1; k -= 2)
        sum = sum * s2 + 1.0 / k;
    return 2 * s * sum + exponent * LN2;
}

/* Taylor's series, |x| <= pi / 4: the first term left out is below 1e-18. */
static double sin_series(double x)
{
    double x2 = x * x, sum = 0;
    for (int k = 18; k >= 2; k -= 2)
        sum = -(sum + 1) * x2 / (k * (k + 1));
    return (sum + 1) * x;
}

static double cos_series(double x)
{
    double x2 = x * x, sum = 0;
    for (int k = 17; k >= 1; k -= 2)
        sum = -(sum + 1) * x2 / (k * (k + 1));
    return sum + 1;
}

double sti_smooth_sin_turn(double t)
{
    int quarter = (int)(4 * t + 0.5); /* nearest multiple of a quarter turn */
    double x = (t - 0.25 * quarter) * (2 * PI);
    switch (quarter & 3) {
    case 0:
        return sin_series(x);
    case 1:
        return cos_series(x);
    case 2:
        return -sin_series(x);
    default:
        return -cos_series(x);
    }
}

double sti_smooth_cos_turn(double t)
{
    int quarter = (int)(4 * t + 0.5);
    double x = (t - 0.25 * quarter) * (2 * PI);
    switch (quarter & 3) {
    case 0:
        return cos_series(x);
    case 1:
        return -sin_series(x);
    case 2:
        return -cos_series(x);
    default:
        return sin_series(x);
    }
}

/* e^x = 2^k e^r with |r| <= ln 2 / 2, by Taylor's series; k ln 2 in two parts, of which
 * the first is exact. */
double sti_smooth_exp(double x)
{
    const int k = (int)(x / LN2 + (x < 0 ? -0.5 : 0.5));
    const double r = (x - k * LN2_HIGH) - k * LN2_LOW;
    const uint64_t bits = (uint64_t)(k + 1023) << 52;
    double sum = 1, power;
    for (int n = 16; n > 0; n--)
        sum = 1 + sum * r / n;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}
