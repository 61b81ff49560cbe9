/* Numbers of 16 bits as float: exact, every one of them is a float. */
#ifndef STI_BASE_HALF_H
#define STI_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float sti_float_of_bfloat(uint16_t top)
{
    const uint32_t bits = (uint32_t)top << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE half precision. */
static inline float sti_float_of_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7fffu;
    uint32_t bits = sign | ((rest << 13) + 0x38000000u);
    if (rest >= 0x7c00u) /* infinity, NaN */
        bits = sign | (rest << 13) | 0x7f800000u;
    float value;
    memcpy(&value, &bits, sizeof value);
    if (rest < 0x0400u) /* zero, denormal */
        value = (sign ? -1.0f : 1.0f) * (float)rest * 0x1p-24f;
    return value;
}

#endif
