/* Loads and stores of bfloat16 for the lanes of lane.h. The including file may define
 * LANE_NARROW(x), 16 floats to a __m256i of bfloat16, where there is an instruction.
 * Private to the kernel room. */
#ifndef STI_KERNEL_LANE_BF16_H
#define STI_KERNEL_LANE_BF16_H

#include "kernel/bf16.h"
#include "kernel/lane.h"

typedef uint16_t lane_h
    __attribute__((vector_size(2 * STI_LANES), aligned(2), may_alias));
typedef uint32_t lane_u __attribute__((vector_size(4 * STI_LANES)));

static inline lane_f lane_bf16_load(const sti_bf16 *p)
{
    const lane_h h = *(const lane_h *)(const void *)p;
    return (lane_f)(__builtin_convertvector(h, lane_u) << 16);
}

static inline lane_h lane_bf16_narrow(lane_f x)
{
#ifdef LANE_NARROW
    return (lane_h)LANE_NARROW(x);
#else
    const lane_u bits = (lane_u)x, size = bits & 0x7fffffffu, top = bits >> 16;
    const lane_u nan = (lane_u)(size > 0x7f800000u);
    const lane_u denormal = (lane_u)(size < 0x00800000u);
    const lane_u near = (bits + 0x7fffu + (top & 1u)) >> 16;
    const lane_u special = (nan & (top | 0x40u)) | (denormal & top & 0x8000u);
    return __builtin_convertvector((near & ~(nan | denormal)) | special, lane_h);
#endif
}

static inline void lane_bf16_store(sti_bf16 *p, lane_f x)
{
    *(lane_h *)(void *)p = lane_bf16_narrow(x);
}

#endif
