/* Scalar forms of the elementary functions, written so that loops over them vectorise:
 * no branches, no tables, no libm (fmaf is exact by IEEE-754, so a machine instruction
 * and a library call agree). The element-wise kernels of every instruction set are
 * loops over these very functions.
 *
 * Range reductions after Cody and Waite (1980) and, for |x| >= 2^30 in sin and cos,
 * Payne and Hanek (1983); polynomials are our own minimax fits. Largest errors over all
 * normal floats, counted once: exp 0.70, log 0.82, sin and cos 0.5001, tanh 0.80,
 * sigmoid 0.77, softplus 1.98 ulp. Denormal inputs count as zeros of their sign and
 * denormal results become zeros, with FTZ/DAZ set or not; NaN gives the one quiet NaN.
 */
#ifndef STI_KERNEL_MATHS_H
#define STI_KERNEL_MATHS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define STI_F32_MIN_NORMAL 0x1p-126f

static inline uint32_t sti_f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float sti_f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float sti_f32_with_sign(float magnitude, float sign)
{
    return sti_f32_of_bits((sti_f32_bits(magnitude) & 0x7fffffffu) |
                           (sti_f32_bits(sign) & 0x80000000u));
}

/* Zero of its sign for a denormal, as FTZ gives. */
static inline float sti_f32_flush(float x)
{
    return fabsf(x) < STI_F32_MIN_NORMAL ? sti_f32_with_sign(0.0f, x) : x;
}

/* e^x: x = n ln 2 + r, |r| <= ln 2 / 2; 2^n in two factors, since n reaches 128. What
 * the last rounding took is low_out: the sum of both is four times as close. */
static inline float sti_exp_parts_f32(float x, float *low_out)
{
    const float magic = 0x1.8p23f; /* adding it rounds to an integer */
    float t = fmaf(x, 0x1.715476p+0f, magic);
    float n = t - magic;
    float high = fmaf(n, -0x1.62e43p-1f, x);
    float r = fmaf(n, 0x1.05c610p-29f, high);
    float lost = fmaf(n, 0x1.05c610p-29f, high - r);
    float q = fmaf(r, 0x1.6d6aeap-10f, 0x1.123db2p-7f);
    q = fmaf(r, q, 0x1.5554cep-5f);
    q = fmaf(r, q, 0x1.55548cp-3f);
    q = fmaf(r, q, 0.5f);
    float one = 1.0f + r; /* and what that lost joins the small terms */
    float rest = (r - (one - 1.0f)) + fmaf(r * r, q, lost);
    float y = one + rest;
    float low = rest - (y - one);
    uint32_t k = sti_f32_bits(t) - sti_f32_bits(magic);
    uint32_t k1 = (uint32_t)((int32_t)k >> 1), k2 = k - k1;
    float scale1 = sti_f32_of_bits((k1 + 127u) << 23);
    float scale2 = sti_f32_of_bits((k2 + 127u) << 23);
    y = y * scale1 * scale2;
    y = x > 0x1.62e42ep+6f ? INFINITY : y;
    y = x < -0x1.5d589ep+6f ? 0.0f : y; /* the result would be denormal */
    *low_out = fabsf(x) < 0x1.5d589ep+6f ? low * scale1 * scale2 : 0.0f;
    return x != x ? NAN : y;
}

static inline float sti_exp_f32(float x)
{
    float low;
    return sti_exp_parts_f32(x, &low);
}

/* (n + n_low) / (1 + e + e_low), 0 <= e <= 1: the quotient of the large parts, and what
 * is missing divided by the divisor to a few bits. */
static inline float sti_over_one_plus_f32(float n, float n_low, float e, float e_low)
{
    float d = 1.0f + e;
    float d_low = (e - (d - 1.0f)) + e_low;
    float y = n / d;
    float missing = fmaf(-y, d, n) + fmaf(-y, d_low, n_low);
    return fmaf(missing, fmaf(d, -8.0f / 17.0f, 24.0f / 17.0f), y);
}

