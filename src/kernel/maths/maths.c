/* The parts of the elementary functions that are not worth inlining. */
#include "kernel/maths/maths.h"
#include "kernel/maths/smooth.h"

/* 2 / pi, most significant word first. */
static const uint32_t two_over_pi[8] = {0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                        0xf534ddc0u, 0xdb629599u, 0x3c439041u,
                                        0xfe5163abu, 0xdebbc561u};

/* 32 bits of 2 / pi from bit `at`, where bit 0 is worth 1/2. */
static uint32_t two_over_pi_bits(uint32_t at)
{
    uint32_t word = at / 32, shift = at % 32;
    uint64_t pair = (uint64_t)two_over_pi[word] << 32 | two_over_pi[word + 1];
    return (uint32_t)(pair >> (32 - shift));
}

float sti_sin_far_f32(float x, uint64_t shift)
{
    uint32_t bits = sti_f32_bits(x);
    uint64_t m = (bits & 0x7fffffu) | 0x800000u;
    uint32_t e = (bits >> 23 & 0xffu) - 150u; /* |x| = m 2^e, 7 <= e <= 104 */
    /* Bit p of 2 / pi is worth 2^(e - 1 - p) in x 2 / pi: keep those below 4. */
    uint32_t at = e - 2u;
    uint64_t low = m * two_over_pi_bits(at + 64);
    uint64_t middle = m * two_over_pi_bits(at + 32) + (low >> 32);
    uint64_t high = m * two_over_pi_bits(at) + (middle >> 32);
    uint64_t turns = high << 32 | (middle & 0xffffffffu); /* 2 bits of quadrant */
    uint64_t quadrant = turns >> 62;
    int64_t fraction = (int64_t)(turns << 2);
    if (fraction < 0)
        quadrant++;
    double r = (double)fraction * (0x1.921fb54442d18p+0 * 0x1p-64);
    if (x < 0.0f) {
        r = -r;
        quadrant = 0 - quadrant;
    }
    return sti_sin_reduced(r, quadrant + shift);
}

/* y is odd: a whole number that leaves a sign. */
static int is_odd(float y)
{
    return fabsf(y) < 0x1p24f && fmodf(fabsf(y), 2.0f) == 1.0f;
}

float sti_power_f32(float x, float y)
{
    if (y == 0.0f || x == 1.0f)
        return 1.0f;
    if (x != x || y != y)
        return NAN;
    const int negative = signbit(x) && is_odd(y);
    const float size = fabsf(x);
    float p;
    if (size == 0.0f || isinf(size))
        p = (size == 0.0f) == (y > 0.0f) ? 0.0f : INFINITY;
    else if (isinf(y))
        p = size == 1.0f ? 1.0f : (size > 1.0f) == (y > 0.0f) ? INFINITY : 0.0f;
    else if (x < 0.0f && y != rintf(y))
        return NAN;
    else {
        const double e = (double)y * sti_smooth_log((double)size);
        p = e > 100.0 ? INFINITY : e < -110.0 ? 0.0f : (float)sti_smooth_exp(e);
    }
    return negative ? -p : p;
}
