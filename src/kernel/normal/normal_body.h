/* Body of the method of Box and Muller, vectorised by the compiler: included once by
 * each instruction set's file, which defines BOX_MULLER (the function's name).
 *
 * A word w that gives a length is v = (w mod 2^31 | 1), rounded to a float, of which
 * u = v / 2^31 is in (0, 1]; r = sqrt(-2 ln u). Of a word that gives a direction the
 * lower 23 bits are an angle x within an eighth of a turn to either side, in quarter
 * turns; the highest bit turns the cosine about, the next one swaps cosine and sine:
 * all directions, and no case is told apart.
 *
 * Logarithm, sine and cosine are shorter than those of kernel/maths: they know their
 * ranges, and a relative 3e-7 is enough here, which no number of draws on a machine of
 * today would tell from 0. */
#include <math.h>

#include "kernel/maths/maths.h"
#include "kernel/normal/normal_priv.h"

enum { HALF = STI_NORMAL_UNIT / 2 };

/* -2 ln(v / 2^31), 1 <= v <= 2^31: v = 2^e m, m in [2/3, 4/3), f = m - 1, and the
 * series of ln(1 + f) / f by our own fit (1.7e-7). Bits of floats are taken apart as in
 * sti_log_f32; the exponent stays where it is, so that its unit is 2^23. */
static inline float minus_2_log(float v)
{
    const uint32_t bits = sti_f32_bits(v);
    const uint32_t whole = (bits - 0x3f2aaaabu) & 0xff800000u;
    const float f = sti_f32_of_bits(bits - whole) - 1.0f;
    const float n = (float)(int32_t)(whole - (31u << 23));
    float p = fmaf(f, 0x1.3ab074p-2f, -0x1.5e6fe0p-2f);
    p = fmaf(f, p, 0x1.50488cp-2f);
    p = fmaf(f, p, -0x1.956702p-2f);
    p = fmaf(f, p, 0x1.0013fap-1f);
    p = fmaf(f, p, -0x1.55618ap-1f);
    p = fmaf(f, p, 0x1.ffffd6p-1f);
    p = fmaf(f, p, -0x1.fffffap+0f);
    return fmaf(n, -0x1.62e430p-23f, f * p);
}

/* sin(x pi / 2), cos(x pi / 2) for |x| <= 1/2, z = x^2: the fits are within 3e-9 and
 * 3e-8. */
static inline float quarter_sine(float x, float z)
{
    float p = fmaf(z, -0x1.2d9302p-8f, 0x1.465e92p-4f);
    p = fmaf(z, p, -0x1.4abbbap-1f);
    p = fmaf(z, p, 0x1.921fb6p+0f);
    return x * p;
}

static inline float quarter_cosine(float z)
{
    float p = fmaf(z, -0x1.4ea9e8p-6f, 0x1.03b162p-2f);
    p = fmaf(z, p, -0x1.3bd3a2p+0f);
    return fmaf(z, p, 1.0f);
}

void BOX_MULLER(int64_t units, const uint32_t *restrict words, float *restrict eps_out)
{
    for (; units > 0; units--, words += STI_NORMAL_UNIT, eps_out += STI_NORMAL_UNIT)
        for (int j = 0; j < HALF; j++) {
            const float v = (float)(int32_t)((words[j] & 0x7fffffffu) | 1u);
            const float r = sqrtf(minus_2_log(v));
            const uint32_t w = words[HALF + j];
            const float x = sti_f32_of_bits((w & 0x7fffffu) | 0x3f800000u) - 1.5f;
            const float z = x * x, s = quarter_sine(x, z);
            const float c =
                sti_f32_of_bits(sti_f32_bits(quarter_cosine(z)) ^ (w & 0x80000000u));
            const int swap = (w & 0x40000000u) != 0;
            eps_out[j] = r * (swap ? s : c);
            eps_out[HALF + j] = r * (swap ? c : s);
        }
}