/* ln x: x = 2^e m, m in [2/3, 4/3); ln m = f - f^2/2 + f^3 P(f), f = m - 1. */
static inline float sti_log_f32(float x)
{
    uint32_t bits = sti_f32_bits(x);
    int32_t e = (int32_t)(bits - 0x3f2aaaabu) >> 23;
    float f = sti_f32_of_bits(bits - ((uint32_t)e << 23)) - 1.0f;
    float n = (float)e;
    float s = f * f;
    float p = fmaf(f, 0x1.e90554p-4f, -0x1.06fa26p-3f);
    p = fmaf(f, p, 0x1.b952bep-4f);
    p = fmaf(f, p, -0x1.f395e0p-4f);
    p = fmaf(f, p, 0x1.24e952p-3f);
    p = fmaf(f, p, -0x1.55988ap-3f);
    p = fmaf(f, p, 0x1.9997fcp-3f);
    p = fmaf(f, p, -0x1.ffff12p-3f);
    p = fmaf(f, p, 0x1.555556p-2f);
    p = fmaf(f, p, -0.5f);
    /* f joins last, and exactly: the rest is small beside it. */
    float low = fmaf(s, p, n * -0x1.05c610p-29f);
    float high = fmaf(n, 0x1.62e43p-1f, f);
    float lost = f - fmaf(-n, 0x1.62e43p-1f, high);
    float y = high + (low + lost);
    y = x == INFINITY ? INFINITY : y;
    y = x < STI_F32_MIN_NORMAL ? -INFINITY : y;
    y = x <= -STI_F32_MIN_NORMAL ? NAN : y;
    return x != x ? NAN : y;
}

static inline float sti_tanh_f32(float x)
{
    float a = fabsf(x);
    float s = x * x;
    float p = fmaf(s, -0x1.769de4p-8f, 0x1.525326p-6f);
    p = fmaf(s, p, -0x1.b8439ap-5f);
    p = fmaf(s, p, 0x1.110762p-3f);
    p = fmaf(s, p, -0x1.555534p-2f);
    float small = fmaf(x, s * p, x);
    float low, e = sti_exp_parts_f32(-(a + a), &low); /* (1 - e) / (1 + e) */
    float n = 1.0f - e;
    float big = sti_over_one_plus_f32(n, ((1.0f - n) - e) - low, e, low);
    float y = sti_f32_with_sign(a < 0.625f ? small : big, x);
    return x != x ? NAN : sti_f32_flush(y);
}

/* 1 / (1 + e^-x), from e^-|x| so that nothing overflows. */
static inline float sti_sigmoid_f32(float x)
{
    float low, e = sti_exp_parts_f32(-fabsf(x), &low);
    float y = sti_over_one_plus_f32(x < 0.0f ? e : 1.0f, x < 0.0f ? low : 0.0f, e, low);
    return x != x ? NAN : y;
}

/* ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|); what 1 + e rounds away is put back. */
static inline float sti_softplus_f32(float x)
{
    float e = sti_exp_f32(-fabsf(x));
    float u = 1.0f + e;
    float y = (x > 0.0f ? x : 0.0f) + (sti_log_f32(u) + (e - (u - 1.0f)) / u);
    return x != x ? NAN : y;
}

/* x sigmoid(x); 0 where x is so negative that the product would be 0 times infinity. */
static inline float sti_silu_f32(float x)
{
    float y = x * sti_sigmoid_f32(x);
    y = x < -0x1p7f ? 0.0f : sti_f32_flush(y);
    return x != x ? NAN : y;
}

/* x (1 + tanh u) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3). */
static inline float sti_gelu_f32(float x)
{
    float v = x * fmaf(x * x, 0x1.2444f2p-4f, 0x1.988454p+0f);
    float y = x * sti_sigmoid_f32(v);
    y = x < -0x1p7f ? 0.0f : sti_f32_flush(y);
    return x != x ? NAN : y;
}

/* d silu(x) / dx = s + x s (1 - s), s = sigmoid(x). */
static inline float sti_silu_grad_f32(float x)
{
    float s = sti_sigmoid_f32(x);
    float y = fmaf(x * s, 1.0f - s, s);
    y = x < -0x1p7f ? 0.0f : sti_f32_flush(y);
    return x != x ? NAN : y;
}

/* d gelu(x) / dx = s + x s (1 - s) v', s = sigmoid(v), v as above. */
static inline float sti_gelu_grad_f32(float x)
{
    float q = x * x;
    float s = sti_sigmoid_f32(x * fmaf(q, 0x1.2444f2p-4f, 0x1.988454p+0f));
    float slope = fmaf(q, 0x1.b6676cp-3f, 0x1.988454p+0f);
    float y = fmaf(x * s, (1.0f - s) * slope, s);
    y = fabsf(x) > 0x1p7f ? (x > 0.0f ? 1.0f : 0.0f) : sti_f32_flush(y);
    return x != x ? NAN : y;
}

