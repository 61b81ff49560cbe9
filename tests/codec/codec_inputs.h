/* Arrays of every kind that the codec must hold its bound on. */
#ifndef STI_TESTS_CODEC_INPUTS_H
#define STI_TESTS_CODEC_INPUTS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef enum input_kind {
    INPUT_RELU,     /* channels of their own scale, smooth in space, half zeros */
    INPUT_DENSE,    /* near normal, as the input of a batch-norm */
    INPUT_RELU6,    /* much of it at exactly 6 */
    INPUT_CONSTANT, /* one value */
    INPUT_ZERO,
    INPUT_RAMP,     /* smooth, many bits */
    INPUT_WIDE,     /* any exponent */
    INPUT_DENORMAL, /* denormals and zeros of both signs */
    INPUT_SPECIAL,  /* some NaN, infinities, +-FLT_MAX, denormals among numbers */
    INPUT_NAN,      /* nothing else */
    INPUT_BITS,     /* any bits at all */
    INPUT_KINDS
} input_kind;

static uint64_t input_state = 1;

/* xorshift64* */
static inline uint32_t input_word(void)
{
    input_state ^= input_state >> 12;
    input_state ^= input_state << 25;
    input_state ^= input_state >> 27;
    return (uint32_t)(input_state * UINT64_C(0x2545f4914f6cdd1d) >> 32);
}

/* Near normal: four uniforms of 16 bits. */
static inline float input_normal(void)
{
    const uint32_t a = input_word(), b = input_word();
    const float sum =
        (float)(a >> 16) + (float)(a & 0xffff) + (float)(b >> 16) + (float)(b & 0xffff);
    return (sum - 131070.0f) * (1.0f / 37837.0f);
}

static inline float input_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline float input_special(void)
{
    static const uint32_t odd[] = {0x7fc00000, 0x7f800001, 0xffc12345, 0x7f800000,
                                   0xff800000, 0x7f7fffff, 0xff7fffff, 0x00000001,
                                   0x80000001, 0x007fffff, 0x80000000, 0x00800000};
    return input_of_bits(odd[input_word() % (sizeof odd / sizeof *odd)]);
}

static inline float input_one(input_kind kind, int64_t i, int64_t c, float before)
{
    const float scale = 0.2f + 3.0f * (float)((i % c * 37) % 11) / 11.0f;
    float v;
    switch (kind) {
    case INPUT_RELU:
        v = 0.7f * before + 0.5f * scale * input_normal();
        return v > 0 ? v : 0.0f;
    case INPUT_DENSE:
        return scale * input_normal() + 0.1f * (float)(i % c % 5);
    case INPUT_RELU6:
        v = 4.0f + 4.0f * input_normal();
        return v < 0 ? 0.0f : v > 6 ? 6.0f : v;
    case INPUT_CONSTANT:
        return -1.7f;
    case INPUT_RAMP:
        return (float)i * 1e-4f;
    case INPUT_WIDE:
        return input_of_bits((input_word() & 0xbfffffff) | 0x20000000);
    case INPUT_DENORMAL:
        return input_of_bits(input_word() & (i % 3 ? 0x807fffff : 0x80000000));
    case INPUT_SPECIAL:
        return input_word() % 50 ? input_normal() : input_special();
    case INPUT_NAN:
        return input_of_bits(0x7fc00000 | (input_word() & 0x803fffff));
    case INPUT_BITS:
        return input_of_bits(input_word());
    case INPUT_ZERO:
    case INPUT_KINDS:
        break;
    }
    return 0.0f;
}

/* x [count] with c channels, last axis. Denormals of the generator's own arithmetic do
 * not occur. */
static inline void input_fill(input_kind kind, int64_t count, int64_t c, float *x)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = input_one(kind, i, c, i >= c ? x[i - c] : 0.0f);
}

/* max - min over the finite values; 1 where that is not above 0 or not finite. */
static inline double input_range(const float *x, int64_t n)
{
    double low = (double)INFINITY, high = -low;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i])) {
            low = fmin(low, (double)x[i]);
            high = fmax(high, (double)x[i]);
        }
    const double range = high - low;
    return range > 0 && range < (double)INFINITY ? range : 1;
}

#endif
