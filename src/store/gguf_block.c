#include "store/gguf_block.h"

#include <math.h>
#include <string.h>

#include "kernel/lane/bf16.h"

enum { K_BLOCK = 256 };

static float bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint16_t u16_at(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static void put_u16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

/* IEEE half precision, exactly. */
static float half_at(const uint8_t *at)
{
    const uint32_t h = u16_at(at), sign = (h & 0x8000u) << 16;
    const uint32_t exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31)
        return bits_float(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) {
        const float x = (float)fraction * 0x1p-24f;
        return sign ? -x : x;
    }
    return bits_float(sign | (exponent + 112) << 23 | fraction << 13);
}

/* The nearest half, ties to even; too large: infinity. */
static uint16_t half_of(float x)
{
    const uint32_t bits = float_bits(x), sign = bits >> 16 & 0x8000u;
    const uint32_t size = bits & 0x7fffffffu;
    if (size > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (size >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u);
    if (size < 0x38800000u) /* below the least normal half: units of 2^-24 */
        return (uint16_t)(sign | (uint32_t)nearbyintf(fabsf(x) * 0x1p24f));
    const uint32_t odd = size >> 13 & 1;
    return (uint16_t)(sign | (size - 0x38000000u + 0xfffu + odd) >> 13);
}

static void read_f32(const uint8_t *from, float *out)
{
    *out = bits_float((uint32_t)u16_at(from) | (uint32_t)u16_at(from + 2) << 16);
}

static void write_f32(const float *x, uint8_t *to)
{
    const uint32_t bits = float_bits(*x);
    put_u16(to, (uint16_t)bits);
    put_u16(to + 2, (uint16_t)(bits >> 16));
}

static void read_f16(const uint8_t *from, float *out)
{
    *out = half_at(from);
}

static void write_f16(const float *x, uint8_t *to)
{
    put_u16(to, half_of(*x));
}

static void read_bf16(const uint8_t *from, float *out)
{
    *out = bits_float((uint32_t)u16_at(from) << 16);
}

static void write_bf16(const float *x, uint8_t *to)
{
    put_u16(to, sti_bf16_from_f32(*x));
}

static void read_q8_0(const uint8_t *from, float *out)
{
    const float d = half_at(from);
    for (int i = 0; i < 32; i++)
        out[i] = d * (float)(int8_t)from[2 + i];
}

/* The scale that ggml takes: the largest size is 127 of it; quotients are rounded to
 * the nearest, halves away from zero. */
static void write_q8_0(const float *x, uint8_t *to)
{
    float most = 0;
    for (int i = 0; i < 32; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    const float d = most / 127.0f, inverse = d > 0 ? 1.0f / d : 0.0f;
    put_u16(to, half_of(d));
    for (int i = 0; i < 32; i++)
        to[2 + i] = (uint8_t)(int8_t)roundf(x[i] * inverse);
}

static void read_q4_0(const uint8_t *from, float *out)
{
    const float d = half_at(from);
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)((from[2 + i] & 15) - 8);
        out[16 + i] = d * (float)((from[2 + i] >> 4) - 8);
    }
}

/* The scale that ggml takes: the largest number by size is -8 of it. */
static void write_q4_0(const float *x, uint8_t *to)
{
    float most = 0;
    int q[32];
    for (int i = 0; i < 32; i++)
        most = fabsf(x[i]) > fabsf(most) ? x[i] : most;
    const float d = most / -8.0f;
    const float inverse = fabsf(d) > 1e-37f ? 1.0f / d : 0.0f;
    put_u16(to, half_of(d));
    for (int i = 0; i < 32; i++) {
        const int n = (int)(x[i] * inverse + 8.5f);
        q[i] = n < 0 ? 0 : n > 15 ? 15 : n;
    }
    for (int i = 0; i < 16; i++)
        to[2 + i] = (uint8_t)(q[i] | q[16 + i] << 4);
}

/* Six-bit scale and minimum of group g out of 12 bytes: the first four groups lie in
 * the low bits of bytes 0-3 and 4-7, the others in 8-11 and the high bits of those. */
static void group_of(const uint8_t *s, int g, int *scale, int *least)
{
    if (g < 4) {
        *scale = s[g] & 63;
        *least = s[4 + g] & 63;
        return;
    }
    *scale = (s[4 + g] & 15) | (s[g - 4] >> 2 & 48);
    *least = s[4 + g] >> 4 | (s[g] >> 2 & 48);
}

static void read_q4_k(const uint8_t *from, float *out)
{
    const float d = half_at(from), m = half_at(from + 2);
    const uint8_t *q = from + 16;
    for (int g = 0; g < 8; g++) {
        int scale, least;
        group_of(from + 4, g, &scale, &least);
        const float step = d * (float)scale, shift = m * (float)least;
        for (int i = 0; i < 32; i++) {
            const uint8_t byte = q[g / 2 * 32 + i];
            out[g * 32 + i] = step * (float)(g % 2 ? byte >> 4 : byte & 15) - shift;
        }
    }
}

static void read_q6_k(const uint8_t *from, float *out)
{
    const uint8_t *low = from, *high = from + 128, *scales = from + 192;
    const float d = half_at(from + 208);
    for (int i = 0; i < K_BLOCK; i++) {
        const int half = i / 128,
                  in = i % 128; /* 64 bytes of low, 32 of high bits each */
        const uint8_t l = low[half * 64 + in % 64], h = high[half * 32 + in % 32];
        const int bits = (in < 64 ? l & 15 : l >> 4) | (h >> in / 32 * 2 & 3) << 4;
        out[i] = d * (float)(int8_t)scales[i / 16] * (float)(bits - 32);
    }
}

static const sti_gguf_type types[] = {
    {"F32", 0, 1, 4, read_f32, write_f32},
    {"F16", 1, 1, 2, read_f16, write_f16},
    {"Q4_0", 2, 32, 18, read_q4_0, write_q4_0},
    {"Q8_0", 8, 32, 34, read_q8_0, write_q8_0},
    {"Q4_K", 12, K_BLOCK, 144, read_q4_k, NULL},
    {"Q6_K", 14, K_BLOCK, 210, read_q6_k, NULL},
    {"BF16", 30, 1, 2, read_bf16, write_bf16},
};

const sti_gguf_type *sti_gguf_type_find(uint32_t number)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

const sti_gguf_type *sti_gguf_type_named(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}
