/* Vectors of STI_LANES floats for kernel bodies whose lanes never mix, so that the
 * width does not show in the bits. The including file defines STI_LANES (8 or 16) and
 * has the matching instruction set. Loads and stores take any alignment; eight packed
 * bits belong to eight neighbouring lanes, least significant first. Private to the
 * kernel room. */
#ifndef STI_KERNEL_LANE_H
#define STI_KERNEL_LANE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if STI_LANES == 16 || defined(__AVX2__)
#include <immintrin.h>
#endif

/* Vectors wider than the machine's may be passed differently by another compiler: of no
 * account among static functions. */
#pragma GCC diagnostic ignored "-Wpsabi"

typedef float lane_f __attribute__((vector_size(4 * STI_LANES), aligned(4), may_alias));

static inline lane_f lane_load(const float *p)
{
    return *(const lane_f *)(const void *)p;
}

static inline void lane_store(float *p, lane_f v)
{
    *(lane_f *)(void *)p = v;
}

/* Past the caches, for results too large to be found there again; 64-byte aligned (32
 * for 8 lanes). lane_fence() before another thread may read them. */
static inline void lane_stream(float *p, lane_f v)
{
#if STI_LANES == 16
    _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX2__)
    _mm256_stream_ps(p, (__m256)v);
#else
    lane_store(p, v);
#endif
}

static inline void lane_fence(void)
{
#if STI_LANES == 16 || defined(__AVX2__)
    _mm_sfence();
#endif
}

/* The line `elements` further on will be read soon: into the second cache. It may lie
 * outside of the array. */
static inline void lane_ahead(const float *p, int64_t elements)
{
    __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)(elements * 4)), 0, 2);
}

/* The same for a line that will be written: its old bytes come early too, and as ours.
 */
static inline void lane_ahead_written(const float *p, int64_t elements)
{
    __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)(elements * 4)), 1);
}

static inline lane_f lane_splat(float s)
{
    return s - (lane_f){0.0f};
}

#if STI_LANES == 16

typedef uint16_t lane_bits;

/* Lanes that a ReLU lets pass: > 0 or NaN. */
static inline lane_bits lane_passes(lane_f v)
{
    return _mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_NLE_UQ);
}

/* v where the bit is set, else +0. */
static inline lane_f lane_keep(lane_f v, lane_bits bits)
{
    return (lane_f)_mm512_maskz_mov_ps(bits, (__m512)v);
}

#elif defined(__AVX2__)

typedef uint8_t lane_bits;

static inline lane_bits lane_passes(lane_f v)
{
    __m256 pass = _mm256_cmp_ps((__m256)v, _mm256_setzero_ps(), _CMP_NLE_UQ);
    return (lane_bits)_mm256_movemask_ps(pass);
}

static inline lane_f lane_keep(lane_f v, lane_bits bits)
{
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    __m256i hit = _mm256_and_si256(_mm256_set1_epi32(bits), each);
    __m256i mask = _mm256_cmpeq_epi32(hit, each);
    return (lane_f)_mm256_and_ps((__m256)v, _mm256_castsi256_ps(mask));
}

#else

typedef uint8_t lane_bits;
typedef int32_t lane_i __attribute__((vector_size(4 * STI_LANES)));

static inline lane_bits lane_passes(lane_f v)
{
    const lane_i pass = ~(v <= (lane_f){0.0f}) & (lane_i){1, 2, 4, 8, 16, 32, 64, 128};
    int32_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits |= pass[i];
    return (lane_bits)bits;
}

static inline lane_f lane_keep(lane_f v, lane_bits bits)
{
    const lane_i each = {1, 2, 4, 8, 16, 32, 64, 128};
    const lane_i hit = (((int32_t)bits - (lane_i){0}) & each) == each;
    return (lane_f)((lane_i)v & hit);
}

#endif

/* Bits of the vector that begins at flat element i, a multiple of 8. */
static inline lane_bits lane_bits_load(const uint8_t *bits, int64_t i)
{
    lane_bits b;
    memcpy(&b, bits + i / 8, sizeof b);
    return b;
}

static inline void lane_bits_store(uint8_t *bits, int64_t i, lane_bits b)
{
    memcpy(bits + i / 8, &b, sizeof b);
}

#endif
