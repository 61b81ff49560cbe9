/* bfloat16 numbers: the upper half of a float32, kept as uint16_t.
 *
 * To float32 is exact. From float32 is to the nearest, ties to even; denormals become a
 * zero of their sign and a NaN stays a (quiet) NaN, as vcvtneps2bf16 does. */
#ifndef STI_KERNEL_BF16_H
#define STI_KERNEL_BF16_H

#include <stdint.h>
#include <string.h>

typedef uint16_t sti_bf16;

static inline float sti_bf16_to_f32(sti_bf16 h)
{
    const uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline sti_bf16 sti_bf16_from_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (sti_bf16)(bits >> 16 | 0x40u);
    if (magnitude < 0x00800000u)
        return (sti_bf16)(bits >> 16 & 0x8000u);
    return (sti_bf16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
