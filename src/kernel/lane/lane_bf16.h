/* Loads and stores of bfloat16 for the lanes of lane.h. The including file may define
 * LANE_NARROW(x), 16 floats to a __m256i of bfloat16, where there is an instruction.
 * Private to the kernel room. */
#ifndef STI_KERNEL_LANE_BF16_H
#define STI_KERNEL_LANE_BF16_H

#include "kernel/lane/bf16.h"
#include "kernel/lane/lane.h"

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

#if STI_LANES == 16

/* Element i of the lower half beside element i of the upper one. */
static inline __m512i lane_bf16_beside(__m512i x)
{
    return _mm512_permutexvar_epi16(
        _mm512_set_epi32(0x001f000f, 0x001e000e, 0x001d000d, 0x001c000c, 0x001b000b,
                         0x001a000a, 0x00190009, 0x00180008, 0x00170007, 0x00160006,
                         0x00150005, 0x00140004, 0x00130003, 0x00120002, 0x00110001,
                         0x00100000),
        x);
}

/* Even (0) or odd (1) ones of 32 elements as float32: cheaper than to widen two halves.
 */
static inline __m512 lane_bf16_half(__m512i x, const int odd)
{
    return _mm512_castsi512_ps(
        odd ? _mm512_and_si512(x, _mm512_set1_epi32((int)0xffff0000u))
            : _mm512_slli_epi32(x, 16));
}

/* And back, rounded. */
static inline __m512i lane_bf16_pack(const __m512 *half)
{
#ifdef LANE_NARROW
    return lane_bf16_beside((__m512i)_mm512_cvtne2ps_pbh(half[1], half[0]));
#else
    const lane_h even = lane_bf16_narrow((lane_f)half[0]);
    const lane_h odd = lane_bf16_narrow((lane_f)half[1]);
    return (__m512i)(__builtin_convertvector(even, lane_u) |
                     __builtin_convertvector(odd, lane_u) << 16);
#endif
}

#endif

#endif