/* sin(r + quadrant pi / 2) in double, |r| <= pi / 4, rounded once. */
static inline float sti_sin_reduced(double r, uint64_t quadrant)
{
    double s = r * r;
    double a = fma(s, -0x1.a9647f8999bccp-26, 0x1.71d7767ef1f94p-19);
    a = fma(s, a, -0x1.a019f94e8fe62p-13);
    a = fma(s, a, 0x1.1111110c99d9cp-7);
    a = fma(s, a, -0x1.555555555237fp-3);
    a = fma(r * s, a, r);
    double c = fma(s, -0x1.2428f1178ae8dp-22, 0x1.a011170727575p-16);
    c = fma(s, c, -0x1.6c16b88b04198p-10);
    c = fma(s, c, 0x1.5555554f41812p-5);
    c = fma(s * s, c, fma(s, -0.5, 1.0));
    float y = (float)((quadrant & 1) ? c : a);
    return (quadrant & 2) ? -y : y;
}

/* |x| < 2^30 (or NaN, infinity: NaN): Cody and Waite with a two-part pi / 2, exact
 * enough since the products are formed inside an fma. shift: 0 sine, 1 cosine. */
static inline float sti_sin_near_f32(float x, uint64_t shift)
{
    const double magic = 0x1.8p52;
    double d = (double)x;
    double t = fma(d, 0x1.45f306dc9c883p-1, magic);
    double n = t - magic;
    double r = fma(n, -0x1.921fb54442d18p+0, d);
    r = fma(n, -0x1.1a62633145c07p-54, r);
    uint64_t bits;
    memcpy(&bits, &t, sizeof bits);
    float y = sti_sin_reduced(r, bits + shift);
    return fabsf(x) <= 0x1.fffffep127f ? y : NAN; /* false for NaN too */
}

/* Payne and Hanek for 2^30 <= |x| < infinity: only the bits of 2 / pi that are worth
 * less than 4 and more than 2^-94 quadrants take part. */
float sti_sin_far_f32(float x, uint64_t shift);

static inline int sti_sin_is_far(float x)
{
    return fabsf(x) >= 0x1p30f && fabsf(x) <= 0x1.fffffep127f;
}

static inline float sti_sin_f32(float x)
{
    float y = sti_sin_is_far(x) ? sti_sin_far_f32(x, 0) : sti_sin_near_f32(x, 0);
    return fabsf(x) < STI_F32_MIN_NORMAL ? sti_f32_with_sign(0.0f, x) : y;
}

static inline float sti_cos_f32(float x)
{
    return sti_sin_is_far(x) ? sti_sin_far_f32(x, 1) : sti_sin_near_f32(x, 1);
}

/* erf(x) within 2.5e-7: its series near 0, elsewhere 1 - t exp(P(t) - x^2) with t =
 * 1 / (1 + |x| / 2) and P a least-squares fit of log(erfc(x) / t) + x^2 from 0.45
 * to 4.3.
 */
static inline float sti_erf_f32(float x)
{
    float a = fabsf(x), q = x * x, t = 1.0f / fmaf(0.5f, a, 1.0f);
    float p = fmaf(0x1.9890b8p-3f, t, -0x1.2e3f00p+0f);
    p = fmaf(fmaf(fmaf(p, t, 0x1.6ea9a2p+1f), t, -0x1.c168e6p+1f), t, 0x1.15c63ep+1f);
    p = fmaf(fmaf(fmaf(p, t, -0x1.bb3a08p-1f), t, 0x1.3f3a48p-1f), t, 0x1.eced90p-1f);
    p = fmaf(p, t, -0x1.4357dap+0f);
    float far = 1.0f - t * sti_exp_f32(p - q);
    float s = fmaf(q, 1.0f / 9360.0f, -1.0f / 1320.0f);
    s = fmaf(fmaf(fmaf(s, q, 1.0f / 216.0f), q, -1.0f / 42.0f), q, 0.1f);
    s = fmaf(fmaf(s, q, -1.0f / 3.0f), q, 1.0f) * 0x1.20dd76p+0f;
    float y = a < 0.5f ? x * s : sti_f32_with_sign(a > 4.3f ? 1.0f : far, x);
    return x != x ? x : y;
}

/* x^y as C's pow, within a few units in the last place (maths.c). */
float sti_power_f32(float x, float y);

#endif
