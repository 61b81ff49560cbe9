/* exp and tanh in double, written as those of maths.h: no branches, no tables, no libm
 * but fma, which is exact, so that loops over them vectorise and every instruction set
 * has the same bits. Range reduction after Cody and Waite (1980); the series of e^r - 1
 * to the 13th power leaves less than 1e-17 of it for |r| <= ln 2 / 2. Errors: exp below
 * 1.5 ulp, tanh below 3 ulp. What would be denormal becomes zero. */
#ifndef STI_KERNEL_MATHS_F64_H
#define STI_KERNEL_MATHS_F64_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* e^r - 1 for |r| <= ln 2 / 2. */
static inline double sti_expm1_reduced_f64(double r)
{
    double q = fma(r, 1.0 / 6227020800.0, 1.0 / 479001600.0);
    q = fma(r, q, 1.0 / 39916800.0);
    q = fma(r, q, 1.0 / 3628800.0);
    q = fma(r, q, 1.0 / 362880.0);
    q = fma(r, q, 1.0 / 40320.0);
    q = fma(r, q, 1.0 / 5040.0);
    q = fma(r, q, 1.0 / 720.0);
    q = fma(r, q, 1.0 / 120.0);
    q = fma(r, q, 1.0 / 24.0);
    q = fma(r, q, 1.0 / 6.0);
    q = fma(r, q, 0.5);
    return fma(r * r, q, r);
}

/* x = n ln 2 + r; r, and 2^(n - 1), which is a normal number for |x| <= 708. */
static inline double sti_exp_reduce_f64(double x, double *half_scale_out)
{
    const double magic = 0x1.8p52; /* adding it rounds to an integer */
    double t = fma(x, 0x1.71547652b82fep+0, magic);
    double n = t - magic;
    double r = fma(n, -0x1.62e42fefa39efp-1, x);
    r = fma(n, -0x1.abc9e3b39803fp-56, r);
    uint64_t bits;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits + 1022u) << 52;
    memcpy(half_scale_out, &bits, sizeof bits);
    return r;
}

/* e^x; 0 below -708, infinity above 709. */
static inline double sti_exp_f64(double x)
{
    double half;
    double near = x < -708.0 ? -708.0 : x;
    near = near > 709.0 ? 709.0 : near;
    double p = sti_expm1_reduced_f64(sti_exp_reduce_f64(near, &half));
    double y = fma(half, p, half) * 2.0;
    y = x < -708.0 ? 0.0 : y;
    y = x > 709.0 ? (double)INFINITY : y;
    return x != x ? (double)NAN : y;
}

/* (1 - e^-2a) / (1 + e^-2a) with the sign of x, a = |x|, by e^-2a - 1 so that nothing
 * cancels. */
static inline double sti_tanh_f64(double x)
{
    double a = fabs(x), half;
    double near = a > 22.0 ? 22.0 : a;
    double p = sti_expm1_reduced_f64(sti_exp_reduce_f64(-2.0 * near, &half));
    double scale = half * 2.0;
    double e = fma(scale, p, scale - 1.0);
    double y = a > 22.0 ? 1.0 : -e / (2.0 + e);
    y = x < 0.0 ? -y : y;
    return x != x ? (double)NAN : y;
}

#endif
